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

use runner::{Job, JobContext, JobError, Runner, Transaction, sqlx};
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
        // What takes long comes first, and may be stopped at any step.
        let mut invoices = Vec::new();
        for customer in &self.customers {
            tokio::select! {
                // Stopping counts more than another invoice, whatever is ready first.
                biased;
                cause = ctx.cancelled() => {
                    return Err(JobError::retry(format!("stopped before {customer}: {cause}")));
                }
                amount = self.add_up(customer) => invoices.push((customer, amount)),
            }
        }
        // Then what must happen once, in the ledger's own database: the rows and the end of the
        // firing are one commit, however often a run got this far and was lost.
        let mut transaction = ctx.transaction().await?;
        let month = ctx.scheduled_at().to_rfc3339();
        for (customer, amount) in &invoices {
            write(&mut transaction, customer, &month, *amount).await?;
            println!("an invoice of {amount} for {customer}");
        }
        ctx.set_output(format!("{} invoices", invoices.len()));
        Ok(transaction.commit().await?)
    }
}

impl Invoices {
    async fn add_up(&self, customer: &str) -> i64 {
        tokio::time::sleep(self.each).await;
        customer.bytes().map(i64::from).sum()
    }
}

/// For the instant that the firing names, not for "now": a run that is late writes the same. Nothing
/// here is UNIQUE, and nothing asks whether it is there already.
async fn write(tx: &mut Transaction, customer: &str, month: &str, amount: i64) -> Result<(), JobError> {
    const TABLE: &str = "CREATE TABLE IF NOT EXISTS invoices (customer text, month text, amount bigint)";
    const ROW: &str = "INSERT INTO invoices (customer, month, amount) VALUES ($1, $2, $3)";
    if let Ok(postgres) = tx.postgres() {
        sqlx::query(TABLE).execute(&mut *postgres).await?;
        sqlx::query(ROW).bind(customer).bind(month).bind(amount).execute(postgres).await?;
    } else {
        let sqlite = tx.sqlite()?;
        sqlx::query(TABLE).execute(&mut *sqlite).await?;
        sqlx::query(ROW).bind(customer).bind(month).bind(amount).execute(sqlite).await?;
    }
    Ok(())
}
