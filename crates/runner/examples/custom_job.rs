//! A runner with a job of one's own: it writes an invoice for each customer of a list.
//!
//! ```toml
//! [jobs.invoices]
//! schedule = "0 6 1 * *"
//! kind     = "invoices"
//! params   = { customers = ["ada", "grace"] }
//! ```
//!
//! `cargo run --example custom_job -- --config jobs.toml`, or `… check`, `next`, `history`, `exec invoices`:
//! the command line is that of the stock binary, and so is the rest of jobs.toml.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;

fn main() -> ExitCode {
    Runner::builder().kind("invoices", Invoices::new).main()
}

/// What a job of this kind says in its `params`. Whatever does not fit is told with its line when
/// the file is loaded, and nothing starts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    customers: Vec<String>,
    /// How long one invoice takes.
    #[serde(default)]
    each_ms: u64,
}

/// The job: made once when the file is loaded, run at every firing.
struct Invoices {
    customers: Vec<String>,
    each: Duration,
}

impl Invoices {
    fn new(params: Params) -> Result<Self, Box<dyn Error + Send + Sync>> {
        if params.customers.is_empty() {
            return Err("customers must name at least one".into());
        }
        Ok(Self { customers: params.customers, each: Duration::from_millis(params.each_ms) })
    }
}

impl Job for Invoices {
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        let mut invoices = Vec::new();
        for customer in &self.customers {
            tokio::select! {
                // Stopping counts more than another invoice, whatever is ready first.
                biased;
                cause = ctx.cancelled() => {
                    return Err(JobError::retry(format!("stopped before {customer}: {cause}")));
                }
                invoice = self.write(customer, ctx) => invoices.push(invoice),
            }
        }
        ctx.set_output(invoices.join("\n"));
        Ok(())
    }
}

impl Invoices {
    /// For the instant that the firing names, not for "now": a run that is late writes the same.
    async fn write(&self, customer: &str, ctx: &JobContext) -> String {
        tokio::time::sleep(self.each).await;
        format!("{customer} pays for {}", ctx.scheduled_at().format("%Y-%m-%d"))
    }
}
