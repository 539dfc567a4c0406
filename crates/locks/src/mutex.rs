//! `mutex`: spin for a while, then sleep.
//!
//! Three states of a futex word (Drepper, *Futexes Are Tricky*, 2011, the third mutex), with a
//! bounded spin before the first sleep.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | 1 | held, nobody sleeps |
//! | 2 | held, somebody may sleep |
//!
//! 1. Whoever finds 0 takes it, a newcomer as well as a woken sleeper: no order, but sleepers are
//!    woken in turn.
//! 2. Release of a 2 wakes one sleeper. It takes the lock as 2, since it cannot know whether others
//!    sleep; so does every thread that has decided to sleep.
//! 3. A waiter whose time runs out may leave a 2 behind; the next release then wakes nobody and the
//!    word is 0 again. It leaves only when no wake-up was spent on it, or after it has written 2
//!    once more: the holder's release makes up for the wake-up it used.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Deadline, Native, Platform, Word};
use crate::raw::{RawMutex, ZeroIsFree};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// Looks before the first sleep: a few microseconds, less than going to sleep and waking costs.
const SPINS: u32 = 128;

/// The `mutex` lock; see the crate's table.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct ParkMutex<P: Platform = Native> {
    word: P::U32,
}

impl ParkMutex {
    /// A free lock.
    pub const fn new() -> Self {
        ParkMutex { word: AtomicU32::new(FREE) }
    }
}

// SAFETY: FREE is 0, and an AtomicU32 has no drop glue.
unsafe impl ZeroIsFree for ParkMutex {}

impl<P: Platform> ParkMutex<P> {
    #[inline(always)]
    fn take_free(&self) -> bool {
        // A, pairs with C in unlock. Relaxed on failure: nothing was learned.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self, deadline: Option<Deadline>) -> bool {
        // Spinning beside sleepers would only delay them; Relaxed: the exchange acquires.
        let seen = self.word.spin_for(SPINS, Relaxed, |word| word != HELD);
        if seen == Some(FREE) && self.take_free() {
            return true;
        }
        loop {
            // Rule 2. B, pairs with C in unlock.
            if self.word.swap(CONTENDED, Acquire) == FREE {
                return true;
            }
            // Rule 3: false means that no wake-up was spent on this thread since the swap.
            if !self.word.park_until(CONTENDED, deadline) {
                return false;
            }
        }
    }
}

// SAFETY: only the thread whose exchange or swap turned FREE into another value returns success,
// until `unlock` puts FREE back; A and B acquire what C released.
unsafe impl<P: Platform> RawMutex for ParkMutex<P> {
    const NAME: &'static str = "mutex";

    fn new() -> Self {
        ParkMutex { word: P::U32::new(FREE) }
    }

    #[inline]
    fn lock(&self) {
        if !self.take_free() {
            self.lock_slow(None);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.take_free()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> bool {
        self.take_free() || self.lock_slow(Some(deadline))
    }

    #[inline]
    unsafe fn unlock(&self) {
        // C, pairs with A in take_free and B in lock_slow.
        if self.word.swap(FREE, Release) == CONTENDED {
            self.wake_one();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE // Relaxed: true of some moment, orders nothing.
    }
}

impl<P: Platform> ParkMutex<P> {
    #[cold]
    fn wake_one(&self) {
        self.word.wake(1);
    }
}
