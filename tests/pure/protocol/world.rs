//! The whole: ledger, workers, writes under way, and an adversary who picks every next step.

use stateright::{Model, Property};

use super::conditions::Condition;
use super::corridor::{Owned, Passage, Worker};
use super::ledger::{Claim, Firing, Ledger, Reason, Run, Settlement, Sighting, State};
use super::properties::properties;
use super::setting::{Effect, Setting};

/// A write that its sender gave up on and the network did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Write {
    Claim(Claim),
    Heartbeat(Run),
    Settle(Settlement),
    Commit(Run),
}

/// What becomes of a write and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Answered,
    /// It happens, the answer is lost.
    ReplyLost,
    /// It never happens, and nobody says so.
    Dropped,
    /// It happens some time later, or never.
    Late,
}

const UNANSWERED: [Delivered; 3] = [Delivered::ReplyLost, Delivered::Dropped, Delivered::Late];

/// One step. A worker is named by its place in the list, which is sorted after every step: in a trace,
/// the same number may be another worker one step later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin(usize, Firing, bool, Delivered),
    ClaimAgain(usize, Delivered),
    WriteGated(usize),
    Look(usize),
    Confirm(usize),
    /// The question itself was not answered.
    ConfirmUnanswered(usize),
    LetGo(usize),
    MakeCertain(usize),
    Start(usize),
    Heartbeat(usize, Delivered),
    Finish(usize),
    Fail(usize),
    Interrupt(usize),
    Commit(usize, Delivered),
    CommitChecked(usize),
    Settle(usize, Delivered),
    Find(usize),
    GoHome(usize),
    Die(usize),
    Land(usize),
    Sight(Firing),
    Sweep(Firing),
    SweepSighted,
    Cancel(Firing),
    Expire(Firing),
    Insert(Firing, State),
    Prune(Firing),
    Pause,
    Resume,
}

/// How much of the adversary's budget is used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Spent {
    passages: u8,
    unanswered: u8,
    deaths: u8,
    pauses: u8,
    cancels: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) ledger: Ledger,
    /// Kept sorted: which of the workers stands where makes no difference.
    pub(crate) workers: Vec<Worker>,
    pub(crate) late: Vec<Write>,
    pub(crate) seen: Option<Sighting>,
    spent: Spent,
}

impl World {
    fn send_late(&mut self, write: Write) {
        self.late.push(write);
        self.late.sort_unstable();
    }
}

impl Setting {
    fn may_mint(&self, world: &World) -> bool {
        world.ledger.minted < self.fences
    }

    fn deliveries(&self, world: &World) -> Vec<Delivered> {
        let mut all = vec![Delivered::Answered];
        if world.spent.unanswered < self.unanswered {
            all.extend(UNANSWERED);
        }
        all
    }

    fn steps_of_worker(&self, world: &World, at: usize, steps: &mut Vec<Step>) {
        let worker = world.workers[at];
        match worker {
            Worker::Idle if world.spent.passages < self.passages && self.may_mint(world) => {
                for firing in 0..self.firings {
                    for delivered in self.deliveries(world) {
                        steps.push(Step::Begin(at, firing, false, delivered));
                        if world.ledger.row(firing).is_some_and(|row| row.state.is_queued()) {
                            steps.push(Step::Begin(at, firing, true, delivered));
                        }
                    }
                }
            }
            Worker::Idle => {}
            Worker::Gated(..) => steps.push(Step::WriteGated(at)),
            Worker::Looking(_) => steps.push(Step::Look(at)),
            Worker::Asking(_) => steps.extend([Step::Confirm(at), Step::ConfirmUnanswered(at)]),
            Worker::Again(_) => {
                steps.push(Step::LetGo(at));
                if self.may_mint(world) {
                    steps.extend(self.deliveries(world).into_iter().map(|it| Step::ClaimAgain(at, it)));
                }
            }
            Worker::Unsure(..) => steps.push(Step::MakeCertain(at)),
            Worker::Licensed(_) => steps.push(Step::Start(at)),
            Worker::Working(_) => {
                steps.extend([Step::Fail(at), Step::Interrupt(at), Step::Heartbeat(at, Delivered::Answered)]);
                if self.heartbeats > 0 && world.spent.unanswered < self.unanswered {
                    steps.push(Step::Heartbeat(at, Delivered::Late));
                }
                match self.effect {
                    Effect::External => steps.push(Step::Finish(at)),
                    Effect::Transaction => {
                        steps.extend(self.deliveries(world).into_iter().map(|it| Step::Commit(at, it)));
                    }
                }
            }
            Worker::Checked(_) => steps.push(Step::CommitChecked(at)),
            Worker::Settling(_) => {
                let deliveries = self.deliveries(world).into_iter().filter(|it| *it != Delivered::Dropped);
                steps.extend(deliveries.map(|it| Step::Settle(at, it)));
            }
            Worker::Finding(_) => steps.push(Step::Find(at)),
            Worker::Refused(_) | Worker::Fenced => steps.push(Step::GoHome(at)),
        }
        if worker != Worker::Idle && world.spent.deaths < self.deaths {
            steps.push(Step::Die(at));
        }
    }

