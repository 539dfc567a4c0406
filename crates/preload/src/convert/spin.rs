//! `pthread_spin_*`, converted.
//!
//! Four bytes have no room for a marker, so what is decided stands in a table by address. glibc's free
//! spinlock is 1 and zero bytes are a held one, so only locks that were initialised through these hooks
//! are converted. They can not be watched: without a second word there is no way over while threads wait.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Release};

use relatch::{ParkMutex, RawMutex, Ttas, ZeroIsFree};
use relatch_plan::{Algorithm, Kind};
use relatch_record::layout::{EXCLUSIVE, KIND_SPIN, Kept};

use super::{Code, Decision, Hook, Hooks, count, count_kept, decide, origin_of_init, waits};
use crate::places::Caller;
use crate::slots::{Spin, Symbol, real};
use crate::table::Table;

pub(super) const HOOKS: Hooks<5> = [
    (Symbol::SpinInit, Hook(init as *const ())),
    (Symbol::SpinDestroy, Hook(destroy as *const ())),
    (Symbol::SpinLock, Hook(lock as *const ())),
    (Symbol::SpinTrylock, Hook(trylock as *const ())),
    (Symbol::SpinUnlock, Hook(unlock as *const ())),
];

/// What is decided about spinlocks, as [`Code`]s.
static DECIDED: Table<32768> = Table::new();

/// Runs `$body` with `$lock` bound to the converted spinlock at `$spin`.
macro_rules! with {
    ($algorithm:expr, $spin:expr, $lock:ident => $body:expr) => {{
        // SAFETY: the four bytes of the program's spinlock, which were zero when it was converted, and
        // are touched by nothing but the algorithm.
        unsafe {
            match $algorithm {
                Algorithm::Ttas => {
                    let $lock: &Ttas = ZeroIsFree::at($spin.cast_const().cast());
                    $body
                }
                // No other algorithm applies to spinlocks: the plan is refused before.
                _ => {
                    let $lock: &ParkMutex = ZeroIsFree::at($spin.cast_const().cast());
                    $body
                }
            }
        }
    }};
}

#[inline(always)]
fn converted(spin: Spin) -> Option<Algorithm> {
    // Acquire, pairs with the release in `init`.
    let code = Code(DECIDED.find(spin as usize)?.number.load(Acquire) as u16);
    match code.decision() {
        Decision::Convert(algorithm, _) => Some(algorithm),
        _ => None,
    }
}

unsafe extern "C" fn init(
    spin: Spin,
    shared: c_int,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // Whatever was here before is gone, destroyed or not.
    if let Some(entry) = DECIDED.find(spin as usize) {
        entry.number.store(0, Release);
    }
    // SAFETY: the program's own call.
    let code = unsafe { real::spin_init(spin, shared) };
    if code != 0 {
        return code;
    }
    if shared == libc::PTHREAD_PROCESS_SHARED {
        count_kept(Kept::ProcessShared);
        return code;
    }
    let decision =
        decide(Kind::Spin, spin as usize, origin_of_init(Caller { stack, frame_pointer }));
    let entry = match decision {
        Decision::Convert(..) => DECIDED.enter(spin as usize),
        _ => None,
    };
    count(if entry.is_some() { decision } else { Decision::Keep });
    if let Some(entry) = entry {
        // SAFETY: the program initialises the lock: nobody else touches it yet. Zero is free for
        // every algorithm.
        unsafe { spin.write_volatile(0) };
        entry.number.store(Code::of(decision).0.into(), Release);
    }
    code
}

unsafe extern "C" fn destroy(spin: Spin) -> c_int {
    if let Some(entry) = DECIDED.find(spin as usize) {
        entry.number.store(0, Release);
    }
    // SAFETY: the program's own call.
    unsafe { real::spin_destroy(spin) }
}

unsafe extern "C" fn lock(spin: Spin) -> c_int {
    match converted(spin) {
        Some(algorithm) => {
            if !with!(algorithm, spin, lock => lock.try_lock()) {
                waits::timed(KIND_SPIN, EXCLUSIVE, || {
                    with!(algorithm, spin, lock => lock.lock());
                    true
                });
            }
            0
        }
        // SAFETY: the program's own call.
        None => unsafe { real::spin_lock(spin) },
    }
}

unsafe extern "C" fn trylock(spin: Spin) -> c_int {
    match converted(spin) {
        Some(algorithm) => {
            if with!(algorithm, spin, lock => lock.try_lock()) {
                0
            } else {
                libc::EBUSY
            }
        }
        // SAFETY: the program's own call.
        None => unsafe { real::spin_trylock(spin) },
    }
}

unsafe extern "C" fn unlock(spin: Spin) -> c_int {
    match converted(spin) {
        Some(algorithm) => {
            // The program holds the lock: its own call says so.
            with!(algorithm, spin, lock => lock.unlock());
            0
        }
        // SAFETY: the program's own call.
        None => unsafe { real::spin_unlock(spin) },
    }
}
