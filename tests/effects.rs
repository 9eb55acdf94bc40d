//! Exactly one committed effect for each firing, while owners are killed and frozen and the lock is
//! flushed: counted in a table in which nothing is UNIQUE.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "effects/binds.rs"]
mod binds;
#[expect(dead_code, reason = "the fault tests use all of it")]
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "effects/crowd.rs"]
mod crowd;
#[path = "effects/frozen.rs"]
mod frozen;
#[path = "effects/lost_reply.rs"]
mod lost_reply;
#[path = "effects/own_jobs.rs"]
mod own_jobs;
#[path = "effects/storm.rs"]
mod storm;
#[path = "effects/table.rs"]
mod table;
