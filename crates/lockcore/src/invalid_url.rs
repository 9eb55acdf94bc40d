//! The error of a lock's URL.

/// Why a lock's URL cannot be used.
///
/// Says it in words and never repeats the URL, which may hold a password: at most its scheme is shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock's URL cannot be used: {problem}; {advice}")]
pub struct InvalidUrl {
    problem: String,
    advice: String,
}

impl InvalidUrl {
    pub(crate) fn new(problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { problem: problem.into(), advice: advice.into() }
    }

    /// What is wrong, with "it" for the URL: `it names no host`.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What to do about it: `write for example redis://127.0.0.1:6379/0`.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.advice
    }
}
