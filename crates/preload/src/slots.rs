//! One slot for each interposed function: where its hook jumps to, and glibc's own.
//!
//! `hooks.S` holds the hooks, in the order of [`Symbol`].

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Relaxed, Release};

use libc::{clockid_t, timespec};

/// An interposed function; its value is the index of its slot.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Symbol {
    MutexInit,
    MutexDestroy,
    MutexLock,
    MutexTrylock,
    MutexTimedlock,
    MutexClocklock,
    MutexUnlock,
    RwlockInit,
    RwlockDestroy,
    RwlockRdlock,
    RwlockTryrdlock,
    RwlockTimedrdlock,
    RwlockClockrdlock,
    RwlockWrlock,
    RwlockTrywrlock,
    RwlockTimedwrlock,
    RwlockClockwrlock,
    RwlockUnlock,
    SpinInit,
    SpinDestroy,
    SpinLock,
    SpinTrylock,
    SpinUnlock,
    CondWait,
    CondTimedwait,
    CondSignal,
    CondBroadcast,
    CondDestroy,
    CondClockwait,
}

/// How many functions are interposed.
pub const SYMBOLS: usize = Symbol::CondClockwait as usize + 1;

/// Names in the order of [`Symbol`].
const NAMES: [&CStr; SYMBOLS] = [
    c"pthread_mutex_init",
    c"pthread_mutex_destroy",
    c"pthread_mutex_lock",
    c"pthread_mutex_trylock",
    c"pthread_mutex_timedlock",
    c"pthread_mutex_clocklock",
    c"pthread_mutex_unlock",
    c"pthread_rwlock_init",
    c"pthread_rwlock_destroy",
    c"pthread_rwlock_rdlock",
    c"pthread_rwlock_tryrdlock",
    c"pthread_rwlock_timedrdlock",
    c"pthread_rwlock_clockrdlock",
    c"pthread_rwlock_wrlock",
    c"pthread_rwlock_trywrlock",
    c"pthread_rwlock_timedwrlock",
    c"pthread_rwlock_clockwrlock",
    c"pthread_rwlock_unlock",
    c"pthread_spin_init",
    c"pthread_spin_destroy",
    c"pthread_spin_lock",
    c"pthread_spin_trylock",
    c"pthread_spin_unlock",
    c"pthread_cond_wait",
    c"pthread_cond_timedwait",
    c"pthread_cond_signal",
    c"pthread_cond_broadcast",
    c"pthread_cond_destroy",
    c"pthread_cond_clockwait",
];

/// Both tables, on one page of memory: every lock call looks into each.
#[repr(C, align(512))]
struct Slots {
    /// Where each hook jumps to; null until [`resolve`] has run. `hooks.S` reads it.
    hooks: [AtomicPtr<c_void>; SYMBOLS],
    /// glibc's functions.
    real: [AtomicPtr<c_void>; SYMBOLS],
}

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static relatch_slots: Slots = Slots {
    hooks: [const { AtomicPtr::new(core::ptr::null_mut()) }; SYMBOLS],
    real: [const { AtomicPtr::new(core::ptr::null_mut()) }; SYMBOLS],
};

/// Finds glibc's functions and lets every hook forward to its own.
pub fn resolve() {
    for (index, name) in NAMES.iter().enumerate() {
        // The old condition variable has the same names, so its version must be asked for.
        let versioned = (Symbol::CondWait as usize..=Symbol::CondDestroy as usize).contains(&index);
        // SAFETY: both take C strings that live forever.
        let real = unsafe {
            if versioned {
                libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr())
            } else {
                libc::dlsym(libc::RTLD_NEXT, name.as_ptr())
            }
        };
        relatch_slots.real[index].store(real, Relaxed);
        relatch_slots.hooks[index].store(real, Release);
    }
}

/// Directs a hook to one of our functions.
pub fn direct(symbol: Symbol, to: *const ()) {
    if !relatch_slots.real[symbol as usize].load(Relaxed).is_null() {
        relatch_slots.hooks[symbol as usize].store(to.cast_mut().cast(), Release);
    }
}

/// Directs every hook to glibc again.
pub fn forward_all() {
    for (slot, real) in relatch_slots.hooks.iter().zip(&relatch_slots.real) {
        slot.store(real.load(Relaxed), Release);
    }
}

