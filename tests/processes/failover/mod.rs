//! PostgreSQL fails over: a standby is promoted, with all acknowledged commits or without the last ones.
//! What is promised with the former, and what is not with the latter.

mod elsewhere;
mod lagging;
mod stage;
mod synchronous;
