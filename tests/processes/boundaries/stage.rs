//! Three replicas, one of which is struck at a moment of the first firing, and what came of that firing.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use testbed::oracle::{History, LockTerms, ReplicaProcess, Witness};
use testbed::scene::{START, end, host_now, instance, owner};
use testbed::{
    Deployment, EffectKind, Held, LockWatch, Mode, Replica, Scene, Snap, Wire, past, wait_until_blocking,
};

use super::moment::Moment;
use crate::program;

const TTL: Duration = Duration::from_secs(2);
/// Long enough for a takeover, so that the next firing finds its job free.
const PERIOD: Duration = Duration::from_secs(8);
/// Two leases and a sweep: so long may it take until a firing has its row, or its run a new owner ...
const BOUND: Duration = Duration::from_secs(5);
/// ... who polls the queue once a second, and works.
const TAKEOVER: Duration = Duration::from_millis(5_000 + 1_000 + 1_500);
/// How much slower the way to Redis is for those who are not to be first.
const SLOW: Duration = Duration::from_millis(250);

/// What is done to the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// kill -9.
    Kill,
    /// SIGSTOP, until everything is over without it.
    Freeze,
}

/// What the firing has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) state: &'static str,
    pub(crate) attempt: u32,
    pub(crate) starts: usize,
    pub(crate) ends: usize,
}

pub(crate) struct Stage {
    scene: Scene,
    delivery: &'static str,
    wires: [Wire; 3],
    watch: LockWatch,
}

impl Stage {
    pub(crate) fn new(delivery: &'static str) -> Self {
        let scene = Scene::new();
        let watch = LockWatch::of(scene.cluster.redis.addr());
        Self { wires: scene.wires(), delivery, watch, scene }
    }

    /// Strikes the first replica that comes to the moment, and follows its firing to the end.
    pub(crate) fn strike(self, blow: Blow, moment: Moment) -> Ended {
        let deployment = self.deployment(moment);
        let migrated = deployment.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
        past::watch(self.scene.database());
        let mut replicas: Vec<_> = self.wires.iter().map(|wire| wire.replica(&deployment).spawn()).collect();
        let names: Vec<_> = replicas.iter().map(instance).collect();

        let struck = self.catch(moment, &deployment, &replicas);
        let since = host_now();
        match blow {
            Blow::Kill => replicas[struck].kill9(),
            Blow::Freeze => replicas[struck].stop(),
        }
        self.wires.iter().for_each(|wire| wire.redis.set(Mode::Forward));
        if blow == Blow::Kill {
            // What it had not sent yet, it never sends; what was answered, nobody hears.
            moment.side(&self.wires[struck]).let_go(Held::Ends);
        }
        let scheduled_at = self.wait_until_over(&deployment, since);
        let mut struck_one = ReplicaProcess::default();
        if blow == Blow::Freeze {
            // Its leases are over in any case, also where nobody had to take over.
            wait_until_blocking(BOUND * 2, || {
                let left = TTL.saturating_sub((host_now() - since).to_std().unwrap_or_default());
                if left.is_zero() { Ok(()) } else { Err(format!("{left:?} of its lease are left")) }
            });
            replicas[struck].cont();
            moment.side(&self.wires[struck]).let_go(Held::Passes);
            let still = (since, host_now() + TimeDelta::seconds(1));
            struck_one.frozen.push(still);
            if moment.trap(&self.scene).is_some_and(|(_, snap)| snap == Snap::HoldReply) {
                // An answer that came too late to be one.
                struck_one.cut.push(still);
            }
        }
        // The next firing is as if nothing had happened.
        let next = scheduled_at + PERIOD;
        wait_until_blocking(PERIOD + BOUND * 2, || {
            let rows = self.rows(&format!("scheduled_at = '{}' AND state = 'succeeded'", next.to_rfc3339()));
            if rows == "1" {
                Ok(())
            } else {
                Err(format!("the firing of {next} has not succeeded: {:?}", deployment.history("job")))
            }
        });
        let until = host_now();
        struck_one.killed_at = (blow == Blow::Kill).then_some(since);
        let mut processes: Vec<_> = names
            .into_iter()
            .map(|instance| ReplicaProcess { instance, ..ReplicaProcess::default() })
            .collect();
        struck_one.instance.clone_from(&processes[struck].instance);
        processes[struck] = struck_one;
        for (replica, process) in replicas.iter_mut().zip(&mut processes) {
            if process.killed_at.is_none() {
                end(std::slice::from_mut(replica));
            }
            let said = replica.lines().since(0);
            process.alarms =
                said.into_iter().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
        }
        let history = self.history(&deployment, until, since, processes);
        history.judge().assert_clean();
        ended(&history, scheduled_at)
    }

