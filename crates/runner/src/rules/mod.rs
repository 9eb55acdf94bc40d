//! The rules of the product, each written once, as pure functions: no database, no clock, no task.
//!
//! A ledger reads what it needs in one look, fills a [`View`] and asks the rule why a statement did not take
//! effect. The statements themselves stay the arbiter: they decide, the rules explain and judge.

mod claim;
mod ending;
mod enqueue;
mod judge;
mod lost;
mod misfire;
mod policy;
mod skip;
mod view;

pub use claim::{CLOCK_SKEW, Claim, ClaimRequest, Entry, why_not_claimed};
pub use ending::Ending;
pub use enqueue::{Enqueue, Enqueued, why_not_enqueued};
pub use judge::{Backoff, Outcome, QUEUE_EXPIRY, RunTerms, Verdict, judge};
pub use lost::{LostFate, LostRun};
pub use misfire::{Misfire, MisfireRule, Missed, Ruling, misfire_rulings};
pub use policy::{Guard, OnUnavailable, Overlap};
pub use skip::{Skip, Skipped, why_not_skipped};
pub use view::{Found, KnownJob, OwnRow, View, Won};
