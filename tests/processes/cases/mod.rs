//! What has gone wrong in other schedulers, kind by kind, where no other test would notice it here:
//! `docs/failures.md` lists the kinds and says which test stands against each.

mod clocks;
mod grid;
mod leaks;
mod leaving;
mod own_code;
mod postgres;
mod redis;

use testbed::Replica;

/// A job whose command is this argv.
fn command(name: &str, argv: &[&str], keys: &str) -> String {
    let argv = serde_json::to_string(argv).unwrap();
    format!("[jobs.{name}]\nkind = \"command\"\nparams = {{ argv = {argv} }}\n{keys}\n")
}

/// What all of them have said that contains `word`.
fn said(replicas: &[Replica], word: &str) -> Vec<String> {
    let lines = replicas.iter().flat_map(|replica| replica.lines().since(0));
    lines.filter(|line| line.contains(word)).collect()
}
