//! Locks with their data, and guards that release.
//!
//! A panic while a guard is alive releases the lock; the data is then as the panic left it, and
//! nothing marks it (no poisoning).

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::mutex::ParkMutex;
use crate::platform::Deadline;
use crate::raw::{RawMutex, RawRwLock};
use crate::rwsem::RwSem;

/// Keeps a guard in the thread that acquired it, as algorithms may one day know their holder.
type NotSend = PhantomData<*const ()>;

/// Data that one thread at a time may use; `R` is the algorithm.
#[derive(Default)]
pub struct Mutex<T: ?Sized, R = ParkMutex> {
    raw: R,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands `&mut T` to one thread at a time, which is sending `T` back and forth.
unsafe impl<T: ?Sized + Send, R: RawMutex> Sync for Mutex<T, R> {}

impl<T, R> Mutex<T, R> {
    /// `data` behind the free lock `raw`, as in
    /// `static HITS: Mutex<u64, Ttas> = Mutex::with_raw(Ttas::new(), 0);`
    pub const fn with_raw(raw: R, data: T) -> Self {
        Mutex { raw, data: UnsafeCell::new(data) }
    }

    /// The data, without the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T> Mutex<T> {
    /// `data` behind a free lock of the default algorithm; others: [`with_raw`](Self::with_raw).
    pub const fn new(data: T) -> Self {
        Mutex::with_raw(ParkMutex::new(), data)
    }
}

impl<T: ?Sized, R: RawMutex> Mutex<T, R> {
    /// Waits for the lock and holds it until the guard is dropped.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, R> {
        self.raw.lock();
        MutexGuard { lock: self, not_send: PhantomData }
    }

    /// The guard, if that needs no waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, R>> {
        self.raw.try_lock().then_some(())?;
        Some(MutexGuard { lock: self, not_send: PhantomData })
    }

    /// The guard, if the lock can be had before the deadline.
    pub fn lock_until(&self, deadline: Deadline) -> Option<MutexGuard<'_, T, R>> {
        self.raw.lock_until(deadline).then_some(())?;
        Some(MutexGuard { lock: self, not_send: PhantomData })
    }

    /// The data, of a lock that nobody else can know of.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

/// Holds a [`Mutex`] until dropped.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized, R: RawMutex> {
    lock: &'a Mutex<T, R>,
    not_send: NotSend,
}

// SAFETY: a shared guard gives out `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, R: RawMutex> Sync for MutexGuard<'_, T, R> {}

impl<T: ?Sized, R: RawMutex> Drop for MutexGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is made by a successful acquisition and dropped once.
        unsafe { self.lock.raw.unlock() }
    }
}

/// Data that many may read or one may write; `R` is the algorithm.
///
/// A thread must not read while it holds a guard of the same lock already: with a writer waiting in
/// between that is a deadlock.
#[derive(Default)]
pub struct RwLock<T: ?Sized, R = RwSem> {
    raw: R,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands `&mut T` to one thread at a time (Send), or `&T` to several (Sync).
unsafe impl<T: ?Sized + Send + Sync, R: RawRwLock> Sync for RwLock<T, R> {}

impl<T, R> RwLock<T, R> {
    /// `data` behind the free lock `raw`, for statics.
    pub const fn with_raw(raw: R, data: T) -> Self {
        RwLock { raw, data: UnsafeCell::new(data) }
    }

    /// The data, without the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T> RwLock<T> {
    /// `data` behind a free lock of the default algorithm; others: [`with_raw`](Self::with_raw).
    pub const fn new(data: T) -> Self {
        RwLock::with_raw(RwSem::new(), data)
    }
}

impl<T: ?Sized, R: RawRwLock> RwLock<T, R> {
    /// Waits for shared mode and holds it until the guard is dropped.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, R> {
        self.raw.read();
        ReadGuard { lock: self, not_send: PhantomData }
    }

    /// A shared guard, if that needs no waiting.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T, R>> {
        self.raw.try_read().then_some(())?;
        Some(ReadGuard { lock: self, not_send: PhantomData })
    }

    /// A shared guard, if it can be had before the deadline.
    pub fn read_until(&self, deadline: Deadline) -> Option<ReadGuard<'_, T, R>> {
        self.raw.read_until(deadline).then_some(())?;
        Some(ReadGuard { lock: self, not_send: PhantomData })
    }

    /// Waits for exclusive mode and holds it until the guard is dropped.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T, R> {
        self.raw.write();
        WriteGuard { lock: self, not_send: PhantomData }
    }

    /// An exclusive guard, if that needs no waiting.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T, R>> {
        self.raw.try_write().then_some(())?;
        Some(WriteGuard { lock: self, not_send: PhantomData })
    }

    /// An exclusive guard, if it can be had before the deadline.
    pub fn write_until(&self, deadline: Deadline) -> Option<WriteGuard<'_, T, R>> {
        self.raw.write_until(deadline).then_some(())?;
        Some(WriteGuard { lock: self, not_send: PhantomData })
    }

    /// The data, of a lock that nobody else can know of.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

/// Holds a [`RwLock`] in shared mode until dropped.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct ReadGuard<'a, T: ?Sized, R: RawRwLock> {
    lock: &'a RwLock<T, R>,
    not_send: NotSend,
}

// SAFETY: a shared guard gives out `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, R: RawRwLock> Sync for ReadGuard<'_, T, R> {}

impl<T: ?Sized, R: RawRwLock> Drop for ReadGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is made by a successful acquisition and dropped once.
        unsafe { self.lock.raw.read_unlock() }
    }
}

/// Holds a [`RwLock`] in exclusive mode until dropped.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct WriteGuard<'a, T: ?Sized, R: RawRwLock> {
    lock: &'a RwLock<T, R>,
    not_send: NotSend,
}

// SAFETY: a shared guard gives out `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, R: RawRwLock> Sync for WriteGuard<'_, T, R> {}

impl<'a, T: ?Sized, R: RawRwLock> WriteGuard<'a, T, R> {
    /// Goes on in shared mode; no writer comes in between.
    #[inline]
    pub fn downgrade(self) -> ReadGuard<'a, T, R> {
        let lock = self.lock;
        core::mem::forget(self);
        // SAFETY: the guard held the lock exclusively, and the new one holds it shared.
        unsafe { lock.raw.downgrade() };
        ReadGuard { lock, not_send: PhantomData }
    }
}

impl<T: ?Sized, R: RawRwLock> Drop for WriteGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is made by a successful acquisition and dropped once.
        unsafe { self.lock.raw.write_unlock() }
    }
}

macro_rules! gives_access {
    ($guard:ident, $raw:ident) => {
        impl<T: ?Sized, R: $raw> Deref for $guard<'_, T, R> {
            type Target = T;
            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: while the guard lives the lock keeps writers out.
                unsafe { &*self.lock.data.get() }
            }
        }
        impl<T: ?Sized + fmt::Debug, R: $raw> fmt::Debug for $guard<'_, T, R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    ($guard:ident, $raw:ident, mut) => {
        gives_access!($guard, $raw);
        impl<T: ?Sized, R: $raw> DerefMut for $guard<'_, T, R> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: while the guard lives the lock keeps everybody else out.
                unsafe { &mut *self.lock.data.get() }
            }
        }
    };
}

gives_access!(MutexGuard, RawMutex, mut);
gives_access!(ReadGuard, RawRwLock);
gives_access!(WriteGuard, RawRwLock, mut);
