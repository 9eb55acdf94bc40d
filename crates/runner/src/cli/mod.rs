//! The command line: one file per subcommand, one exit code per kind of end.

mod check;
mod exec;
mod format;
mod history;
mod logging;
mod migrate;
mod next;
mod serve;

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use format::Format;

use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Environment};
use crate::engine::{ledger_options, refused_addresses};
use crate::ledger::{self, LedgerOptions};
use crate::registry::Registry;
use crate::warden::{WARDEN, warden_main};

/// It did not do what was asked.
pub(crate) const FAILED: u8 = 1;
/// A run ignores its cancellation (`EX_SOFTWARE`).
pub(crate) const STUCK: u8 = 70;
/// The configuration cannot be used (`EX_CONFIG`).
pub(crate) const BAD_CONFIG: u8 = 78;

/// Runs scheduled jobs, each firing once, however many replicas there are.
#[derive(Debug, Parser)]
#[command(name = "runner", version = version(), disable_help_subcommand = true)]
struct Cli {
    /// The file that declares the jobs [default: RUNNER_CONFIG, or jobs.toml].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Validates everything without touching a server, and shows each job's next firings.
    Check(check::CheckArgs),
    /// Lists firing instants.
    Next(next::NextArgs),
    /// Runs a job once, now, in the foreground, through both layers.
    Exec(exec::ExecArgs),
    /// Shows rows of the ledger.
    History(history::HistoryArgs),
    /// Applies the ledger's migrations.
    Migrate(migrate::MigrateArgs),
}

fn version() -> String {
    format!("{} (time zones {})", env!("CARGO_PKG_VERSION"), chrono_tz::IANA_TZDB_VERSION)
}

/// Reads the command line in `args` and does what it says.
pub(crate) fn main(registry: &Registry, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // The warden is this same program, started by itself beside every command: it must come up
    // without a configuration, and whatever the user's environment says.
    if args.get(1).is_some_and(|command| command == WARDEN) {
        return warden_main();
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Prints help and version to stdout with 0, mistakes to stderr with 2.
        Err(error) => error.exit(),
    };
    dispatch(cli, registry)
}

fn dispatch(cli: Cli, registry: &Registry) -> ExitCode {
    let environment = Environment::capture();
    // Not locked for longer than one write: a job may print, too, and would wait for the lock for ever.
    let out = &mut std::io::stdout();
    let notes = &mut std::io::stderr();
    let now = SystemClock::default().wall_now();
    if let Some(Command::Next(args)) = &cli.command
        && !args.needs_jobs()
    {
        return ended(next::run(args, &[], now, out, notes));
    }
    let path = match config_path(cli.config, &environment) {
        Ok(path) => path,
        Err(problem) => {
            complain(&problem);
            return ExitCode::from(BAD_CONFIG);
        }
    };
    let config = match Config::load(&path, &environment, registry) {
        Ok(config) => config,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if let Some(problems) = refused_addresses(&config) {
        complain(&problems);
        return ExitCode::from(BAD_CONFIG);
    }
    match cli.command {
        None => serve::run(&config, registry),
        // A kind may refuse what it is told only when it makes the job; a start would, so this must.
        Some(Command::Check(args)) => match registry.bind(&config) {
            Ok(_) => ended(check::run(&args, &config, now, out)),
            Err(problems) => {
                complain(&problems);
                ExitCode::from(BAD_CONFIG)
            }
        },
        Some(Command::Next(args)) => {
            let jobs: Vec<_> = config.jobs.iter().map(|job| (&**job).into()).collect();
            ended(next::run(&args, &jobs, now, out, notes))
        }
        Some(Command::Exec(args)) => exec::run(&args, &config, registry, out),
        Some(Command::History(args)) => ended(asynchronously(async {
            let opened = ledger::open(reading(&config)).await?;
            Ok(history::run(&args, &*opened.reader, out).await?)
        })),
        Some(Command::Migrate(args)) => ended(asynchronously(async {
            let migrate::MigrateArgs {} = args;
            Ok(migrate::run(&ledger_options(&config), out).await?)
        })),
    }
}

/// A command that looks must not change what it looks at.
fn reading(config: &Config) -> LedgerOptions {
    LedgerOptions { migrate: false, ..ledger_options(config) }
}

fn asynchronously(work: impl Future<Output = Result<(), Box<dyn Error>>>) -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn config_path(
    given: Option<PathBuf>,
    environment: &Environment,
) -> Result<PathBuf, crate::config::NotUnicode> {
    match given {
        Some(path) => Ok(path),
        None => Ok(environment.get("RUNNER_CONFIG")?.unwrap_or("jobs.toml").into()),
    }
}

fn ended<E: Into<Box<dyn Error>>>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error.into();
            // `runner history | head`: whoever read the answer has enough of it.
            if is_broken_pipe(&*error) {
                return ExitCode::SUCCESS;
            }
            complain_with_causes(&*error);
            ExitCode::from(FAILED)
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// One message on stderr. Where stderr is gone nobody can be told.
fn complain(message: &dyn std::fmt::Display) {
    let _unread = writeln!(std::io::stderr(), "{message}");
}

fn complain_with_causes(error: &dyn Error) {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    complain(&text);
}