    fn steps_of_upkeep(&self, world: &World, steps: &mut Vec<Step>) {
        for firing in 0..self.firings {
            if let Some(row) = world.ledger.row(firing) {
                if row.state == State::Running {
                    steps.push(if self.stale_sweeps { Step::Sight(firing) } else { Step::Sweep(firing) });
                }
                if self.cancels && world.spent.cancels == 0 {
                    steps.push(Step::Cancel(firing));
                }
                if self.queues && row.state.is_queued() {
                    steps.push(Step::Expire(firing));
                }
            } else if self.queues {
                steps.push(Step::Insert(firing, State::Queued(Reason::CatchUp)));
                steps.push(Step::Insert(firing, State::Skipped));
            }
            if self.prunes {
                steps.push(Step::Prune(firing));
            }
        }
        if world.seen.is_some() {
            steps.push(Step::SweepSighted);
        }
        if world.ledger.paused {
            steps.push(Step::Resume);
        } else if world.spent.pauses < self.pauses {
            steps.push(Step::Pause);
        }
    }

    /// Sends a claim, and gives where that leaves its worker.
    fn claim(&self, world: &mut World, mut passage: Passage, delivered: Delivered) -> Worker {
        let ledger = &mut world.ledger;
        let claim = passage.claim;
        if delivered != Delivered::Answered {
            world.spent.unanswered += 1;
            passage.unsure = true;
            if !(self.has(Condition::AskAfterUnknown) && self.has(Condition::ClaimIdNotFence)) {
                passage.expected = ledger.minted + 1;
            }
        }
        match delivered {
            Delivered::Answered if !self.has(Condition::LockOfJob) => {
                if ledger.gate_is_open(self, claim) {
                    Worker::Gated(passage, None)
                } else {
                    Worker::Looking(passage)
                }
            }
            Delivered::Answered if !self.has(Condition::FenceUnderLock) => {
                Worker::Gated(passage, Some(ledger.mint()))
            }
            Delivered::Answered => match ledger.claim(self, claim) {
                Some(fence) => self.won(world, passage, Run { firing: claim.firing, fence }),
                None => Worker::Looking(passage),
            },
            Delivered::ReplyLost => {
                ledger.claim(self, claim);
                Worker::Asking(passage)
            }
            Delivered::Dropped => Worker::Asking(passage),
            Delivered::Late => {
                world.send_late(Write::Claim(claim));
                Worker::Asking(passage)
            }
        }
    }

    fn won(&self, world: &World, passage: Passage, run: Run) -> Worker {
        let owned = Owned::new(&world.ledger, run);
        if passage.unsure { Worker::Unsure(passage, owned) } else { Worker::Licensed(owned) }
    }

