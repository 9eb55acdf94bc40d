//! What every reader of a value may ask for while one file is read.

use super::diagnose::Findings;
use super::params::Kinds;
use super::secret::Resolver;

/// Says what is wrong with the address of a ledger, in words that repeat no part of it. Passed in,
/// because only the ledger knows what its databases' clients accept.
pub type CheckLedgerUrl<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// One reading of one file.
pub(crate) struct Walk<'a> {
    /// Where problems are written down.
    pub(crate) findings: &'a Findings,
    /// Finds the text behind `{ env }` and `{ file }`.
    pub(crate) resolver: Resolver<'a>,
    /// The kinds of this binary.
    pub(crate) kinds: &'a dyn Kinds,
    /// Their names, asked for once.
    pub(crate) kind_names: Vec<String>,
    /// The ledger's own check of its address.
    pub(crate) check_ledger_url: CheckLedgerUrl<'a>,
}
