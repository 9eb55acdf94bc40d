//! Private servers and replica processes for runner's tests.

pub mod postgres;
mod redis;

pub use postgres::PrivatePostgres;
pub use redis::PrivateRedis;
