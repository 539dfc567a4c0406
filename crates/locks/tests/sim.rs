//! Random schedules of two to eight threads, a thousand seeds per lock by default
//! (`RELATCH_SIM_SEEDS` for more), and starvation where a lock promises there is none.

mod common;

use std::cell::Cell;

use common::busted::{LateReader, LostWake, TwoSteps};
use common::{Data, OneMode, Op, Random, Subject, TwoModes, must_fail};
use relatch::platform::sim::{Run, run};
use relatch::platform::{Clock, Deadline, Platform, Sim, Word};
use relatch::{Exclusive, ParkMutex, QrwLock, RawRwLock, RwSem, Ttas};

fn seeds() -> u64 {
    std::env::var("RELATCH_SIM_SEEDS").map_or(1000, |seeds| seeds.parse().expect("a number"))
}

/// Counts who is inside, and lets others run meanwhile.
#[derive(Default)]
struct Inside {
    readers: Cell<u32>,
    writers: Cell<u32>,
    changes: Cell<u32>,
    elsewhere: <Sim as Platform>::U32,
}

impl Inside {
    fn linger(&self) {
        for _ in 0..3 {
            self.elsewhere.load(std::sync::atomic::Ordering::Relaxed);
        }
    }
}

impl Data for Inside {
    fn look(&self) {
        self.readers.set(self.readers.get() + 1);
        self.linger();
        assert_eq!(self.writers.get(), 0, "a reader beside a writer");
        self.readers.set(self.readers.get() - 1);
    }
    fn change(&self) {
        self.writers.set(self.writers.get() + 1);
        self.linger();
        assert_eq!((self.writers.get(), self.readers.get()), (1, 0), "a writer is not alone");
        self.changes.set(self.changes.get() + 1);
        self.writers.set(self.writers.get() - 1);
    }
}

/// One run: random threads with random operations.
fn one<S: Subject>(seed: u64) -> Run {
    let (lock, inside, changes) = (S::new(), Inside::default(), Cell::new(0));
    let (lock, inside, changes) = (&lock, &inside, &changes);
    let mut random = Random(seed);
    let threads = 2 + random.below(7);
    let bodies = (0..threads).map(|thread| {
        let mut random = Random(seed << 8 | thread);
        Box::new(move || {
            for _ in 0..12 {
                let op = random.one_of(S::OPS);
                let wait = random.one_of(&[0, 300, 100_000, 20_000_000]);
                let ns = Sim::now(Clock::Monotonic) + wait;
                let deadline = Deadline { clock: Clock::Monotonic, ns };
                let changed = lock.perform(op, inside, deadline);
                changes.set(changes.get() + changed);
                if random.below(4) == 0 {
                    Sim::sleep(random.below(2_000));
                }
            }
        }) as Box<dyn FnOnce()>
    });
    let taken = run(seed, bodies.collect());
    assert_eq!(inside.changes.get(), changes.get(), "seed {seed}");
    assert!(lock.is_at_rest(), "something is left behind, seed {seed}");
    taken
}

fn many<S: Subject>() {
    let (mut steps, seeds) = (0, seeds());
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(|| one::<S>(seed));
        steps += result.unwrap_or_else(|_| panic!("{} fails with seed {seed}", S::NAME)).steps;
    }
    println!("{}: {seeds} seeds, {steps} steps", S::NAME);
    assert!(steps > seeds * 100, "hardly anything ran");
}

#[test]
fn ttas() {
    many::<OneMode<Ttas<Sim>>>();
}

#[test]
fn mutex() {
    many::<OneMode<ParkMutex<Sim>>>();
}

#[test]
fn qrwlock() {
    many::<TwoModes<QrwLock<Sim>>>();
    many::<OneMode<Exclusive<QrwLock<Sim>>>>();
}

#[test]
fn rwsem() {
    many::<TwoModes<RwSem<Sim>>>();
    many::<OneMode<Exclusive<RwSem<Sim>>>>();
}

/// Writers that wait and give up while readers wait behind them.
struct ImpatientWriters(TwoModes<RwSem<Sim>>);

impl Subject for ImpatientWriters {
    const NAME: &'static str = "rwsem, impatient writers";
    const OPS: &'static [Op] = &[Op::Read, Op::Read, Op::Write, Op::WriteUntil, Op::WriteUntil];
    fn new() -> Self {
        ImpatientWriters(TwoModes::new())
    }
    fn perform(&self, op: Op, data: &impl Data, deadline: Deadline) -> u32 {
        self.0.perform(op, data, deadline)
    }
    fn is_at_rest(&self) -> bool {
        self.0.is_at_rest()
    }
}

/// A version of `rwsem` let readers in twice before the first had noticed, and lost them.
#[test]
fn rwsem_with_impatient_writers() {
    many::<ImpatientWriters>();
}

#[test]
fn a_seed_is_a_run() {
    for seed in 0..20 {
        assert_eq!(one::<TwoModes<RwSem<Sim>>>(seed), one::<TwoModes<RwSem<Sim>>>(seed));
    }
    let runs: Vec<_> = (0..20).map(|seed| one::<TwoModes<RwSem<Sim>>>(seed).steps).collect();
    assert!(runs.iter().any(|steps| *steps != runs[0]), "seeds do not matter");
}

fn some<S: Subject>() {
    for seed in 0..200 {
        one::<S>(seed);
    }
}

#[test]
fn busted_locks_are_caught() {
    must_fail("two in at once", some::<OneMode<TwoSteps<Sim>>>);
    must_fail("reader beside writer", some::<TwoModes<LateReader<Sim>>>);
    let found = must_fail("a sleeper beside a free lock", some::<OneMode<LostWake<Sim>>>);
    assert!(found.contains("deadlock, seed"), "{found}");
}

/// Seven threads keep acquiring until the eighth got in once; all of virtual time's second is
/// more than a thousand turns.
fn not_starved<L: RawRwLock>(seed: u64, victim_writes: bool, others_write: bool) {
    let (lock, done) = (L::new(), Cell::new(false));
    let (lock, done) = (&lock, &done);
    let section = |write: bool| {
        if write {
            lock.write();
        } else {
            lock.read();
        }
        Sim::sleep(20_000);
        // SAFETY: acquired above in this mode.
        unsafe { if write { lock.write_unlock() } else { lock.read_unlock() } }
    };
    let other = move || {
        while !done.get() {
            section(others_write);
            let name = L::NAME;
            assert!(Sim::now(Clock::Monotonic) < 1_000_000_000, "{name} starves, seed {seed}");
        }
    };
    let mut bodies: Vec<Box<dyn FnOnce()>> = (0..7).map(|_| Box::new(other) as _).collect();
    bodies.push(Box::new(move || {
        Sim::sleep(5_000);
        section(victim_writes);
        done.set(true);
    }));
    run(seed, bodies);
}

#[test]
fn nobody_starves_in_fair_locks() {
    for seed in 0..20 {
        for (victim, others) in [(true, false), (false, true), (true, true)] {
            not_starved::<QrwLock<Sim>>(seed, victim, others);
            not_starved::<RwSem<Sim>>(seed, victim, others);
        }
    }
}

#[test]
fn readers_starve_a_writer_that_nobody_heeds() {
    must_fail("the test above cannot fail", || {
        (0..20).for_each(|seed| not_starved::<LateReader<Sim>>(seed, true, false));
    });
}
