//! What jobs.toml says about a command.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de::Error as _};

use super::environment;
use crate::kinds::size::ByteSize;

/// The `params` of a job of the kind `command`.
///
/// ```toml
/// params = { argv = ["/usr/local/bin/reconcile", "--all"], env = { MODE = "full" }, cwd = "/srv", output_limit = "64KiB" }
/// ```
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandParams {
    #[serde(deserialize_with = "argv")]
    pub(super) argv: Vec<String>,
    #[serde(default, deserialize_with = "env")]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "cwd")]
    pub(super) cwd: Option<PathBuf>,
    #[serde(default = "output_limit")]
    pub(super) output_limit: ByteSize,
}

/// Without the values of `env`, which may be secrets.
impl fmt::Debug for CommandParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandParams")
            .field("argv", &self.argv)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("output_limit", &self.output_limit)
            .finish()
    }
}

fn output_limit() -> ByteSize {
    ByteSize::kib(64)
}

fn argv<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let argv = deserializer.deserialize_any(ArgvVisitor)?;
    match argv.first() {
        None => Err(D::Error::custom("argv is empty: its first element names the program")),
        Some(program) if program.is_empty() => {
            Err(D::Error::custom("argv[0] is empty: it names the program"))
        }
        Some(_) if argv.iter().any(|arg| arg.contains('\0')) => {
            Err(D::Error::custom("an argument cannot hold a NUL"))
        }
        Some(_) => Ok(argv),
    }
}

struct ArgvVisitor;

impl<'de> Visitor<'de> for ArgvVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings such as [\"/usr/local/bin/reconcile\", \"--all\"]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
        let mut argv = Vec::new();
        while let Some(arg) = seq.next_element()? {
            argv.push(arg);
        }
        Ok(argv)
    }

    fn visit_str<E: de::Error>(self, _line: &str) -> Result<Vec<String>, E> {
        Err(E::custom(
            "expected an array of strings such as [\"/usr/local/bin/reconcile\", \"--all\"]; \
             no shell runs it; to use one, write [\"sh\", \"-c\", \"…\"]",
        ))
    }
}

fn env<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let env = BTreeMap::<String, String>::deserialize(deserializer)?;
    for (name, value) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(D::Error::custom(format_args!("{name:?} is not a name for an environment variable")));
        }
        if value.contains('\0') {
            return Err(D::Error::custom(format_args!("the value of {name} cannot hold a NUL")));
        }
        if environment::is_ours(name) {
            return Err(D::Error::custom(format_args!("{name} is set by the runner itself")));
        }
    }
    Ok(env)
}

fn cwd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let cwd = String::deserialize(deserializer)?;
    if cwd.is_empty() || cwd.contains('\0') {
        return Err(D::Error::custom("cwd is not a path"));
    }
    Ok(Some(cwd.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CommandParams, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn only_argv_is_needed() {
        let params = read(r#"argv = ["true"]"#).unwrap();
        assert_eq!(params.argv, ["true"]);
        assert!(params.env.is_empty());
        assert_eq!(params.cwd, None);
        assert_eq!(params.output_limit.bytes(), 65_536);
    }

    #[test]
    fn every_param_is_read() {
        let params = read(
            "argv = [\"a\", \"\", \"b c\"]\nenv = { A = \"1\", B = \"\" }\ncwd = \"/srv\"\noutput_limit = \"1KiB\"",
        )
        .unwrap();
        assert_eq!(params.argv, ["a", "", "b c"]);
        assert_eq!(params.env.len(), 2);
        assert_eq!(params.cwd.as_deref(), Some("/srv".as_ref()));
        assert_eq!(params.output_limit.bytes(), 1_024);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_words() {
        for (text, words) in [
            ("", "missing field `argv`"),
            ("argv = []", "its first element names the program"),
            (r#"argv = [""]"#, "argv[0] is empty"),
            (r#"argv = ["a\u0000"]"#, "NUL"),
            (r#"argv = ["a", 5]"#, "expected a string"),
            (r#"argv = "reconcile --all""#, "no shell runs it"),
            ("argv = 5", "an array of strings such as"),
            ("argv = [\"a\"]\ncommand = \"b\"", "unknown field `command`"),
            ("argv = [\"a\"]\nenv = { A = 1 }", "expected a string"),
            ("argv = [\"a\"]\nenv = { \"A=B\" = \"1\" }", "is not a name for an environment variable"),
            ("argv = [\"a\"]\nenv = { RUNNER_FENCE = \"1\" }", "set by the runner itself"),
            ("argv = [\"a\"]\nenv = { RUNNER__LOCK__URL = \"1\" }", "set by the runner itself"),
            ("argv = [\"a\"]\ncwd = \"\"", "cwd is not a path"),
            ("argv = [\"a\"]\noutput_limit = \"1 meter\"", "is not a size"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }

    #[test]
    fn the_values_of_env_are_not_printed() {
        let params = read("argv = [\"a\"]\nenv = { TOKEN = \"hunter2\" }").unwrap();
        let printed = format!("{params:?}");
        assert!(printed.contains("TOKEN") && !printed.contains("hunter2"), "{printed}");
    }
}
