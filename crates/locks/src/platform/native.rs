//! The machine: hardware atomics, PAUSE, futexes.

use core::cell::Cell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::syscall::{futex_wait, futex_wake, nap, sched_yield};
use super::{Clock, Deadline, Platform, Word};

/// The machine this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

impl Platform for Native {
    type U32 = AtomicU32;
    type U64 = AtomicU64;

    #[inline(always)]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }

    #[inline]
    fn now(clock: Clock) -> u64 {
        let id = match clock {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Realtime => libc::CLOCK_REALTIME,
        };
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours to write. Both clocks always exist, so errno stays untouched.
        unsafe { libc::clock_gettime(id, &mut time) };
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
    }

    #[inline]
    fn thread() -> usize {
        // The address of a thread's own variable: a kernel thread id, once remembered, would be
        // wrong in a forked child.
        std::thread_local! { static HERE: Cell<u8> = const { Cell::new(0) } }
        HERE.with(|here| core::ptr::from_ref(here) as usize)
    }

    #[inline]
    fn cpu() -> u32 {
        // SAFETY: takes no arguments. It can only fail where the kernel lacks it, and the
        // supported architectures all have it.
        unsafe { libc::sched_getcpu() as u32 }
    }
}

/// PAUSEs before a spinning thread first offers its CPU: 2^0 + 2^1 + ... + 2^6 + 8 * 2^6.
const PAUSE_STEPS: u32 = 15;
/// The longest run of PAUSEs between two looks, as a power of two.
const MAX_PAUSES: u32 = 6;
/// Yields before it naps: enough for every other runnable thread of a loaded CPU to have a turn.
const YIELD_STEPS: u32 = 64;
/// First and longest nap.
const NAP_NS: u64 = 50_000;
const MAX_NAP_NS: u64 = 1_000_000;

/// How long to wait between two looks at a word, growing from PAUSE over yielding to naps.
struct Backoff {
    step: u32,
}

impl Backoff {
    fn wait(&mut self, deadline: Option<Deadline>) {
        let step = self.step;
        self.step = step.saturating_add(1);
        if step < PAUSE_STEPS {
            for _ in 0..1u32 << step.min(MAX_PAUSES) {
                spin_loop();
            }
        } else if step < PAUSE_STEPS + YIELD_STEPS {
            sched_yield();
        } else {
            let doublings = (step - PAUSE_STEPS - YIELD_STEPS).min(8);
            let mut ns = (NAP_NS << doublings).min(MAX_NAP_NS);
            if let Some(deadline) = deadline {
                ns = ns.min(deadline.ns.saturating_sub(Native::now(deadline.clock)));
            }
            nap(ns);
        }
    }
}

/// Looks, with growing pauses, until `look` gives something or the deadline passes.
fn look_until<T>(deadline: Option<Deadline>, look: impl Fn() -> Option<T>) -> Option<T> {
    let mut backoff = Backoff { step: 0 };
    loop {
        // The clock is read before looking: a wait that ends exactly on time still succeeds.
        let late = deadline.is_some_and(Deadline::passed::<Native>);
        if let Some(value) = look() {
            return Some(value);
        }
        if late {
            return None;
        }
        backoff.wait(deadline);
    }
}

macro_rules! native_word {
    ($atomic:ident, $value:ident) => {
        impl Word for $atomic {
            type Value = $value;

            #[inline(always)]
            fn new(value: $value) -> Self {
                $atomic::new(value)
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                $atomic::load(self, order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                $atomic::store(self, value, order)
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                $atomic::swap(self, value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                $atomic::compare_exchange(self, current, new, success, failure)
            }
            #[inline(always)]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                $atomic::compare_exchange_weak(self, current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                $atomic::fetch_add(self, value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                $atomic::fetch_sub(self, value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                $atomic::fetch_and(self, value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                $atomic::fetch_or(self, value, order)
            }

            fn spin_until(&self, order: Ordering, done: impl Fn($value) -> bool) -> $value {
                let look = || Some(self.load(order)).filter(|value| done(*value));
                loop {
                    // Without a deadline this ends on the first round.
                    if let Some(value) = look_until(None, look) {
                        return value;
                    }
                }
            }
            fn spin_until_deadline(
                &self,
                order: Ordering,
                deadline: Deadline,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                look_until(Some(deadline), || Some(self.load(order)).filter(|value| done(*value)))
            }
            #[inline]
            fn spin_for(
                &self,
                rounds: u32,
                order: Ordering,
                done: impl Fn($value) -> bool,
            ) -> Option<$value> {
                for _ in 0..rounds {
                    let value = self.load(order);
                    if done(value) {
                        return Some(value);
                    }
                    spin_loop();
                }
                None
            }

            fn park_until(&self, seen: $value, deadline: Option<Deadline>) -> bool {
                // Little-endian: the low half of a wider word is at its address.
                futex_wait(core::ptr::from_ref(self).cast(), seen as u32, deadline)
            }
            fn wake(&self, count: u32) {
                futex_wake(core::ptr::from_ref(self).cast(), count);
            }
        }
    };
}

native_word!(AtomicU32, u32);
native_word!(AtomicU64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn errno() -> i32 {
        std::io::Error::last_os_error().raw_os_error().unwrap()
    }

    #[test]
    fn park_ends_on_either_clock_and_leaves_errno_alone() {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = 77 };
        let word = AtomicU32::new(5);
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let start = Native::now(clock);
            let deadline = Deadline { clock, ns: start + 3_000_000 };
            // A signal or a stray wake may end the sleep early; only the deadline gives false.
            while Word::park_until(&word, 5, Some(deadline)) {}
            assert!(Native::now(clock) >= deadline.ns, "slept on {clock:?} past its deadline");
            assert!(Word::park_until(&word, 6, Some(deadline)), "another value: look again");
        }
        Word::wake(&word, 1);
        assert_eq!(errno(), 77);
    }

    #[test]
    fn a_wide_word_parks_on_its_low_half() {
        let word = AtomicU64::new(7 << 32 | 5);
        let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
        assert!(!Word::park_until(&word, 5, past), "the high half is not compared");
        assert!(Word::park_until(&word, 7 << 32 | 6, past));
    }

    #[test]
    fn spinning_gives_up_at_the_deadline() {
        let word = AtomicU32::new(0);
        let deadline = Deadline::after::<Native>(2_000_000);
        assert_eq!(word.spin_until_deadline(Ordering::Relaxed, deadline, |v| v == 1), None);
        assert!(deadline.passed::<Native>());
        assert_eq!(word.spin_until_deadline(Ordering::Relaxed, deadline, |v| v == 0), Some(0));
    }

    #[test]
    fn threads_are_told_apart() {
        let here = Native::thread();
        assert_eq!(here, Native::thread());
        assert_ne!(here, std::thread::spawn(Native::thread).join().unwrap());
        assert!(Native::cpu() < 1 << 16);
    }

    #[test]
    fn timespecs_become_deadlines() {
        let from = |s, n| Deadline::from_timespec(Clock::Realtime, s, n).map(|d| d.ns);
        assert_eq!(from(2, 5), Some(2_000_000_005));
        assert_eq!(from(-1, 5), Some(0));
        assert_eq!(from(i64::MAX, 0), Some(u64::MAX));
        assert_eq!(from(1, -1), None);
        assert_eq!(from(1, 1_000_000_000), None);
    }
}
