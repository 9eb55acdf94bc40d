//! What goes wrong in the world of one seed, and when: drawn before it begins.

use super::dice::Dice;

/// Milliseconds since the world began.
pub(crate) type Tick = u64;

/// Replicas of every world.
pub(crate) const REPLICAS: usize = 3;
/// The lease of every job, in both layers.
pub(crate) const TTL: Tick = 2_000;

/// What a world is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Whatever goes wrong, no promise is broken; at last everything heals.
    Safety,
    /// Two replicas and their ways heal, the third does not; those two must get on.
    Liveness,
}

/// A server that replicas talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Lock,
    Ledger,
}

/// What happens to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Its process is stopped for so long, as by SIGSTOP.
    Stop(Tick),
    /// Its machine sleeps for so long: its timers do not count that, its boot clock does.
    Suspend(Tick),
    /// Its process is killed; another begins so much later.
    Kill(Tick),
    /// It is told to leave; another begins so much after it has left.
    Drain(Tick),
    /// Its wall clock is so far off from now on.
    Skew(i64),
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The lock's server forgets all.
    Flush,
    /// A copy of the lock's server takes over that had fallen so far behind.
    Failover(Tick),
    /// Somebody asks for the end of a firing.
    Cancel,
    /// Somebody pauses a job.
    Pause,
    /// And resumes all.
    Resume,
}

/// A time in which a replica does not reach a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) replica: usize,
    pub(crate) store: Store,
    pub(crate) from: Tick,
    pub(crate) until: Tick,
    /// Refused at once, rather than without a word.
    pub(crate) refused: bool,
}

/// How often single messages fare badly, in a thousand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    pub(crate) request_lost: u64,
    pub(crate) reply_lost: u64,
    /// So late that its sender has given up.
    pub(crate) late: u64,
    pub(crate) latest: Tick,
    /// Slow, but perhaps in time.
    pub(crate) slow: u64,
    pub(crate) slowest: Tick,
}

impl Weather {
    const FAIR: Self = Self { request_lost: 0, reply_lost: 0, late: 0, latest: 0, slow: 20, slowest: 100 };
}

/// All that goes wrong.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    /// Which jobs there are.
    pub(crate) deck: usize,
    pub(crate) weather: Weather,
    /// From here on the weather is fair, and what heals has healed.
    pub(crate) heal: Tick,
    pub(crate) end: Tick,
    /// What happens to each replica, in time.
    pub(crate) blows: [Vec<(Tick, Blow)>; REPLICAS],
    pub(crate) mishaps: Vec<(Tick, Mishap)>,
    pub(crate) cuts: Vec<Cut>,
    /// How far each replica's boot clock is off, in millionths.
    pub(crate) drift: [i64; REPLICAS],
    /// How far each replica's wall clock is off at first.
    pub(crate) skew: [i64; REPLICAS],
    /// When each replica begins.
    pub(crate) starts: [Tick; REPLICAS],
    /// The replica that does not heal.
    pub(crate) outsider: Option<usize>,
    /// Whoever is cut off from the ledger is told its time nevertheless: a gate that lets everyone in.
    pub(crate) gate_is_open: bool,
}

impl Plan {
    pub(crate) fn draw(seed: u64, mode: Mode, decks: usize) -> Self {
        let dice = Dice::of(&[seed, 1]);
        let (chaos, calm) = match mode {
            Mode::Safety => (8_000, 8_500),
            Mode::Liveness => (5_000, 9_500),
        };
        let heal = chaos + dice.between(0, 1_999);
        let latest = if mode == Mode::Safety { 2_500 } else { 1_000 };
        // Later than anybody's patience with a lock's server.
        let slowest = 400;
        let weather = dice.one_of(&[
            Weather { late: 5, latest, request_lost: 5, reply_lost: 5, slow: 30, slowest },
            Weather { late: 20, latest, request_lost: 30, reply_lost: 30, slow: 100, slowest },
            Weather { late: 60, latest, request_lost: 100, reply_lost: 100, slow: 200, slowest },
        ]);
        let skews = [0, 0, 40, -40, 700, -700, 3_600_000, -3_600_000];
        let mut plan = Self {
            mode,
            deck: usize::try_from(dice.between(0, decks as u64 - 1)).expect("a few decks"),
            weather,
            heal,
            end: heal + calm,
            blows: [0; REPLICAS].map(|_| blows(&dice, heal)),
            mishaps: mishaps(&dice, heal),
            cuts: cuts(&dice, heal),
            drift: [0; REPLICAS].map(|_| dice.one_of(&[0, 0, 500, -500, 2_000, -2_000])),
            skew: [0; REPLICAS].map(|_| dice.one_of(&skews)),
            starts: [0; REPLICAS].map(|_| dice.between(0, 1_500)),
            outsider: None,
            gate_is_open: false,
        };
        if mode == Mode::Liveness {
            plan.leave_one_out(&dice);
        }
        plan
    }

