//! Programs, arms, rounds and output checks: from a command and some plans to verdicts.
//!
//! ```no_run
//! use relatch_experiment::{Experiment, Interposition, arms, interpose};
//! use relatch_plan::Plan;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let library = interpose::unpack(&std::fs::read("librelatch.so")?)?;
//! let plans = [Plan::from_arg("mutex=ttas")?];
//! let arms = arms(&Interposition::new(library), &plans, false);
//! let outcome = Experiment::new(vec!["./server-bench".into()], arms).run(&mut |_event| {})?;
//! println!("{}", outcome.arms.len());
//! # Ok(())
//! # }
//! ```
//!
//! The unit of replication is one execution of the program, since what differs between executions
//! (addresses, scheduling, memory layout) is part of what a verdict must hold for. Source:
//! T. Kalibera and R. Jones, Quantifying performance changes with effect size confidence intervals,
//! 2012.

pub mod affinity;
mod analysis;
mod arm;
pub mod demo;
mod guard;
pub mod interpose;
pub mod interrupt;
mod metric;
pub mod observe;
pub mod outcome;
pub mod pair_cost;
mod process;
mod rounds;
mod session;
mod settings;
pub mod shell;
pub mod span;
mod steal;
mod tail;
mod turn;
pub mod waits;

pub use arm::{Arm, Role, arms};
pub use interpose::Interposition;
pub use metric::Metric;
pub use outcome::Outcome;
pub use rounds::Rounds;
pub use settings::{Event, Experiment, ROUNDS};
pub use turn::{ERRORS, OUTPUT};
