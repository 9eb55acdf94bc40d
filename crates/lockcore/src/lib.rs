#![doc = include_str!("../README.md")]

mod backend;
mod backoff;
mod boot;
mod error;
mod guard;
mod invalid_url;
mod jitter;
mod keepalive;
mod key;
mod lease;
mod locks;
mod loss;
mod memory;
mod open;
mod open_options;
#[cfg(feature = "redis")]
mod redis;
mod token;
mod tools;

pub use backend::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, LockBackend, ReleaseOutcome, RenewOutcome,
};
pub use backoff::Backoff;
pub use boot::{BootClock, BootInstant, SystemBootClock};
pub use error::LockError;
pub use guard::{LeaseGuard, LeaseReport, Release};
pub use invalid_url::InvalidUrl;
pub use jitter::Jitter;
pub use key::{InvalidKey, LockKey};
pub use lease::Lease;
pub use locks::{Acquisition, Locks, Terms};
pub use loss::Loss;
pub use open::{check_url, in_process, open};
pub use open_options::OpenOptions;
pub use token::{Holder, Token};
