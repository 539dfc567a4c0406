//! `pthread_rwlock_*`, converted.
//!
//! POSIX lets a thread read that reads already, and glibc's default rwlock lets it past waiting writers.
//! A fair algorithm would make it wait for a writer that waits for it, so each thread remembers what it
//! holds shared and is let in again ([`RawRwLock::read_recursive`]). The writer's thread id stands in
//! padding (16..20; glibc's own place for it is still glibc's while a lock is being converted), so that a
//! thread which waits for itself gets `EDEADLK`.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use libc::{clockid_t, pthread_rwlockattr_t};
use relatch::{QrwLock, RawRwLock, RwSem, ZeroIsFree};
use relatch_plan::{Algorithm, Kind};
use relatch_record::layout::{EXCLUSIVE, KIND_RWLOCK, Kept, SHARED};

use super::until::Until;
use super::{
    Code, Decision, Hook, Hooks, Marker, Origin, count, count_converted, count_kept, decide,
    origin_of_init, waits, watch,
};
use crate::kind::{PREFER_WRITER_NONRECURSIVE, rwlock_flags, rwlock_is_shared};
use crate::places::Caller;
use crate::slots::{Rwlock, Symbol, Time, real};
use crate::thread::{self, READS, Thread};

pub(super) const HOOKS: Hooks<11> = [
    (Symbol::RwlockInit, Hook(init as *const ())),
    (Symbol::RwlockDestroy, Hook(destroy as *const ())),
    (Symbol::RwlockRdlock, Hook(rdlock as *const ())),
    (Symbol::RwlockTryrdlock, Hook(tryrdlock as *const ())),
    (Symbol::RwlockTimedrdlock, Hook(timedrdlock as *const ())),
    (Symbol::RwlockClockrdlock, Hook(clockrdlock as *const ())),
    (Symbol::RwlockWrlock, Hook(wrlock as *const ())),
    (Symbol::RwlockTrywrlock, Hook(trywrlock as *const ())),
    (Symbol::RwlockTimedwrlock, Hook(timedwrlock as *const ())),
    (Symbol::RwlockClockwrlock, Hook(clockwrlock as *const ())),
    (Symbol::RwlockUnlock, Hook(unlock as *const ())),
];

/// Runs `$body` with `$lock` bound to the converted rwlock at `$rwlock`.
macro_rules! with {
    ($algorithm:expr, $rwlock:expr, $lock:ident => $body:expr) => {{
        let state = state($rwlock);
        // SAFETY: the state is 16 aligned bytes of the program's rwlock, zero when the marker was set,
        // and touched by nothing but the algorithm that the marker names.
        unsafe {
            match $algorithm {
                Algorithm::Qrwlock => {
                    let $lock: &QrwLock = ZeroIsFree::at(state);
                    $body
                }
                // No other algorithm applies to rwlocks: the plan is refused before.
                _ => {
                    let $lock: &RwSem = ZeroIsFree::at(state);
                    $body
                }
            }
        }
    }};
}

#[inline(always)]
fn state(lock: Rwlock) -> *const u8 {
    lock.cast::<u8>().wrapping_add(32)
}

#[inline(always)]
fn word<'a>(lock: Rwlock, offset: usize) -> &'a AtomicU32 {
    // SAFETY: four aligned bytes of the program's rwlock.
    unsafe { &*lock.cast::<u8>().add(offset).cast() }
}

#[inline(always)]
fn marker<'a>(lock: Rwlock) -> &'a AtomicU32 {
    word(lock, 20)
}

#[inline(always)]
fn writer<'a>(lock: Rwlock) -> &'a AtomicU32 {
    word(lock, 16)
}

/// Counts a watched rwlock's acquisitions, in the last bytes of the unused state.
fn watch_count<'a>(lock: Rwlock) -> &'a AtomicU32 {
    word(lock, 44)
}

#[cold]
fn first_use(lock: Rwlock, origin: Origin) -> Decision {
    let why = if rwlock_is_shared(lock as usize) {
        Some(Kept::ProcessShared)
    } else if rwlock_flags(lock as usize) == PREFER_WRITER_NONRECURSIVE {
        Some(Kept::Preference)
    } else {
        None
    };
    let decision = match why {
        Some(_) => Decision::Keep,
        None => decide(Kind::Rwlock, lock as usize, origin),
    };
    let code = Code::of(decision);
    // Two threads may come first; one of them counts.
    if marker(lock).get() == Code::of(Decision::Undecided) && marker(lock).decide(code) == code {
        match why {
            Some(why) => count_kept(why),
            None => count(decision),
        }
    }
    marker(lock).get().decision()
}

#[inline(always)]
fn decided(lock: Rwlock) -> Decision {
    match marker(lock).get().decision() {
        Decision::Undecided => first_use(lock, Origin::Unknown),
        decision => decision,
    }
}

/// This thread's id where it has a `Thread`, else 0: then nothing is known of who holds what.
#[inline(always)]
fn me() -> (Option<&'static mut Thread>, u32) {
    let thread = thread::current();
    let id = thread.as_ref().map_or(0, |thread| thread.id);
    (thread, id)
}

