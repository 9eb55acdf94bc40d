//! Rows as the command line and the HTTP API print them: the same fields, in the same order, in both.
//!
//! A view borrows a row of the ledger or a job of the configuration. Its fields have the names of the
//! ledger's columns, and its instants are text such as `2026-03-29T01:00:00Z`. Tables for people are no
//! views: the command that prints a table chooses its columns.

mod firing;
mod instant;
mod job;
mod warning;

pub(crate) use firing::FiringView;
pub(crate) use instant::InstantView;
pub(crate) use job::JobView;
pub(crate) use warning::WarningView;
