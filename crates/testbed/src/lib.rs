//! Private servers for tests.

mod redis;

pub use redis::PrivateRedis;
