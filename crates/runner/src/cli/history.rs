//! `runner history`: shows rows of the ledger.

use std::io::{self, Write};
use std::time::Duration;

use super::error::CliError;
use super::format::{Format, print_json};
use super::invocation::{Invocation, ask};
use super::table::TextTable;
use crate::config::show_duration;
use crate::firing::{State, instant};
use crate::ledger::{FiringRow, HistoryFilter};
use crate::views::FiringView;

/// Shows the firings that the ledger has recorded, newest first
#[derive(Clone, Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// Only firings of this job
    job: Option<String>,
    /// Only firings in this state: queued, running, succeeded, failed, lost, cancelled or skipped
    #[arg(long)]
    state: Option<State>,
    /// At most this many firings; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl HistoryArgs {
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
        let config = invocation.config()?;
        let filter = HistoryFilter {
            job: self.job.clone(),
            state: self.state,
            limit: self.limit,
            ..HistoryFilter::default()
        };
        let rows = ask(&config, async |ledger| ledger.reader.history(&filter).await)?;
        Ok(self.print(&rows, &mut io::stdout())?)
    }

    fn print(&self, rows: &[FiringRow], out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Json => print_json(rows.iter().map(FiringView::from), out),
            Format::Text if rows.is_empty() => writeln!(out, "no such firing in the ledger"),
            Format::Text => {
                let titles = ["scheduled_at", "job", "state", "attempt", "owner", "took", "error"];
                let mut table = TextTable::new(titles);
                rows.iter().for_each(|row| table.add(cells(row)));
                table.print(out)
            }
        }
    }
}

fn cells(row: &FiringRow) -> [String; 7] {
    let job = if row.shard == 0 { row.job.clone() } else { format!("{}#{}", row.job, row.shard) };
    let state = match &row.reason {
        Some(reason) => format!("{}({reason})", row.state),
        None => row.state.to_string(),
    };
    [
        instant(row.scheduled_at),
        job,
        state,
        if row.attempt == 0 { String::new() } else { row.attempt.to_string() },
        row.owner.clone().unwrap_or_default(),
        took(row).map(short).unwrap_or_default(),
        row.error.as_deref().map(first_line).unwrap_or_default(),
    ]
}

/// How long the newest attempt ran, if it has ended.
fn took(row: &FiringRow) -> Option<Duration> {
    (row.finished_at? - row.started_at?).to_std().ok()
}

/// A duration in two or three digits, for people to compare.
fn short(span: Duration) -> String {
    match span.as_millis() {
        millis @ 0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{:.1}s", span.as_secs_f64()),
        _ => show_duration(Duration::from_secs(span.as_secs())),
    }
}

/// The first line of a text that is not blank, or the beginning of it.
fn first_line(text: &str) -> String {
    const MOST: usize = 100;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut shown: String = line.chars().take(MOST).collect();
    if line.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::firing::{Delivery, Origin, Reason};
    use crate::ledger::FiringId;

    fn row() -> FiringRow {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("an instant");
        FiringRow {
            id: FiringId(7),
            job: "orders".to_owned(),
            scheduled_at: at("2026-03-29T01:00:00Z"),
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Schedule.into(),
            state: State::Failed.into(),
            reason: Some(Reason::Timeout.into()),
            attempt: 2,
            crashes: 0,
            fence: Some(12),
            claim_id: None,
            owner: Some("web-1-3fa85f64".to_owned()),
            exclusive: true,
            delivery: Delivery::AtLeastOnce.into(),
            due_at: None,
            expires_at: None,
            lease_until: None,
            cancel_requested: false,
            created_at: at("2026-03-29T01:00:00.004Z"),
            started_at: Some(at("2026-03-29T01:00:00.004Z")),
            finished_at: Some(at("2026-03-29T01:00:02.254Z")),
            error: Some("\nran longer than 2s\nand was stopped".to_owned()),
            output: None,
        }
    }

    fn printed(args: &[&str], rows: &[FiringRow]) -> String {
        let mut out = Vec::new();
        parsed(args).expect("valid").print(rows, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    fn parsed(line: &[&str]) -> Result<HistoryArgs, clap::Error> {
        let command = HistoryArgs::augment_args(clap::Command::new("history").no_binary_name(true));
        HistoryArgs::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    #[test]
    fn a_table_aligns_its_columns_and_shows_one_line_of_an_error() {
        let skipped = FiringRow {
            job: "reconcile-all".to_owned(),
            shard: 3,
            state: State::Skipped.into(),
            reason: Some(Reason::Overlap.into()),
            attempt: 0,
            owner: None,
            started_at: None,
            error: None,
            ..row()
        };
        assert_eq!(
            printed(&[], &[row(), skipped]),
            "\
scheduled_at          job              state             attempt  owner           took  error
2026-03-29T01:00:00Z  orders           failed(timeout)   2        web-1-3fa85f64  2.2s  ran longer than 2s
2026-03-29T01:00:00Z  reconcile-all#3  skipped(overlap)
"
        );
    }

    #[test]
    fn an_empty_history_says_so_to_people_and_nothing_to_programs() {
        assert_eq!(printed(&[], &[]), "no such firing in the ledger\n");
        assert_eq!(printed(&["--format", "json"], &[]), "");
    }

    #[test]
    fn an_error_is_cut_and_cannot_steer_the_terminal() {
        assert_eq!(first_line(&"é".repeat(300)).chars().count(), 101);
        let error = Some("\n\u{1b}[31mred\u{7} alert".to_owned());
        let text = printed(&[], &[FiringRow { error, ..row() }]);
        assert!(text.ends_with(" 2.2s   [31mred  alert\n"), "{text:?}");
    }

    #[test]
    fn spans_are_short() {
        let spans = [0, 999, 1_000, 59_949, 60_000, 3_725_000];
        let shown = spans.map(|millis| short(Duration::from_millis(millis)));
        assert_eq!(shown, ["0ms", "999ms", "1.0s", "59.9s", "1m", "1h 2m 5s"]);
    }

    #[test]
    fn arguments_default_to_fifty_rows_of_text_and_name_the_states() {
        let args = parsed(&[]).expect("valid");
        assert_eq!((args.job, args.state, args.limit, args.format), (None, None, 50, Format::Text));
        let args = parsed(&["orders", "--state", "lost", "--limit", "0", "--format", "json"]).expect("valid");
        assert_eq!((args.state, args.limit, args.format), (Some(State::Lost), 0, Format::Json));
        assert_eq!(args.job.as_deref(), Some("orders"));
        let error = parsed(&["--state", "dead"]).expect_err("no such state");
        assert!(error.to_string().contains("expected one of queued, running, succeeded"), "{error}");
    }
}
