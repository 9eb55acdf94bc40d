//! The kinds of job that come with the runner.

mod command;
mod http;
mod size;
mod sql;

pub use command::{Command, CommandParams};
pub use http::{Http, HttpParams};
pub use sql::{Sql, SqlParams};
