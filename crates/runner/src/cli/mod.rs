//! The command line. Each subcommand has a file of its own with its arguments and their `run`: it reads
//! the arguments, calls a verb of `operate` or the ledger's reader, and prints a view or a table.

mod check;
mod error;
mod exec;
mod format;
mod history;
mod invocation;
mod log_writer;
mod logging;
mod migrate;
mod next;
mod serve;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::clock::{Clock, SystemClock};
use crate::config::Environment;
use crate::registry::Registry;
use crate::warden::{WARDEN, warden_main};
use error::CliError;
use invocation::Invocation;

/// Runs the jobs of a file on their schedules: each firing once, however many replicas there are
///
/// Without a subcommand it is a replica: it fires the jobs until a signal stops it.
#[derive(Debug, Parser)]
#[command(name = "runner", version = version(), disable_help_subcommand = true)]
struct Cli {
    /// The file that declares the jobs [default: RUNNER_CONFIG, or jobs.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    subcommand: Option<Subcommand>,
}

/// Declares the subcommands, in the order of `runner --help`. The doc comment of the arguments is the help
/// text.
macro_rules! subcommands {
    ($($name:ident($args:ty)),+ $(,)?) => {
        #[derive(Debug, clap::Subcommand)]
        enum Subcommand { $($name($args)),+ }

        impl Subcommand {
            fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
                match self { $(Self::$name(args) => args.run(invocation)),+ }
            }
        }
    };
}

subcommands! {
    Check(check::CheckArgs),
    Next(next::NextArgs),
    Exec(exec::ExecArgs),
    History(history::HistoryArgs),
    Migrate(migrate::MigrateArgs),
}

fn version() -> String {
    format!("{} (time zones {})", env!("CARGO_PKG_VERSION"), chrono_tz::IANA_TZDB_VERSION)
}

/// Reads the command line in `args` and does what it says.
pub(crate) fn main(registry: &Registry, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // The runner starts itself again as the warden of each command. The warden has no configuration, and
    // no variable of the user's environment may stop it.
    if args.get(1).is_some_and(|command| command == WARDEN) {
        return warden_main();
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Help and version go to stdout with exit code 0, mistakes to stderr with 2.
        Err(error) => error.exit(),
    };
    let invocation = Invocation {
        registry,
        now: SystemClock::default().wall_now(),
        environment: Environment::capture(),
        file: cli.config,
    };
    let exit_code = error::exit_code(match cli.subcommand {
        Some(subcommand) => subcommand.run(&invocation),
        None => serve::run(&invocation),
    });
    logging::finish();
    exit_code
}
