//! Looking without writing.

use std::time::Duration;

use runner::internal::firing::{Reason, State};
use runner::internal::ledger::{Counted, FiringId, HistoryFilter};

use crate::fixture::{Fixture, Site, ended, fresh, later, other_job, run, succeeded};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn the_history_is_filtered_and_newest_first(site: &Site<impl Fixture>) {
    let oldest = site.firing(SECOND * 60).await;
    let mut ids = vec![];
    for n in 0..4 {
        let won = site.win(&fresh(&later(&oldest, SECOND * n))).await;
        let ending = if n == 2 { ended(State::Failed, Reason::Error) } else { succeeded() };
        site.settle(run(won), ending).await;
        ids.insert(0, won.id);
    }
    let other = site.win(&fresh(&other_job(&later(&oldest, SECOND * 2)))).await;
    let ask = async |filter: HistoryFilter| -> Vec<FiringId> {
        let rows = site.opened.reader.history(&filter).await.unwrap();
        rows.iter().map(|row| row.id).collect()
    };
    let all = HistoryFilter::default;
    assert_eq!(ask(all()).await, [ids[0], other.id, ids[1], ids[2], ids[3]]);
    assert_eq!(ask(HistoryFilter { limit: 2, ..all() }).await, [ids[0], other.id]);
    assert_eq!(ask(HistoryFilter { job: Some("a".into()), ..all() }).await, ids);
    assert_eq!(ask(HistoryFilter { job: Some("nobody".into()), ..all() }).await, []);
    assert_eq!(ask(HistoryFilter { state: Some(State::Failed), ..all() }).await, [ids[1]]);
    assert_eq!(ask(HistoryFilter { state: Some(State::Running), limit: 5, ..all() }).await, [other.id]);
    let (from, until) = (later(&oldest, SECOND).scheduled_at, later(&oldest, SECOND * 2).scheduled_at);
    assert_eq!(ask(HistoryFilter { from: Some(from), ..all() }).await, [ids[0], other.id, ids[1], ids[2]]);
    assert_eq!(ask(HistoryFilter { until: Some(from), ..all() }).await, [ids[2], ids[3]]);
    let both = HistoryFilter { job: Some("a".into()), from: Some(from), until: Some(until), ..all() };
    assert_eq!(ask(both).await, [ids[1], ids[2]]);
}

pub(crate) async fn the_counts_are_those_of_the_rows(site: &Site<impl Fixture>) {
    assert!(site.opened.reader.counts().await.unwrap().is_empty());
    let firing = site.firing(SECOND * 60).await;
    for n in 0..3 {
        let won = site.win(&fresh(&later(&firing, SECOND * n))).await;
        site.settle(run(won), succeeded()).await;
    }
    site.win(&fresh(&other_job(&firing))).await;
    let mut counts = site.opened.reader.counts().await.unwrap();
    counts.sort_by(|x, y| x.job.cmp(&y.job));
    assert_eq!(
        counts,
        [
            Counted { job: "a".into(), state: State::Succeeded.into(), rows: 3 },
            Counted { job: "b".into(), state: State::Running.into(), rows: 1 },
        ]
    );
}

pub(crate) async fn a_firing_that_is_not_there_is_none(site: &Site<impl Fixture>) {
    assert_eq!(site.opened.reader.firing(FiringId(1)).await.unwrap(), None);
    assert!(site.opened.reader.attempts(FiringId(1)).await.unwrap().is_empty());
}
