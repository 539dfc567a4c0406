//! `pthread_mutex_*`, converted.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU16, AtomicU32};

use libc::{clockid_t, pthread_mutexattr_t};
use relatch::{Exclusive, ParkMutex, QrwLock, RawMutex, RwSem, Ttas, ZeroIsFree};
use relatch_plan::{Algorithm, Kind};
use relatch_record::layout::{EXCLUSIVE, KIND_MUTEX, Kept};

use super::until::Until;
use super::{
    Code, Decision, Hook, Hooks, Marker, Origin, count, count_converted, count_kept, decide,
    origin_of_init, share, waits, watch,
};
use crate::kind::{INHERIT, PROCESS_SHARED, PROTECT, ROBUST, mutex_kind};
use crate::places::Caller;
use crate::slots::{Mutex, Symbol, Time, real};

pub(super) const HOOKS: Hooks<7> = [
    (Symbol::MutexInit, Hook(init as *const ())),
    (Symbol::MutexDestroy, Hook(destroy as *const ())),
    (Symbol::MutexLock, Hook(lock as *const ())),
    (Symbol::MutexTrylock, Hook(trylock as *const ())),
    (Symbol::MutexTimedlock, Hook(timedlock as *const ())),
    (Symbol::MutexClocklock, Hook(clocklock as *const ())),
    (Symbol::MutexUnlock, Hook(unlock as *const ())),
];

/// Runs `$body` with `$lock` bound to the converted mutex at `$mutex`.
macro_rules! with {
    ($algorithm:expr, $mutex:expr, $lock:ident => $body:expr) => {{
        let state = state($mutex);
        // SAFETY: the state is 16 aligned bytes of the program's mutex, zero when the marker was set,
        // and touched by nothing but the algorithm that the marker names.
        unsafe {
            match $algorithm {
                Algorithm::Ttas => {
                    let $lock: &Ttas = ZeroIsFree::at(state);
                    $body
                }
                Algorithm::Mutex => {
                    let $lock: &ParkMutex = ZeroIsFree::at(state);
                    $body
                }
                Algorithm::Qrwlock => {
                    let $lock: &Exclusive<QrwLock> = ZeroIsFree::at(state);
                    $body
                }
                Algorithm::Rwsem | Algorithm::Same => {
                    let $lock: &Exclusive<RwSem> = ZeroIsFree::at(state);
                    $body
                }
            }
        }
    }};
}

#[inline(always)]
fn state(mutex: Mutex) -> *const u8 {
    mutex.cast::<u8>().wrapping_add(24)
}

#[inline(always)]
fn marker<'a>(mutex: Mutex) -> &'a AtomicU16 {
    // SAFETY: aligned bytes of the program's mutex, used by glibc for elision alone, which no processor
    // has any more.
    unsafe { &*mutex.cast::<u8>().add(22).cast() }
}

/// Counts a watched mutex's acquisitions, in the last bytes of the unused state.
fn watch_count<'a>(mutex: Mutex) -> &'a AtomicU32 {
    // SAFETY: aligned bytes of the program's mutex, unused by glibc for kinds that are watched, and by
    // an algorithm only after watching has ended.
    unsafe { &*mutex.cast::<u8>().add(36).cast() }
}

/// Why glibc must keep a mutex of this kind.
fn kept_by_kind(kind: i32) -> Option<Kept> {
    match kind {
        _ if kind & ROBUST != 0 => Some(Kept::Robust),
        _ if kind & (INHERIT | PROTECT) != 0 => Some(Kept::Priority),
        _ if kind & PROCESS_SHARED != 0 => Some(Kept::ProcessShared),
        _ if kind & 3 == libc::PTHREAD_MUTEX_RECURSIVE => Some(Kept::Recursive),
        _ if kind & 3 == libc::PTHREAD_MUTEX_ERRORCHECK => Some(Kept::ErrorCheck),
        // Default, adaptive, and the explicitly normal kind, which has a bit of its own (512).
        _ => None,
    }
}

#[cold]
fn first_use(mutex: Mutex, origin: Origin) -> Decision {
    let (decision, why) = match kept_by_kind(mutex_kind(mutex as usize)) {
        Some(why) => (Decision::Keep, Some(why)),
        None => (decide(Kind::Mutex, mutex as usize, origin), None),
    };
    let code = Code::of(decision);
    // Two threads may come first; one of them counts.
    if marker(mutex).get() == Code::of(Decision::Undecided) && marker(mutex).decide(code) == code {
        match why {
            Some(why) => count_kept(why),
            None => count(decision),
        }
    }
    marker(mutex).get().decision()
}

