//! The model checker: every schedule, and every value that weak memory may show a load.
//!
//! What differs from the machine, and why:
//!
//! - A deadline is a choice, not a time. A timed wait ends as "timed out" unless it was already
//!   satisfied or woken; since any number of other threads' steps may come before it looks, every
//!   possible moment of running out is explored.
//! - [`Platform::now`] stands still or leaps, as [`Patience`] says, since real time would make
//!   executions differ from each other.
//! - Waking orders memory from the waker to the one woken, which [`Word::wake`] does not promise: a
//!   lock that relied on it would be found only where a thread did not have to sleep.
//! - Spinning a bounded number of rounds is looking once; more rounds show nothing new.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64 as StdAtomicU64, Ordering as StdOrdering};
use std::vec::Vec;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Clock, Deadline, Platform, Word};

/// The model checker's machine. Its words may only be made inside `loom::model`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loom;

/// How long threads feel they wait while a model runs: what a lock does when it has waited too long
/// is explored apart from what it does before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// No time passes between two readings of the clock.
    Endless,
    /// A second passes between any two readings of the clock.
    None,
}

std::thread_local! {
    // A model's threads all run on the operating system's thread that called `loom::model`.
    static IMPATIENT: Cell<bool> = const { Cell::new(false) };
}

impl Loom {
    /// Sets how time passes in the models this thread checks from now on.
    pub fn set_patience(patience: Patience) {
        IMPATIENT.set(patience == Patience::None);
    }
}

impl Platform for Loom {
    type U32 = LoomU32;
    type U64 = LoomU64;

    fn fence(order: Ordering) {
        loom::sync::atomic::fence(order);
    }

    fn now(_: Clock) -> u64 {
        // Relaxed: a source of growing numbers; nothing is read through it.
        static SECONDS: StdAtomicU64 = StdAtomicU64::new(0);
        if IMPATIENT.get() { SECONDS.fetch_add(1, StdOrdering::Relaxed) * 1_000_000_000 } else { 0 }
    }

    fn thread() -> usize {
        loom::thread_local! { static HERE: std::boxed::Box<u8> = std::boxed::Box::new(0) }
        HERE.with(|here| core::ptr::from_ref(&**here) as usize)
    }

    fn cpu() -> u32 {
        0
    }
}

/// A thread asleep on a word.
#[derive(Debug)]
struct Sleeper {
    ticket: u32,
    /// Whom to unpark; nobody if the thread has a deadline, since then it never blocks.
    thread: Option<loom::thread::Thread>,
}

/// The threads asleep on one word, in order of arrival.
///
/// This is bookkeeping outside of the model: the checker sees no access to it. That is sound since
/// every access directly follows a read-modify-write of the word itself, with no step of another
/// thread in between: the checker orders those, and explores every order.
#[derive(Debug, Default)]
struct Sleepers {
    queue: Vec<Sleeper>,
    next: u32,
}

impl Sleepers {
    fn arrive(&mut self, thread: Option<loom::thread::Thread>) -> u32 {
        let ticket = self.next;
        self.next += 1;
        self.queue.push(Sleeper { ticket, thread });
        ticket
    }
    fn contains(&self, ticket: u32) -> bool {
        self.queue.iter().any(|sleeper| sleeper.ticket == ticket)
    }
    fn leave(&mut self, ticket: u32) {
        self.queue.retain(|sleeper| sleeper.ticket != ticket);
    }
    fn wake(&mut self, count: u32) {
        let woken = self.queue.len().min(count as usize);
        for sleeper in self.queue.drain(..woken) {
            if let Some(thread) = sleeper.thread {
                thread.unpark();
            }
        }
    }
}

macro_rules! loom_word {
    ($name:ident, $atomic:ident, $value:ident) => {
        /// An atomic integer of the model, with its sleepers.
        #[derive(Debug)]
        pub struct $name {
            value: $atomic,
            sleepers: Mutex<Sleepers>,
        }

        impl Word for $name {
            type Value = $value;

            fn new(value: $value) -> Self {
                $name { value: $atomic::new(value), sleepers: Mutex::new(Sleepers::default()) }
            }
            fn load(&self, order: Ordering) -> $value {
                self.value.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                self.value.store(value, order)
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.value.swap(value, order)
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.value.compare_exchange(current, new, success, failure)
            }
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.value.compare_exchange_weak(current, new, success, failure)
            }
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.value.fetch_add(value, order)
            }
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.value.fetch_sub(value, order)
            }
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.value.fetch_and(value, order)
            }
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.value.fetch_or(value, order)
            }

            fn spin_until(&self, order: Ordering, done: impl Fn($value) -> bool) -> $value {
                loop {
                    let value = self.load(order);
                    if done(value) {
                        return value;
                    }
                    // Tells the checker that looking again is pointless before another thread ran.
                    loom::thread::yield_now();
                }
            }
            fn spin_until_deadline(
                &self,
                order: Ordering,
                _: Deadline,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                Some(self.load(order)).filter(|value| done(*value))
            }
            fn spin_for(
                &self,
                _: u32,
                order: Ordering,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                Some(self.load(order)).filter(|value| done(*value))
            }

            fn park_until(&self, seen: $value, deadline: Option<Deadline>) -> bool {
                if self.latest() as u32 != seen as u32 {
                    return true;
                }
                if deadline.is_some() {
                    let ticket = self.sleepers.lock().unwrap().arrive(None);
                    self.latest();
                    let mut sleepers = self.sleepers.lock().unwrap();
                    let woken = !sleepers.contains(ticket);
                    sleepers.leave(ticket);
                    return woken;
                }
                let this = loom::thread::current();
                let ticket = self.sleepers.lock().unwrap().arrive(Some(this));
                while self.sleepers.lock().unwrap().contains(ticket) {
                    loom::thread::park();
                }
                true
            }
            fn wake(&self, count: u32) {
                self.latest();
                self.sleepers.lock().unwrap().wake(count);
            }
        }

        impl $name {
            /// The value at this moment, by a read-modify-write that never writes anything new and
            /// orders nothing.
            fn latest(&self) -> $value {
                let (same, relaxed) = ($value::MAX, Ordering::Relaxed);
                match self.value.compare_exchange(same, same, relaxed, relaxed) {
                    Ok(value) | Err(value) => value,
                }
            }
        }
    };
}

loom_word!(LoomU32, AtomicU32, u32);
loom_word!(LoomU64, AtomicU64, u64);
