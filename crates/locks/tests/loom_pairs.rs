//! Every pair of operations of every lock, every schedule, every value weak memory may show:
//! two threads, no bound on preemptions.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use common::busted::{LateReader, LostWake, NoAcquire, TwoSteps};
use common::{Data, OneMode, Op, PAST, Subject, TwoModes, must_fail};
use loom::cell::UnsafeCell;
use relatch::platform::{Loom, Patience};
use relatch::{Exclusive, ParkMutex, QrwLock, RwSem, Ttas};

/// The model's cell: it reports any two uses that the lock did not put in order.
struct Checked(UnsafeCell<u32>);

// SAFETY: not so by itself; the model checks that the lock makes it so.
unsafe impl Sync for Checked {}
// SAFETY: an integer.
unsafe impl Send for Checked {}

impl Data for Checked {
    fn look(&self) {
        // SAFETY: the model panics before a racing access.
        self.0.with(|value| unsafe { *value });
    }
    fn change(&self) {
        // SAFETY: the model panics before a racing access.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// Explores `ops`, one thread each; returns the number of executions.
fn explore<S: Subject>(ops: &'static [Op], preemptions: Option<usize>) -> u64 {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 10_000;
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        let shared = Arc::new((S::new(), Checked(UnsafeCell::new(0))));
        let others: Vec<_> = ops[1..]
            .iter()
            .map(|op| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || shared.0.perform(*op, &shared.1, PAST))
            })
            .collect();
        let mut changes = shared.0.perform(ops[0], &shared.1, PAST);
        changes += others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        // SAFETY: all others have been joined.
        assert_eq!(shared.1.0.with(|value| unsafe { *value }), changes);
        assert!(shared.0.is_at_rest());
    });
    executions.load(Relaxed)
}

fn explore_pairs<S: Subject>() {
    let start = Instant::now();
    let (mut pairs, mut executions, mut most) = (0, 0, (0, [Op::Lock; 2]));
    for patience in [Patience::Endless, Patience::None] {
        Loom::set_patience(patience);
        for (index, first) in S::OPS.iter().enumerate() {
            for second in &S::OPS[index..] {
                let pair: &'static [Op] = Box::leak(Box::new([*first, *second]));
                let count = explore::<S>(pair, None);
                pairs += 1;
                executions += count;
                if count > most.0 {
                    most = (count, [*first, *second]);
                }
            }
        }
    }
    println!(
        "{}: {pairs} pairs, {executions} executions, most {} for {:?}, {:.1} s",
        S::NAME,
        most.0,
        most.1,
        start.elapsed().as_secs_f64()
    );
    assert!(executions > pairs, "nothing was interleaved");
}

#[test]
fn ttas() {
    explore_pairs::<OneMode<Ttas<Loom>>>();
}

#[test]
fn mutex() {
    explore_pairs::<OneMode<ParkMutex<Loom>>>();
}

#[test]
fn qrwlock() {
    explore_pairs::<TwoModes<QrwLock<Loom>>>();
}

#[test]
fn qrwlock_exclusive() {
    explore_pairs::<OneMode<Exclusive<QrwLock<Loom>>>>();
}

#[test]
fn rwsem() {
    explore_pairs::<TwoModes<RwSem<Loom>>>();
}

#[test]
fn rwsem_exclusive() {
    explore_pairs::<OneMode<Exclusive<RwSem<Loom>>>>();
}

#[test]
fn busted_two_steps_is_caught() {
    let found = must_fail("two in at once", || {
        explore::<OneMode<TwoSteps<Loom>>>(&[Op::Lock, Op::Lock], None);
    });
    println!("{found}");
}

#[test]
fn busted_no_acquire_is_caught() {
    let found = must_fail("unordered sections", || {
        explore::<OneMode<NoAcquire<Loom>>>(&[Op::Lock, Op::Lock], None);
    });
    assert!(found.contains("Causality violation"), "{found}");
}

#[test]
fn busted_lost_wake_is_caught() {
    let found = must_fail("a sleeper beside a free lock", || {
        explore::<OneMode<LostWake<Loom>>>(&[Op::Lock, Op::Lock], None);
    });
    assert!(found.contains("deadlock"), "{found}");
}

#[test]
fn busted_late_reader_is_caught() {
    let found = must_fail("reader beside writer", || {
        explore::<TwoModes<LateReader<Loom>>>(&[Op::Read, Op::Write], None);
    });
    println!("{found}");
}