macro_rules! real {
    ($abi:literal: $($(#[$doc:meta])* $name:ident: $symbol:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As glibc's function of that name.
        #[inline(always)]
        pub unsafe fn $name($($argument: $type),*) -> c_int {
            // Relaxed: written before any hook could be directed here.
            let real = relatch_slots.real[Symbol::$symbol as usize].load(Relaxed);
            // SAFETY: glibc's function has this signature; the arguments are the caller's promise.
            unsafe {
                let real: unsafe extern $abi fn($($type),*) -> c_int = core::mem::transmute(real);
                real($($argument),*)
            }
        }
    )*};
}

/// `pthread_mutex_t`.
pub type Mutex = *mut libc::pthread_mutex_t;
/// `pthread_rwlock_t`.
pub type Rwlock = *mut libc::pthread_rwlock_t;
/// `pthread_spinlock_t`.
pub type Spin = *mut c_int;
/// `pthread_cond_t`.
pub type Cond = *mut libc::pthread_cond_t;
/// An absolute time.
pub type Time = *const timespec;

/// glibc's functions.
pub mod real {
    use super::*;

    real! { "C":
        /// glibc's.
        mutex_init: MutexInit(mutex: Mutex, attributes: *const libc::pthread_mutexattr_t);
        /// glibc's.
        mutex_destroy: MutexDestroy(mutex: Mutex);
        /// glibc's.
        mutex_lock: MutexLock(mutex: Mutex);
        /// glibc's.
        mutex_trylock: MutexTrylock(mutex: Mutex);
        /// glibc's.
        mutex_timedlock: MutexTimedlock(mutex: Mutex, until: Time);
        /// glibc's.
        mutex_clocklock: MutexClocklock(mutex: Mutex, clock: clockid_t, until: Time);
        /// glibc's.
        mutex_unlock: MutexUnlock(mutex: Mutex);
        /// glibc's.
        rwlock_init: RwlockInit(lock: Rwlock, attributes: *const libc::pthread_rwlockattr_t);
        /// glibc's.
        rwlock_destroy: RwlockDestroy(lock: Rwlock);
        /// glibc's.
        rwlock_rdlock: RwlockRdlock(lock: Rwlock);
        /// glibc's.
        rwlock_tryrdlock: RwlockTryrdlock(lock: Rwlock);
        /// glibc's.
        rwlock_timedrdlock: RwlockTimedrdlock(lock: Rwlock, until: Time);
        /// glibc's.
        rwlock_clockrdlock: RwlockClockrdlock(lock: Rwlock, clock: clockid_t, until: Time);
        /// glibc's.
        rwlock_wrlock: RwlockWrlock(lock: Rwlock);
        /// glibc's.
        rwlock_trywrlock: RwlockTrywrlock(lock: Rwlock);
        /// glibc's.
        rwlock_timedwrlock: RwlockTimedwrlock(lock: Rwlock, until: Time);
        /// glibc's.
        rwlock_clockwrlock: RwlockClockwrlock(lock: Rwlock, clock: clockid_t, until: Time);
        /// glibc's.
        rwlock_unlock: RwlockUnlock(lock: Rwlock);
        /// glibc's.
        spin_init: SpinInit(lock: Spin, shared: c_int);
        /// glibc's.
        spin_destroy: SpinDestroy(lock: Spin);
        /// glibc's.
        spin_lock: SpinLock(lock: Spin);
        /// glibc's.
        spin_trylock: SpinTrylock(lock: Spin);
        /// glibc's.
        spin_unlock: SpinUnlock(lock: Spin);
    }

    // Waiting is a cancellation point, and a cancelled thread unwinds.
    real! { "C-unwind":
        /// glibc's.
        cond_wait: CondWait(cond: Cond, mutex: Mutex);
        /// glibc's.
        cond_timedwait: CondTimedwait(cond: Cond, mutex: Mutex, until: Time);
        /// glibc's.
        cond_clockwait: CondClockwait(cond: Cond, mutex: Mutex, clock: clockid_t, until: Time);
        /// glibc's.
        cond_signal: CondSignal(cond: Cond);
        /// glibc's.
        cond_broadcast: CondBroadcast(cond: Cond);
        /// glibc's.
        cond_destroy: CondDestroy(cond: Cond);
    }
}
