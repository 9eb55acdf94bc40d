//! What becomes of a firing in the corridor, one replica at a time: failures, panics, timeouts, code
//! that will not stop, locks that others hold.

mod endings;
mod exec;
mod held;
mod kinds;
