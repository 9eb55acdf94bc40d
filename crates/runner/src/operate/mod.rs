//! The verbs: what a person can ask of a ledger, one file for each. The command line, the HTTP API and a
//! program that embeds a replica call the same functions. A verb takes values and returns a value; it prints
//! nothing.

mod exec;

pub(crate) use exec::{Executed, exec};
