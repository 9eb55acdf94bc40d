//! `runner history`: rows of the ledger, for people or for programs.

use std::io::{self, Write};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Format;
use crate::firing::{State, Word, instant};
use crate::ledger::{FiringRow, HistoryFilter, LedgerError, Reader};

/// Shows rows of the ledger, newest first.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Of this job only.
    job: Option<String>,
    /// In this state only: queued, running, succeeded, failed, lost, cancelled or skipped.
    #[arg(long)]
    state: Option<State>,
    /// At most so many rows; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// For people, or one object per line for programs.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The history could not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The ledger gave no answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nobody takes what we print.
    #[error("cannot print the history")]
    Print(#[from] io::Error),
}

/// Reads and prints.
///
/// # Errors
/// [`HistoryError`].
pub(crate) async fn run(
    args: &HistoryArgs,
    reader: &dyn Reader,
    out: &mut dyn Write,
) -> Result<(), HistoryError> {
    let filter = HistoryFilter {
        job: args.job.clone(),
        state: args.state,
        limit: args.limit,
        ..HistoryFilter::default()
    };
    let rows = reader.history(&filter).await?;
    match args.format {
        Format::Text => print_table(&rows, out)?,
        Format::Json => print_lines(&rows, out)?,
    }
    Ok(out.flush()?)
}

const HEAD: [&str; 7] = ["scheduled_at", "job", "state", "attempt", "owner", "took", "error"];

fn print_table(rows: &[FiringRow], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "no such firing in the ledger");
    }
    let rows: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut print = |row: [&str; 7]| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        writeln!(out, "{}", line.trim_end())
    };
    print(HEAD)?;
    rows.iter().try_for_each(|row| print(row.each_ref().map(String::as_str)))
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

/// How long the newest attempt ran, once it has ended.
fn took(row: &FiringRow) -> Option<Duration> {
    (row.finished_at? - row.started_at?).to_std().ok()
}

/// To three digits or so: what a person compares at a glance.
fn short(span: Duration) -> String {
    match span.as_millis() {
        millis @ 0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{:.1}s", span.as_secs_f64()),
        _ => humantime::format_duration(Duration::from_secs(span.as_secs())).to_string(),
    }
}

/// The first line that says something, fit for one row of a table. What a command printed may hold
/// control characters, and those would reach the reader's terminal.
fn first_line(text: &str) -> String {
    const MOST: usize = 100;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut shown: String = line.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn print_lines(rows: &[FiringRow], out: &mut dyn Write) -> io::Result<()> {
    rows.iter().try_for_each(|row| {
        serde_json::to_writer(&mut *out, &Line::from(row))?;
        writeln!(out)
    })
}

/// A row under the ledger's own column names, in their order.
#[derive(Debug, Serialize)]
struct Line<'r> {
    id: i64,
    job: &'r str,
    scheduled_at: String,
    shard: u32,
    trigger_key: &'r str,
    origin: &'r str,
    state: &'r str,
    reason: Option<&'r str>,
    attempt: u32,
    crashes: u32,
    fence: Option<i64>,
    claim_id: Option<String>,
    owner: Option<&'r str>,
    exclusive: bool,
    delivery: &'r str,
    due_at: Option<String>,
    expires_at: Option<String>,
    lease_until: Option<String>,
    cancel_requested: bool,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    error: Option<&'r str>,
    output: Option<&'r str>,
}

impl<'r> From<&'r FiringRow> for Line<'r> {
    fn from(row: &'r FiringRow) -> Self {
        let maybe = |at: Option<DateTime<Utc>>| at.map(instant);
        Self {
            id: row.id.0,
            job: &row.job,
            scheduled_at: instant(row.scheduled_at),
            shard: row.shard,
            trigger_key: &row.trigger_key,
            origin: row.origin.as_str(),
            state: row.state.as_str(),
            reason: row.reason.as_ref().map(Word::as_str),
            attempt: row.attempt,
            crashes: row.crashes,
            fence: row.fence,
            claim_id: row.claim_id.map(|id| id.to_string()),
            owner: row.owner.as_deref(),
            exclusive: row.exclusive,
            delivery: row.delivery.as_str(),
            due_at: maybe(row.due_at),
            expires_at: maybe(row.expires_at),
            lease_until: maybe(row.lease_until),
            cancel_requested: row.cancel_requested,
            created_at: instant(row.created_at),
            started_at: maybe(row.started_at),
            finished_at: maybe(row.finished_at),
            error: row.error.as_deref(),
            output: row.output.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
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

    fn printed(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).expect("memory takes it");
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
            printed(|out| print_table(&[row(), skipped], out)),
            "\
scheduled_at          job              state             attempt  owner           took  error
2026-03-29T01:00:00Z  orders           failed(timeout)   2        web-1-3fa85f64  2.2s  ran longer than 2s
2026-03-29T01:00:00Z  reconcile-all#3  skipped(overlap)
"
        );
    }

    #[test]
    fn an_empty_history_says_so_to_people_and_nothing_to_programs() {
        assert_eq!(printed(|out| print_table(&[], out)), "no such firing in the ledger\n");
        assert_eq!(printed(|out| print_lines(&[], out)), "");
    }

    #[test]
    fn a_line_has_the_ledgers_columns_and_milliseconds_only_where_there_are_any() {
        assert_eq!(
            printed(|out| print_lines(&[row()], out)),
            concat!(
                r#"{"id":7,"job":"orders","scheduled_at":"2026-03-29T01:00:00Z","shard":0,"trigger_key":"","#,
                r#""origin":"schedule","state":"failed","reason":"timeout","attempt":2,"crashes":0,"fence":12,"#,
                r#""claim_id":null,"owner":"web-1-3fa85f64","exclusive":true,"delivery":"at_least_once","#,
                r#""due_at":null,"expires_at":null,"lease_until":null,"cancel_requested":false,"#,
                r#""created_at":"2026-03-29T01:00:00.004Z","started_at":"2026-03-29T01:00:00.004Z","#,
                r#""finished_at":"2026-03-29T01:00:02.254Z","#,
                r#""error":"\nran longer than 2s\nand was stopped","output":null}"#,
                "\n"
            )
        );
    }

    #[test]
    fn control_characters_of_an_error_do_not_reach_a_terminal() {
        assert_eq!(first_line("\u{1b}[31mred\u{7}"), " [31mred ");
        assert_eq!(first_line(&"é".repeat(300)).chars().count(), 101);
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
