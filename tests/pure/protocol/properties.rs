//! What is promised of every history, and what must be seen in some for that to mean anything.

use std::collections::BTreeSet;

use stateright::Property;

use super::corridor::Worker;
use super::ledger::{Firing, Reason, Refusal, Row, State};
use super::record::Breach;
use super::setting::{Delivery, Effect, Setting};
use super::world::World;

pub(crate) const ONE_EFFECT: &str = "a firing has at most one committed effect";
pub(crate) const EFFECT_IS_SUCCESS: &str = "a firing has succeeded if and only if its effect is committed";
pub(crate) const LICENSED: &str = "no run begins without a licence of its firing";
pub(crate) const ONE_START: &str = "a fence begins one run";
pub(crate) const FENCES_GROW: &str = "a later claim has a higher fence";
pub(crate) const AT_MOST_ONCE: &str = "an at-most-once firing begins at most once";
pub(crate) const TERMINAL: &str = "an ended row never changes, but for the one late result of a lost one";
pub(crate) const OWN_END: &str = "only the newest owner's result ends a run";
pub(crate) const NO_VOID_LICENCE: &str = "nobody is told \"it is yours\" of a run that is not";
pub(crate) const TRUE_ANSWER: &str = "a worker is told the truth about its result";
pub(crate) const SWEPT_AS_SEEN: &str = "no run is swept that moved since it was seen";
pub(crate) const STAYS_REMOVED: &str = "a firing that retention removed never comes back";
pub(crate) const OPEN_ROWS_STAY: &str = "retention removes ended rows only";
pub(crate) const PAUSED: &str = "no claim succeeds while the job is paused";
pub(crate) const CANCELLED: &str = "no claim succeeds after a cancel was acknowledged";
pub(crate) const NO_OVERLAP: &str = "at most one exclusive run of a job is running in the rows";
pub(crate) const NO_INTERLEAVING: &str = "between a claim and its commit no other firing's effect commits";
pub(crate) const HISTORY: &str = "every superseded attempt is in the history, once";
pub(crate) const CRASH_LIMIT: &str = "no firing goes on above its limit of crashes";

pub(crate) const TAKEN_OVER: &str = "a run is taken over";
pub(crate) const FENCED: &str = "a result is refused, for somebody took over";
pub(crate) const UNKNOWN_MINE: &str = "a claim without an answer turns out to be ours";
pub(crate) const UNKNOWN_NOT_MINE: &str = "a claim without an answer turns out to be not ours";
pub(crate) const LANDS_LATE: &str = "a claim lands after its sender was told that it is not there";
pub(crate) const LATE_RESULT: &str = "a lost firing takes its owner's late result";
pub(crate) const OVERLAP_REFUSED: &str = "a claim is refused, for another firing runs";
pub(crate) const PRUNE_REFUSED: &str = "a claim is refused, for retention has passed";
pub(crate) const PAUSE_REFUSED: &str = "a claim is refused, for the job is paused";
pub(crate) const CRASH_LOOP: &str = "a firing ends for its crashes";
pub(crate) const CANCEL_ENDS: &str = "a run is cancelled";

pub(crate) fn properties(setting: &Setting) -> Vec<Property<Setting>> {
    let shown = sometimes().into_iter().filter(|property| setting.shows.contains(&property.name));
    always().into_iter().chain(shown).collect()
}

