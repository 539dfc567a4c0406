//! What every lock can do, without the data it protects.

use crate::platform::Deadline;

/// A lock that one thread at a time holds.
///
/// # Safety
/// Between a successful `lock`, `try_lock` or `lock_until` and the matching `unlock` no other such
/// call succeeds, and everything before `unlock` happens before the next success.
pub unsafe trait RawMutex: Send + Sync {
    /// The algorithm's name in plans and tables.
    const NAME: &'static str;

    /// A free lock.
    fn new() -> Self
    where
        Self: Sized;
    /// Acquires the lock, waiting as long as it takes.
    fn lock(&self);
    /// Acquires the lock if that needs no waiting; says whether it did.
    fn try_lock(&self) -> bool;
    /// Acquires the lock, waiting until the deadline at most; says whether it did. A lock that
    /// needs no waiting is acquired even if the deadline has passed.
    fn lock_until(&self, deadline: Deadline) -> bool;
    /// Releases the lock.
    ///
    /// # Safety
    /// The lock is held, and the holder gives it up by this call.
    unsafe fn unlock(&self);
    /// Whether some thread held the lock at some moment during the call.
    fn is_locked(&self) -> bool;
}

/// A lock that one writer or any number of readers hold.
///
/// Shared and exclusive waiting may both be fair: a thread that reads and reads again can deadlock
/// with a writer that came in between, unless the second time it uses
/// [`read_recursive`](Self::read_recursive).
///
/// # Safety
/// Between a successful `write`, `try_write` or `write_until` and the matching `write_unlock` or
/// `downgrade` no other acquisition succeeds, and everything before the release happens before the
/// next success. Between a successful acquisition of shared mode, `downgrade` included, and the
/// matching `read_unlock` no writer succeeds, and everything before the release happens before the
/// next writer's success.
pub unsafe trait RawRwLock: Send + Sync {
    /// The algorithm's name in plans and tables.
    const NAME: &'static str;

    /// A free lock.
    fn new() -> Self
    where
        Self: Sized;

    /// Acquires shared, waiting as long as it takes.
    fn read(&self);
    /// Acquires shared if that needs no waiting; says whether it did.
    fn try_read(&self) -> bool;
    /// Acquires shared, waiting until the deadline at most; says whether it did.
    fn read_until(&self, deadline: Deadline) -> bool;
    /// Acquires shared, past waiting writers: only a writer inside is waited for.
    ///
    /// For a thread that already holds the lock shared, which thus never waits here. Used by others
    /// it starves writers; they wait without sleeping.
    fn read_recursive(&self);
    /// Acquires shared, past waiting writers, if no writer is inside; says whether it did.
    fn try_read_recursive(&self) -> bool;
    /// Releases shared mode.
    ///
    /// # Safety
    /// The lock is held shared, and the holder gives that up by this call.
    unsafe fn read_unlock(&self);

    /// Acquires exclusively, waiting as long as it takes.
    fn write(&self);
    /// Acquires exclusively if that needs no waiting; says whether it did. May fail while another
    /// thread is inside a call to acquire, even if that call fails too.
    fn try_write(&self) -> bool;
    /// Acquires exclusively, waiting until the deadline at most; says whether it did.
    fn write_until(&self, deadline: Deadline) -> bool;
    /// Releases exclusive mode.
    ///
    /// # Safety
    /// The lock is held exclusively, and the holder gives that up by this call.
    unsafe fn write_unlock(&self);
    /// Turns exclusive mode into shared mode; no writer comes in between.
    ///
    /// # Safety
    /// The lock is held exclusively, and the holder holds it shared after this call.
    unsafe fn downgrade(&self);

    /// Whether a writer held the lock at some moment during the call. To the thread that holds the
    /// lock this says in which mode.
    fn is_write_locked(&self) -> bool;
    /// Whether some thread held the lock, or was in a call to acquire it shared, at some moment
    /// during the call.
    fn is_locked(&self) -> bool;
}

/// A reader-writer lock that is only ever taken exclusively: the first step of a conversion, and
/// what a mutex becomes when none of its sites is to share.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Exclusive<L>(pub L);

// SAFETY: RawRwLock's promise about writers is RawMutex's.
unsafe impl<L: RawRwLock> RawMutex for Exclusive<L> {
    const NAME: &'static str = L::NAME;

    fn new() -> Self {
        Exclusive(L::new())
    }
    #[inline]
    fn lock(&self) {
        self.0.write();
    }
    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_write()
    }
    #[inline]
    fn lock_until(&self, deadline: Deadline) -> bool {
        self.0.write_until(deadline)
    }
    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: `lock` is `write`, so the caller holds it exclusively.
        unsafe { self.0.write_unlock() }
    }
    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_write_locked()
    }
}

/// A lock that is free when all its bytes are zero and holds nothing that a destructor would have
/// to give back.
///
/// Memory that was cleared *is* such a lock, and clearing a free lock's memory, or using it for
/// something else, is the end of it.
///
/// # Safety
/// All-zero bytes are a valid value that behaves as `new()`, and the type has no drop glue.
pub unsafe trait ZeroIsFree: Sized {
    /// The lock at `memory`.
    ///
    /// # Safety
    /// `memory` is aligned for `Self`; for `'a` it is readable, writable, accessed only through
    /// references made here; and its bytes were zero when the first such reference was made.
    #[inline(always)]
    unsafe fn at<'a>(memory: *const u8) -> &'a Self {
        // SAFETY: aligned, live and unaliased by the caller's promise; a valid value by ours.
        unsafe { &*memory.cast::<Self>() }
    }
}

// SAFETY: transparent over `L`.
unsafe impl<L: ZeroIsFree> ZeroIsFree for Exclusive<L> {}
