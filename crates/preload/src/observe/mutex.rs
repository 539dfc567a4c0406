//! `pthread_mutex_*`, observed.

use core::ffi::c_int;

use libc::{clockid_t, pthread_mutexattr_t};
use relatch_record::layout::{EXCLUSIVE, KIND_MUTEX};

use super::{Hook, Hooks, acquire, initialised, release, try_acquire};
use crate::class;
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

living!(KIND_MUTEX; Mutex, *const pthread_mutexattr_t, mutex_init, mutex_destroy, mutex_unlock);

acquiring! { KIND_MUTEX;
    lock(mutex: Mutex; _1, _2, _3) EXCLUSIVE, mutex_trylock, mutex_lock;
    timedlock(mutex: Mutex, until: Time; _2, _3) EXCLUSIVE, mutex_trylock, mutex_timedlock;
    clocklock(mutex: Mutex, clock: clockid_t, until: Time; _3) EXCLUSIVE, mutex_trylock, mutex_clocklock;
}

trying! { KIND_MUTEX;
    trylock(mutex: Mutex) EXCLUSIVE, mutex_trylock;
}
