//! The one lock of the library's own slow paths: tables, classes, threads.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A value behind a small spinlock that yields. Held for microseconds, on first sights only.
pub struct Guarded<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock alone.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// Free, with `value`.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        // Acquire, pairs with the release in `drop`.
        while self.taken.swap(true, Acquire) {
            while self.taken.load(Relaxed) {
                // SAFETY: no arguments. The holder may have lost its processor.
                unsafe { libc::sched_yield() };
            }
        }
        Guard { guarded: self }
    }

    /// In the child of a fork: whoever held the lock does not exist here. What it was about to change is
    /// written in an order that leaves it usable at every moment.
    ///
    /// # Safety
    /// This process has one thread, and it does not hold the lock.
    pub unsafe fn force_free(&self) {
        self.taken.store(false, Release);
    }
}

/// The lock is held while this lives.
pub struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and this guard is borrowed alone.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // Release, pairs with the swap in `lock`.
        self.guarded.taken.store(false, Release);
    }
}
