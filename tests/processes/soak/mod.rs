//! Random faults over three replicas, judged afterwards by what is in the ledger, what the jobs did and
//! what the timetable asked for.

mod fault;
mod locks;
mod report;
mod site;
mod sites;

use std::path::Path;
use std::time::{Duration, Instant};

use testbed::oracle::Verdict;

use fault::Dice;
use report::Report;
use sites::Sites;

/// How long faults go on where nobody says otherwise: short, for every run of the tests.
const SHORT: Duration = Duration::from_secs(40);
/// The seed where nobody says otherwise.
const SEED: u64 = 20_260_601;

#[test]
fn random_faults_neither_double_nor_lose_a_firing() {
    let span = setting("SOAK_SECONDS").map_or(SHORT, Duration::from_secs);
    let seed = setting("SOAK_SEED").unwrap_or(SEED);
    let mut sites = Sites::start();
    let begin = now();
    sites.suffer(span, &mut Dice::new(seed));
    let span = now() - begin;
    sites.end();
    let (faults, evidence, sights) = (sites.faults().clone(), sites.evidence(), sites.sights());
    let history = sites.past();
    let watched = (history.witness.locks.len(), history.witness.changes.len());
    let report = Report { seed, span, faults, evidence, sights, watched, judgement: history.judge() };
    println!("{report}");
    if report.verdict() == Verdict::Failed {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{seed}"));
        sites.keep(&folder, &history);
        println!("what was said and seen: {}", folder.display());
    }
    report.judgement.assert_clean();
    assert_eq!(report.verdict(), Verdict::Passed);
    // Every run moves a lock twice and a row once: a watch that saw less was no witness.
    let starts = report.judgement.counts.starts;
    assert!(watched.0 > starts && watched.1 > starts, "{watched:?} for {starts} runs");
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "how the script says how long and with which seed")]
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no whole number: {text:?}")))
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    Instant::now()
}

fn wall() -> chrono::DateTime<chrono::Utc> {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    chrono::Utc::now()
}
