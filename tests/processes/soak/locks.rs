//! A Redis that fails over: the server of the moment, the one that follows it, and the link between them.

use testbed::oracle::LockEvent;
use testbed::{LockWatch, Mode, PrivateRedis, Proxy};

/// Two servers that change places.
pub(crate) struct Locks {
    primary: PrivateRedis,
    standby: PrivateRedis,
    /// How the standby hears of the locks.
    link: Proxy,
    watches: [LockWatch; 2],
    is_up: bool,
    /// Its standby has fallen behind and is about to take over.
    is_failing: bool,
}

impl Locks {
    pub(crate) fn start() -> Self {
        let (primary, standby) = (PrivateRedis::start(), PrivateRedis::start());
        let watches = [LockWatch::of(primary.addr()), LockWatch::of(standby.addr())];
        let link = Proxy::new(primary.addr());
        standby.follow(link.address());
        Self { primary, standby, link, watches, is_up: true, is_failing: false }
    }

    /// The server that takes locks.
    pub(crate) fn primary(&self) -> &PrivateRedis {
        &self.primary
    }

    /// Whether there is anything left to fail.
    pub(crate) fn is_well(&self) -> bool {
        self.is_up && !self.is_failing
    }

    pub(crate) fn kill(&mut self) {
        self.primary.kill();
        self.is_up = false;
    }

    pub(crate) fn restart(&mut self) {
        self.primary.restart();
        self.is_up = true;
    }

    /// From here on the standby learns of no lock.
    pub(crate) fn lag(&mut self) {
        self.link.set(Mode::Stall);
        self.is_failing = true;
    }

    /// The standby takes over with what has reached it. The old primary goes on, for those who are still
    /// connected to it.
    pub(crate) fn promote(&mut self) {
        self.standby.promote();
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// The old primary becomes the standby of the new one, and takes no lock any more.
    pub(crate) fn demote_the_old(&mut self) {
        self.link.cut();
        self.link.set_backend(self.primary.addr());
        self.link.set(Mode::Forward);
        self.standby.follow(self.link.address());
        self.is_failing = false;
    }

    /// Every move of every lock.
    pub(crate) fn events(&self) -> Vec<LockEvent> {
        self.watches.iter().flat_map(LockWatch::events).collect()
    }
}
