//! The lock that `qrwlock`'s waiters queue on: spin, then sleep, and hand over.
//!
//! The kernel's qrwlock queues on a queued spinlock, first come first served. Spinning in a queue
//! collapses in user space as soon as a waiter loses its CPU, so this one sleeps; and it must not
//! let newcomers pass sleepers, or the queue would be none.
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | held |
//! | 1 | handed: held by nobody yet; whoever of the counted waiters looks first has it |
//! | 2.. | waiters that have stopped spinning |
//!
//! 1. A newcomer takes a word of 0 only: with waiters counted there is no passing them.
//! 2. Release with waiters sets *handed* and wakes one. The kernel wakes sleepers in order of
//!    arrival; a waiter that was just about to sleep may be quicker than the one woken, who then
//!    sleeps again behind the others.
//! 3. *Handed* is only ever set while waiters are counted, and a waiter whose time runs out leaves
//!    by an exchange that sees it: then it takes the lock instead. So what is handed is taken.
//!
//! This is not a lock for users: a release calls the kernel as soon as anyone sleeps.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Deadline, Native, Platform, Word};

const FREE: u32 = 0;
const HELD: u32 = 1;
const HANDED: u32 = 2;
const WAITER: u32 = 4;

/// Looks before counting oneself as a waiter: a few microseconds.
const SPINS: u32 = 128;

#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct WaitLock<P: Platform> {
    word: P::U32,
}

impl WaitLock<Native> {
    pub(crate) const fn new_native() -> Self {
        WaitLock { word: AtomicU32::new(FREE) }
    }
}

fn is_handed(word: u32) -> bool {
    word & HANDED != 0
}

impl<P: Platform> WaitLock<P> {
    pub(crate) fn new() -> Self {
        WaitLock { word: P::U32::new(FREE) }
    }

    fn take_free(&self) -> bool {
        // A, pairs with D in unlock. Relaxed on failure: nothing was learned.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    pub(crate) fn lock(&self, deadline: Option<Deadline>) -> bool {
        if self.take_free() {
            return true;
        }
        // With waiters counted, spinning is in vain (rule 1); Relaxed: the exchange acquires.
        let seen = self.word.spin_for(SPINS, Relaxed, |word| word != HELD);
        if seen == Some(FREE) && self.take_free() {
            return true;
        }
        self.join() || self.wait(deadline)
    }

    /// Counts this thread as a waiter, unless the lock is free: then takes it and says so.
    fn join(&self) -> bool {
        let mut word = self.word.load(Relaxed); // Relaxed: the exchange below decides.
        loop {
            let new = if word == FREE { HELD } else { word + WAITER };
            // B, pairs with D in unlock.
            match self.word.compare_exchange_weak(word, new, Acquire, Relaxed) {
                Ok(_) => return word == FREE,
                Err(now) => word = now,
            }
        }
    }

    /// Sleeps until the lock is handed to this thread, or leaves at the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        loop {
            let word = self.word.load(Relaxed); // Relaxed: take_handed acquires.
            if is_handed(word) {
                if self.take_handed(word) {
                    return true;
                }
            } else if !self.word.park_until(word, deadline) {
                return !self.leave();
            }
        }
    }

    fn take_handed(&self, word: u32) -> bool {
        // C, pairs with D in unlock.
        self.word.compare_exchange(word, word - HANDED - WAITER, Acquire, Relaxed).is_ok()
    }

    /// Takes back the count, unless the lock is handed: then takes that, and says false (rule 3).
    fn leave(&self) -> bool {
        loop {
            let word = self.word.load(Relaxed); // Relaxed: the exchanges below decide.
            if is_handed(word) {
                if self.take_handed(word) {
                    return false;
                }
            } else if self.word.compare_exchange_weak(word, word - WAITER, Relaxed, Relaxed).is_ok()
            {
                // Relaxed: leaves without having seen or changed what the lock protects.
                return true;
            }
        }
    }

    /// Releases; the caller holds the lock.
    pub(crate) fn unlock(&self) {
        let mut word = self.word.load(Relaxed); // Relaxed: the exchange below decides.
        loop {
            let new = if word == HELD { FREE } else { word | HANDED };
            // D, pairs with A in take_free, B in join and C in take_handed.
            match self.word.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word != HELD {
            self.word.wake(1);
        }
    }
}
