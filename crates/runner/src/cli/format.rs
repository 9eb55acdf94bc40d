//! The two ways to print: for people, or for programs.

use std::io::{self, Write};

use serde::Serialize;

/// How a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Aligned tables and hints, for people.
    #[default]
    Text,
    /// One object per line, for programs.
    Json,
}

/// Prints each view as a JSON object in a line of its own.
///
/// # Errors
/// When `out` does not take it.
pub(super) fn print_json<V: Serialize>(
    views: impl IntoIterator<Item = V>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for view in views {
        let mut line = serde_json::to_vec(&view)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}
