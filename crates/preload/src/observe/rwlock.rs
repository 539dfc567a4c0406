//! `pthread_rwlock_*`, observed.

use core::ffi::c_int;

use libc::{clockid_t, pthread_rwlockattr_t};
use relatch_record::layout::{EXCLUSIVE, KIND_RWLOCK, SHARED};

use super::{Hook, Hooks, acquire, initialised, release, try_acquire};
use crate::class;
use crate::slots::{Rwlock, Symbol, Time, real};

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

living!(KIND_RWLOCK; Rwlock, *const pthread_rwlockattr_t, rwlock_init, rwlock_destroy, rwlock_unlock);

acquiring! { KIND_RWLOCK;
    rdlock(lock: Rwlock; _1, _2, _3) SHARED, rwlock_tryrdlock, rwlock_rdlock;
    timedrdlock(lock: Rwlock, until: Time; _2, _3) SHARED, rwlock_tryrdlock, rwlock_timedrdlock;
    clockrdlock(lock: Rwlock, clock: clockid_t, until: Time; _3) SHARED, rwlock_tryrdlock, rwlock_clockrdlock;
    wrlock(lock: Rwlock; _1, _2, _3) EXCLUSIVE, rwlock_trywrlock, rwlock_wrlock;
    timedwrlock(lock: Rwlock, until: Time; _2, _3) EXCLUSIVE, rwlock_trywrlock, rwlock_timedwrlock;
    clockwrlock(lock: Rwlock, clock: clockid_t, until: Time; _3) EXCLUSIVE, rwlock_trywrlock, rwlock_clockwrlock;
}

trying! { KIND_RWLOCK;
    tryrdlock(lock: Rwlock) SHARED, rwlock_tryrdlock;
    trywrlock(lock: Rwlock) EXCLUSIVE, rwlock_trywrlock;
}
