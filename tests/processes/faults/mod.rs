//! Ordinary faults, on real servers and real processes: no single failure of Redis, PostgreSQL or
//! one replica doubles or loses a firing.

mod blocking;
mod ledger_away;
mod lock_away;
mod lock_lost;
mod owner_gone;
mod shutdown;
