//! PostgreSQL fails over: a standby is promoted, with all acknowledged commits or without the last ones.
//! What is promised with the former, and what is not with the latter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "network/account.rs"]
#[expect(dead_code, reason = "some of what it offers is for other tests")]
mod account;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "admin/client.rs"]
mod client;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "failover/elsewhere.rs"]
mod elsewhere;
#[path = "failover/lagging.rs"]
mod lagging;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "network/scene.rs"]
mod scene;
#[path = "failover/stage.rs"]
mod stage;
#[path = "failover/synchronous.rs"]
mod synchronous;
