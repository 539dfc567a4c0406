//! `pthread_cond_*` for converted mutexes.
//!
//! glibc's wait releases the mutex from inside, past these hooks, so a converted mutex needs a condition
//! variable of our own: a counter that a signal raises and waiters sleep on, as long as it stays what it
//! was while they held the mutex.
//!
//! | bytes | here | glibc has there |
//! |---|---|---|
//! | 0..4 | signals so far | `__wseq` |
//! | 4..8 | waiters | `__wseq` |
//! | 32..36 | [`OURS`] | `__g1_orig_size`, whose two low bits are a lock that is never 3 |
//! | 36..40 | as glibc has it | `__wrefs`: bit 1 says `CLOCK_MONOTONIC`, bits 3.. count waiters |
//!
//! # Rules
//! 1. A condition variable becomes ours when a thread waits on it with a mutex that is converted, or
//!    watched and may come to be; it stays ours until it is destroyed, whatever mutex comes next.
//! 2. A waiter counts itself before it releases the mutex; whoever then changes the condition under the
//!    mutex sees it.
//! 3. A signal raises the counter before it wakes, so a waiter that does not sleep yet stays awake.
//! 4. A waiter takes itself off before it acquires the mutex again, so destroying may wait for that.
//! 5. Sleeping is a cancellation point. A cancelled thread takes itself off and acquires the mutex before
//!    its clean-up handlers run, as POSIX has it.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::clockid_t;
use relatch::Deadline;
use relatch::platform::Word;

use super::mutex::{acquire_again, decided, release_any};
use super::until::Until;
use super::{Decision, Hook, Hooks};
use crate::slots::{Cond, Mutex, Symbol, Time, real};

pub(super) const HOOKS: Hooks<6> = [
    (Symbol::CondWait, Hook(wait as *const ())),
    (Symbol::CondTimedwait, Hook(timedwait as *const ())),
    (Symbol::CondClockwait, Hook(clockwait as *const ())),
    (Symbol::CondSignal, Hook(signal as *const ())),
    (Symbol::CondBroadcast, Hook(broadcast as *const ())),
    (Symbol::CondDestroy, Hook(destroy as *const ())),
];

/// Marks a condition variable of ours.
const OURS: u32 = 0x7265_6c03;

#[inline(always)]
fn word<'a>(cond: Cond, offset: usize) -> &'a AtomicU32 {
    // SAFETY: four aligned bytes of the program's condition variable.
    unsafe { &*cond.cast::<u8>().add(offset).cast() }
}

fn signals<'a>(cond: Cond) -> &'a AtomicU32 {
    word(cond, 0)
}

fn waiters<'a>(cond: Cond) -> &'a AtomicU32 {
    word(cond, 4)
}

fn mark<'a>(cond: Cond) -> &'a AtomicU32 {
    word(cond, 32)
}

fn glibc_refs<'a>(cond: Cond) -> &'a AtomicU32 {
    word(cond, 36)
}

fn is_ours(cond: Cond) -> bool {
    // Acquire, pairs with the release in `become_ours`.
    mark(cond).load(Acquire) == OURS
}

/// Rule 1. Called with the mutex held, which orders it against the other waiters. False while threads
/// wait in glibc, with a mutex that is not converted.
fn become_ours(cond: Cond) -> bool {
    if is_ours(cond) {
        return true;
    }
    if glibc_refs(cond).load(Acquire) >> 3 != 0 {
        return false;
    }
    signals(cond).store(0, Relaxed);
    waiters(cond).store(0, Relaxed);
    // Release, pairs with the acquire in `is_ours`.
    mark(cond).store(OURS, Release);
    true
}

/// A waiter that is away from its mutex.
struct Away {
    cond: Cond,
    mutex: Mutex,
    seen: u32,
    until: Option<Deadline>,
}

impl Away {
    /// Sleeps until a signal or the deadline; whether it was a signal.
    fn sleep(&self) -> bool {
        let signals = signals(self.cond);
        // Acquire, pairs with the raise in `wake`.
        while signals.load(Acquire) == self.seen {
            if !signals.park_until(self.seen, self.until) {
                return false;
            }
        }
        true
    }

    fn come_back(&self) {
        // Release, pairs with the acquire in `destroy`: the last access to the condition variable.
        waiters(self.cond).fetch_sub(1, Release);
        acquire_again(self.mutex);
    }
}

