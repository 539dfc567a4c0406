//! How long a call on a converted lock may wait.

use core::ffi::c_int;

use libc::{clockid_t, timespec};
use relatch::{Clock, Deadline};

use crate::slots::Time;

/// Until when a call may wait.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Forever,
    /// A clock, and a time of it that the program gave.
    Time(clockid_t, Time),
}

impl Until {
    /// The deadline, if there is one; `EINVAL` where glibc says so.
    pub(super) fn deadline(self) -> Result<Option<Deadline>, c_int> {
        let Until::Time(clock, time) = self else { return Ok(None) };
        let clock = match clock {
            libc::CLOCK_REALTIME => Clock::Realtime,
            libc::CLOCK_MONOTONIC => Clock::Monotonic,
            _ => return Err(libc::EINVAL),
        };
        // SAFETY: the program's own argument.
        let timespec { tv_sec, tv_nsec } = unsafe { time.read() };
        Deadline::from_timespec(clock, tv_sec, tv_nsec).map(Some).ok_or(libc::EINVAL)
    }
}
