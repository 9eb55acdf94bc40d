//! A Redis lock that says what it cannot promise.

mod backend;
mod boot;
mod error;
mod key;
mod lease;
mod token;

pub use backend::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, LockBackend, ReleaseOutcome, RenewOutcome,
};
pub use boot::{BootClock, BootInstant, SystemBootClock};
pub use error::LockError;
pub use key::{InvalidKey, LockKey};
pub use lease::Lease;
pub use token::{Holder, Token};
