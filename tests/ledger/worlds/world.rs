//! The world of one seed: three replicas, two servers, and all that goes wrong between them.
//!
//! Each replica has its own time. The one that is furthest behind lives next, at most until something could
//! reach it that another is about to cause; so cause comes before effect although nothing runs in parallel,
//! and the same seed always makes the same history.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use runner::internal::config::{Config, Environment};
use runner::internal::firing::{Origin, State};
use runner::internal::ledger::FiringId;

use super::errand::{DECKS, JOBS};
use super::judge::{Evidence, Freeze};
use super::machine::{Birth, Leap, Machine, NAMESPACE};
use super::plan::{Blow, Mishap, Mode, Plan, REPLICAS, Tick};
use super::servers::{LockServer, Servers, ledger_time};
use super::tally::Tally;
use super::watch::Watch;
use super::wire::{Delivery, Parcel, Wire};
use crate::book::{Book, Flaw};

/// What a world came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Every broken promise, in words.
    pub(crate) breaches: Vec<String>,
    /// The same for the same history.
    pub(crate) digest: u64,
    pub(crate) tally: Tally,
    /// The history, if it was to be readable.
    pub(crate) lines: Vec<String>,
}

/// A replica through all its lives.
struct Replica {
    /// What it has seen of the world's time; while it does not live, when it will again.
    local: Tick,
    life: u32,
    machine: Option<Machine>,
    leap: Leap,
    blows: VecDeque<(Tick, Blow)>,
    skew: i64,
    /// How long after it has left another begins.
    returns: Option<Tick>,
    inbox: BTreeMap<(Tick, u64), Delivery>,
}

struct World {
    seed: u64,
    plan: Arc<Plan>,
    wire: Arc<Wire>,
    config: Arc<Config>,
    servers: Servers,
    watch: Watch,
    freezes: Vec<Freeze>,
    mishaps: VecDeque<(Tick, Mishap)>,
    replicas: Vec<Replica>,
    /// When the servers last did something.
    handled: Tick,
    /// Kept: who waits for such a reply must not learn that it is lost.
    undelivered: Vec<Delivery>,
}

/// Runs the world of a seed from its beginning to its end.
pub(crate) fn run(seed: u64, mode: Mode, flaw: Option<Flaw>, readable: bool) -> Outcome {
    World::new(seed, Plan::draw(seed, mode, DECKS.len()), flaw, readable).run()
}

/// The same in a world that is spoilt.
pub(crate) fn run_spoilt(seed: u64, mode: Mode, spoil: impl Fn(&mut Plan)) -> Outcome {
    let mut plan = Plan::draw(seed, mode, DECKS.len());
    spoil(&mut plan);
    World::new(seed, plan, None, false).run()
}

impl World {
    fn new(seed: u64, plan: Plan, flaw: Option<Flaw>, readable: bool) -> Self {
        let plan = Arc::new(plan);
        let wire = Arc::new(Wire::new(seed, plan.clone(), readable));
        let replica = |of: usize| Replica {
            local: plan.starts[of],
            life: 0,
            machine: None,
            leap: Leap::None,
            blows: plan.blows[of].iter().copied().collect(),
            skew: plan.skew[of],
            returns: None,
            inbox: BTreeMap::new(),
        };
        Self {
            seed,
            config: deck(plan.deck),
            servers: Servers { book: Book::with(flaw), locks: LockServer::new() },
            watch: Watch::default(),
            freezes: Vec::new(),
            mishaps: plan.mishaps.iter().copied().collect(),
            replicas: (0..REPLICAS).map(replica).collect(),
            handled: 0,
            undelivered: Vec::new(),
            plan,
            wire,
        }
    }

    fn run(mut self) -> Outcome {
        loop {
            let behind = |of: &usize| (self.replicas[*of].local, *of);
            let next = (0..REPLICAS).min_by_key(behind).expect("there are replicas");
            let now = self.replicas[next].local;
            self.servers_work(now);
            if now >= self.plan.end {
                break;
            }
            self.lives(next);
        }
        self.outcome()
    }

    /// The servers handle all that reaches them until `now`: nobody can send anything any more that would.
    fn servers_work(&mut self, now: Tick) {
        loop {
            let arrival = self.wire.lock().parcels.first_key_value().map(|((at, ..), _)| *at);
            let mishap = self.mishaps.front().map(|(at, _)| *at);
            match (arrival, mishap) {
                (_, Some(at)) if at <= now && arrival.is_none_or(|arrival| at <= arrival) => self.mishap(at),
                (Some(at), _) if at <= now => self.handle(),
                _ => return,
            }
        }
    }

