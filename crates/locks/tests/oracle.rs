//! Every lock beside a twin that is too simple to be wrong.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use common::twin::Twin;
use common::{Data, OneMode, Op, PAST, Random, Subject, TwoModes};
use relatch::platform::{Clock, Deadline, Native};
use relatch::{Exclusive, ParkMutex, QrwLock, RawMutex, RawRwLock, RwSem, Ttas, ZeroIsFree};

/// One thread does anything that needs no waiting; both must agree at every step.
fn one_thread_two_modes<L: RawRwLock>() {
    for seed in 0..200 {
        let (lock, twin, mut random) = (L::new(), <Twin as RawRwLock>::new(), Random(seed));
        let (mut readers, mut writing) = (0, false);
        for step in 0..200 {
            let choice = random.below(9);
            let soon = Deadline::after::<Native>(1_000);
            let (ours, theirs, reads) = match choice {
                0 => (lock.try_read(), twin.try_read(), true),
                1 => (lock.try_read_recursive(), twin.try_read_recursive(), true),
                2 => (lock.read_until(PAST), twin.read_until(PAST), true),
                3 => (lock.read_until(soon), twin.read_until(soon), true),
                4 => (lock.try_write(), twin.try_write(), false),
                5 => (lock.write_until(PAST), twin.write_until(PAST), false),
                6 => (lock.write_until(soon), twin.write_until(soon), false),
                _ => {
                    // SAFETY: held in the mode that is given up.
                    unsafe {
                        if writing && choice == 7 {
                            lock.downgrade();
                            twin.downgrade();
                            (writing, readers) = (false, 1);
                        } else if writing {
                            lock.write_unlock();
                            RawRwLock::write_unlock(&twin);
                            writing = false;
                        } else if readers > 0 {
                            lock.read_unlock();
                            twin.read_unlock();
                            readers -= 1;
                        }
                    }
                    (false, false, false)
                }
            };
            assert_eq!(ours, theirs, "{} seed {seed} step {step} choice {choice}", L::NAME);
            readers += u32::from(ours && reads);
            writing |= ours && !reads;
            assert_eq!(lock.is_locked(), RawRwLock::is_locked(&twin), "{}", L::NAME);
            assert_eq!(lock.is_write_locked(), twin.is_write_locked(), "{}", L::NAME);
        }
    }
}

fn one_thread_one_mode<L: RawMutex>() {
    for seed in 0..200 {
        let (lock, twin, mut random) = (L::new(), <Twin as RawMutex>::new(), Random(seed));
        let mut held = false;
        for step in 0..200 {
            let choice = random.below(4);
            let soon = Deadline::after::<Native>(1_000);
            let (ours, theirs) = match choice {
                0 => (lock.try_lock(), twin.try_lock()),
                1 => (lock.lock_until(PAST), twin.lock_until(PAST)),
                2 => (lock.lock_until(soon), twin.lock_until(soon)),
                _ => {
                    if held {
                        // SAFETY: held.
                        unsafe {
                            lock.unlock();
                            twin.unlock();
                        }
                        held = false;
                    }
                    (false, false)
                }
            };
            assert_eq!(ours, theirs, "{} seed {seed} step {step} choice {choice}", L::NAME);
            held |= ours;
            assert_eq!(lock.is_locked(), held, "{}", L::NAME);
        }
    }
}

/// Data that is a lock itself, which the lock beside it must make free whenever it is taken.
struct Shadow(Twin, AtomicU32);

impl Data for Shadow {
    fn look(&self) {
        assert!(self.0.try_read(), "let in as a reader, where the twin would not");
        std::thread::yield_now();
        // SAFETY: acquired above.
        unsafe { self.0.read_unlock() };
    }
    fn change(&self) {
        assert!(self.0.try_write(), "let in as a writer, where the twin would not");
        self.1.fetch_add(1, Relaxed);
        std::thread::yield_now();
        // SAFETY: acquired above.
        unsafe { self.0.write_unlock() };
    }
}

