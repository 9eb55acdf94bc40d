//! The rules of the corridor, each of them a test: a real executor, with a ledger and a lock that answer as they
//! are told, in paused time.

mod admission;
mod answers;
mod claims;
mod contention;
mod effects;
mod fixture;
mod freezes;
mod keys;
mod leases;
mod ledger;
mod lock;
mod lost_locks;
mod settling;
mod shown;
mod supervision;