    /// Handles the request that arrives next.
    fn handle(&mut self) {
        let mut inner = self.wire.lock();
        let Some(((at, ..), parcel)) = inner.parcels.pop_first() else { return };
        assert!(
            at >= self.handled,
            "an effect before its cause: {at} < {} from {} life {}, locals {:?}",
            self.handled,
            parcel.replica,
            parcel.life,
            self.replicas.iter().map(|r| (r.local, r.life, r.leap)).collect::<Vec<_>>()
        );
        self.handled = at;
        let Parcel { replica, life, number, reply_at, hand_in } = parcel;
        let deliver = hand_in(&mut self.servers, at, &mut inner.record);
        self.watch.look(at, &mut self.servers.book);
        let alive = self.replicas[replica].life == life && self.replicas[replica].machine.is_some();
        match reply_at.filter(|_| alive) {
            Some(reply_at) => drop(self.replicas[replica].inbox.insert((reply_at, number), deliver)),
            None => self.undelivered.push(deliver),
        }
    }

    fn mishap(&mut self, now: Tick) {
        let Some((at, mishap)) = self.mishaps.pop_front() else { return };
        debug_assert_eq!(at, now, "in time");
        let mut inner = self.wire.lock();
        inner.record.trace.note(at, "mishap", REPLICAS, || format!("{mishap:?}"));
        let tally = &mut inner.record.tally;
        let book = &mut self.servers.book;
        match mishap {
            Mishap::Flush => {
                tally.flushes += 1;
                self.servers.locks.flush();
            }
            Mishap::Failover(lag) => {
                tally.failovers += 1;
                self.servers.locks.fail_over(at.saturating_sub(lag));
            }
            Mishap::Cancel => {
                let open: Vec<FiringId> =
                    book.rows().filter(|row| !row.state.is_terminal()).map(|row| row.id).collect();
                if !open.is_empty() {
                    let id = inner.dice().one_of(&open);
                    inner.record.tally.cancels += 1;
                    book.cancel(NAMESPACE, id, ledger_time(at));
                }
            }
            Mishap::Pause => {
                tally.pauses += 1;
                let job = inner.dice().one_of(DECKS[self.plan.deck]);
                book.pause(NAMESPACE, job, "somebody", "for a while", ledger_time(at));
            }
            Mishap::Resume => {
                for job in DECKS[self.plan.deck] {
                    book.resume(NAMESPACE, job);
                }
            }
        }
        self.watch.look(at, &mut self.servers.book);
    }

    /// Lets one replica live for as long as nothing can reach it that is not known yet.
    fn lives(&mut self, of: usize) {
        if self.replicas[of].machine.is_none() {
            self.begin(of);
        }
        let now = self.replicas[of].local;
        // Not before it has woken from the one before.
        let awake = self.replicas[of].leap == Leap::None;
        if awake && self.replicas[of].blows.front().is_some_and(|(at, _)| *at <= now) {
            return self.strike(of);
        }
        let mut replies = Vec::new();
        {
            let expected = &mut self.wire.lock().expected[of];
            while let Some(reply) = expected.first().copied().filter(|(at, _)| *at <= now) {
                expected.pop_first();
                replies.extend(self.replicas[of].inbox.remove(&reply));
            }
        }
        let until = self.horizon(of);
        let replica = &mut self.replicas[of];
        let leap = std::mem::replace(&mut replica.leap, Leap::None);
        let Some(machine) = replica.machine.as_mut() else { return };
        replica.local = machine.drive(until.max(now), leap, replies);
        assert!(replica.local >= now, "replica {of} went back in time");
        if machine.has_left() {
            let rest = replica.returns.take().unwrap_or(Tick::MAX);
            self.end_life(of, rest);
        }
    }

    /// Up to when a replica may live on before it has to hear what others have done.
    fn horizon(&self, of: usize) -> Tick {
        let replica = &self.replicas[of];
        let reply = self.wire.lock().expected[of].first().map(|(at, _)| *at);
        let blow = replica.blows.front().map(|(at, _)| *at);
        [reply, blow].into_iter().flatten().fold(self.plan.end, Tick::min)
    }

