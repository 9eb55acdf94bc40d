//! What is wrong with a configuration, for people: place, caret, key, message, hint.

use std::fmt::{self, Display};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The dotted key, `jobs.reconcile.timeout`; empty when it is about the whole file.
    pub key: String,
    /// Where it stands.
    pub place: Place,
    /// What is wrong. Holds no secret.
    pub message: String,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
}

/// Where a problem stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In the file.
    Line {
        /// The file, as it was named on the command line.
        file: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// The line with its secrets hidden.
        quote: Quote,
    },
    /// The file as a whole.
    File {
        /// The file, as it was named on the command line.
        file: String,
    },
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
    },
}

/// A line as it is shown, and the columns under which the carets go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quote {
    /// The line; secrets read `***`.
    pub text: String,
    /// The first underlined column, from 0.
    pub from: usize,
    /// The column after the last underlined one.
    pub to: usize,
}

impl Problem {
    /// Everything under one heading: `error` or `warning`.
    fn render(&self, f: &mut fmt::Formatter<'_>, heading: &str) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        writeln!(f, "{heading}: {}{colon}{}", self.key, self.message)?;
        let gutter = match &self.place {
            Place::Line { line, .. } => line.to_string().len(),
            Place::File { .. } | Place::Variable { .. } => 1,
        };
        match &self.place {
            Place::File { file } => writeln!(f, "{:gutter$}--> {file}", "")?,
            Place::Variable { name } => writeln!(f, "{:gutter$}--> environment variable {name}", "")?,
            Place::Line { file, line, column, quote } => {
                writeln!(f, "{:gutter$}--> {file}:{line}:{column}", "")?;
                writeln!(f, "{:gutter$} |", "")?;
                writeln!(f, "{line} | {}", quote.text)?;
                let carets = "^".repeat(quote.to.saturating_sub(quote.from).max(1));
                writeln!(f, "{:gutter$} | {:indent$}{carets}", "", "", indent = quote.from)?;
            }
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "{:gutter$} = hint: {hint}", "")?;
        }
        Ok(())
    }

    /// What problems are ordered by: the file from top to bottom, then the environment.
    pub(crate) fn order(&self) -> (usize, usize, usize, &str, &str) {
        let (group, line, column) = match &self.place {
            Place::File { .. } => (0, 0, 0),
            Place::Line { line, column, .. } => (1, *line, *column),
            Place::Variable { .. } => (2, 0, 0),
        };
        (group, line, column, &self.key, &self.message)
    }
}

/// Several lines: the message, the place, the quoted line with its carets, the hint.
impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.render(f, "error")
    }
}

/// Something that is valid but probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub(crate) Problem);

impl Warning {
    /// The dotted key it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// What is probably wrong, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Warnings from the top of the file to its end.
    pub(crate) fn in_order(mut warnings: Vec<Problem>) -> Vec<Self> {
        warnings.sort_by(|a, b| a.order().cmp(&b.order()));
        warnings.into_iter().map(Self).collect()
    }
}

/// As a [`Problem`], under another heading.
impl Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.render(f, "warning")
    }
}

/// All that is wrong with a configuration: never empty. The process that meets it exits with 78.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    file: String,
    problems: Vec<Problem>,
}

impl ConfigErrors {
    /// The exit code of a process whose configuration is bad.
    pub const EXIT_CODE: u8 = 78;

    /// The problems of `file`, put in the order of the file; `None` when there are none.
    #[must_use]
    pub fn new(file: impl Into<String>, mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|a, b| a.order().cmp(&b.order()));
        (!problems.is_empty()).then(|| Self { file: file.into(), problems })
    }

    /// For a configuration that is incomplete although no check found a problem. It is refused: nobody
    /// knows what it would do.
    pub(crate) fn unexplained(file: &str) -> Self {
        let place = Place::File { file: file.to_owned() };
        let message = "this configuration is incomplete, and no check says why".to_owned();
        Self {
            file: file.to_owned(),
            problems: vec![Problem { key: String::new(), place, message, hint: None }],
        }
    }

    /// The problems, from the top of the file to its end, then those of the environment.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// All problems, an empty line after each, and how many there are.
impl Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let count = self.problems.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} problem{plural} in {}", self.file)?;
        if self.problems.iter().any(|problem| matches!(problem.place, Place::Variable { .. })) {
            write!(f, " and its environment")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
