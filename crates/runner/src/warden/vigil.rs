//! How a warden watches one command, from its start until all its processes have ended.

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

/// How long processes may go on after the command has exited, before the warden ends them. For example, `tee`
/// in a `>(…)` still writes when its shell has exited.
const LINGER: Duration = Duration::from_millis(200);

/// How often to check where the kernel cannot report that a process ended; and how often to send SIGKILL
/// again, because a process may start between the check and the signal.
const TICK: Duration = Duration::from_millis(20);

/// One command, watched.
#[derive(Debug)]
pub(super) struct Vigil<'a, Fd> {
    brood: Brood,
    orders: Orders<Fd>,
    timer: Timer,
    clock: &'a dyn BootClock,
    kill_grace: Duration,
    /// When the licence ends and SIGTERM is sent, unless a heartbeat moves it.
    deadline: BootInstant,
    stage: VigilStage,
    licence_ended: bool,
    left_behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VigilStage {
    /// The command runs.
    Working,
    /// The command has exited, other processes of it have not.
    Lingering { until: BootInstant },
    /// SIGTERM was sent.
    Terminating { kill_at: BootInstant },
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

    /// Watches until the command and all its descendants have ended.
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

    /// Handles the orders that have arrived from the runner.
    fn listen(&mut self) -> io::Result<()> {
        while let Some(order) = self.orders.next()? {
            match order {
                Order::Until(moment) => self.deadline = moment.into(),
                Order::Stop => self.terminate(),
            }
        }
        if self.orders.is_closed() {
            self.terminate();
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
                self.terminate();
            }
            VigilStage::Working if over => self.stage = VigilStage::Lingering { until: now + LINGER },
            VigilStage::Lingering { until } if now >= until => {
                self.left_behind = self.brood.others();
                self.terminate();
            }
            VigilStage::Terminating { kill_at } if now >= kill_at => self.stage = VigilStage::Killed,
            _ => {}
        }
        match self.stage {
            VigilStage::Working | VigilStage::Lingering { .. } => {}
            VigilStage::Terminating { .. } => self.brood.terminate(),
            VigilStage::Killed => self.brood.kill(),
        }
    }

    fn terminate(&mut self) {
        if matches!(self.stage, VigilStage::Working | VigilStage::Lingering { .. }) {
            self.stage = VigilStage::Terminating { kill_at: self.clock.boot_now() + self.kill_grace };
        }
    }

    /// Waits until a process ends, an order arrives, or the timer fires.
    fn wait(&mut self) -> io::Result<()> {
        let due = match self.stage {
            VigilStage::Working => Some(self.deadline),
            VigilStage::Lingering { until } => Some(until.min(self.deadline)),
            VigilStage::Terminating { kill_at } => Some(kill_at),
            VigilStage::Killed => None,
        };
        self.timer.set(due)?;
        let ends = self.brood.ends();
        let tick = (ends.is_none() || self.stage == VigilStage::Killed).then_some(TICK);
        let ends = ends.unwrap_or_default();
        let order_came = {
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
        if order_came { self.orders.fill() } else { Ok(()) }
    }

    fn ended(&self, status: Status) -> CommandEnd {
        CommandEnd { status, licence_ended: self.licence_ended, left_behind: self.left_behind }
    }
}
