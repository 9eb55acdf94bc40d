//! How a run failed.

use std::error::Error;
use std::fmt::{self, Display};

/// How a run failed.
///
/// It does not implement [`Error`], so that `?` can turn any error into it (and means "retry").
#[derive(Debug)]
pub struct JobError {
    retry: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl JobError {
    /// Another attempt may help, if the job has attempts left.
    pub fn retry(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { retry: true, source: error.into() }
    }

    /// No further attempt: the firing ends as failed.
    pub fn fail(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { retry: false, source: error.into() }
    }

    /// Whether another attempt may help.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.retry
    }
}

impl Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}