/// Notes that this thread holds the lock shared.
#[inline(always)]
fn note_read(thread: Option<&mut Thread>, lock: Rwlock) {
    if let Some(thread) = thread
        && thread.reading < READS
    {
        thread.reads[thread.reading] = lock as usize;
        thread.reading += 1;
    }
}

#[inline(always)]
fn forget_read(lock: Rwlock) {
    if let Some(thread) = thread::current() {
        let reads = &thread.reads[..thread.reading];
        if let Some(at) = reads.iter().rposition(|&read| read == lock as usize) {
            thread.reads[at..thread.reading].rotate_left(1);
            thread.reading -= 1;
        }
    }
}

fn reads(thread: &Thread, lock: Rwlock) -> bool {
    thread.reads[..thread.reading].contains(&(lock as usize))
}

#[inline(always)]
fn try_read(lock: Rwlock, algorithm: Algorithm) -> c_int {
    if with!(algorithm, lock, lock => lock.try_read()) {
        note_read(thread::current(), lock);
        return 0;
    }
    try_read_again(lock, algorithm)
}

/// A try that failed may have met a waiting writer, which does not hinder a reader that is inside.
#[cold]
fn try_read_again(lock: Rwlock, algorithm: Algorithm) -> c_int {
    let thread = thread::current();
    let inside = thread.as_ref().is_some_and(|thread| reads(thread, lock));
    if inside && with!(algorithm, lock, lock => lock.try_read_recursive()) {
        note_read(thread, lock);
        return 0;
    }
    libc::EBUSY
}

#[inline(always)]
fn read(lock: Rwlock, algorithm: Algorithm, until: Until) -> c_int {
    if with!(algorithm, lock, lock => lock.try_read()) {
        note_read(thread::current(), lock);
        return 0;
    }
    wait_to_read(lock, algorithm, until)
}

#[cold]
fn wait_to_read(lock: Rwlock, algorithm: Algorithm, until: Until) -> c_int {
    let (thread, id) = me();
    if id != 0 && writer(lock).load(Relaxed) == id {
        return libc::EDEADLK;
    }
    let acquired = if thread.as_ref().is_some_and(|thread| reads(thread, lock)) {
        with!(algorithm, lock, lock => lock.read_recursive());
        true
    } else {
        let deadline = match until.deadline() {
            Ok(deadline) => deadline,
            Err(code) => return code,
        };
        waits::timed(KIND_RWLOCK, SHARED, || match deadline {
            Some(deadline) => with!(algorithm, lock, lock => lock.read_until(deadline)),
            None => {
                with!(algorithm, lock, lock => lock.read());
                true
            }
        })
    };
    if !acquired {
        return libc::ETIMEDOUT;
    }
    note_read(thread::current(), lock);
    0
}

#[inline(always)]
fn try_write(lock: Rwlock, algorithm: Algorithm) -> c_int {
    if with!(algorithm, lock, lock => lock.try_write()) {
        // Relaxed: only this thread's own id means anything to it.
        writer(lock).store(me().1, Relaxed);
        0
    } else {
        libc::EBUSY
    }
}

#[inline(always)]
fn write(lock: Rwlock, algorithm: Algorithm, until: Until) -> c_int {
    if try_write(lock, algorithm) == 0 { 0 } else { wait_to_write(lock, algorithm, until) }
}

#[cold]
fn wait_to_write(lock: Rwlock, algorithm: Algorithm, until: Until) -> c_int {
    let id = me().1;
    if id != 0 && writer(lock).load(Relaxed) == id {
        return libc::EDEADLK;
    }
    let deadline = match until.deadline() {
        Ok(deadline) => deadline,
        Err(code) => return code,
    };
    let acquired = waits::timed(KIND_RWLOCK, EXCLUSIVE, || match deadline {
        Some(deadline) => with!(algorithm, lock, lock => lock.write_until(deadline)),
        None => {
            with!(algorithm, lock, lock => lock.write());
            true
        }
    });
    if !acquired {
        return libc::ETIMEDOUT;
    }
    writer(lock).store(id, Relaxed);
    0
}

/// Releases a converted rwlock in whichever mode this thread holds it.
#[inline(always)]
fn release(lock: Rwlock, algorithm: Algorithm) {
    // The caller holds the lock, so if there is a writer inside, it is the caller.
    if with!(algorithm, lock, lock => lock.is_write_locked()) {
        writer(lock).store(0, Relaxed);
        with!(algorithm, lock, lock => lock.write_unlock());
    } else {
        forget_read(lock);
        with!(algorithm, lock, lock => lock.read_unlock());
    }
}

