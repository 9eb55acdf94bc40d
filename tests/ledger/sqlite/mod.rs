//! What only the ledger in a file has to prove: several processes on it, killed ones among them.

#![expect(clippy::disallowed_methods, reason = "tests hold their own time and speak to their own children")]

mod effects;
mod opening;
mod peer;
mod racing;
mod scene;
