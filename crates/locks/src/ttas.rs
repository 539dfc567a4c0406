//! `ttas`: test and test-and-set, the spinlock of kernels before tickets and queues.
//!
//! One word, taken by an atomic exchange; waiters look at it with plain loads, which stay in their
//! caches, until it is free (Rudolph and Segall, ISCA 1984; pauses between looks: Anderson, IEEE
//! TPDS 1990).
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | 1 | held |
//!
//! 1. Whoever exchanges first has it: no order among waiters, none is protected from starving.
//! 2. A waiter never sleeps on the word, so a release is one store and wakes nobody.
//! 3. A waiter that has looked in vain for long gives up its CPU (see
//!    [`Word::spin_until`]): with more threads than CPUs it still ends.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Deadline, Native, Platform, Word};
use crate::raw::{RawMutex, ZeroIsFree};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The `ttas` lock; see the crate's table.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ttas<P: Platform = Native> {
    word: P::U32,
}

impl Ttas {
    /// A free lock.
    pub const fn new() -> Self {
        Ttas { word: AtomicU32::new(FREE) }
    }
}

// SAFETY: FREE is 0, and an AtomicU32 has no drop glue.
unsafe impl ZeroIsFree for Ttas {}

fn is_free(word: u32) -> bool {
    word == FREE
}

impl<P: Platform> Ttas<P> {
    #[inline(always)]
    fn take_free(&self) -> bool {
        // A, pairs with B in unlock. Relaxed on failure: nothing was learned. Not a swap: one that
        // fails would write, and take the line from the holder.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        loop {
            // Relaxed: only a hint; the exchange acquires.
            self.word.spin_until(Relaxed, is_free);
            if self.take_free() {
                return;
            }
        }
    }

    #[cold]
    fn lock_slow_until(&self, deadline: Deadline) -> bool {
        // Relaxed: as above. Each round needs the lock to have been seen free, so only a stream of
        // other acquisitions could hold this up past the deadline.
        while self.word.spin_until_deadline(Relaxed, deadline, is_free).is_some() {
            if self.take_free() {
                return true;
            }
        }
        false
    }
}

// SAFETY: only the thread whose exchange turned FREE into HELD returns success, until `unlock` stores
// FREE; A acquires what B released.
unsafe impl<P: Platform> RawMutex for Ttas<P> {
    const NAME: &'static str = "ttas";

    fn new() -> Self {
        Ttas { word: P::U32::new(FREE) }
    }

    #[inline]
    fn lock(&self) {
        if !self.take_free() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Relaxed: a hint that keeps a failing try from taking the line away from the holder.
        is_free(self.word.load(Relaxed)) && self.take_free()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> bool {
        self.take_free() || self.lock_slow_until(deadline)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.word.store(FREE, Release); // B, pairs with A in take_free
    }

    fn is_locked(&self) -> bool {
        !is_free(self.word.load(Relaxed)) // Relaxed: true of some moment, orders nothing.
    }
}
