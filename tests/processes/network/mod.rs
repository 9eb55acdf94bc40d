//! The network between the replicas and their servers at its worst: replies that are lost, requests
//! that never arrive or arrive late, partitions that cut off one replica from one server, failovers,
//! killed sessions and clocks that jump. No firing is missed or doubled, and no job overlaps itself.

mod answers;
mod clocks;
mod failover;
mod partitions;
mod sessions;
mod takeover;
