//! Which server keeps the ledger, and how a new server relates to the one before.

use chrono::{DateTime, Utc};

/// What the ledger's clock shows, and whose clock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The ledger's time.
    pub now: DateTime<Utc>,
    /// The server that answered; `None` where no other server can replace it, as with a file.
    pub server: Option<Server>,
}

/// Identifies a server that accepts writes. A promoted standby has another identity than its former primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The cluster: the same for a primary and all its standbys.
    pub system: i64,
    /// Grows by one with every promotion in this cluster.
    pub timeline: i64,
}

/// How a new server relates to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// It is the same.
    Same,
    /// A standby of the former one was promoted.
    Promoted,
    /// The former server had replaced it, and it still accepts writes.
    Overruled,
    /// It belongs to another cluster.
    Foreign,
}

impl Server {
    /// How `next` relates to this server.
    #[must_use]
    pub fn succession(self, next: Self) -> Succession {
        match next.timeline.cmp(&self.timeline) {
            _ if next.system != self.system => Succession::Foreign,
            std::cmp::Ordering::Less => Succession::Overruled,
            std::cmp::Ordering::Equal => Succession::Same,
            std::cmp::Ordering::Greater => Succession::Promoted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_compared_by_cluster_first_and_then_by_timeline() {
        let server = |system, timeline| Server { system, timeline };
        let former = server(7, 3);
        for (next, succession) in [
            (server(7, 3), Succession::Same),
            (server(7, 4), Succession::Promoted),
            (server(7, 9), Succession::Promoted),
            (server(7, 2), Succession::Overruled),
            (server(8, 3), Succession::Foreign),
            (server(8, 9), Succession::Foreign),
            (server(8, 1), Succession::Foreign),
        ] {
            assert_eq!(former.succession(next), succession, "{next:?}");
        }
    }
}