    fn begin(&mut self, of: usize) {
        let replica = &mut self.replicas[of];
        replica.life += 1;
        let (at, drift) = (replica.local, self.plan.drift[of]);
        self.wire.note(at, "begins", of);
        let birth = Birth { seed: self.seed, replica: of, life: replica.life, at, drift, skew: replica.skew };
        replica.machine = Some(Machine::start(birth, &self.config, &self.wire));
    }

    /// What happens to a replica happens.
    fn strike(&mut self, of: usize) {
        let replica = &mut self.replicas[of];
        let Some((_, blow)) = replica.blows.pop_front() else { return };
        let now = replica.local;
        let mut inner = self.wire.lock();
        inner.record.trace.note(now, "blow", of, || format!("{blow:?}"));
        let tally = &mut inner.record.tally;
        let (Blow::Stop(span) | Blow::Suspend(span) | Blow::Kill(span) | Blow::Drain(span)) = blow else {
            let Blow::Skew(skew) = blow else { return };
            tally.skews += 1;
            replica.skew = skew;
            if let Some(machine) = &replica.machine {
                machine.set_skew(skew);
            }
            return;
        };
        let until = now.saturating_add(span);
        match blow {
            Blow::Stop(_) | Blow::Suspend(_) => {
                let stopped = matches!(blow, Blow::Stop(_));
                *if stopped { &mut tally.stops } else { &mut tally.suspends } += 1;
                // Timers that stood still are looked after each second.
                let daze = if stopped { 0 } else { 1_000 };
                self.freezes.push(Freeze { replica: of, from: now, until, daze });
                replica.leap = if stopped { Leap::Stopped(span) } else { Leap::Slept(span) };
                replica.local = until;
            }
            Blow::Drain(_) => {
                tally.drains += 1;
                replica.returns = Some(span);
                if let Some(machine) = replica.machine.as_mut() {
                    machine.drain();
                }
            }
            _ => {
                tally.kills += 1;
                drop(inner);
                self.end_life(of, span);
            }
        }
    }

    /// Its process is gone, and another begins after `rest`.
    fn end_life(&mut self, of: usize, rest: Tick) {
        let replica = &mut self.replicas[of];
        self.wire.note(replica.local, "is gone", of);
        self.wire.lock().expected[of].clear();
        if let Some(machine) = replica.machine.take() {
            machine.kill();
        }
        replica.leap = Leap::None;
        replica.inbox.clear();
        replica.local = replica.local.saturating_add(rest);
    }

    fn outcome(mut self) -> Outcome {
        for replica in &mut self.replicas {
            if let Some(machine) = replica.machine.take() {
                machine.kill();
            }
        }
        let mut inner = self.wire.lock();
        let tally = &mut inner.record.tally;
        for row in self.servers.book.rows() {
            tally.gaps_found += u64::from(row.origin == Origin::CatchUp);
            let late = matches!(row.state, State::Succeeded | State::Failed);
            tally.late_results_of_lost_runs += u64::from(late && self.watch.was_lost(row.id));
        }
        tally.failures += self.servers.book.rows().filter(|row| row.state == State::Failed).count() as u64;
        let evidence = Evidence {
            plan: &self.plan,
            book: &self.servers.book,
            watch: &self.watch,
            deeds: &inner.record.deeds,
            freezes: &self.freezes,
        };
        Outcome {
            breaches: evidence.judge(),
            digest: inner.record.trace.digest(),
            tally: inner.record.tally.clone(),
            lines: inner.record.trace.lines(),
        }
    }
}

/// The configuration of a world: read once, as every replica would read it.
fn deck(index: usize) -> Arc<Config> {
    static READ: OnceLock<Vec<Arc<Config>>> = OnceLock::new();
    READ.get_or_init(|| DECKS.iter().map(|deck| Arc::new(read(deck))).collect())[index].clone()
}

fn read(deck: &[&str]) -> Config {
    let mut text = format!(
        "[runner]\nnamespace = \"{NAMESPACE}\"\nshutdown_grace = \"1s\"\n[lock]\nttl = \"2s\"\n[defaults]\n\
         kind = \"errand\"\nbackoff = {{ initial = \"200ms\", max = \"1s\", factor = 2.0 }}\n"
    );
    for (name, every, _, rest) in JOBS.iter().filter(|(name, ..)| deck.contains(name)) {
        text.push_str(&format!("[jobs.{name}]\nevery = \"{every}s\"\n{rest}\n"));
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("jobs.toml");
    std::fs::write(&path, text).expect("a file");
    let kinds: &[&str] = &["errand"];
    Config::load(&path, &Environment::default(), &kinds, &|_| Ok(())).expect("a good file")
}
