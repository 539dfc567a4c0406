//! Random schedules in virtual time.
//!
//! Threads are coroutines on one operating-system thread. Before every atomic operation the
//! scheduler may switch to another thread, drawn from the seed: the same seed gives the same run,
//! instruction for instruction. It costs nanoseconds per step, so thousands of long runs with many
//! threads take a second, where the model checker is confined to a few operations of two or three.
//!
//! Adversarial where the machine is merely unpleasant: a sleeper may wake for no reason, wake-ups
//! pick any sleeper, and a thread may be stalled for milliseconds between any two steps. Memory is
//! sequentially consistent and operations cost nothing in particular: weak orderings are the model
//! checker's subject, costs those of a full simulator.

mod world;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Clock, Deadline, Platform, Word};
use world::{Blocked, World};

pub use world::{Run, run};

/// The machine of random schedules. Outside of [`run`] its words are plain atomics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl Sim {
    /// Lets the calling simulated thread sleep for `ns` of virtual time; nothing outside of [`run`].
    pub fn sleep(ns: u64) {
        World::with(|world| {
            let until = world.time() + ns;
            world.block(Blocked::Asleep { until });
        });
    }
}

impl Platform for Sim {
    type U32 = SimU32;
    type U64 = SimU64;

    fn fence(_: Ordering) {
        World::with(World::step);
    }
    /// Virtual time, the same on both clocks; 0 outside of [`run`].
    fn now(_: Clock) -> u64 {
        World::with(|world| world.time()).unwrap_or(0)
    }
    /// 1, 2, ... in the order given to [`run`]; `usize::MAX` outside.
    fn thread() -> usize {
        World::with(|world| world.thread() + 1).unwrap_or(usize::MAX)
    }
    /// Every thread has its own CPU.
    fn cpu() -> u32 {
        World::with(|world| world.thread() as u32).unwrap_or(0)
    }
}

macro_rules! sim_word {
    ($name:ident, $atomic:ident, $value:ident) => {
        /// An atomic integer before each of whose operations another simulated thread may run.
        #[derive(Debug, Default)]
        pub struct $name($atomic);

        impl $name {
            fn address(&self) -> usize {
                core::ptr::from_ref(self) as usize
            }
            fn written<T>(&self, result: T) -> T {
                World::with(|world| world.written(self.address()));
                result
            }
            fn spin(
                &self,
                deadline: Option<Deadline>,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                loop {
                    let value = self.load(Ordering::SeqCst);
                    if done(value) {
                        return Some(value);
                    }
                    if deadline.is_some_and(Deadline::passed::<Sim>) {
                        return None;
                    }
                    let until = deadline.map(|deadline| deadline.ns);
                    World::with(|world| {
                        world.block(Blocked::Spinning { address: self.address(), until });
                    })
                    .expect("would wait for ever: no simulated thread can end this wait");
                }
            }
        }

        // SeqCst throughout, whatever was asked for: one thread runs at a time.
        impl Word for $name {
            type Value = $value;

            fn new(value: $value) -> Self {
                $name($atomic::new(value))
            }
            fn load(&self, _: Ordering) -> $value {
                World::with(World::step);
                self.0.load(Ordering::SeqCst)
            }
            fn store(&self, value: $value, _: Ordering) {
                World::with(World::step);
                self.written(self.0.store(value, Ordering::SeqCst))
            }
            fn swap(&self, value: $value, _: Ordering) -> $value {
                World::with(World::step);
                self.written(self.0.swap(value, Ordering::SeqCst))
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                World::with(World::step);
                let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                let result = self.0.compare_exchange(current, new, success, failure);
                if result.is_ok() { self.written(result) } else { result }
            }
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if World::with(|world| world.one_in(8)) == Some(true) {
                    return Err(self.load(failure));
                }
                self.compare_exchange(current, new, success, failure)
            }
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                World::with(World::step);
                self.written(self.0.fetch_add(value, Ordering::SeqCst))
            }
            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                World::with(World::step);
                self.written(self.0.fetch_sub(value, Ordering::SeqCst))
            }
            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                World::with(World::step);
                self.written(self.0.fetch_and(value, Ordering::SeqCst))
            }
            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                World::with(World::step);
                self.written(self.0.fetch_or(value, Ordering::SeqCst))
            }

            fn spin_until(&self, _: Ordering, done: impl Fn($value) -> bool) -> $value {
                self.spin(None, done).expect("no deadline")
            }
            fn spin_until_deadline(
                &self,
                _: Ordering,
                deadline: Deadline,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                self.spin(Some(deadline), done)
            }
            fn spin_for(
                &self,
                rounds: u32,
                order: Ordering,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                // A few looks, so that giving up is as likely as waiting long enough.
                let looks = World::with(|world| world.below(4) as u32 + 1).unwrap_or(1);
                for _ in 0..looks.min(rounds) {
                    let value = self.load(order);
                    if done(value) {
                        return Some(value);
                    }
                }
                None
            }

            fn park_until(&self, seen: $value, deadline: Option<Deadline>) -> bool {
                // The load's step is the last chance of another thread: comparing and falling
                // asleep are one step.
                if self.load(Ordering::SeqCst) as u32 != seen as u32 {
                    return true;
                }
                let (address, until) = (self.address(), deadline.map(|deadline| deadline.ns));
                World::with(|world| world.one_in(16) || world.park(address, until))
                    .expect("would sleep for ever: no simulated thread can wake this one")
            }
            fn wake(&self, count: u32) {
                World::with(World::step);
                World::with(|world| world.wake(self.address(), count));
            }
        }
    };
}

sim_word!(SimU32, AtomicU32, u32);
sim_word!(SimU64, AtomicU64, u64);
