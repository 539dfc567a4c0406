//! Three threads, and two that wait twice: every schedule with a bounded number of preemptions.

mod common;

use std::time::Instant;

use common::checked::explore;
use common::{OneMode, Op, Subject, TwoModes};
use relatch::platform::{Loom, Patience};
use relatch::{Exclusive, ParkMutex, QrwLock, RwSem, Ttas};

const PREEMPTIONS: Option<usize> = Some(2);

fn explore_all<S: Subject>(groups: &[&'static [Op]]) {
    for patience in [Patience::Endless, Patience::None] {
        Loom::set_patience(patience);
        for ops in groups {
            let start = Instant::now();
            let executions = explore::<S>(ops, PREEMPTIONS);
            let seconds = start.elapsed().as_secs_f64();
            println!("{} {patience:?} {ops:?}: {executions} executions, {seconds:.1} s", S::NAME);
        }
    }
}

const EXCLUSIVE: &[&[Op]] = &[
    &[Op::Lock, Op::Lock, Op::Lock],
    &[Op::Lock, Op::LockUntil, Op::Lock],
    &[Op::LockUntil, Op::LockUntil, Op::TryLock],
    &[Op::LockTwice, Op::LockTwice],
];

const BOTH: &[&[Op]] = &[
    &[Op::Write, Op::Read, Op::Read],
    &[Op::Write, Op::Write, Op::Read],
    &[Op::WriteUntil, Op::Write, Op::Read],
    &[Op::Write, Op::WriteUntil, Op::ReadUntil],
    &[Op::ReadThenRecursive, Op::Write, Op::Read],
    &[Op::Downgrade, Op::Write, Op::Read],
    &[Op::WriteTwice, Op::Read],
    &[Op::WriteTwice, Op::WriteTwice],
    &[Op::ReadTwice, Op::WriteTwice],
];

/// With one spinning thread at most: two would take turns for ever while the checker keeps the
/// holder waiting. Several at once are left to the simulator and to torture.
const ONE_SPINS: &[&[Op]] = &[
    &[Op::Lock, Op::TryLock, Op::TryLock],
    &[Op::Lock, Op::LockUntil, Op::TryLock],
    &[Op::LockUntil, Op::LockUntil, Op::TryLock],
    &[Op::LockTwice, Op::LockAgain],
];

#[test]
fn ttas() {
    explore_all::<OneMode<Ttas<Loom>>>(ONE_SPINS);
}

#[test]
fn mutex() {
    explore_all::<OneMode<ParkMutex<Loom>>>(EXCLUSIVE);
}

#[test]
fn qrwlock() {
    explore_all::<TwoModes<QrwLock<Loom>>>(BOTH);
}

#[test]
fn qrwlock_exclusive() {
    explore_all::<OneMode<Exclusive<QrwLock<Loom>>>>(EXCLUSIVE);
}

#[test]
fn rwsem() {
    explore_all::<TwoModes<RwSem<Loom>>>(BOTH);
}

#[test]
fn rwsem_exclusive() {
    explore_all::<OneMode<Exclusive<RwSem<Loom>>>>(EXCLUSIVE);
}