fn always() -> Vec<Property<Setting>> {
    vec![
        Property::always(ONE_EFFECT, |setting, world: &World| {
            (0..setting.firings).all(|firing| effects(world, firing) <= 1)
        }),
        Property::always(EFFECT_IS_SUCCESS, |setting, world: &World| {
            let agrees = |(firing, row): (Firing, &Row)| {
                (row.state == State::Succeeded) == (effects(world, firing) == 1)
            };
            setting.effect == Effect::External || rows(world).all(agrees)
        }),
        Property::always(LICENSED, |_, world: &World| {
            let record = &world.ledger.record;
            record.started.iter().all(|run| record.licensed.contains(run))
        }),
        Property::always(ONE_START, |_, world: &World| {
            let fences: BTreeSet<_> = world.ledger.record.started.iter().map(|run| run.fence).collect();
            fences.len() == world.ledger.record.started.len()
        }),
        Property::always(FENCES_GROW, |_, world: &World| {
            world.ledger.record.licensed.windows(2).all(|pair| pair[0].fence < pair[1].fence)
        }),
        Property::always(AT_MOST_ONCE, |setting, world: &World| {
            let starts =
                |firing| world.ledger.record.started.iter().filter(|run| run.firing == firing).count();
            setting.delivery == Delivery::AtLeastOnce
                || (0..setting.firings).all(|firing| starts(firing) <= 1)
        }),
        Property::always(TERMINAL, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::TerminalChanged)
        }),
        Property::always(OWN_END, |_, world: &World| world.ledger.record.is_free_of(Breach::ForeignEnd)),
        Property::always(NO_VOID_LICENCE, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::VoidLicence)
        }),
        Property::always(TRUE_ANSWER, |_, world: &World| world.ledger.record.is_free_of(Breach::WrongAnswer)),
        Property::always(SWEPT_AS_SEEN, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::SweptThoughMoved)
        }),
        Property::always(STAYS_REMOVED, |_, world: &World| world.ledger.record.is_free_of(Breach::CameBack)),
        Property::always(OPEN_ROWS_STAY, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::OpenRowRemoved)
        }),
        Property::always(PAUSED, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::ClaimedWhilePaused)
        }),
        Property::always(CANCELLED, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::ClaimedAfterCancel)
        }),
        Property::always(NO_INTERLEAVING, |_, world: &World| {
            world.ledger.record.is_free_of(Breach::Interleaved)
        }),
        Property::always(NO_OVERLAP, |_, world: &World| {
            rows(world).filter(|(_, row)| row.state == State::Running).count() <= 1
        }),
        Property::always(HISTORY, |_, world: &World| {
            rows(world).all(|(firing, row)| {
                let licensed = world.ledger.record.licensed.iter().filter(|run| run.firing == firing);
                let earlier = licensed.clone().filter(|run| run.fence != row.fence).map(|run| run.fence);
                let all = licensed.map(|run| run.fence);
                let told: Vec<_> = row.superseded.iter().map(|(fence, _)| *fence).collect();
                match row.state {
                    State::Running => earlier.eq(told),
                    State::Queued(_) => all.eq(told),
                    // It ended running, or later, in the queue.
                    _ => earlier.eq(told.iter().copied()) || all.eq(told),
                }
            })
        }),
        Property::always(CRASH_LIMIT, |setting, world: &World| {
            let goes_on = |row: &Row| !row.state.is_terminal() && row.crashes > setting.max_crashes;
            !rows(world).any(|(_, row)| goes_on(row))
        }),
    ]
}

fn sometimes() -> Vec<Property<Setting>> {
    vec![
        Property::sometimes(TAKEN_OVER, |_, world: &World| {
            rows(world).any(|(_, row)| row.state == State::Running && row.attempt > 1)
        }),
        Property::sometimes(FENCED, |_, world: &World| world.workers.contains(&Worker::Fenced)),
        Property::sometimes(UNKNOWN_MINE, |_, world: &World| {
            world.workers.iter().any(|worker| matches!(worker, Worker::Unsure(..)))
        }),
        Property::sometimes(UNKNOWN_NOT_MINE, |_, world: &World| {
            world.workers.iter().any(|worker| matches!(worker, Worker::Again(passage) if passage.unsure))
        }),
        Property::sometimes(LANDS_LATE, |_, world: &World| {
            let waits = |row: &Row| {
                world.workers.iter().any(|worker| {
                    matches!(worker, Worker::Again(passage) if passage.claim.claim_id == row.claim_id)
                })
            };
            rows(world).any(|(_, row)| row.state == State::Running && waits(row))
        }),
        Property::sometimes(LATE_RESULT, |_, world: &World| rows(world).any(|(_, row)| row.was_lost)),
        Property::sometimes(OVERLAP_REFUSED, |_, world: &World| refused(world, Refusal::Overlap)),
        Property::sometimes(PRUNE_REFUSED, |_, world: &World| refused(world, Refusal::Pruned)),
        Property::sometimes(PAUSE_REFUSED, |_, world: &World| refused(world, Refusal::Paused)),
        Property::sometimes(CRASH_LOOP, |_, world: &World| {
            let looped = State::Failed(Reason::CrashLoop);
            rows(world).any(|(_, row)| row.state == looped)
        }),
        Property::sometimes(CANCEL_ENDS, |_, world: &World| {
            rows(world).any(|(_, row)| row.state == State::Cancelled && row.attempt > 0)
        }),
    ]
}

fn rows(world: &World) -> impl Iterator<Item = (Firing, &Row)> {
    (0..).zip(&world.ledger.rows).filter_map(|(firing, row)| Some((firing, row.as_ref()?)))
}

fn effects(world: &World, firing: Firing) -> usize {
    world.ledger.record.effects.iter().filter(|run| run.firing == firing).count()
}

fn refused(world: &World, refusal: Refusal) -> bool {
    world.workers.contains(&Worker::Refused(refusal))
}
