//! A lock too simple to be wrong: a count of holders behind a mutex and a condition variable.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use relatch::platform::{Deadline, Native};
use relatch::{RawMutex, RawRwLock};

#[derive(Default)]
pub struct Twin {
    /// Readers inside, or -1 for a writer.
    holders: Mutex<i64>,
    changed: Condvar,
}

impl Twin {
    fn enter(&self, deadline: Option<Deadline>, writing: bool) -> bool {
        let mut holders = self.holders.lock().unwrap();
        loop {
            if writing && *holders == 0 {
                *holders = -1;
                return true;
            }
            if !writing && *holders >= 0 {
                *holders += 1;
                return true;
            }
            if deadline.is_some_and(Deadline::passed::<Native>) {
                return false;
            }
            holders = self.changed.wait_timeout(holders, Duration::from_millis(1)).unwrap().0;
        }
    }

    fn leave(&self, expected: impl Fn(i64) -> bool, remaining: impl Fn(i64) -> i64) {
        let mut holders = self.holders.lock().unwrap();
        assert!(expected(*holders), "released in a mode it is not held in: {holders}");
        *holders = remaining(*holders);
        self.changed.notify_all();
    }
}

const PAST: Option<Deadline> = Some(super::PAST);

// SAFETY: holders is -1 exactly while one writer is inside, and it is changed under the mutex.
unsafe impl RawRwLock for Twin {
    const NAME: &'static str = "twin";
    fn new() -> Self {
        Twin::default()
    }
    fn read(&self) {
        self.enter(None, false);
    }
    fn try_read(&self) -> bool {
        self.enter(PAST, false)
    }
    fn read_until(&self, deadline: Deadline) -> bool {
        self.enter(Some(deadline), false)
    }
    fn read_recursive(&self) {
        self.enter(None, false);
    }
    fn try_read_recursive(&self) -> bool {
        self.enter(PAST, false)
    }
    unsafe fn read_unlock(&self) {
        self.leave(|holders| holders > 0, |holders| holders - 1);
    }
    fn write(&self) {
        self.enter(None, true);
    }
    fn try_write(&self) -> bool {
        self.enter(PAST, true)
    }
    fn write_until(&self, deadline: Deadline) -> bool {
        self.enter(Some(deadline), true)
    }
    unsafe fn write_unlock(&self) {
        self.leave(|holders| holders == -1, |_| 0);
    }
    unsafe fn downgrade(&self) {
        self.leave(|holders| holders == -1, |_| 1);
    }
    fn is_write_locked(&self) -> bool {
        *self.holders.lock().unwrap() == -1
    }
    fn is_locked(&self) -> bool {
        *self.holders.lock().unwrap() != 0
    }
}

// SAFETY: the exclusive half of the above.
unsafe impl RawMutex for Twin {
    const NAME: &'static str = "twin";
    fn new() -> Self {
        Twin::default()
    }
    fn lock(&self) {
        self.write();
    }
    fn try_lock(&self) -> bool {
        self.try_write()
    }
    fn lock_until(&self, deadline: Deadline) -> bool {
        self.write_until(deadline)
    }
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.write_unlock() }
    }
    fn is_locked(&self) -> bool {
        self.is_write_locked()
    }
}
