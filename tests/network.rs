//! The network between the replicas and their servers at its worst: replies that are lost, requests
//! that never arrive or arrive late, partitions that cut off one replica from one server, failovers,
//! killed sessions and clocks that jump. No firing is missed or doubled, and no job overlaps itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "network/account.rs"]
mod account;
#[path = "network/answers.rs"]
mod answers;
#[path = "network/clocks.rs"]
mod clocks;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "network/failover.rs"]
mod failover;
#[path = "network/partitions.rs"]
mod partitions;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "network/scene.rs"]
mod scene;
#[path = "network/sessions.rs"]
mod sessions;
#[path = "network/takeover.rs"]
mod takeover;
