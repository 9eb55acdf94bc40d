//! What jobs.toml says about an `sql` job.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::script::Script;

/// The `params` of a job of the kind `sql`: the statements, or the name of their file. The file is in the
/// directory of jobs.toml and is read together with it.
///
/// ```toml
/// params = { statement = "INSERT INTO nightly (at, job) VALUES (:scheduled_at, :job)" }
/// params = { file = "nightly.sql" }
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenSql")]
pub struct SqlParams {
    pub(super) script: Script,
}

/// When this is read, `file` already holds the content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSql {
    #[serde(default, deserialize_with = "script")]
    statement: Option<Script>,
    #[serde(default, deserialize_with = "script")]
    file: Option<Script>,
}

impl TryFrom<WrittenSql> for SqlParams {
    type Error = &'static str;

    fn try_from(written: WrittenSql) -> Result<Self, &'static str> {
        match (written.statement, written.file) {
            (Some(script), None) | (None, Some(script)) => Ok(Self { script }),
            (None, None) => Err("there is nothing to run: write statement = \"…\" or file = \"….sql\""),
            (Some(_), Some(_)) => Err("statement and file exclude each other"),
        }
    }
}

fn script<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Script>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Script::parse(&text).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SqlParams, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn statements_come_from_one_place() {
        assert_eq!(read("statement = 'SELECT 1; SELECT :job'").unwrap().script.statements.len(), 2);
        assert_eq!(read("file = 'SELECT 1'").unwrap().script.statements.len(), 1);
        for (text, words) in [
            ("", "nothing to run"),
            ("statement = 'SELECT 1'\nfile = 'SELECT 1'", "exclude each other"),
            ("statement = '-- nothing'", "no statement"),
            ("statement = 'SELECT :jbo'", ":jbo"),
            ("statement = 5", "expected a string"),
            ("sql = 'SELECT 1'", "unknown field `sql`"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }
}
