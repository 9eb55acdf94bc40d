//! The suite's other database: a file of the test's own.

use tempfile::TempDir;

use crate::fixture::Fixture;

/// A file that goes with the test.
#[derive(Debug)]
pub(crate) struct Sqlite {
    dir: TempDir,
}

impl Fixture for Sqlite {
    fn new() -> Self {
        Self { dir: TempDir::new().expect("a temporary directory") }
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.dir.path().join("runner.db").display())
    }
}