#[inline(always)]
pub(super) fn decided(mutex: Mutex) -> Decision {
    match marker(mutex).get().decision() {
        Decision::Undecided => first_use(mutex, Origin::Unknown),
        decision => decision,
    }
}

/// Acquires a converted mutex.
#[inline(always)]
fn acquire(mutex: Mutex, algorithm: Algorithm, until: Until) -> c_int {
    if with!(algorithm, mutex, lock => lock.try_lock()) {
        return 0;
    }
    wait(mutex, algorithm, until)
}

#[cold]
fn wait(mutex: Mutex, algorithm: Algorithm, until: Until) -> c_int {
    let deadline = match until.deadline() {
        Ok(deadline) => deadline,
        Err(code) => return code,
    };
    let acquired = waits::timed(KIND_MUTEX, EXCLUSIVE, || match deadline {
        Some(deadline) => with!(algorithm, mutex, lock => lock.lock_until(deadline)),
        None => {
            with!(algorithm, mutex, lock => lock.lock());
            true
        }
    });
    if acquired { 0 } else { libc::ETIMEDOUT }
}

/// Acquires a mutex, whatever it is: after waiting on a condition variable.
pub(super) fn acquire_again(mutex: Mutex) {
    if let Decision::Convert(algorithm, _) = decided(mutex) {
        acquire(mutex, algorithm, Until::Forever);
        return;
    }
    // SAFETY: the program gave the mutex to its wait.
    unsafe { real::mutex_lock(mutex) };
    // It may have been converted meanwhile.
    if let Decision::Convert(algorithm, _) = decided(mutex) {
        // SAFETY: acquired above.
        unsafe { real::mutex_unlock(mutex) };
        acquire(mutex, algorithm, Until::Forever);
    }
}

/// Releases a mutex, whatever it is: before waiting on a condition variable.
pub(super) fn release_any(mutex: Mutex) {
    match decided(mutex) {
        Decision::Convert(algorithm, _) => release(mutex, algorithm),
        // SAFETY: the program holds the mutex: its own wait says so.
        _ => drop(unsafe { real::mutex_unlock(mutex) }),
    }
}

/// Releases a converted mutex.
#[inline(always)]
fn release(mutex: Mutex, algorithm: Algorithm) {
    // The program holds the mutex: its own call says so, and releasing one that it does not hold is
    // undefined for every kind that is converted.
    if share::applies(algorithm) {
        return share::release(state(mutex), algorithm);
    }
    with!(algorithm, mutex, lock => lock.unlock());
}

/// Acquires a mutex that is glibc's, or watched, by glibc's call `real`; converts it where its site is
/// selected.
#[cold]
fn acquire_watched(mutex: Mutex, until: Until, caller: Caller, real: impl Fn() -> c_int) -> c_int {
    let selected = watch::look(Kind::Mutex, caller);
    let code = real();
    if code != 0 {
        return code;
    }
    // glibc's lock is held: the marker stays what it is, unless this thread changes it.
    if let Decision::Convert(algorithm, _) = marker(mutex).get().decision() {
        // SAFETY: acquired above.
        unsafe { real::mutex_unlock(mutex) };
        return acquire(mutex, algorithm, until);
    }
    let watched = marker(mutex).get().decision() == Decision::Watch;
    let Some((position, algorithm)) = selected.filter(|_| watched) else {
        if watched {
            watch::acquired(marker(mutex), watch_count(mutex), mutex as usize, caller);
        }
        return 0;
    };
    // SAFETY: 16 bytes of the mutex that glibc does not use; nobody else touches them while it is held.
    unsafe { state(mutex).cast_mut().write_bytes(0, 16) };
    with!(algorithm, mutex, lock => lock.lock());
    marker(mutex).set(Code::of(Decision::Convert(algorithm, position)));
    count_converted(true);
    // SAFETY: acquired above.
    unsafe { real::mutex_unlock(mutex) };
    0
}

/// Acquires a mutex that some sites take shared: in the mode of the site that calls, and exclusively
/// while that is not known.
fn acquire_shareable(
    mutex: Mutex,
    position: usize,
    caller: Caller,
    acquire: impl FnOnce(bool) -> c_int,
) -> c_int {
    let shares = share::shares(position, caller);
    let code = acquire(shares == Some(true));
    if code == 0 && shares.is_none() {
        watch::remember(mutex as usize, caller);
    }
    code
}

