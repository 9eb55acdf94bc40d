//! Who reads what a command prints: people or programs.

/// How a reading command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Aligned tables and hints, for people.
    #[default]
    Text,
    /// One object per line, for programs.
    Json,
}
