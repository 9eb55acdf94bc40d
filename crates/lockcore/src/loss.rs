//! Why a lock is lost.

/// Why a lock cannot be relied on any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The server says that the lock is gone, or that someone else has it: stop the work at once.
    NotMine,
    /// The lock was renewed as often as allowed. It is not renewed any more and will expire.
    Cap,
    /// No renewal was acknowledged in time, so nobody knows whether the lock is still ours.
    Unreachable,
}
