//! What only PostgreSQL has to prove: sessions that vanish, freeze or wait, and servers that take over.

mod effects;
mod faults;
mod holder;
mod in_flight;
mod servers;
