//! Locks that are broken on purpose, each in one way: a check that passes them checks nothing.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use relatch::platform::{Deadline, Platform, Word};
use relatch::{RawMutex, RawRwLock};

/// Passes some time: the window in which the mistake shows is else a few instructions wide, and a
/// virtual machine with two CPUs seldom hits it.
fn dawdle(word: &impl Word) {
    word.spin_for(50, Relaxed, |_| false);
}

/// Looks and takes in two steps: two threads may both find it free.
pub struct TwoSteps<P: Platform>(P::U32);

// SAFETY: none; this breaks the promise on purpose, and only tests that expect so use it.
unsafe impl<P: Platform> RawMutex for TwoSteps<P> {
    const NAME: &'static str = "busted: two steps";
    fn new() -> Self {
        TwoSteps(P::U32::new(0))
    }
    fn lock(&self) {
        self.0.spin_until(Acquire, |word| word == 0);
        dawdle(&self.0);
        self.0.store(1, Relaxed);
    }
    fn try_lock(&self) -> bool {
        let free = self.0.load(Acquire) == 0;
        if free {
            dawdle(&self.0);
            self.0.store(1, Relaxed);
        }
        free
    }
    fn lock_until(&self, deadline: Deadline) -> bool {
        let free = self.0.spin_until_deadline(Acquire, deadline, |word| word == 0).is_some();
        if free {
            self.0.store(1, Relaxed);
        }
        free
    }
    unsafe fn unlock(&self) {
        self.0.store(0, Release);
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

/// Takes without acquiring: the new holder may see old data. x86 never shows it.
pub struct NoAcquire<P: Platform>(P::U32);

// SAFETY: none; this breaks the promise on purpose, and only tests that expect so use it.
unsafe impl<P: Platform> RawMutex for NoAcquire<P> {
    const NAME: &'static str = "busted: no acquire";
    fn new() -> Self {
        NoAcquire(P::U32::new(0))
    }
    fn lock(&self) {
        while !self.try_lock() {
            self.0.spin_until(Relaxed, |word| word == 0);
        }
    }
    fn try_lock(&self) -> bool {
        self.0.swap(1, Relaxed) == 0
    }
    fn lock_until(&self, _: Deadline) -> bool {
        self.try_lock()
    }
    unsafe fn unlock(&self) {
        self.0.store(0, Release);
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

/// Looks for sleepers before it releases: one that falls asleep in between is never woken.
pub struct LostWake<P: Platform>(P::U32);

// SAFETY: exclusion holds; what is broken is that `lock` may wait for ever.
unsafe impl<P: Platform> RawMutex for LostWake<P> {
    const NAME: &'static str = "busted: lost wake-up";
    fn new() -> Self {
        LostWake(P::U32::new(0))
    }
    fn lock(&self) {
        if !self.try_lock() {
            while self.0.swap(2, Acquire) != 0 {
                self.0.park_until(2, None);
            }
        }
    }
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }
    fn lock_until(&self, _: Deadline) -> bool {
        self.try_lock()
    }
    unsafe fn unlock(&self) {
        let sleepers = self.0.load(Relaxed) == 2;
        self.0.store(0, Release);
        if sleepers {
            self.0.wake(1);
        }
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

/// A reader looks for a writer and then counts itself: a writer may enter in between.
pub struct LateReader<P: Platform>(P::U32);

const WRITER: u32 = 1;
const READER: u32 = 2;

// SAFETY: none; this breaks the promise on purpose, and only tests that expect so use it.
unsafe impl<P: Platform> RawRwLock for LateReader<P> {
    const NAME: &'static str = "busted: late reader";
    fn new() -> Self {
        LateReader(P::U32::new(0))
    }
    fn read(&self) {
        self.0.spin_until(Acquire, |word| word & WRITER == 0);
        dawdle(&self.0);
        self.0.fetch_add(READER, Acquire);
    }
    fn try_read(&self) -> bool {
        let open = self.0.load(Acquire) & WRITER == 0;
        if open {
            self.0.fetch_add(READER, Acquire);
        }
        open
    }
    fn read_until(&self, _: Deadline) -> bool {
        self.try_read()
    }
    fn read_recursive(&self) {
        self.read();
    }
    fn try_read_recursive(&self) -> bool {
        self.try_read()
    }
    unsafe fn read_unlock(&self) {
        self.0.fetch_sub(READER, Release);
    }
    fn write(&self) {
        while !self.try_write() {
            self.0.spin_until(Relaxed, |word| word == 0);
        }
    }
    fn try_write(&self) -> bool {
        self.0.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }
    fn write_until(&self, _: Deadline) -> bool {
        self.try_write()
    }
    unsafe fn write_unlock(&self) {
        self.0.fetch_sub(WRITER, Release);
    }
    unsafe fn downgrade(&self) {
        self.0.fetch_add(READER - WRITER, Release);
    }
    fn is_write_locked(&self) -> bool {
        self.0.load(Relaxed) & WRITER != 0
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}
