//! A converted mutex that some sites take shared: `--share SITE`.
//!
//! Acquisitions from the named sites are shared, all others exclusive. `pthread_mutex_unlock` does not
//! say which; the caller holds the mutex, so if there is a writer inside, it is the caller. A site that
//! is not decided yet acquires exclusively, which is always right. After waiting on a condition variable
//! the mutex is exclusive, whatever it was before.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use relatch::{QrwLock, RawRwLock, RwSem, ZeroIsFree};
use relatch_plan::Algorithm;
use relatch_record::layout::{KIND_MUTEX, SHARED};

use super::until::Until;
use super::waits;
use crate::places::{self, Caller, Place};
use crate::{names, settings};

/// Runs `$body` with `$lock` bound to the reader-writer algorithm whose state is given.
macro_rules! with {
    ($algorithm:expr, $state:expr, $lock:ident => $body:expr) => {{
        // SAFETY: 16 aligned bytes of the program's mutex, zero when the marker was set, and touched by
        // nothing but the algorithm that the marker names.
        unsafe {
            match $algorithm {
                Algorithm::Qrwlock => {
                    let $lock: &QrwLock = ZeroIsFree::at($state);
                    $body
                }
                _ => {
                    let $lock: &RwSem = ZeroIsFree::at($state);
                    $body
                }
            }
        }
    }};
}

/// Whether any site shares mutexes of this algorithm.
#[inline(always)]
pub(super) fn applies(algorithm: Algorithm) -> bool {
    algorithm.has_shared_mode() && settings::has_shares()
}

/// Whether the site that calls takes a mutex shared that was converted by the conversion at `position`;
/// none: the site is not decided yet.
pub(super) fn shares(position: usize, caller: Caller) -> Option<bool> {
    let place = places::climb(caller);
    if place.state() == places::UNDECIDED {
        return None;
    }
    let known = place.shares.load(Relaxed);
    if known & 1 << position != 0 {
        return Some(known & 1 << (16 + position) != 0);
    }
    Some(look(place, position))
}

/// Looks a site up, once per conversion: bits 0 to 15 of the place say what is known, 16 to 31 what it is.
#[cold]
fn look(place: &'static Place, position: usize) -> bool {
    let shares =
        names::with_place(place.address(), |name| settings::shares().shares(position, &[name]));
    let shares = shares.unwrap_or(false);
    place.shares.fetch_or((1 | u32::from(shares) << 16) << position, Relaxed);
    shares
}

/// Acquires shared.
pub(super) fn acquire(state: *const u8, algorithm: Algorithm, until: Until) -> c_int {
    if with!(algorithm, state, lock => lock.try_read()) {
        return 0;
    }
    let deadline = match until.deadline() {
        Ok(deadline) => deadline,
        Err(code) => return code,
    };
    let acquired = waits::timed(KIND_MUTEX, SHARED, || match deadline {
        Some(deadline) => with!(algorithm, state, lock => lock.read_until(deadline)),
        None => {
            with!(algorithm, state, lock => lock.read());
            true
        }
    });
    if acquired { 0 } else { libc::ETIMEDOUT }
}

/// Acquires shared if that needs no waiting.
pub(super) fn try_acquire(state: *const u8, algorithm: Algorithm) -> c_int {
    if with!(algorithm, state, lock => lock.try_read()) { 0 } else { libc::EBUSY }
}

/// Releases in whichever mode the caller holds the mutex.
pub(super) fn release(state: *const u8, algorithm: Algorithm) {
    with!(algorithm, state, lock => if lock.is_write_locked() {
        lock.write_unlock();
    } else {
        lock.read_unlock();
    });
}