    fn deployment(&self, moment: Moment) -> Deployment {
        let keys =
            format!("every = \"{}s\"\ntimeout = \"10s\"\ndelivery = \"{}\"", PERIOD.as_secs(), self.delivery);
        let deployment = self.scene.deployment(program()).ttl("2s");
        let quick = Duration::from_millis(200);
        if moment != Moment::InRun {
            return deployment.job("job", quick, &keys);
        }
        // The first attempt works for much longer than its lease lasts, however late it is struck. The second is over
        // before the next firing is due.
        let work = [Duration::from_secs(6), quick].map(|work| deployment.effects().argv(work));
        let choose = format!("[ \"$RUNNER_ATTEMPT\" = 1 ] || shift {}; exec \"$@\"", work[0].len());
        let argv = [vec!["/bin/sh".into(), "-c".into(), choose, "choose".into()], work.concat()].concat();
        let argv = serde_json::Value::from(argv);
        deployment.jobs(&format!("[jobs.job]\nkind = \"command\"\nparams = {{ argv = {argv} }}\n{keys}\n"))
    }

    /// Waits until a replica has come to the moment, and says which. It cannot go on by itself.
    fn catch(&self, moment: Moment, deployment: &Deployment, replicas: &[Replica]) -> usize {
        let Some((bait, snap)) = moment.trap(&self.scene) else {
            wait_until_blocking(START, || match deployment.effects().all().first() {
                Some(_) => Ok(()),
                None => Err("no run has begun".to_owned()),
            });
            return owner(replicas);
        };
        let first = if moment.is_everybodys() { 1 } else { self.wires.len() };
        for wire in &self.wires[first..] {
            wire.redis.set(Mode::Delay(SLOW));
        }
        for wire in &self.wires[..first] {
            moment.side(wire).trap(bait.clone(), snap, 1);
        }
        let struck = wait_until_blocking(START, || {
            let caught = self.wires.iter().position(|wire| moment.side(wire).swallowed() > 0);
            caught.ok_or_else(|| "nobody has come to the moment".to_owned())
        });
        for (_, wire) in self.wires.iter().enumerate().filter(|(number, _)| *number != struck) {
            moment.side(wire).trap(bait.clone(), snap, 0);
            moment.side(wire).let_go(Held::Passes);
        }
        struck
    }

    /// Waits until the firing that was struck has ended, and says which it is. It was the first one.
    fn wait_until_over(&self, deployment: &Deployment, since: DateTime<Utc>) -> DateTime<Utc> {
        wait_until_blocking(TAKEOVER + Duration::from_secs(10), || {
            match self.rows("state NOT IN ('queued', 'running')").as_str() {
                "0" => Err(format!("{:?}", deployment.history("job"))),
                _ => Ok(()),
            }
        });
        let first = "FROM runner_firings ORDER BY scheduled_at LIMIT 1";
        let took: f64 = self
            .scene
            .ask(&format!("SELECT extract(epoch FROM finished_at - '{}') {first}", since.to_rfc3339()))
            .parse()
            .unwrap();
        assert!(took < TAKEOVER.as_secs_f64(), "taken over and ended after {took} s");
        let at = self.scene.ask(&format!("SELECT extract(epoch FROM scheduled_at)::bigint {first}"));
        DateTime::from_timestamp(at.parse().unwrap(), 0).unwrap()
    }

    fn rows(&self, which: &str) -> String {
        self.scene.ask(&format!("SELECT count(*) FROM runner_firings WHERE {which}"))
    }

    fn history(
        &self,
        deployment: &Deployment,
        until: DateTime<Utc>,
        struck_at: DateTime<Utc>,
        processes: Vec<ReplicaProcess>,
    ) -> History {
        let database = self.scene.database();
        let mut history = past::read(database, until, |_| PERIOD);
        history.effects = deployment.effects().all();
        history.witness = Witness {
            changes: past::changes(database),
            locks: self.watch.events(),
            lock_terms: Some(LockTerms { ttl: TTL, max_renewals: renewals() }),
            processes,
            heals: vec![struck_at],
            recovery_bound: BOUND,
        };
        history
    }
}

/// What a timeout of 10 s needs beyond a ttl of 2 s, with its margin and the grace of 5 s, in thirds of a ttl.
fn renewals() -> u32 {
    20
}

fn ended(history: &History, scheduled_at: DateTime<Utc>) -> Ended {
    let row = history.rows.iter().find(|row| row.scheduled_at == scheduled_at).expect("the firing's row");
    let count = |kind: EffectKind| {
        let mine = history.effects.iter().filter(|effect| effect.scheduled_at == scheduled_at);
        mine.filter(|effect| effect.kind == kind).count()
    };
    let states = ["succeeded", "lost"];
    let state = states.into_iter().find(|state| *state == row.state);
    Ended {
        state: state.unwrap_or_else(|| panic!("{row:?}")),
        attempt: row.attempt,
        starts: count(EffectKind::Start),
        ends: count(EffectKind::End),
    }
}