    fn commit(&self, world: &mut World, owned: Owned, delivered: Delivered) -> Worker {
        if delivered != Delivered::Answered {
            world.spent.unanswered += 1;
        }
        // Whatever went wrong, the job returns its error, and that is settled.
        let failed = Worker::Settling(owned.failed(self));
        match delivered {
            Delivered::Answered if !self.has(Condition::OneTransaction) => {
                let row = world.ledger.row(owned.run.firing);
                let mine = row.is_some_and(|row| row.state == State::Running && row.fence == owned.run.fence);
                if mine { Worker::Checked(owned) } else { failed }
            }
            Delivered::Answered if world.ledger.commit(self, owned.run) => Worker::Idle,
            Delivered::ReplyLost => {
                world.ledger.commit(self, owned.run);
                failed
            }
            Delivered::Late => {
                world.send_late(Write::Commit(owned.run));
                failed
            }
            Delivered::Answered | Delivered::Dropped => failed,
        }
    }

    fn settle(&self, world: &mut World, settlement: Settlement, delivered: Delivered) -> Worker {
        if delivered != Delivered::Answered {
            world.spent.unanswered += 1;
        }
        match delivered {
            Delivered::Answered if world.ledger.settle(self, settlement) => Worker::Idle,
            Delivered::Answered => Worker::Finding(settlement),
            Delivered::ReplyLost => {
                world.ledger.settle(self, settlement);
                Worker::Settling(settlement)
            }
            Delivered::Dropped => Worker::Settling(settlement),
            Delivered::Late => {
                world.send_late(Write::Settle(settlement));
                Worker::Settling(settlement)
            }
        }
    }

    fn heartbeat(&self, world: &mut World, owned: Owned, delivered: Delivered) -> Worker {
        if delivered == Delivered::Late {
            world.spent.unanswered += 1;
            world.send_late(Write::Heartbeat(owned.run));
            return Worker::Working(owned);
        }
        match world.ledger.heartbeat(self, owned.run) {
            Some(false) => Worker::Working(owned),
            Some(true) => Worker::Settling(owned.cancelled()),
            None => Worker::Settling(owned.interrupted(self)),
        }
    }

    /// The step of the worker that stands there; `None` where there is no such step.
    fn walk(&self, world: &mut World, worker: Worker, step: Step) -> Option<Worker> {
        Some(match (worker, step) {
            (_, Step::Die(_)) => {
                world.spent.deaths += 1;
                Worker::Idle
            }
            (Worker::Idle, Step::Begin(_, firing, queued, delivered)) => {
                world.spent.passages += 1;
                let claim = Claim { firing, claim_id: world.spent.passages, queued };
                self.claim(world, Passage { claim, unsure: false, expected: 0 }, delivered)
            }
            (Worker::Again(passage), Step::ClaimAgain(_, delivered)) => self.claim(world, passage, delivered),
            (Worker::Again(_), Step::LetGo(_)) => Worker::Idle,
            (Worker::Gated(passage, fence), Step::WriteGated(_)) => {
                let ledger = &mut world.ledger;
                let passed = fence.is_none() || ledger.gate_is_open(self, passage.claim);
                match passed.then(|| ledger.take(self, passage.claim, fence)).flatten() {
                    Some(fence) => self.won(world, passage, Run { firing: passage.claim.firing, fence }),
                    None => Worker::Looking(passage),
                }
            }
            (Worker::Looking(passage), Step::Look(_)) => match world.ledger.look(self, passage.claim) {
                Ok(fence) => self.won(world, passage, Run { firing: passage.claim.firing, fence }),
                Err(Some(refusal)) => Worker::Refused(refusal),
                Err(None) => Worker::Again(passage),
            },
            (Worker::Asking(passage), Step::Confirm(_)) => {
                match world.ledger.confirm(self, passage.claim, passage.expected) {
                    Some(fence) if !self.has(Condition::AskAfterUnknown) => Worker::Licensed(Owned::new(
                        &world.ledger,
                        Run { firing: passage.claim.firing, fence },
                    )),
                    Some(fence) => self.won(world, passage, Run { firing: passage.claim.firing, fence }),
                    None => Worker::Again(passage),
                }
            }
            (Worker::Asking(passage), Step::ConfirmUnanswered(_)) => Worker::Again(passage),
            (Worker::Unsure(_, owned), Step::MakeCertain(_)) => {
                match world.ledger.heartbeat(self, owned.run) {
                    Some(_) => Worker::Licensed(owned),
                    None => Worker::Idle,
                }
            }
            (Worker::Licensed(owned), Step::Start(_)) => {
                world.ledger.record.start(owned.run);
                Worker::Working(owned)
            }
            (Worker::Working(owned), Step::Heartbeat(_, delivered)) => {
                self.heartbeat(world, owned, delivered)
            }
            (Worker::Working(owned), Step::Finish(_)) => Worker::Settling(owned.succeeded()),
            (Worker::Working(owned), Step::Fail(_)) => Worker::Settling(owned.failed(self)),
            (Worker::Working(owned), Step::Interrupt(_)) => Worker::Settling(owned.interrupted(self)),
            (Worker::Working(owned), Step::Commit(_, delivered)) => self.commit(world, owned, delivered),
            (Worker::Checked(owned), Step::CommitChecked(_)) => {
                if world.ledger.commit_apart(owned.run) {
                    Worker::Idle
                } else {
                    Worker::Fenced
                }
            }
            (Worker::Settling(it), Step::Settle(_, delivered)) => self.settle(world, it, delivered),
            (Worker::Finding(it), Step::Find(_)) => {
                if world.ledger.settle_found(self, it) {
                    Worker::Idle
                } else {
                    Worker::Fenced
                }
            }
            (Worker::Refused(_) | Worker::Fenced, Step::GoHome(_)) => Worker::Idle,
            _ => return None,
        })
    }