unsafe extern "C-unwind" {
    /// `cancel.c`.
    fn relatch_cancellable(
        wait: unsafe extern "C-unwind" fn(*const c_void) -> c_int,
        cancelled: unsafe extern "C-unwind" fn(*const c_void),
        argument: *const c_void,
    ) -> c_int;
}

unsafe extern "C-unwind" fn sleep_away(away: *const c_void) -> c_int {
    // SAFETY: the argument of `relatch_cancellable`, which outlives it.
    c_int::from(unsafe { (*away.cast::<Away>()).sleep() })
}

unsafe extern "C-unwind" fn cancelled(away: *const c_void) {
    // SAFETY: as above; the frame that holds it has not been unwound yet.
    unsafe { (*away.cast::<Away>()).come_back() }
}

/// Waits with a mutex that is not glibc's for good, or on a condition variable that is ours.
fn sleep(cond: Cond, mutex: Mutex, until: Until) -> c_int {
    let until = match until.deadline() {
        Ok(deadline) => deadline,
        Err(code) => return code,
    };
    // Relaxed: rule 2; the mutex orders both against a signal under it.
    waiters(cond).fetch_add(1, Relaxed);
    let seen = signals(cond).load(Relaxed);
    let away = Away { cond, mutex, seen, until };
    release_any(mutex);
    // SAFETY: both functions take the argument that is given.
    let signalled = unsafe { relatch_cancellable(sleep_away, cancelled, (&raw const away).cast()) };
    away.come_back();
    if signalled != 0 { 0 } else { libc::ETIMEDOUT }
}

fn wake(cond: Cond, count: u32) {
    // Rule 2: a waiter that this signal is for has counted itself.
    if waiters(cond).load(Acquire) != 0 {
        // Rule 3. Release, pairs with the acquire in `sleep`.
        signals(cond).fetch_add(1, Release);
        signals(cond).wake(count);
    }
}

/// Whether a thread waits here rather than in glibc.
fn waits_here(cond: Cond, mutex: Mutex) -> bool {
    is_ours(cond)
        || matches!(decided(mutex), Decision::Convert(..) | Decision::Watch) && become_ours(cond)
}

unsafe extern "C-unwind" fn wait(cond: Cond, mutex: Mutex) -> c_int {
    if waits_here(cond, mutex) {
        return sleep(cond, mutex, Until::Forever);
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_wait(cond, mutex) }
}

unsafe extern "C-unwind" fn timedwait(cond: Cond, mutex: Mutex, until: Time) -> c_int {
    if waits_here(cond, mutex) {
        // Bit 1, set by pthread_cond_init from its attributes.
        let monotonic = glibc_refs(cond).load(Relaxed) & 2 != 0;
        let clock = if monotonic { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
        return sleep(cond, mutex, Until::Time(clock, until));
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_timedwait(cond, mutex, until) }
}

unsafe extern "C-unwind" fn clockwait(
    cond: Cond,
    mutex: Mutex,
    clock: clockid_t,
    until: Time,
) -> c_int {
    if waits_here(cond, mutex) {
        return sleep(cond, mutex, Until::Time(clock, until));
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_clockwait(cond, mutex, clock, until) }
}

unsafe extern "C" fn signal(cond: Cond) -> c_int {
    if is_ours(cond) {
        wake(cond, 1);
        return 0;
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_signal(cond) }
}

unsafe extern "C" fn broadcast(cond: Cond) -> c_int {
    if is_ours(cond) {
        wake(cond, i32::MAX as u32);
        return 0;
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_broadcast(cond) }
}

/// POSIX allows destroying as soon as nobody is blocked, while those who were woken are still leaving.
unsafe extern "C" fn destroy(cond: Cond) -> c_int {
    if is_ours(cond) {
        // Acquire, pairs with the release in `sleep`.
        waiters(cond).spin_until(Acquire, |waiters| waiters == 0);
        // SAFETY: nobody sleeps here, so these are bytes of the program's condition variable that glibc
        // expects to be zero.
        unsafe { cond.cast::<u8>().write_bytes(0, 36) };
    }
    // SAFETY: the program's own call.
    unsafe { real::cond_destroy(cond) }
}
