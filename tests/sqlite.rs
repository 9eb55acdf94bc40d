//! What only the ledger in a file has to prove: several processes on it, killed ones among them.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "tests hold their own time and speak to their own children")]

#[path = "sqlite/opening.rs"]
mod opening;
#[path = "sqlite/peer.rs"]
mod peer;
#[path = "sqlite/racing.rs"]
mod racing;
#[path = "sqlite/scene.rs"]
mod scene;
