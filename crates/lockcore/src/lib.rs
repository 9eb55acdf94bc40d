#![doc = include_str!("../README.md")]

mod backend;
mod backoff;
mod boot;
mod error;
mod guard;
mod jitter;
mod keepalive;
mod key;
mod lease;
mod locks;
mod memory;
mod open;
#[cfg(feature = "redis")]
mod redis;
mod token;

pub use backend::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, LockBackend, ReleaseOutcome, RenewOutcome,
};
pub use backoff::Backoff;
pub use boot::{BootClock, BootInstant, SystemBootClock};
pub use error::LockError;
pub use guard::{LeaseGuard, LeaseReport, Loss, Release};
pub use jitter::Jitter;
pub use key::{InvalidKey, LockKey};
pub use lease::Lease;
pub use locks::{Acquisition, Locks, Terms};
pub use open::{InvalidUrl, OpenOptions, check_url, in_process, open};
pub use token::{Holder, Token};
