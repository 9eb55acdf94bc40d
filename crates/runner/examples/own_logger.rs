//! A runner whose program has its own `tracing` subscriber: that one stays, and `[log]` has no effect.
//!
//! `cargo run --example own_logger -- --config jobs.toml`, with a job of the kind `hello`.

use std::process::ExitCode;

use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;

fn main() -> ExitCode {
    tracing_subscriber::fmt().init();
    Runner::builder().kind("hello", |_: Params| Ok(Hello)).main()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {}

struct Hello;

impl Job for Hello {
    async fn run(&self, _: &JobContext) -> Result<(), JobError> {
        tracing::info!("hello");
        Ok(())
    }
}
