//! The machine itself: more threads than CPUs, every operation, sleeps at bad moments.
//!
//! Runs each lock for `RELATCH_TORTURE_SECONDS` (default 0.5). A lock that is broken on purpose
//! must be found out, or this test proves nothing.

mod common;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use common::busted::{LateReader, TwoSteps};
use common::{Data, OneMode, Random, Subject, TwoModes};
use relatch::platform::{Clock, Deadline, Native, Platform};
use relatch::{Exclusive, ParkMutex, QrwLock, RwSem, Ttas};

/// A round that stops making progress for this long is taken to hang.
const HANG: Duration = Duration::from_secs(60);

fn seconds() -> f64 {
    let seconds = std::env::var("RELATCH_TORTURE_SECONDS");
    seconds.map_or(0.5, |seconds| seconds.parse().expect("a number"))
}

/// Two plain counters that are equal whenever nobody writes.
#[derive(Default)]
struct Pair {
    first: UnsafeCell<u64>,
    second: UnsafeCell<u64>,
    torn: AtomicU64,
    turns: AtomicU64,
}

// SAFETY: not so by itself; the lock makes it so, or the test finds that it does not. Access is
// volatile, so that a broken lock gives wrong numbers rather than wrong code.
unsafe impl Sync for Pair {}

impl Pair {
    fn get(&self) -> (u64, u64) {
        // SAFETY: the cells live as long as `self`.
        unsafe { (self.first.get().read_volatile(), self.second.get().read_volatile()) }
    }

    fn linger(&self) {
        match self.turns.fetch_add(1, Relaxed) % 512 {
            0 => std::thread::sleep(Duration::from_micros(200)),
            1..8 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }

    fn check(&self, first: u64) {
        if self.get() != (first, first) {
            self.torn.fetch_add(1, Relaxed);
        }
    }
}

impl Data for Pair {
    fn look(&self) {
        let (first, _) = self.get();
        self.linger();
        self.check(first);
    }
    fn change(&self) {
        let (first, _) = self.get();
        self.check(first);
        // SAFETY: as in `get`.
        unsafe { self.first.get().write_volatile(first + 1) };
        self.linger();
        // SAFETY: as in `get`.
        unsafe { self.second.get().write_volatile(first + 1) };
    }
}

fn deadline(random: &mut Random) -> Deadline {
    let clock = random.one_of(&[Clock::Monotonic, Clock::Realtime]);
    let wait = random.one_of(&[0, 1_000, 50_000, 1_000_000]);
    Deadline { clock, ns: Native::now(clock) + wait }
}

/// Runs threads over one lock; gives torn reads, lost updates and changes made.
fn torture<S: Subject>(time: Duration) -> (u64, u64, u64) {
    let threads = 4 * std::thread::available_parallelism().map_or(2, usize::from);
    let shared = Arc::new((S::new(), Pair::default(), AtomicBool::new(false)));
    let (finished, all_finished) = mpsc::channel();
    for thread in 0..threads {
        let (shared, finished) = (Arc::clone(&shared), finished.clone());
        std::thread::spawn(move || {
            let (lock, pair, stop) = &*shared;
            let (mut random, mut changes) = (Random(thread as u64), 0);
            while !stop.load(Relaxed) {
                let op = random.one_of(S::OPS);
                changes += u64::from(lock.perform(op, pair, deadline(&mut random)));
                if random.below(256) == 0 {
                    std::thread::sleep(Duration::from_micros(random.below(300)));
                }
            }
            finished.send(changes).expect("the test waits");
        });
    }
    let (lock, pair, stop) = &*shared;
    let start = Instant::now();
    let (mut turns, mut since) = (0, start);
    while start.elapsed() < time {
        std::thread::sleep(Duration::from_millis(20));
        let now = pair.turns.load(Relaxed);
        if now != turns {
            (turns, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < HANG, "{}: nobody has got in for a minute", S::NAME);
    }
    stop.store(true, Relaxed);
    let mut changes = 0;
    for _ in 0..threads {
        let one = all_finished.recv_timeout(HANG);
        changes += one.unwrap_or_else(|_| panic!("{}: a thread hangs", S::NAME));
    }
    assert!(lock.is_at_rest(), "{}: something is left behind", S::NAME);
    let (first, second) = pair.get();
    (pair.torn.load(Relaxed), changes.abs_diff(first).max(changes.abs_diff(second)), changes)
}

fn holds<S: Subject>() {
    let (torn, lost, changes) = torture::<S>(Duration::from_secs_f64(seconds()));
    println!("{}: {changes} changes, {torn} torn, {lost} lost", S::NAME);
    assert!(changes > 0);
    assert_eq!((torn, lost), (0, 0), "{}", S::NAME);
}

/// A broken lock gets ten chances to be found out, since the machine may be kind.
fn breaks<S: Subject>() {
    let found = (0..10).find_map(|_| {
        let (torn, lost, _) = torture::<S>(Duration::from_millis(300));
        (torn + lost > 0).then_some((torn, lost))
    });
    println!("{}: {found:?} torn, lost", S::NAME);
    assert!(found.is_some(), "{} was not found out", S::NAME);
}

// One test, so that locks do not take the CPUs from one another.
#[test]
fn locks_hold_and_busted_ones_break() {
    holds::<OneMode<Ttas>>();
    holds::<OneMode<ParkMutex>>();
    holds::<TwoModes<QrwLock>>();
    holds::<OneMode<Exclusive<QrwLock>>>();
    holds::<TwoModes<RwSem>>();
    holds::<OneMode<Exclusive<RwSem>>>();
    breaks::<OneMode<TwoSteps<Native>>>();
    breaks::<TwoModes<LateReader<Native>>>();
}
