//! The model checker: every schedule, and every value that weak memory may show a load.
//!
//! What differs from the machine, and why:
//!
//! - A deadline is a choice, not a time. A timed wait ends as "timed out" unless it was already
//!   satisfied or woken; since any number of other threads' steps may come before it looks, every
//!   possible moment of running out is explored.
//! - [`Platform::now`] stands still or leaps, as [`Patience`] says, since real time would make
//!   executions differ from each other.
//! - Sleepers are kept in a queue behind a model mutex, as the kernel keeps them behind a bucket
//!   lock. Waking therefore orders memory here, which [`Word::wake`] does not promise; the locks
//!   must not rely on it, and a spinning or uncontended path that did would be found, a sleeping
//!   one not.
//! - Spinning a bounded number of rounds is looking once; more rounds show nothing new.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as StdAtomicU64, Ordering as StdOrdering};
use std::vec::Vec;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};

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

/// The threads asleep on one word, in order of arrival.
#[derive(Debug, Default)]
struct Sleepers {
    tickets: Vec<u32>,
    next: u32,
}

impl Sleepers {
    fn arrive(&mut self) -> u32 {
        let ticket = self.next;
        self.next += 1;
        self.tickets.push(ticket);
        ticket
    }
    fn contains(&self, ticket: u32) -> bool {
        self.tickets.contains(&ticket)
    }
    fn leave(&mut self, ticket: u32) {
        self.tickets.retain(|other| *other != ticket);
    }
}

macro_rules! loom_word {
    ($name:ident, $atomic:ident, $value:ident) => {
        /// An atomic integer of the model, with its sleepers.
        #[derive(Debug)]
        pub struct $name {
            value: $atomic,
            sleepers: Mutex<Sleepers>,
            woken: Condvar,
        }

        impl Word for $name {
            type Value = $value;

            fn new(value: $value) -> Self {
                $name {
                    value: $atomic::new(value),
                    sleepers: Mutex::new(Sleepers::default()),
                    woken: Condvar::new(),
                }
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
                let mut sleepers = self.sleepers.lock().unwrap();
                // Relaxed: whoever changed the word and then took the mutex to wake is seen through
                // the mutex; whoever takes it later finds the ticket.
                if self.value.load(Ordering::Relaxed) as u32 != seen as u32 {
                    return true;
                }
                let ticket = sleepers.arrive();
                if deadline.is_some() {
                    drop(sleepers);
                    let mut sleepers = self.sleepers.lock().unwrap();
                    let woken = !sleepers.contains(ticket);
                    sleepers.leave(ticket);
                    return woken;
                }
                while sleepers.contains(ticket) {
                    sleepers = self.woken.wait(sleepers).unwrap();
                }
                true
            }
            fn wake(&self, count: u32) {
                let mut sleepers = self.sleepers.lock().unwrap();
                let woken = sleepers.tickets.len().min(count as usize);
                if woken > 0 {
                    sleepers.tickets.drain(..woken);
                    self.woken.notify_all();
                }
            }
        }
    };
}

loom_word!(LoomU32, AtomicU32, u32);
loom_word!(LoomU64, AtomicU64, u64);
