//! The `runner` binary: it has the built-in kinds of jobs and no others.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::Runner::builder().main()
}
