//! Random faults over three replicas, judged afterwards by what is in the ledger, what the jobs did and
//! what the timetable asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "soak/fault.rs"]
mod fault;
#[path = "soak/past.rs"]
mod past;
#[path = "soak/report.rs"]
mod report;
#[path = "soak/site.rs"]
mod site;

use std::time::Duration;

use fault::Dice;
use report::Report;
use site::Sites;

/// How long faults go on where nobody says otherwise: short, for every run of the tests.
const SHORT: Duration = Duration::from_secs(40);
/// The seed where nobody says otherwise.
const SEED: u64 = 20_260_601;

#[test]
fn random_faults_neither_double_nor_lose_a_firing() {
    let span = setting("SOAK_SECONDS").map_or(SHORT, Duration::from_secs);
    let seed = setting("SOAK_SEED").unwrap_or(SEED);
    let mut sites = Sites::start();
    let faults = sites.suffer(span, &mut Dice::new(seed));
    let recovery = sites.heal();
    let evidence = sites.evidence();
    let history = sites.past();
    let report = Report { seed, span, faults, recovery, evidence, judgement: history.judge() };
    println!("{report}");
    report.judgement.assert_clean();
    report.assert_recovered(sites.recovery_bound());
    // A run that met no fault worth the name proves nothing. Short ones may meet too few.
    if span > SHORT {
        report.assert_not_vacuous();
    }
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "how the script says how long and with which seed")]
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no whole number: {text:?}")))
}
