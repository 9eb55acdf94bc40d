//! One replica that is cut off from one server, for good or for a while, beside others that are not.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use testbed::rows::{instant, number, state};
use testbed::scene::{QUICK, SECOND, START, end, host_now, instance, owner, soon, start_on, wait_for_row};
use testbed::{
    Account, Deployment, Effect, EffectKind, Mode, Proxy, Replica, Scene, Wire, let_pass, wait_until_blocking,
};

use crate::program;

/// How long a permanent partition is watched.
const WATCH: Duration = Duration::from_secs(8);
/// Until a replica knows that a server which does not answer is away (a probe each second, and its
/// timeout), and what it had begun by then has timed out twice.
const NOTICE: TimeDelta = TimeDelta::milliseconds(3_500);
/// Until what was under way at the cut has been found and run: two leases and a sweep.
const REPAIR: TimeDelta = TimeDelta::seconds(8);

fn postgres(wire: &Wire) -> &Proxy {
    &wire.postgres
}

fn redis(wire: &Wire) -> &Proxy {
    &wire.redis
}

/// Who holds the job's lock at this moment.
fn holder(scene: &Scene, deployment: &Deployment, job: &str) -> Option<String> {
    let key = format!("{{runner:{}/{job}}}:lock", deployment.namespace());
    let value = scene.cluster.redis.call(&["GET", &key])?;
    value.split('|').next().map(str::to_owned)
}

/// Everything is there; what was due well before or after the cut ran at once and at its first
/// attempt, and what was under way in that moment is repaired in time. A repaired firing may stand in
/// the way of the next one. The heal of a silent path to Redis is such a moment too: what was held
/// back arrives then, and an acquisition that nobody waits for any more holds the lock for one ttl.
#[track_caller]
fn assert_only_the_moment_of_the_cut_shows(account: &Account, cuts: &[DateTime<Utc>]) {
    account.assert_states(&["succeeded", "skipped(overlap)"]);
    account.assert_on_time(REPAIR);
    let near = |at: DateTime<Utc>, until: TimeDelta| {
        cuts.iter().any(|cut| at > *cut - TimeDelta::seconds(2) && at < *cut + until)
    };
    for (at, late) in account.lateness() {
        assert!(late < TimeDelta::seconds(1) || near(at, NOTICE), "{at} started {late} late; cuts {cuts:?}");
    }
    for row in &account.rows {
        let at = instant(row, "scheduled_at");
        let plain = state(row) == "succeeded" && number(row, "attempt") == 1;
        assert!(plain || near(at, REPAIR), "{row}; cuts {cuts:?}");
    }
}

/// Of three replicas one is cut off from PostgreSQL. It would fail fastest and so win every lock; it
/// must not contend. Later it is healed, and left alone.
fn cut_one_off_from_postgresql(mode: Mode) {
    let scene = Scene::new();
    let wires: [Wire; 3] = scene.wires();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"");
    let mut replicas = start_on(&wires, &deployment);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    let hermit = instance(&replicas[0]);
    wires[0].postgres.set(mode);
    let cut = host_now();
    let mut held_late = Vec::new();
    while host_now() < cut + TimeDelta::from_std(WATCH).unwrap() {
        if holder(&scene, &deployment, "tick").as_ref() == Some(&hermit) && host_now() > cut + NOTICE {
            held_late.push(host_now());
        }
        let_pass(Duration::from_millis(10));
    }
    assert!(held_late.is_empty(), "the replica without a ledger held the lock: {held_late:?}");
    replicas[0].wait_for_line(SECOND, |line| line.contains("no firing contends until it does"));
    let mark = replicas[0].lines().mark();
    wires[0].postgres.set(Mode::Forward);
    // From its first answer on it is alone, with connections that are still those of before the cut.
    let healed = host_now();
    replicas[0].lines().wait_for(mark, START, |line| line.contains("the ledger answers"));
    let mut others = replicas.split_off(1);
    end(&mut others);
    let alone = effects.instants("tick").len();
    effects.wait_for_starts("tick", alone + 3, START);
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    assert_only_the_moment_of_the_cut_shows(&account, &[cut, healed]);
    let last = account.rows.iter().rev().find(|row| row["state"] == "succeeded").unwrap();
    assert_eq!(last["owner"], hermit.as_str(), "the healed replica takes no part");
    let away = (cut + NOTICE, cut + TimeDelta::from_std(WATCH).unwrap());
    for row in &account.rows {
        let at = instant(row, "scheduled_at");
        assert!(row["owner"] != hermit.as_str() || at <= away.0 || at >= away.1, "{row}; away {away:?}");
    }
}

#[test]
fn a_replica_to_which_postgresql_is_closed_keeps_no_firing_from_the_others() {
    cut_one_off_from_postgresql(Mode::Refuse);
}

#[test]
fn a_replica_to_which_postgresql_is_silent_keeps_no_firing_from_the_others() {
    cut_one_off_from_postgresql(Mode::Stall);
}

#[test]
fn a_replica_that_hears_no_answer_of_postgresql_keeps_no_firing_from_the_others() {
    cut_one_off_from_postgresql(Mode::StallReplies);
}

