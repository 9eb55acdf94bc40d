//! The watch that a warden keeps over one command, from its start until nothing of it is left.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use lockcore::{BootClock, BootInstant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::brood::Brood;
use super::message::{CommandEnd, Order, Status};
use super::orders::Orders;
use super::timer::Timer;

/// How long what a command leaves behind may end by itself: `tee` behind a `>(…)`, for one, is
/// still writing when its shell has exited.
const LINGER: Duration = Duration::from_millis(200);

/// How often to look where the kernel cannot say that something happened, and how often to kill
/// again, because a process may be born between the look and the signal.
const TICK: Duration = Duration::from_millis(20);

/// One command, watched.
#[derive(Debug)]
pub(super) struct Vigil<'a, Fd> {
    brood: Brood,
    orders: Orders<Fd>,
    timer: Timer,
    clock: &'a dyn BootClock,
    kill_grace: Duration,
    /// When the licence ends, unless a heartbeat moves it: the moment of SIGTERM.
    deadline: BootInstant,
    stage: VigilStage,
    licence_ended: bool,
    left_behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VigilStage {
    /// The command runs.
    Working,
    /// The command is over, others are not.
    Lingering { until: BootInstant },
    /// SIGTERM was sent.
    Asked { kill_at: BootInstant },
    /// SIGKILL was sent.
    Killed,
}

impl<'a, Fd: AsFd> Vigil<'a, Fd> {
    pub(super) fn new(
        brood: Brood,
        orders: Orders<Fd>,
        clock: &'a dyn BootClock,
        kill_grace: Duration,
        deadline: BootInstant,
    ) -> io::Result<Self> {
        let timer = Timer::new()?;
        let stage = VigilStage::Working;
        Ok(Self {
            brood,
            orders,
            timer,
            clock,
            kill_grace,
            deadline,
            stage,
            licence_ended: false,
            left_behind: 0,
        })
    }

    /// Watches until the command and everything that came from it are gone.
    pub(super) fn keep(mut self) -> io::Result<CommandEnd> {
        loop {
            let gone = self.brood.look()?;
            if let (true, Some(status)) = (gone, self.brood.status()) {
                return Ok(self.ended(status));
            }
            self.listen()?;
            self.advance();
            self.wait()?;
        }
    }

    /// Takes what the runner has said.
    fn listen(&mut self) -> io::Result<()> {
        while let Some(order) = self.orders.next()? {
            match order {
                Order::Until(moment) => self.deadline = moment.into(),
                Order::Stop => self.ask(),
            }
        }
        if self.orders.is_closed() {
            self.ask();
        }
        Ok(())
    }

    /// Does what is due by the clock.
    fn advance(&mut self) {
        let now = self.clock.boot_now();
        let over = self.brood.status().is_some();
        match self.stage {
            VigilStage::Working | VigilStage::Lingering { .. } if now >= self.deadline => {
                self.licence_ended = !over;
                self.ask();
            }
            VigilStage::Working if over => self.stage = VigilStage::Lingering { until: now + LINGER },
            VigilStage::Lingering { until } if now >= until => {
                self.left_behind = self.brood.others();
                self.ask();
            }
            VigilStage::Asked { kill_at } if now >= kill_at => self.stage = VigilStage::Killed,
            _ => {}
        }
        match self.stage {
            VigilStage::Working | VigilStage::Lingering { .. } => {}
            VigilStage::Asked { .. } => self.brood.ask(),
            VigilStage::Killed => self.brood.kill(),
        }
    }

    fn ask(&mut self) {
        if matches!(self.stage, VigilStage::Working | VigilStage::Lingering { .. }) {
            self.stage = VigilStage::Asked { kill_at: self.clock.boot_now() + self.kill_grace };
        }
    }

    /// Waits until somebody ends, the runner speaks, or something is due.
    fn wait(&mut self) -> io::Result<()> {
        let due = match self.stage {
            VigilStage::Working => Some(self.deadline),
            VigilStage::Lingering { until } => Some(until.min(self.deadline)),
            VigilStage::Asked { kill_at } => Some(kill_at),
            VigilStage::Killed => None,
        };
        self.timer.set(due)?;
        let ends = self.brood.ends();
        let tick = (ends.is_none() || self.stage == VigilStage::Killed).then_some(TICK);
        let ends = ends.unwrap_or_default();
        let spoken = {
            let pipe = self.orders.pipe();
            let fds =
                pipe.iter().map(AsFd::as_fd).chain([self.timer.as_fd()]).chain(ends.iter().map(AsFd::as_fd));
            let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let tick = tick.map(|tick| Timespec { tv_sec: 0, tv_nsec: tick.subsec_nanos().into() });
            match poll(&mut fds, tick.as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            pipe.is_some() && !fds[0].revents().is_empty()
        };
        if spoken { self.orders.fill() } else { Ok(()) }
    }

    fn ended(&self, status: Status) -> CommandEnd {
        CommandEnd { status, licence_ended: self.licence_ended, left_behind: self.left_behind }
    }
}
