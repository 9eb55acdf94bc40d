//! Exactly one committed effect for each firing, while owners are killed and frozen and the lock is
//! flushed: counted in a table in which nothing is UNIQUE.

mod binds;
mod crowd;
mod frozen;
mod lost_reply;
mod own_jobs;
mod storm;
pub(crate) mod table;
