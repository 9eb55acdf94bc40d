//! The stock runner: the kinds that come with it, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::Runner::builder().main()
}
