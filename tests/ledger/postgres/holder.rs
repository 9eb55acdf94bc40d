//! Somebody else's transaction that stays open until it is told to commit.

use std::thread::JoinHandle;

use testbed::PrivatePostgres;

use crate::fixture::{Postgres, Site, eventually};

/// Statements that have been executed and not yet committed.
pub(crate) struct Holder<'s> {
    site: &'s Site<Postgres>,
    thread: JoinHandle<String>,
}

impl<'s> Holder<'s> {
    /// Keeps the row of job `a` locked.
    pub(crate) async fn of_the_job(site: &'s Site<Postgres>) -> Self {
        Self::of(site, "PERFORM FROM runner_jobs WHERE name = 'a' FOR UPDATE").await
    }

    /// Does `statements` (PL/pgSQL) and keeps what they locked; `last` when it is told to go on.
    pub(crate) async fn of(site: &'s Site<Postgres>, statements: &str) -> Self {
        Self::with_end(site, statements, "").await
    }

    /// The same, and does `last` when it is told to let go, before it commits.
    pub(crate) async fn with_end(site: &'s Site<Postgres>, statements: &str, last: &str) -> Self {
        let url = site.url();
        site.sql("CREATE TABLE gate (what text)");
        let block = format!(
            "DO $$ BEGIN
                {statements};
                LOOP
                    PERFORM pg_sleep(0.01);
                    EXIT WHEN EXISTS (SELECT FROM gate);
                END LOOP;
                {last}
            END $$"
        );
        let thread = std::thread::spawn(move || PrivatePostgres::sql_at(&url, &block));
        eventually("somebody holds it", async || {
            match sessions(site, "count(*)", "wait_event = 'PgSleep'").as_str() {
                "1" => Ok(()),
                other => Err(other.to_owned()),
            }
        })
        .await;
        Self { site, thread }
    }

    /// Lets it commit, and waits until it has.
    pub(crate) fn let_go(self) {
        self.site.sql("INSERT INTO gate VALUES ('open')");
        self.thread.join().expect("its statements went through");
        self.site.sql("DROP TABLE gate");
    }
}

/// Until so many sessions wait for what somebody holds.
pub(crate) async fn waits_for_a_lock(site: &Site<Postgres>, count: usize) {
    eventually("others wait for the lock", async || {
        let waiting = sessions(site, "count(*)", "wait_event_type = 'Lock'");
        if waiting.parse() == Ok(count) { Ok(()) } else { Err(waiting) }
    })
    .await;
}

/// A column of the server's list of this database's sessions.
pub(crate) fn sessions(site: &Site<Postgres>, column: &str, which: &str) -> String {
    let list = "FROM pg_stat_activity WHERE datname = current_database()";
    site.sql(&format!("SELECT {column} {list} AND ({which})"))
}
