//! `qrwlock`: a fair reader-writer lock; whoever has to wait queues, readers and writers alike.
//!
//! After the queued rwlock of the Linux kernel (`kernel/locking/qrwlock.c`): a count that the
//! uncontended paths touch alone, and a lock that the others queue on. The kernel spins; here both
//! the queue and its head sleep after a bounded spin.
//!
//! | bits of `count` | meaning |
//! |---|---|
//! | 0-7 | 255: a writer is inside |
//! | 8 | *waiting*: the head of the queue is a writer |
//! | 9 | *parked*: the head of the queue sleeps on this word, or is about to |
//! | 10-31 | readers: inside, at the head, or passing through (below) |
//!
//! 1. The holder of `queue` is the head; it alone waits on `count`, and it alone sets and clears
//!    *waiting* and *parked*. Without a head both are clear.
//! 2. A reader adds itself first and looks afterwards. If a writer is inside or waiting it takes
//!    itself back, and queues. While it passes through, others see a reader too many: taking back
//!    is therefore the same as unlocking, wake-up included, and `try_write` may fail.
//! 3. A head that is a reader leaves its count in place: when the writer goes it is inside without
//!    having run, and no newcomer can take the lock away. It does not keep other readers out.
//! 4. A head that is a writer sets *waiting*, which keeps new readers out, and enters when the
//!    readers are gone: it waits for those that were inside, and for recursive ones.
//! 5. Once inside, the head passes `queue` on. So nobody who came later enters before the head; in
//!    the queue the order is that of `wait_lock`.
//! 6. Whoever changes `count` to what a sleeping head waits for wakes it: a writer on leaving if
//!    *parked*, a reader if it leaves exactly *waiting* and *parked* behind.
//! 7. A head whose time runs out clears its bits, or takes its count back, and passes `queue` on.
//!    Nobody else sleeps on `count`, so no wake-up can be lost with it.
//!
//! There is room for 4 194 303 readers at a time.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Deadline, Native, Platform, Word};
use crate::raw::{RawRwLock, ZeroIsFree};
use crate::wait_lock::WaitLock;

const WRITER: u32 = 0xff;
const WAITING: u32 = 1 << 8;
const PARKED: u32 = 1 << 9;
const READER: u32 = 1 << 10;

/// Looks of the head before it sleeps: a few microseconds.
const SPINS: u32 = 128;

/// The `qrwlock`; see the crate's table.
#[derive(Debug, Default)]
#[repr(C)]
pub struct QrwLock<P: Platform = Native> {
    count: P::U32,
    queue: WaitLock<P>,
}

impl QrwLock {
    /// A free lock.
    pub const fn new() -> Self {
        QrwLock { count: AtomicU32::new(0), queue: WaitLock::new_native() }
    }
}

// SAFETY: both words are free at 0, and have no drop glue.
unsafe impl ZeroIsFree for QrwLock {}

fn has_writer(count: u32) -> bool {
    count & WRITER != 0
}

fn keeps_readers_out(count: u32) -> bool {
    count & (WRITER | WAITING) != 0
}

fn is_empty(count: u32) -> bool {
    count & !(WAITING | PARKED) == 0
}

impl<P: Platform> QrwLock<P> {
    #[inline(always)]
    fn enter_reading(&self) -> bool {
        !keeps_readers_out(self.count.fetch_add(READER, Acquire)) // A, pairs with F and G
    }

