//! What a person can say to a ledger, one file for each verb. The command line, the HTTP API and a program
//! that embeds a replica call the same code: it takes values, and returns values that they show.

mod exec;

pub(crate) use exec::{Executed, exec};
