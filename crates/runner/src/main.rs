//! The stock runner.

use std::process::ExitCode;

use runner::kinds::{WARDEN, warden_main};

fn main() -> ExitCode {
    // Before anything is read or started: the warden needs no configuration, and one thread.
    if std::env::args_os().nth(1).is_some_and(|command| command == WARDEN) {
        return warden_main();
    }
    ExitCode::from(2)
}
