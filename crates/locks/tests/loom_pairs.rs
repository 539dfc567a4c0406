//! Every pair of operations of every lock, every schedule, every value weak memory may show:
//! two threads, no bound on preemptions. (Waiting twice in a row is left to `loom_three`: unbounded
//! it is half a million executions per pair.)

mod common;

use std::time::Instant;

use common::busted::{LateReader, LostWake, NoAcquire, TwoSteps};
use common::checked::explore;
use common::{OneMode, Op, Subject, TwoModes, must_fail};
use relatch::platform::{Loom, Patience};
use relatch::{Exclusive, ParkMutex, QrwLock, RwSem, Ttas};

/// For locks that never read the clock.
const NO_CLOCK: [Patience; 1] = [Patience::Endless];
const BOTH: [Patience; 2] = [Patience::Endless, Patience::None];

fn explore_pairs<S: Subject>(patiences: &[Patience]) {
    let start = Instant::now();
    let (mut pairs, mut executions, mut most) = (0, 0, (0, [Op::Lock; 2]));
    let twice = [Op::LockTwice, Op::ReadTwice, Op::WriteTwice];
    let ops: Vec<Op> = S::OPS.iter().copied().filter(|op| !twice.contains(op)).collect();
    for patience in patiences {
        Loom::set_patience(*patience);
        for (index, first) in ops.iter().enumerate() {
            for second in &ops[index..] {
                // Impatience changes what follows a long wait, not what follows a release.
                let again = [Op::LockAgain, Op::ReadAgain, Op::WriteAgain];
                if *patience == Patience::None && (again.contains(first) || again.contains(second))
                {
                    continue;
                }
                let pair: &'static [Op] = Box::leak(Box::new([*first, *second]));
                let count = explore::<S>(pair, None);
                if std::env::var_os("RELATCH_LOOM_VERBOSE").is_some() {
                    println!("{} {patience:?} {pair:?}: {count}", S::NAME);
                }
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
    explore_pairs::<OneMode<Ttas<Loom>>>(&NO_CLOCK);
}

#[test]
fn mutex() {
    explore_pairs::<OneMode<ParkMutex<Loom>>>(&NO_CLOCK);
}

#[test]
fn qrwlock() {
    explore_pairs::<TwoModes<QrwLock<Loom>>>(&NO_CLOCK);
}

#[test]
fn qrwlock_exclusive() {
    explore_pairs::<OneMode<Exclusive<QrwLock<Loom>>>>(&NO_CLOCK);
}

#[test]
fn rwsem() {
    explore_pairs::<TwoModes<RwSem<Loom>>>(&BOTH);
}

#[test]
fn rwsem_exclusive() {
    explore_pairs::<OneMode<Exclusive<RwSem<Loom>>>>(&BOTH);
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