    /// The weather at a moment.
    pub(crate) fn weather(&self, at: Tick) -> Weather {
        if at < self.heal { self.weather } else { Weather::FAIR }
    }

    /// Whether a replica is cut off, and how.
    pub(crate) fn cut(&self, replica: usize, store: Store, at: Tick) -> Option<Cut> {
        let between =
            |cut: &&Cut| cut.replica == replica && cut.store == store && (cut.from..cut.until).contains(&at);
        self.cuts.iter().find(between).copied()
    }

    /// One replica stays as it is at its worst, for ever.
    fn leave_one_out(&mut self, dice: &Dice) {
        let outsider = dice.one_of(&[0, 1, 2]);
        self.outsider = Some(outsider);
        let (heal, for_ever) = (self.heal, Tick::MAX);
        let before = dice.between(0, 1_000);
        let cut = |store| Cut {
            replica: outsider,
            store,
            from: heal - before,
            until: for_ever,
            refused: dice.in_thousand(500),
        };
        match dice.between(0, 4) {
            0 => {
                self.blows[outsider].retain(|(at, _)| *at < heal - before);
                self.blows[outsider].push((heal - before, Blow::Stop(for_ever)));
            }
            1 => self.cuts.push(cut(Store::Ledger)),
            2 => self.cuts.push(cut(Store::Lock)),
            3 => self.cuts.extend([cut(Store::Lock), cut(Store::Ledger)]),
            _ => {
                let hour = dice.one_of(&[3_600_000, -3_600_000]);
                self.blows[outsider].push((heal, Blow::Skew(hour)));
            }
        }
    }
}

/// A while: well within a lease, about as long, or long enough for others to take over.
fn span(dice: &Dice) -> Tick {
    let (from, to) = dice.one_of(&[(50, 500), (500, 2_500), (4_000, 6_500), (4_000, 6_500)]);
    dice.between(from, to)
}

/// One blow after another, with time to get up in between, until all has to be over.
fn blows(dice: &Dice, heal: Tick) -> Vec<(Tick, Blow)> {
    let mut blows = Vec::new();
    let mut at = dice.between(500, 4_000);
    while at < heal {
        let left = heal - at;
        let lasts = span(dice).min(left);
        let (blow, lasts) = match dice.between(0, 9) {
            0..=2 => (Blow::Stop(lasts), lasts),
            3 => (Blow::Suspend(lasts), lasts),
            4..=6 => (Blow::Kill(lasts), lasts),
            7 => (Blow::Drain(lasts / 4), lasts),
            _ => (Blow::Skew(dice.one_of(&[0, 900, -900, 60_000, -60_000, 3_600_000])), 0),
        };
        blows.push((at, blow));
        at += lasts + dice.between(200, 4_000);
        if dice.in_thousand(500) {
            // Just when firings are on their way.
            at = at.next_multiple_of(1_000) + dice.between(1, 150);
        }
    }
    blows
}

fn mishaps(dice: &Dice, heal: Tick) -> Vec<(Tick, Mishap)> {
    let mut mishaps = vec![(heal, Mishap::Resume)];
    for _ in 0..dice.between(0, 5) {
        let at = dice.between(500, heal - 1);
        match dice.between(0, 7) {
            0 | 1 => mishaps.push((at, Mishap::Flush)),
            2 | 3 => mishaps.push((at, Mishap::Failover(dice.between(0, 2_500)))),
            4..=6 => mishaps.push((at, Mishap::Cancel)),
            _ => {
                mishaps.push((at, Mishap::Pause));
                mishaps.push(((at + dice.between(200, 3_000)).min(heal), Mishap::Resume));
            }
        }
    }
    mishaps.sort_by_key(|(at, _)| *at);
    mishaps
}

fn cuts(dice: &Dice, heal: Tick) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for _ in 0..dice.between(0, 4) {
        let from = dice.between(300, heal - 1);
        let lasts = span(dice);
        let store = dice.one_of(&[Store::Lock, Store::Ledger, Store::Ledger]);
        let replica = dice.one_of(&[0, 1, 2]);
        let refused = dice.in_thousand(500);
        let cut = Cut { replica, store, from, until: (from + lasts).min(heal), refused };
        // Once in a while the server itself is away.
        if dice.in_thousand(250) {
            cuts.extend((0..REPLICAS).map(|replica| Cut { replica, ..cut }));
        } else {
            cuts.push(cut);
        }
    }
    cuts
}
