//! Running a lock under the model checker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loom::cell::UnsafeCell;

use super::{Data, Op, PAST, Subject};

/// The model's cell: it reports any two uses that the lock did not put in order.
pub struct Checked(UnsafeCell<u32>);

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
pub fn explore<S: Subject>(ops: &'static [Op], preemptions: Option<usize>) -> u64 {
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