    fn land(&self, world: &mut World, at: usize) {
        match world.late.remove(at) {
            Write::Claim(claim) => {
                world.ledger.claim(self, claim);
            }
            Write::Heartbeat(run) => {
                world.ledger.heartbeat(self, run);
            }
            Write::Settle(settlement) => {
                world.ledger.settle(self, settlement);
            }
            Write::Commit(run) => {
                world.ledger.commit(self, run);
            }
        }
    }
}

impl Model for Setting {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            ledger: Ledger::new(self),
            workers: vec![Worker::Idle; self.workers],
            late: Vec::new(),
            seen: None,
            spent: Spent::default(),
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for at in 0..world.workers.len() {
            // Two workers at the same place have the same steps before them.
            if at == 0 || world.workers[at] != world.workers[at - 1] {
                self.steps_of_worker(world, at, steps);
            }
        }
        for (at, write) in world.late.iter().enumerate() {
            if self.may_mint(world) || !matches!(write, Write::Claim(_)) {
                steps.push(Step::Land(at));
            }
        }
        self.steps_of_upkeep(world, steps);
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        match step {
            Step::Land(at) => self.land(&mut world, at),
            Step::Sight(firing) => world.seen = world.ledger.sight(firing),
            Step::Sweep(firing) => {
                let seen = world.ledger.sight(firing)?;
                world.ledger.sweep(self, seen);
            }
            Step::SweepSighted => {
                let seen = world.seen.take()?;
                world.ledger.sweep(self, seen);
            }
            Step::Cancel(firing) => {
                world.spent.cancels += 1;
                world.ledger.cancel(self, firing);
            }
            Step::Expire(firing) => {
                world.ledger.expire(firing);
            }
            Step::Insert(firing, state) => {
                world.ledger.insert(self, firing, state);
            }
            Step::Prune(firing) => world.ledger.prune(self, firing),
            Step::Pause => {
                world.spent.pauses += 1;
                world.ledger.paused = true;
            }
            Step::Resume => world.ledger.paused = false,
            Step::Begin(at, ..)
            | Step::ClaimAgain(at, _)
            | Step::WriteGated(at)
            | Step::Look(at)
            | Step::Confirm(at)
            | Step::ConfirmUnanswered(at)
            | Step::LetGo(at)
            | Step::MakeCertain(at)
            | Step::Start(at)
            | Step::Heartbeat(at, _)
            | Step::Finish(at)
            | Step::Fail(at)
            | Step::Interrupt(at)
            | Step::Commit(at, _)
            | Step::CommitChecked(at)
            | Step::Settle(at, _)
            | Step::Find(at)
            | Step::GoHome(at)
            | Step::Die(at) => {
                let worker = world.workers[at];
                world.workers[at] = self.walk(&mut world, worker, step)?;
                world.workers.sort_unstable();
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}