/// Threads follow random scripts; the twin, inside, never has to wait, and those operations that
/// cannot fail all happen.
fn many_threads<S: Subject>() {
    for round in 0..20 {
        let shared = Arc::new((S::new(), Shadow(Twin::default(), AtomicU32::new(0))));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let mut random = Random(round << 8 | thread);
                    let (mut changes, mut at_least) = (0, 0);
                    for _ in 0..200 {
                        let op = random.one_of(S::OPS);
                        let wait = random.one_of(&[0, 20_000, 500_000]);
                        let until = Deadline::after::<Native>(wait);
                        changes += shared.0.perform(op, &shared.1, until);
                        at_least += match op {
                            Op::LockTwice | Op::WriteTwice => 2,
                            Op::Lock | Op::LockAgain => 1,
                            Op::Write | Op::WriteAgain | Op::Downgrade => 1,
                            _ => 0,
                        };
                    }
                    assert!(changes >= at_least, "{changes} of {at_least}");
                    changes
                })
            })
            .collect();
        let changes: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(changes, shared.1.1.load(Relaxed), "{}", S::NAME);
        assert!(shared.0.is_at_rest(), "{}", S::NAME);
    }
}

/// While the lock is held, a timed acquisition on either clock fails, not before its time; and it
/// leaves nothing behind.
fn times_out<L: RawMutex>() {
    let lock = L::new();
    lock.lock();
    std::thread::scope(|scope| {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let lock = &lock;
            scope.spawn(move || {
                use relatch::platform::Platform;
                let ns = Native::now(clock) + 5_000_000;
                assert!(!lock.lock_until(Deadline { clock, ns }), "{}", L::NAME);
                assert!(Native::now(clock) >= ns, "{} gave up early on {clock:?}", L::NAME);
            });
        }
    });
    // SAFETY: held since the beginning.
    unsafe { lock.unlock() };
    assert!(!lock.is_locked() && lock.try_lock(), "{}", L::NAME);
}

/// Memory that is cleared is a free lock, again and again, whatever the lock went through.
fn lives_in_cleared_memory<L: RawRwLock + ZeroIsFree + 'static>() {
    let mut memory = [0u64; 4];
    for _ in 0..3 {
        memory.fill(0xdead_beef);
        memory.fill(0);
        // SAFETY: aligned to 8, zeroed, large enough, used through this reference alone.
        let lock: &L = unsafe { L::at(memory.as_mut_ptr().cast()) };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        lock.write();
                        std::thread::sleep(Duration::from_micros(1));
                        // SAFETY: acquired above; held shared in between.
                        unsafe {
                            lock.downgrade();
                            lock.read_unlock();
                        }
                    }
                });
            }
        });
        assert!(!lock.is_locked());
    }
}

#[test]
fn ttas() {
    one_thread_one_mode::<Ttas>();
    many_threads::<OneMode<Ttas>>();
    times_out::<Ttas>();
}

#[test]
fn mutex() {
    one_thread_one_mode::<ParkMutex>();
    many_threads::<OneMode<ParkMutex>>();
    times_out::<ParkMutex>();
}

#[test]
fn qrwlock() {
    one_thread_one_mode::<Exclusive<QrwLock>>();
    one_thread_two_modes::<QrwLock>();
    many_threads::<TwoModes<QrwLock>>();
    times_out::<Exclusive<QrwLock>>();
    lives_in_cleared_memory::<QrwLock>();
}

#[test]
fn rwsem() {
    one_thread_one_mode::<Exclusive<RwSem>>();
    one_thread_two_modes::<RwSem>();
    many_threads::<TwoModes<RwSem>>();
    times_out::<Exclusive<RwSem>>();
    lives_in_cleared_memory::<RwSem>();
}

#[test]
fn the_twin_beside_itself() {
    many_threads::<TwoModes<Twin>>();
}

#[test]
fn sizes() {
    assert_eq!(size_of::<Ttas>(), 4);
    assert_eq!(size_of::<ParkMutex>(), 4);
    assert_eq!(size_of::<QrwLock>(), 8);
    assert_eq!(size_of::<RwSem>(), 16);
    assert_eq!(size_of::<Exclusive<RwSem>>(), 16);
    assert!(!std::mem::needs_drop::<RwSem>() && !std::mem::needs_drop::<QrwLock>());
}
