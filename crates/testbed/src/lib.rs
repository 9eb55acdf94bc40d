//! The tools of runner's tests: real servers, real processes, faults on demand, and effects that are counted
//! outside the product.
//!
//! Everything here belongs to one test (own directory, own port, own namespace) and ends when the value that
//! started it is dropped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test rig fails by panicking, with what it saw, and watches the product by the host's own clocks"
)]

mod account;
pub mod client;
mod cluster;
mod conditions;
mod deployment;
mod effects;
mod itself;
mod lines;
mod lock_watch;
mod mutants;
pub mod oracle;
pub mod past;
pub mod postgres;
mod proxy;
mod redis;
mod replica;
pub mod rows;
pub mod scene;
mod trap;
mod wait;

pub use account::Account;
pub use cluster::Cluster;
pub use conditions::{Condition, Conditions, Spare, condition_rows};
pub use deployment::{Deployment, Finished};
pub use effects::{Effect, EffectKind, Effects, FiringKey};
pub use lines::Lines;
pub use lock_watch::LockWatch;
pub use mutants::{Cut, Mutant, assert_every_mutant_is_caught, assert_lists};
pub use postgres::{PrivatePgBouncer, PrivatePostgres};
pub use proxy::{Mode, Proxy};
pub use redis::PrivateRedis;
pub use replica::{Replica, ReplicaBuilder};
pub use scene::{Scene, Wire};
pub use trap::{Bait, Held, Snap};
pub use wait::{let_pass, wait_at_most, wait_until, wait_until_blocking};