    #[inline(always)]
    fn enter_writing(&self) -> bool {
        // B, pairs with E and F. Relaxed on failure: nothing was learned.
        self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    /// Rule 2: unlocks, or takes back a count that came too late.
    #[inline(always)]
    fn leave_reading(&self) {
        let left = self.count.fetch_sub(READER, Release).wrapping_sub(READER); // E, pairs with B and D
        if left == WAITING | PARKED {
            self.wake_head();
        }
    }

    #[cold]
    fn wake_head(&self) {
        self.count.wake(1);
    }

    #[cold]
    fn read_slow(&self, deadline: Option<Deadline>) -> bool {
        self.leave_reading();
        if !self.queue.lock(deadline) {
            return false;
        }
        // A, pairs with F and G. No other head exists, so *waiting* is clear.
        let inside = !has_writer(self.count.fetch_add(READER, Acquire))
            || self.wait_at_head(deadline, |count| !has_writer(count)).is_some();
        if !inside {
            // Rules 3, 7. If the writer has gone meanwhile this unlocks, and finds no head to wake.
            // Relaxed: saw nothing of what the lock protects.
            self.count.fetch_sub(READER, Relaxed);
        }
        self.clear(PARKED);
        self.queue.unlock();
        inside
    }

    #[cold]
    fn write_slow(&self, deadline: Option<Deadline>) -> bool {
        if !self.queue.lock(deadline) {
            return false;
        }
        let inside = self.enter_writing() || {
            self.count.fetch_or(WAITING, Relaxed); // Relaxed: a request; orders nothing.
            self.wait_to_write(deadline)
        };
        if !inside {
            self.clear(WAITING | PARKED);
        }
        self.queue.unlock();
        inside
    }

    fn wait_to_write(&self, deadline: Option<Deadline>) -> bool {
        loop {
            let Some(count) = self.wait_at_head(deadline, is_empty) else { return false };
            // D, pairs with E and F: the acquisition is here, not in the wait, since a reader may
            // pass through, or a recursive one enter, in between. Clears *waiting* and *parked*.
            if self.count.compare_exchange(count, WRITER, Acquire, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Waits until `done` holds of the count; `None` if the deadline comes first. Rule 1: the caller
    /// holds `queue`.
    fn wait_at_head(&self, deadline: Option<Deadline>, done: impl Fn(u32) -> bool) -> Option<u32> {
        // C, pairs with F and G: for a reader, seeing the writer gone is the acquisition.
        if let Some(count) = self.count.spin_for(SPINS, Acquire, &done) {
            return Some(count);
        }
        loop {
            let count = self.count.load(Acquire); // C, as above
            if done(count) {
                return Some(count);
            }
            if count & PARKED == 0 {
                // Relaxed: tells rule 6 to wake, orders nothing. If it fails, look again.
                let _ = self.count.compare_exchange_weak(count, count | PARKED, Relaxed, Relaxed);
            } else if !self.count.park_until(count, deadline) {
                return None;
            }
        }
    }

    fn clear(&self, bits: u32) {
        // Relaxed, both: only this thread, the head, sets these bits, and they order nothing.
        if self.count.load(Relaxed) & bits != 0 {
            self.count.fetch_and(!bits, Relaxed);
        }
    }
}

// SAFETY: WRITER is only ever put in by an exchange that found no reader and no writer, and taken
// out by its holder. A reader's count precedes its look: a success saw no WRITER with its own count
// in place, which no such exchange passes. E, F and G release what A to D acquire.
unsafe impl<P: Platform> RawRwLock for QrwLock<P> {
    const NAME: &'static str = "qrwlock";

    fn new() -> Self {
        QrwLock { count: P::U32::new(0), queue: WaitLock::new() }
    }

    #[inline]
    fn read(&self) {
        if !self.enter_reading() {
            self.read_slow(None);
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        // Relaxed: a hint that spares others a reader passing through.
        if keeps_readers_out(self.count.load(Relaxed)) {
            return false;
        }
        let inside = self.enter_reading();
        if !inside {
            self.leave_reading();
        }
        inside
    }

    #[inline]
    fn read_until(&self, deadline: Deadline) -> bool {
        self.enter_reading() || self.read_slow(Some(deadline))
    }

    #[inline]
    fn read_recursive(&self) {
        // A, pairs with F and G.
        if has_writer(self.count.fetch_add(READER, Acquire)) {
            // Rule 3, without being the head: the count is in, the writer cannot be followed by
            // another. A, pairs with F and G.
            self.count.spin_until(Acquire, |count| !has_writer(count));
        }
    }

    #[inline]
    fn try_read_recursive(&self) -> bool {
        // A, pairs with F and G.
        let inside = !has_writer(self.count.fetch_add(READER, Acquire));
        if !inside {
            self.leave_reading();
        }
        inside
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        self.leave_reading();
    }

    #[inline]
    fn write(&self) {
        if !self.enter_writing() {
            self.write_slow(None);
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        self.enter_writing()
    }

    #[inline]
    fn write_until(&self, deadline: Deadline) -> bool {
        self.enter_writing() || self.write_slow(Some(deadline))
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // F, pairs with A to D.
        if self.count.fetch_sub(WRITER, Release) & PARKED != 0 {
            self.wake_head();
        }
    }

    #[inline]
    unsafe fn downgrade(&self) {
        // G, pairs with A and C.
        let before = self.count.fetch_add(READER.wrapping_sub(WRITER), Release);
        if before & PARKED != 0 {
            self.wake_head(); // A reader may follow; a writer looks and sleeps again.
        }
    }

    fn is_write_locked(&self) -> bool {
        has_writer(self.count.load(Relaxed)) // Relaxed: true of some moment, orders nothing.
    }

    fn is_locked(&self) -> bool {
        let count = self.count.load(Relaxed); // Relaxed: true of some moment, orders nothing.
        has_writer(count) || count >= READER
    }
}