/// Of three replicas one is cut off from Redis, and goes by the row alone.
fn cut_one_off_from_redis(mode: Mode) {
    let scene = Scene::new();
    let wires: [Wire; 3] = scene.wires();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"").job(
        "long",
        Duration::from_millis(1_500),
        "every = \"1s\"",
    );
    let mut replicas = start_on(&wires, &deployment);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    wires[0].redis.set(mode);
    let cut = host_now();
    let_pass(WATCH);
    replicas[0].wait_for_line(SECOND, |line| line.contains("degraded: no lock"));
    wires[0].redis.set(Mode::Forward);
    let (heal, healed) = (host_now(), replicas[0].lines().mark());
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 4, START);
    end(&mut replicas);
    let lines = replicas[0].lines().since(healed);
    let degraded = lines.iter().filter(|line| line.contains("degraded: no lock")).count();
    assert!(degraded <= 4, "still degraded after the heal: {lines:#?}");
    let tick = Account::of(&deployment, "tick", SECOND);
    assert_only_the_moment_of_the_cut_shows(&tick, &[cut, heal]);
    let long = Account::of(&deployment, "long", SECOND);
    long.assert_states(&["succeeded", "skipped(overlap)"]);
    long.assert_one_attempt_each();
}

#[test]
fn a_replica_to_which_redis_is_closed_doubles_nothing_and_lets_no_job_overlap() {
    cut_one_off_from_redis(Mode::Refuse);
}

#[test]
fn a_replica_to_which_redis_is_silent_doubles_nothing_and_lets_no_job_overlap() {
    cut_one_off_from_redis(Mode::Stall);
}

#[test]
fn two_replicas_that_have_each_lost_another_server_leave_everything_to_the_third() {
    let scene = Scene::new();
    let wires: [Wire; 3] = scene.wires();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"");
    let mut replicas = start_on(&wires, &deployment);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    wires[0].postgres.set(Mode::Stall);
    wires[1].redis.set(Mode::Stall);
    let cut = host_now();
    let_pass(WATCH);
    replicas[0].wait_for_line(SECOND, |line| line.contains("no firing contends until it does"));
    replicas[1].wait_for_line(SECOND, |line| line.contains("degraded: no lock"));
    for proxy in wires.iter().flat_map(|wire| [&wire.redis, &wire.postgres]) {
        proxy.set(Mode::Forward);
    }
    let heal = host_now();
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 4, START);
    end(&mut replicas);
    assert_only_the_moment_of_the_cut_shows(&Account::of(&deployment, "tick", SECOND), &[cut, heal]);
}

// === A partition that begins in the middle of a run ===

/// One firing of a job that works for four seconds, two leases of it, on two replicas; cuts its owner
/// off on one side as soon as it has begun.
struct MidRun {
    scene: Scene,
    wires: [Wire; 2],
    deployment: Deployment,
    replicas: Vec<Replica>,
    owner: usize,
    first: Effect,
}

impl MidRun {
    fn cut(side: fn(&Wire) -> &Proxy, keys: &str) -> Self {
        let scene = Scene::new();
        let wires: [Wire; 2] = scene.wires();
        let keys = format!("{}\ntimeout = \"15s\"\n{keys}", soon());
        let deployment = scene.deployment(program()).ttl("2s").job("pay", Duration::from_secs(4), &keys);
        let replicas = start_on(&wires, &deployment);
        let effects = deployment.effects();
        let first = wait_until_blocking(START, || effects.all().first().cloned().ok_or("not started".into()));
        let owner = owner(&replicas);
        side(&wires[owner]).set(Mode::Stall);
        Self { scene, wires, deployment, replicas, owner, first }
    }

    /// When the first attempt was told to stop.
    fn killed_at(&self) -> Option<DateTime<Utc>> {
        let killed = |line: &Effect| line.kind == EffectKind::Killed && line.fence == self.first.fence;
        self.deployment.effects().all().into_iter().find(killed).map(|line| line.at)
    }

    /// One row, whose history is this.
    #[track_caller]
    fn account(&mut self, history: &str) -> Account {
        end(&mut self.replicas);
        let earlier = self
            .scene
            .ask("SELECT coalesce(string_agg(attempt || ' ' || reason, ', '), '') FROM runner_attempts");
        assert_eq!(earlier, history);
        let account = Account::of(&self.deployment, "pay", SECOND);
        account.assert_states(&["succeeded"]);
        assert_eq!(account.of_kind(EffectKind::End).count(), 1);
        account
    }
}

#[test]
fn an_owner_that_loses_postgresql_stops_before_its_lease_ends_and_is_replaced() {
    let mut run = MidRun::cut(postgres, "");
    // No heartbeat passes any more: this is the last word on the lease.
    let lease: DateTime<Utc> = {
        let sql = "SELECT to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM runner_firings";
        run.scene.ask(sql).parse().unwrap()
    };
    let row = wait_for_row(&run.deployment, "pay", "succeeded");
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 1), "{row}");
    let killed = run.killed_at().expect("the first attempt was told to stop");
    assert!(killed < lease, "told to stop at {killed}, when the lease was over at {lease}");
    let woken = run.replicas[run.owner].lines().mark();
    run.wires[run.owner].postgres.set(Mode::Forward);
    run.replicas[run.owner].lines().wait_for(woken, START, |line| line.contains("its result is void"));
    run.account("1 owner_lost");
}

#[test]
fn an_owner_that_loses_redis_goes_on_under_its_lease_in_the_ledger() {
    let mut run = MidRun::cut(redis, "");
    let row = wait_for_row(&run.deployment, "pay", "succeeded");
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (1, 0), "{row}");
    let degraded = |line: &str| line.contains("degraded: the lock cannot be renewed");
    run.replicas[run.owner].wait_for_line(SECOND, degraded);
    assert_eq!(run.killed_at(), None);
    run.account("");
}

#[test]
fn an_owner_that_loses_redis_is_stopped_where_the_job_does_not_run_without_the_lock() {
    let mut run = MidRun::cut(redis, "on_unavailable = \"skip\"");
    let row = wait_for_row(&run.deployment, "pay", "succeeded");
    // A lost lock is no crash of the run.
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 0), "{row}");
    assert!(row["owner"] != instance(&run.replicas[run.owner]).as_str(), "{row}");
    assert!(run.killed_at().is_some());
    run.account("1 interrupted");
}
