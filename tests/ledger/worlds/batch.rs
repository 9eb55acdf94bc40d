//! Many worlds, one seed each; and how to look at one of them again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::plan::Mode;
use super::tally::Tally;
use super::world::{Outcome, run};

/// One seed to run instead of a batch, with its history printed.
const SEED: &str = "SIM_SEED";
/// How many seeds to run instead of the usual number.
const SEEDS: &str = "SIM_SEEDS";

/// Runs a world for each of so many seeds, on all cores, and adds up what they saw; nothing where one seed
/// alone was asked for, which need not see everything.
///
/// # Panics
/// With the first seed that broke a promise, its history, and how to run it again.
pub(crate) fn hold(mode: Mode, usual: u64) -> Option<Tally> {
    if let Some(seed) = number(SEED) {
        let outcome = run(seed, mode, None, true);
        println!("{}", outcome.lines.join("\n"));
        assert!(outcome.breaches.is_empty(), "seed {seed}:\n{}", outcome.breaches.join("\n"));
        println!("seed {seed} breaks no promise\n{}", outcome.tally);
        return None;
    }
    let seeds = number(SEEDS).unwrap_or(usual);
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let named = Named(seed);
            let outcome = run(seed, mode, None, false);
            named.passes();
            if !outcome.breaches.is_empty() {
                next.store(seeds, Ordering::Relaxed);
                fail(mode, seed, &outcome);
            }
            tally.lock().unwrap().add(&outcome.tally);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    Some(tally.into_inner().unwrap())
}

/// Looks for a seed whose world breaks a promise in these words.
///
/// # Panics
/// When none of many does.
pub(crate) fn found(words: &str, world: impl Fn(u64) -> Outcome) {
    const ENOUGH: u64 = 300;
    let breaks = |seed: &u64| world(*seed).breaches.iter().any(|breach| breach.contains(words));
    let seed = (0..ENOUGH).find(breaks).unwrap_or_else(|| panic!("none of {ENOUGH} seeds shows {words:?}"));
    println!("seed {seed} shows {words:?}");
}

fn fail(mode: Mode, seed: u64, outcome: &Outcome) -> ! {
    // The same seed, the same history: this time for people.
    println!("{}", run(seed, mode, None, true).lines.join("\n"));
    let test = match mode {
        Mode::Safety => "no_seed",
        Mode::Liveness => "the_healed",
    };
    panic!(
        "seed {seed} breaks a promise:\n{}\nagain: {SEED}={seed} cargo test -p runner --test ledger {test} -- --nocapture",
        outcome.breaches.join("\n")
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

/// Says which seed it was when a world falls over.
struct Named(u64);

impl Named {
    fn passes(self) {
        std::mem::forget(self);
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("seed {} fell over: {SEED}={} shows it again", self.0, self.0);
    }
}
