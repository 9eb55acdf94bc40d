//! Which server keeps the ledger, and what it means when it is another one than before.

use chrono::{DateTime, Utc};

/// What the ledger's clock shows, and whose clock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The ledger's time.
    pub now: DateTime<Utc>,
    /// The server that told it; `None` where no other can take its place, as with a file.
    pub server: Option<Server>,
}

/// A server that takes rows, named so that a promoted standby differs from the primary it followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The cluster: the same for a primary and all its standbys.
    pub system: i64,
    /// One more with every promotion in this cluster.
    pub timeline: i64,
}

/// How one server follows upon another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// It is the same.
    Same,
    /// A standby of the former one was promoted.
    Promoted,
    /// It had been replaced by the former one, and takes rows all the same.
    Overruled,
    /// It belongs to another cluster.
    Foreign,
}

impl Server {
    /// What `next` is to this one.
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
    fn a_server_is_judged_by_its_cluster_first_and_by_its_timeline_then() {
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
