//! A streaming standby. It can take over from a primary, with all of its rows or without the last ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::template::{program, run};
use super::{PATIENCE, PrivatePostgres};
use crate::wait_until_blocking;

impl PrivatePostgres {
    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port()).into()
    }

    /// Starts a standby of this server. It streams from `source`: this server, or a proxy in front of it that can
    /// delay the stream. When this returns, it accepts reads and has replayed everything up to its start.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn standby(&self, source: SocketAddr) -> Self {
        let stream = format!(
            "primary_conninfo=host={} port={} user=postgres application_name=standby",
            source.ip(),
            source.port()
        );
        let standby = Self::start_with(vec![stream], |data, user| {
            let mut copy = Command::new(program("pg_basebackup"));
            if let Some(user) = user {
                copy.uid(user.uid).gid(user.gid);
            }
            copy.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port().to_string()]);
            // It writes the file that makes the copy a standby, and does not wait for the next checkpoint.
            run(copy.args(["-R", "-c", "fast", "--no-sync", "-D"]).arg(data).current_dir("/"));
        });
        standby.wait_replayed(&self.log_position());
        standby
    }

    /// The position up to which this server has written its log.
    ///
    /// # Panics
    /// When it is a standby.
    #[must_use]
    pub fn log_position(&self) -> String {
        self.sql("SELECT pg_current_wal_flush_lsn()")
    }

    /// Waits until this standby has replayed the log up to `position`.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn wait_replayed(&self, position: &str) {
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}', pg_last_wal_replay_lsn()");
        wait_until_blocking(PATIENCE, || match self.sql(&replayed) {
            line if line.starts_with('t') => Ok(()),
            line => Err(format!("{line}, and not {position}")),
        });
    }

    /// Makes replication synchronous: this server acknowledges a commit only when a standby has it on disk.
    ///
    /// # Panics
    /// When no standby streams from it.
    pub fn replicate_synchronously(&self) {
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        wait_until_blocking(PATIENCE, || {
            match self.sql("SELECT coalesce(string_agg(sync_state, ','), 'none') FROM pg_stat_replication") {
                state if state == "sync" => Ok(()),
                state => Err(format!("the standby is {state}")),
            }
        });
    }

    /// Promotes this standby to a primary, with the data that it has received. Returns when it accepts writes.
    ///
    /// # Panics
    /// When it is not a standby, or is not promoted.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote(true, 30)"), "t", "the standby was not promoted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Proxy};

    #[test]
    fn a_standby_that_is_held_back_is_promoted_without_what_it_has_not_received() {
        let primary = PrivatePostgres::start();
        primary.sql("CREATE TABLE noted (what text)");
        let stream = Proxy::new(primary.address());
        let standby = primary.standby(stream.address());
        primary.sql("INSERT INTO noted VALUES ('early')");
        standby.wait_replayed(&primary.log_position());
        stream.set(Mode::Stall);
        primary.sql("INSERT INTO noted VALUES ('late')");
        standby.promote();
        standby.sql("INSERT INTO noted VALUES ('new')");
        assert_eq!(standby.sql("SELECT string_agg(what, ' ') FROM noted"), "early new");
        assert_eq!(primary.sql("SELECT string_agg(what, ' ') FROM noted"), "early late");
    }

    #[test]
    fn a_synchronous_standby_has_every_commit_that_was_acknowledged() {
        let primary = PrivatePostgres::start();
        primary.sql("CREATE TABLE noted (what text)");
        let standby = primary.standby(primary.address());
        primary.replicate_synchronously();
        primary.sql("INSERT INTO noted VALUES ('kept')");
        primary.stop();
        standby.promote();
        assert_eq!(standby.sql("SELECT string_agg(what, ' ') FROM noted"), "kept");
    }
}
