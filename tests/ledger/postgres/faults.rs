//! What only a server can do wrong: vanish, freeze, wait for others, answer too late.

use std::time::Duration;

use runner::internal::firing::State;
use runner::internal::ledger::{
    Claim, Heartbeat, HistoryFilter, LedgerError, LedgerOptions, Opened, migrate, open,
};
use testbed::PrivatePostgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::holder::{Holder, sessions, waits_for_a_lock};
use crate::fixture::{
    Fixture, HOUR, Postgres, Site, at_once, eventually, fresh, later, options, run, succeeded,
};

const SECOND: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_millis(700);

/// A ledger on a server of the test's own, which may be stopped.
async fn on(server: &PrivatePostgres, timeout: Duration) -> (Opened, Site<Postgres>) {
    let url = server.create_database();
    let site = Site::<Postgres>::at(url.clone()).await;
    (open(LedgerOptions { timeout, ..options(url) }).await.unwrap(), site)
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, LedgerError>) {
    let error = answer.expect_err("there should have been no answer");
    assert!(error.is_unavailable(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_that_open_a_fresh_database_at_once_all_come_up() {
    let url = Postgres::new().url();
    let opened = at_once((0..8).map(|_| open(options(url.clone())))).await;
    for opened in opened {
        opened.unwrap().reader.now().await.unwrap();
    }
    assert_eq!(migrate(&options(url)).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_migration_says_what_it_applied() {
    let url = Postgres::new().url();
    assert_eq!(migrate(&options(url.clone())).await.unwrap(), ["0001_ledger", "0002_server"]);
    assert_eq!(
        PrivatePostgres::sql_at(&url, "SELECT version, success FROM runner_migrations ORDER BY version"),
        "1|t\n2|t"
    );
}

#[tokio::test]
async fn a_database_without_our_tables_is_refused_with_what_to_do() {
    let url = Postgres::new().url();
    let only_check = LedgerOptions { migrate: false, ..options(url) };
    let error = open(only_check.clone()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("run `runner migrate`"), "{error}");
    migrate(&only_check).await.unwrap();
    open(only_check).await.unwrap();
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let site = Site::<Postgres>::open().await;
    site.sql("INSERT INTO runner_migrations VALUES (3, 'later', now(), true, '\\x00', 1)");
    for migrate in [true, false] {
        let error = open(LedgerOptions { migrate, ..options(site.url()) }).await.unwrap_err();
        assert!(matches!(error, LedgerError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains("newer"), "{error}");
    }
}

#[tokio::test]
async fn a_url_that_names_no_ledger_is_refused_without_being_shown() {
    for url in ["mysql://me:secret@host/db", "postgres://me:secret@host:port/db", "secret"] {
        let error = open(options(url.to_owned())).await.unwrap_err();
        assert!(matches!(error, LedgerError::Unusable { .. }), "{error:?}");
        assert!(!format!("{error:?} {error} {:?}", options(url.to_owned())).contains("secret"));
    }
}

#[tokio::test]
async fn a_server_that_will_always_refuse_us_says_what_to_do() {
    let url = Postgres::new().url();
    let nobody = url.replace("postgres@", "nobody@");
    let nowhere = format!("{url}_elsewhere");
    PrivatePostgres::sql_at(&url, "CREATE ROLE guest LOGIN");
    let guest = url.replace("postgres@", "guest@");
    for (url, remedy) in [(nobody, "this user"), (nowhere, "create it"), (guest, "grant it")] {
        let error = open(options(url)).await.unwrap_err();
        assert!(matches!(error, LedgerError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[tokio::test]
async fn a_pooler_that_refuses_our_start_parameters_says_what_to_set() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://me@{}/db?sslmode=disable", listener.local_addr().unwrap());
    let pooler = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let length = client.read_u32().await.unwrap();
        client.read_exact(&mut vec![0; length as usize - 4]).await.unwrap();
        let refusal = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
        client.write_u8(b'E').await.unwrap();
        client.write_u32(u32::try_from(refusal.len()).unwrap() + 4).await.unwrap();
        client.write_all(refusal).await.unwrap();
        client
    };
    let (error, _client) = tokio::join!(open(options(url)), pooler);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("pooler = true"), "{error:?}");
}

#[tokio::test]
async fn a_missing_table_is_refused_rather_than_unavailable() {
    let site = Site::<Postgres>::open().await;
    let firing = site.firing(SECOND).await;
    site.sql("DROP TABLE runner_firings CASCADE");
    let error = site.opened.ledger.claim(&fresh(&firing)).await.unwrap_err();
    assert!(matches!(error, LedgerError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_until_it_is_back() {
    let server = PrivatePostgres::start();
    let (opened, site) = on(&server, SHORT).await;
    let (firing, again) = (site.firing(SECOND).await, options(site.url()));
    server.stop();
    unavailable(opened.ledger.claim(&fresh(&firing)).await);
    unavailable(opened.reader.now().await);
    unavailable(open(again.clone()).await);
    server.start_again();
    let claim = eventually("the ledger answers", async || {
        opened
            .ledger
            .claim(&fresh(&firing))
            .await
            .map_err(|error| assert!(error.is_unavailable(), "{error:?}"))
    })
    .await;
    assert!(matches!(claim, Claim::Won(_)), "{claim:?}");
    open(again).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_did_not_answer_in_time_is_closed_and_not_returned() {
    let server = PrivatePostgres::start();
    // Behind a pooler the server has no limits of its own: there the client's have to do.
    for pooler in [false, true] {
        let site = Site::<Postgres>::at(server.create_database()).await;
        let opened = open(LedgerOptions { timeout: SHORT, pooler, ..options(site.url()) }).await.unwrap();
        let firing = site.firing(HOUR / 2).await;
        // One connection in the pool, and the server knows which.
        assert!(matches!(opened.ledger.claim(&fresh(&firing)).await.unwrap(), Claim::Won(_)));
        let backend = sessions(&site, "pid", "query LIKE '-- claim_fresh%' OR query = 'COMMIT'");
        assert_eq!(backend.lines().count(), 1, "{backend}");
        let other = crate::fixture::other_job(&firing);
        server.pause();
        unavailable(opened.ledger.claim(&fresh(&other)).await);
        server.resume();
        eventually("the server has seen the end of it", async || {
            let left = sessions(&site, "query", &format!("pid = {backend}"));
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
        opened.ledger.claim(&fresh(&later(&other, SECOND))).await.unwrap();
    }
}

#[tokio::test]
async fn a_claim_whose_caller_went_away_closes_its_connection_and_can_be_confirmed() {
    let site = Site::<Postgres>::open().await;
    let request = fresh(&site.firing(SECOND).await);
    let holder = Holder::of_the_job(&site).await;
    tokio::select! {
        claim = site.opened.ledger.claim(&request) => panic!("it should have waited: {claim:?}"),
        () = waits_for_a_lock(&site, 1) => {}
    }
    holder.let_go();
    // The statement was on its way: it took effect although nobody waits for it any more.
    let won = eventually("the claim has landed", async || {
        site.opened.ledger.confirm(&request).await.unwrap().ok_or(())
    })
    .await;
    assert_eq!(site.claim(&request).await, Claim::Won(won));
    eventually("its connection is gone", async || {
        let left = sessions(&site, "count(*)", "query LIKE '-- claim_fresh%' AND state = 'active'");
        if left == "0" { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn a_lock_that_somebody_keeps_is_no_outage_and_leaves_no_row() {
    let server = PrivatePostgres::start();
    let (opened, site) = on(&server, SHORT).await;
    let firing = site.firing(SECOND).await;
    let holder = Holder::of_the_job(&site).await;
    let answer = opened.ledger.claim(&fresh(&firing)).await;
    assert!(matches!(answer, Err(LedgerError::Busy { .. })), "{answer:?}");
    holder.let_go();
    assert!(opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
    assert!(matches!(opened.ledger.claim(&fresh(&firing)).await.unwrap(), Claim::Won(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_claims_that_wait_does_not_delay_a_heartbeat() {
    let site = Site::<Postgres>::open().await;
    let won = site.run().await;
    let holder = Holder::of_the_job(&site).await;
    let mut claims = tokio::task::JoinSet::new();
    let firing = site.firing(HOUR / 2).await;
    for n in 0..30 {
        let (ledger, request) = (site.opened.ledger.clone(), fresh(&later(&firing, SECOND * n)));
        claims.spawn(async move { ledger.claim(&request).await });
    }
    // All connections of the corridor are busy.
    waits_for_a_lock(&site, 8).await;
    let heartbeat = site.opened.ledger.heartbeat(run(won), HOUR).await.unwrap();
    assert_eq!(heartbeat, Heartbeat::Alive { cancel_requested: false });
    site.now().await;
    assert!(claims.try_join_next().is_none(), "they still wait");
    holder.let_go();
    for claim in claims.join_all().await {
        assert!(matches!(claim, Ok(Claim::Overlap(_))), "{claim:?}");
    }
}

#[tokio::test]
async fn a_statement_that_lost_against_another_is_tried_again() {
    let site = Site::<Postgres>::open().await;
    site.sql(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('tries') < 3 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40P01'; END IF;
            RETURN NEW;
         END $$;
         CREATE TRIGGER lose BEFORE INSERT ON runner_firings FOR EACH ROW EXECUTE FUNCTION lose();",
    );
    site.run().await;
    assert_eq!(site.sql("SELECT last_value FROM tries"), "3");
}

#[tokio::test]
async fn sessions_that_the_server_ended_are_replaced() {
    let site = Site::<Postgres>::open().await;
    let won = site.run().await;
    sessions(&site, "pg_terminate_backend(pid)", "application_name = 'runner'");
    eventually("the ledger answers", async || {
        let settlement = runner::internal::ledger::Settlement {
            run: run(won),
            ending: succeeded(),
            crashed: false,
            error: None,
            output: None,
        };
        site.opened
            .ledger
            .settle(&settlement)
            .await
            .map_err(|error| assert!(error.is_unavailable(), "{error:?}"))
    })
    .await;
    eventually("it can be read", async || {
        let row = site.opened.reader.firing(won.id).await.map_err(|error| error.to_string())?;
        assert_eq!(row.map(|row| row.state), Some(State::Succeeded.into()));
        Ok::<_, String>(())
    })
    .await;
}

#[tokio::test]
async fn the_database_itself_refuses_what_must_never_be() {
    let site = Site::<Postgres>::open().await;
    let won = site.run().await;
    let id = won.id.0;
    site.sql("CREATE TABLE refused (name text)");
    let copy = "INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, attempt,
        fence, claim_id, owner, exclusive, delivery, lease_until, created_at, started_at)
        SELECT namespace, job, scheduled_at, shard, 'KEY', origin, state, attempt,
        fence, claim_id, owner, exclusive, delivery, lease_until, created_at, started_at FROM runner_firings";
    let waiting = "INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
        exclusive, delivery, due_at, expires_at, created_at)
        SELECT namespace, job, scheduled_at, shard, n::text, origin, 'queued', 'overlap', true, delivery, now(), now(),
        now() FROM runner_firings, generate_series(1, 2) AS n";
    let update = |set: &str| format!("UPDATE runner_firings SET {set} WHERE id = {id}");
    for (statement, constraint) in [
        (copy.replace("'KEY'", "trigger_key"), "runner_firings_once"),
        (copy.replace("KEY", "other"), "runner_firings_running"),
        (waiting.to_owned(), "runner_firings_waiting"),
        (update("state = 'stopped', finished_at = now()"), "runner_firings_state"),
        (update("delivery = 'exactly_once'"), "runner_firings_delivery"),
        (update("origin = 'nowhere'"), "runner_firings_origin"),
        (update("lease_until = NULL"), "runner_firings_owned"),
        (update("crashes = 2"), "runner_firings_counts"),
        (update("state = 'queued'"), "runner_firings_waits"),
        (update("state = 'succeeded'"), "runner_firings_ended"),
    ] {
        site.sql(&format!(
            "DO $$ DECLARE name text; BEGIN {statement}; EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS name = CONSTRAINT_NAME; INSERT INTO refused VALUES (name); END $$"
        ));
        assert_eq!(site.sql("DELETE FROM refused RETURNING name"), constraint, "{statement}");
    }
}

/// Runs itself again as a replica whose clock is ten days ahead.
#[test]
fn a_replica_with_a_wrong_clock_writes_the_ledgers_times_and_runs_nothing_early() {
    let name =
        testbed::test_name!(a_replica_with_a_wrong_clock_writes_the_ledgers_times_and_runs_nothing_early);
    #[expect(clippy::disallowed_methods, reason = "the test hands itself a URL")]
    let url = std::env::var("LEDGER_OF_THE_PARENT");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Ok(url) = url {
        return runtime.block_on(async_replica(url));
    }
    let url = Postgres::new().url();
    let status = std::process::Command::new("faketime")
        .args(["-f", "+10d"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("LEDGER_OF_THE_PARENT", &url)
        .env("DONT_FAKE_MONOTONIC", "1")
        .status()
        .expect("`faketime` is missing: install it (Debian: apt-get install faketime)");
    assert!(status.success());
    let seen = PrivatePostgres::sql_at(
        &url,
        "SELECT count(*) FILTER (WHERE greatest(created_at, started_at, finished_at) <= clock_timestamp()
            AND lease_until IS NULL), count(*) FROM runner_firings",
    );
    assert_eq!(seen, "1|1");
}

async fn async_replica(url: String) {
    let site = Site::<Postgres>::at(url).await;
    let ledgers = site.now().await;
    #[expect(clippy::disallowed_methods, reason = "to see that this clock is wrong")]
    let ours = chrono::Utc::now();
    assert!((ours - ledgers).num_hours() > 200, "{ours} {ledgers}");
    let firing = site.firing(SECOND).await;
    let due_by_our_clock = later(&firing, HOUR * 24 * 9);
    match site.claim(&fresh(&due_by_our_clock)).await {
        Claim::TooEarly(wait) => assert!(wait > HOUR * 24 * 8, "{wait:?}"),
        other => panic!("tomorrow's work would run today: {other:?}"),
    }
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), succeeded()).await;
}
