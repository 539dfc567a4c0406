//! `pthread_spin_*`, observed.

use core::ffi::c_int;

use relatch_record::layout::{EXCLUSIVE, KIND_SPIN};

use super::{Hook, Hooks, acquire, initialised, release, try_acquire};
use crate::class;
use crate::slots::{Spin, Symbol, real};

pub(super) const HOOKS: Hooks<5> = [
    (Symbol::SpinInit, Hook(init as *const ())),
    (Symbol::SpinDestroy, Hook(destroy as *const ())),
    (Symbol::SpinLock, Hook(lock as *const ())),
    (Symbol::SpinTrylock, Hook(trylock as *const ())),
    (Symbol::SpinUnlock, Hook(unlock as *const ())),
];

living!(KIND_SPIN; Spin, c_int, spin_init, spin_destroy, spin_unlock);

acquiring! { KIND_SPIN;
    lock(lock_: Spin; _1, _2, _3) EXCLUSIVE, spin_trylock, spin_lock;
}

trying! { KIND_SPIN;
    trylock(lock: Spin) EXCLUSIVE, spin_trylock;
}