/// Acquires an rwlock that is watched, by glibc's call `real`. Where the site is selected glibc's lock
/// is tried exclusively, whatever the mode: nobody is inside while the lock is converted.
#[cold]
fn acquire_watched(
    lock: Rwlock,
    caller: Caller,
    real: impl Fn() -> c_int,
    converted: impl Fn(Algorithm) -> c_int,
) -> c_int {
    if let Some((position, algorithm)) = watch::look(Kind::Rwlock, caller) {
        // SAFETY: a try never waits, so it does no harm to a thread that reads already.
        if unsafe { real::rwlock_trywrlock(lock) } == 0 {
            if marker(lock).get().decision() == Decision::Watch {
                // SAFETY: 16 bytes that glibc does not use; nobody touches them while it is held.
                unsafe { state(lock).cast_mut().write_bytes(0, 16) };
                marker(lock).set(Code::of(Decision::Convert(algorithm, position)));
                count_converted(true);
            }
            // SAFETY: acquired above. It clears the writer's id, which the algorithm has not set yet.
            unsafe { real::rwlock_unlock(lock) };
            if let Decision::Convert(algorithm, _) = marker(lock).get().decision() {
                return converted(algorithm);
            }
        }
    }
    let code = real();
    if code != 0 {
        return code;
    }
    // glibc's lock is held in some mode: the marker stays what it is.
    match marker(lock).get().decision() {
        Decision::Convert(algorithm, _) => {
            // SAFETY: acquired above.
            unsafe { real::rwlock_unlock(lock) };
            converted(algorithm)
        }
        Decision::Watch => {
            watch::acquired(marker(lock), watch_count(lock), lock as usize, caller);
            0
        }
        _ => 0,
    }
}

unsafe extern "C" fn init(
    lock: Rwlock,
    attributes: *const pthread_rwlockattr_t,
    _2: usize,
    _3: usize,
    stack: usize,
    frame_pointer: usize,
) -> c_int {
    // SAFETY: the program's own call. It clears the structure, marker and state included.
    let code = unsafe { real::rwlock_init(lock, attributes) };
    if code == 0 {
        first_use(lock, origin_of_init(Caller { stack, frame_pointer }));
    }
    code
}

unsafe extern "C" fn destroy(lock: Rwlock) -> c_int {
    if let Decision::Convert(algorithm, _) = marker(lock).get().decision()
        && with!(algorithm, lock, lock => lock.is_locked())
    {
        return libc::EBUSY;
    }
    marker(lock).set(Code::of(Decision::Undecided));
    writer(lock).store(0, Relaxed);
    // SAFETY: the rwlock is the program's to clear, and free.
    unsafe { state(lock).cast_mut().write_bytes(0, 16) };
    // SAFETY: the program's own call.
    unsafe { real::rwlock_destroy(lock) }
}

/// Hooks that acquire: the algorithm's way, and glibc's.
macro_rules! acquiring {
    ($($name:ident($lock:ident: Rwlock $(, $argument:ident: $type:ty)*; $($unused:ident),*)
        $way:ident($($until:expr)?), $real:ident;)*) => {$(
        unsafe extern "C" fn $name(
            $lock: Rwlock,
            $($argument: $type,)*
            $($unused: usize,)*
            stack: usize,
            frame_pointer: usize,
        ) -> c_int {
            // SAFETY: the program's own call, with its own arguments.
            let real = || unsafe { real::$real($lock $(, $argument)*) };
            let converted = |algorithm| $way($lock, algorithm $(, $until)?);
            match decided($lock) {
                Decision::Convert(algorithm, _) => converted(algorithm),
                Decision::Watch => acquire_watched($lock, Caller { stack, frame_pointer }, real, converted),
                _ => real(),
            }
        }
    )*};
}

acquiring! {
    rdlock(lock: Rwlock; _1, _2, _3) read(Until::Forever), rwlock_rdlock;
    tryrdlock(lock: Rwlock; _1, _2, _3) try_read(), rwlock_tryrdlock;
    timedrdlock(lock: Rwlock, time: Time; _2, _3)
        read(Until::Time(libc::CLOCK_REALTIME, time)), rwlock_timedrdlock;
    clockrdlock(lock: Rwlock, clock: clockid_t, time: Time; _3)
        read(Until::Time(clock, time)), rwlock_clockrdlock;
    wrlock(lock: Rwlock; _1, _2, _3) write(Until::Forever), rwlock_wrlock;
    trywrlock(lock: Rwlock; _1, _2, _3) try_write(), rwlock_trywrlock;
    timedwrlock(lock: Rwlock, time: Time; _2, _3)
        write(Until::Time(libc::CLOCK_REALTIME, time)), rwlock_timedwrlock;
    clockwrlock(lock: Rwlock, clock: clockid_t, time: Time; _3)
        write(Until::Time(clock, time)), rwlock_clockwrlock;
}

unsafe extern "C" fn unlock(lock: Rwlock, _1: usize, _2: usize, _3: usize, stack: usize) -> c_int {
    match marker(lock).get().decision() {
        Decision::Convert(algorithm, _) => {
            release(lock, algorithm);
            0
        }
        decision => {
            if decision == Decision::Watch {
                watch::released(lock as usize, stack);
            }
            // SAFETY: the program's own call.
            unsafe { real::rwlock_unlock(lock) }
        }
    }
}
