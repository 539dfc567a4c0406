//! Waiting on a condition variable, observed: it ends the mutex's section, and waking up begins another
//! one at the waiting site.
//!
//! glibc takes the mutex again inside its own call, so how long that took is not seen.

use core::ffi::c_int;

use libc::clockid_t;
use relatch_record::clock;
use relatch_record::layout::{EXCLUSIVE, KIND_MUTEX};

use super::{Hook, Hooks, observed};
use crate::places::Caller;
use crate::section::{self, Acquired};
use crate::slots::{Cond, Mutex, Symbol, Time, real};

pub(super) const HOOKS: Hooks<3> = [
    (Symbol::CondWait, Hook(wait as *const ())),
    (Symbol::CondTimedwait, Hook(timedwait as *const ())),
    (Symbol::CondClockwait, Hook(clockwait as *const ())),
];

/// Waiting is a cancellation point: a cancelled thread unwinds through these frames, and its clean-up
/// handlers release the mutex without a section.
fn waiting(mutex: Mutex, caller: Caller, wait: impl FnOnce() -> c_int) -> c_int {
    let lock = mutex as usize;
    let Some((thread, writer)) = observed() else { return wait() };
    if let Some(ended) = section::end(thread, writer, lock, caller.stack) {
        ended.write(writer);
    }
    let code = wait();
    if code != 0 && code != libc::ETIMEDOUT && code != libc::EOWNERDEAD {
        return code;
    }
    // Anew: this thread may have been another one's copy since.
    let Some((thread, writer)) = observed() else { return code };
    let attempt = section::attempt(thread, writer, lock, KIND_MUTEX, EXCLUSIVE, caller);
    let acquired = Acquired { at: clock::ticks(writer.header().clock), waited: None };
    attempt.begin(thread, writer, lock, acquired, caller);
    code
}

unsafe extern "C-unwind" fn wait(
    cond: Cond,
    mutex: Mutex,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call.
    waiting(mutex, Caller { stack, frame_pointer }, || unsafe { real::cond_wait(cond, mutex) })
}

unsafe extern "C-unwind" fn timedwait(
    cond: Cond,
    mutex: Mutex,
    until: Time,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call.
    waiting(mutex, Caller { stack, frame_pointer }, || unsafe {
        real::cond_timedwait(cond, mutex, until)
    })
}

unsafe extern "C-unwind" fn clockwait(
    cond: Cond,
    mutex: Mutex,
    clock: clockid_t,
    until: Time,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call.
    waiting(mutex, Caller { stack, frame_pointer }, || unsafe {
        real::cond_clockwait(cond, mutex, clock, until)
    })
}
