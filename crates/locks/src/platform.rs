//! What an algorithm may ask of the machine it runs on.
//!
//! Every lock of this crate is written once, generic over [`Platform`]. [`Native`] is the machine;
//! `Loom` (feature `loom`) is a model checker that tries every schedule and every value a load may
//! return; `Sim` (feature `sim`) runs threads one at a time in virtual time, in an order drawn from a
//! seed.
//!
//! Waiting is part of the platform, never a loop of loads in a lock: only so can the model checker
//! see a spinning thread as one that waits, and the simulator jump to the write that ends the wait.

use core::sync::atomic::Ordering;

#[cfg(feature = "loom")]
mod loom;
mod native;
#[cfg(feature = "sim")]
pub mod sim;
mod syscall;

#[cfg(feature = "loom")]
pub use self::loom::{Loom, LoomU32, LoomU64, Patience};
pub use self::native::Native;
#[cfg(feature = "sim")]
pub use self::sim::Sim;

/// The clock a [`Deadline`] is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time since some point in the past; never set (`CLOCK_MONOTONIC`).
    Monotonic,
    /// Wall clock since 1970, which may be set (`CLOCK_REALTIME`); what POSIX timed locks use.
    Realtime,
}

/// An absolute point in time at which waiting ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The clock to read.
    pub clock: Clock,
    /// Nanoseconds on that clock.
    pub ns: u64,
}

impl Deadline {
    /// The deadline a POSIX `timespec` means, or `None` where POSIX asks for `EINVAL`
    /// (`nanoseconds` outside 0..1 000 000 000). Times before the clock's origin are long past and
    /// become 0; times past what 64 bits hold become the last representable one.
    pub fn from_timespec(clock: Clock, seconds: i64, nanoseconds: i64) -> Option<Self> {
        if !(0..1_000_000_000).contains(&nanoseconds) {
            return None;
        }
        let ns = match u64::try_from(seconds) {
            Ok(seconds) => seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds as u64),
            Err(_) => 0,
        };
        Some(Deadline { clock, ns })
    }

    /// `ns` nanoseconds from now on the monotonic clock of platform `P`.
    pub fn after<P: Platform>(ns: u64) -> Self {
        let clock = Clock::Monotonic;
        Deadline { clock, ns: P::now(clock).saturating_add(ns) }
    }

    /// Whether the clock of platform `P` has reached this point.
    pub fn passed<P: Platform>(self) -> bool {
        P::now(self.clock) >= self.ns
    }
}

/// An atomic integer that threads can also wait on.
///
/// The atomic operations are those of [`core::sync::atomic`]; each takes its own ordering.
pub trait Word: Send + Sync {
    /// The integer inside.
    type Value: Copy + Eq;

    /// A word holding `value`.
    fn new(value: Self::Value) -> Self;
    /// Reads the value.
    fn load(&self, order: Ordering) -> Self::Value;
    /// Writes `value`.
    fn store(&self, value: Self::Value, order: Ordering);
    /// Writes `value` and returns what was there.
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Writes `new` if `current` is there; returns what was there, as `Err` if it was not written.
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    /// As [`compare_exchange`](Self::compare_exchange), but may fail for no reason.
    fn compare_exchange_weak(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    /// Adds, wrapping, and returns what was there.
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Subtracts, wrapping, and returns what was there.
    fn fetch_sub(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Ands bits in and returns what was there.
    fn fetch_and(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Ors bits in and returns what was there.
    fn fetch_or(&self, value: Self::Value, order: Ordering) -> Self::Value;

    /// Waits until `done` holds of the value, without sleeping on the word: nobody needs to wake
    /// this thread. Returns the value that satisfied `done`, loaded with `order`.
    ///
    /// With more threads than CPUs the thread waited for may not be running, so a platform gives up
    /// its CPU after a bounded number of looks, and in the end sleeps between them.
    fn spin_until(&self, order: Ordering, done: impl Fn(Self::Value) -> bool) -> Self::Value;

    /// As [`spin_until`](Self::spin_until), but gives `None` once `deadline` has passed.
    fn spin_until_deadline(
        &self,
        order: Ordering,
        deadline: Deadline,
        done: impl Fn(Self::Value) -> bool,
    ) -> Option<Self::Value>;

    /// Looks up to `rounds` times, without giving up the CPU; `None` if `done` never held. `done`
    /// may be an attempt to change the word that succeeds.
    fn spin_for(
        &self,
        rounds: u32,
        order: Ordering,
        done: impl Fn(Self::Value) -> bool,
    ) -> Option<Self::Value>;

    /// Sleeps while the word holds `seen`, until woken or until the deadline.
    ///
    /// Returns false only if the deadline has passed *and* no [`wake`](Self::wake) was spent on
    /// this thread. True means anything else: woken, another value, or no reason at all; the caller
    /// looks again. Only the low 32 bits are compared (see [`wake`](Self::wake)), so a value that
    /// changed in its high half alone does not keep a thread awake.
    ///
    /// The comparison and falling asleep are one step as seen from `wake`: whoever changes the
    /// low half and wakes afterwards either finds the sleeper or the sleeper finds the change. This
    /// gives no other ordering: what the waker wrote before must be acquired from a word.
    fn park_until(&self, seen: Self::Value, deadline: Option<Deadline>) -> bool;

    /// Wakes up to `count` threads asleep on this word.
    ///
    /// Uses the word's address alone, so it may follow the store that lets another thread free the
    /// lock; at worst it wakes a stranger, who looks again.
    fn wake(&self, count: u32);
}

/// A kind of machine to run locks on.
pub trait Platform: Copy + Default + Send + Sync + 'static {
    /// An atomic `u32`.
    type U32: Word<Value = u32>;
    /// An atomic `u64`.
    type U64: Word<Value = u64>;

    /// An atomic fence ([`core::sync::atomic::fence`]).
    fn fence(order: Ordering);
    /// Nanoseconds on `clock`.
    fn now(clock: Clock) -> u64;
    /// A number other than 0 that no two living threads of the process share.
    fn thread() -> usize;
    /// The CPU this thread runs on, as of some moment during the call.
    fn cpu() -> u32;
}