#[inline(always)]
fn acquire_any(mutex: Mutex, until: Until, caller: Caller, real: impl Fn() -> c_int) -> c_int {
    match decided(mutex) {
        Decision::Convert(algorithm, position) if share::applies(algorithm) => {
            acquire_shareable(mutex, position, caller, |shared| {
                if shared {
                    share::acquire(state(mutex), algorithm, until)
                } else {
                    acquire(mutex, algorithm, until)
                }
            })
        }
        Decision::Convert(algorithm, _) => acquire(mutex, algorithm, until),
        Decision::Watch => acquire_watched(mutex, until, caller, real),
        _ => real(),
    }
}

unsafe extern "C" fn init(
    mutex: Mutex,
    attributes: *const pthread_mutexattr_t,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call. It clears the structure, marker and state included.
    let code = unsafe { real::mutex_init(mutex, attributes) };
    if code == 0 {
        first_use(mutex, origin_of_init(Caller { stack, frame_pointer }));
    }
    code
}

unsafe extern "C" fn destroy(mutex: Mutex) -> c_int {
    let code = marker(mutex).get();
    if let Decision::Convert(algorithm, _) = code.decision()
        && with!(algorithm, mutex, lock => lock.is_locked())
    {
        return libc::EBUSY;
    }
    // SAFETY: the program's own call; glibc's words are those of a free mutex where it is converted.
    let done = unsafe { real::mutex_destroy(mutex) };
    if done == 0 {
        marker(mutex).set(Code::of(Decision::Undecided));
        // SAFETY: the mutex is the program's to clear, and free.
        unsafe { state(mutex).cast_mut().write_bytes(0, 16) };
    }
    done
}

unsafe extern "C" fn lock(
    mutex: Mutex,
    _1: usize,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call.
    acquire_any(mutex, Until::Forever, Caller { stack, frame_pointer }, || unsafe {
        real::mutex_lock(mutex)
    })
}

unsafe extern "C" fn timedlock(
    mutex: Mutex,
    time: Time,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    let until = Until::Time(libc::CLOCK_REALTIME, time);
    // SAFETY: the program's own call.
    let real = || unsafe { real::mutex_timedlock(mutex, time) };
    acquire_any(mutex, until, Caller { stack, frame_pointer }, real)
}

unsafe extern "C" fn clocklock(
    mutex: Mutex,
    clock: clockid_t,
    time: Time,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call.
    let real = || unsafe { real::mutex_clocklock(mutex, clock, time) };
    acquire_any(mutex, Until::Time(clock, time), Caller { stack, frame_pointer }, real)
}

unsafe extern "C" fn trylock(
    mutex: Mutex,
    _1: usize,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    let caller = Caller { stack, frame_pointer };
    let try_converted = |algorithm| {
        if with!(algorithm, mutex, lock => lock.try_lock()) { 0 } else { libc::EBUSY }
    };
    match decided(mutex) {
        Decision::Convert(algorithm, position) if share::applies(algorithm) => {
            acquire_shareable(mutex, position, caller, |shared| {
                if shared {
                    share::try_acquire(state(mutex), algorithm)
                } else {
                    try_converted(algorithm)
                }
            })
        }
        Decision::Convert(algorithm, _) => try_converted(algorithm),
        Decision::Watch => {
            // SAFETY: the program's own call.
            let code = unsafe { real::mutex_trylock(mutex) };
            if code != 0 {
                return code;
            }
            if let Decision::Convert(algorithm, _) = marker(mutex).get().decision() {
                // SAFETY: acquired above.
                unsafe { real::mutex_unlock(mutex) };
                return try_converted(algorithm);
            }
            watch::acquired(marker(mutex), watch_count(mutex), mutex as usize, caller);
            0
        }
        // SAFETY: the program's own call.
        _ => unsafe { real::mutex_trylock(mutex) },
    }
}

unsafe extern "C" fn unlock(mutex: Mutex, _1: usize, _2: usize, _3: usize, stack: usize) -> c_int {
    match marker(mutex).get().decision() {
        Decision::Convert(algorithm, _) => {
            if share::applies(algorithm) {
                watch::released(mutex as usize, stack);
            }
            release(mutex, algorithm);
            0
        }
        decision => {
            if decision == Decision::Watch {
                watch::released(mutex as usize, stack);
            }
            // SAFETY: the program's own call.
            unsafe { real::mutex_unlock(mutex) }
        }
    }
}
