//! The moments between the corridor's steps, and how to catch a replica at one.

use testbed::scene::statement;
use testbed::{Bait, Proxy, Scene, Snap, Wire};

/// Where the corridor is left. The table in the file above says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeAcquire,
    AfterAcquire,
    BeforeClaim,
    AfterClaim,
    InRun,
    BeforeSettle,
    AfterSettle,
    BeforeRelease,
    AfterRelease,
}

impl Moment {
    /// What to look for, and what to hold; `None` where no request marks the moment.
    pub(crate) fn trap(self, scene: &Scene) -> Option<(Bait, Snap)> {
        let acquire = include_str!("../../../crates/lockcore/src/lua/acquire.lua");
        let release = include_str!("../../../crates/lockcore/src/lua/release.lua");
        Some(match self {
            Self::BeforeAcquire => (scene.script(acquire), Snap::HoldRequest),
            Self::AfterAcquire => (scene.script(acquire), Snap::HoldReply),
            Self::BeforeClaim => (statement("claim_fresh"), Snap::HoldRequest),
            Self::AfterClaim => (statement("claim_fresh"), Snap::HoldReply),
            Self::InRun => return None,
            Self::BeforeSettle => (statement("settle_terminal"), Snap::HoldRequest),
            Self::AfterSettle => (statement("settle_terminal"), Snap::HoldReply),
            Self::BeforeRelease => (scene.script(release), Snap::HoldRequest),
            Self::AfterRelease => (scene.script(release), Snap::HoldReply),
        })
    }

    /// Before which server.
    pub(crate) fn side(self, wire: &Wire) -> &Proxy {
        match self {
            Self::BeforeAcquire | Self::AfterAcquire | Self::BeforeRelease | Self::AfterRelease => {
                &wire.redis
            }
            _ => &wire.postgres,
        }
    }

    /// Every replica tries to lock, so that one is chosen beforehand and the others are slow.
    pub(crate) fn is_everybodys(self) -> bool {
        matches!(self, Self::BeforeAcquire | Self::AfterAcquire)
    }
}
