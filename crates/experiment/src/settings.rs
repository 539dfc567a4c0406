//! What an experiment is to do, and what it says while it does it.

use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::analysis;
use crate::arm::Arm;
use crate::metric::Metric;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

/// Rounds where neither their number nor a width of the intervals is asked for.
pub const ROUNDS: usize = 10;
/// Most rounds where a width is asked for, but no number.
const MOST_ROUNDS: usize = 1000;
/// What to run and how often.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The arms, in the order of the table.
    pub arms: Vec<Arm>,
    /// What to measure; the first is the headline.
    pub metrics: Vec<Metric>,
    /// Number of rounds; with [`Experiment::until_ci`] the most there may be.
    pub rounds: Option<usize>,
    /// Stop, after at least 10 rounds, when every plan's headline ratio is known to plus or minus
    /// this many percent.
    pub until_ci: Option<f64>,
    /// End of the whole, from its begin. A round that would not fit is not begun; the one that runs
    /// when the time is over is broken off.
    pub max_time: Option<Duration>,
    /// Longest time of one run; longer is a failure. By default 20 times the longest good run so far
    /// plus one minute.
    pub timeout: Option<Duration>,
    /// Runs of the first arm before the first round, which do not count: they fill caches and show
    /// whether the command works at all.
    pub warmup: usize,
    /// Shell command before each run, not timed.
    pub prepare: Option<String>,
    /// Shell command after each run; its failure is the run's failure.
    pub check: Option<String>,
    /// CPUs that the program may use; empty for all.
    pub cpus: Vec<usize>,
    /// The orders of the arms follow from it.
    pub seed: u64,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Half width of the zone around a ratio of 1 that counts as equivalent.
    pub equivalence: f64,
}

/// What goes on, for whoever shows progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A run begins.
    Run {
        /// Its round, from 1; 0 before the first.
        round: usize,
        /// The arm's name.
        arm: &'a str,
        /// Runs done so far.
        done: usize,
        /// Runs there will probably be.
        total: usize,
        /// Time that is probably left; unknown before the first run has ended.
        left: Option<Duration>,
    },
    /// An arm failed and is not run again.
    Failed {
        /// The arm's name.
        arm: &'a str,
        /// Why.
        failure: &'a Failure,
    },
    /// A round is complete.
    Round {
        /// Its number, from 1.
        round: usize,
        /// Rounds there will probably be.
        rounds: usize,
        /// Runs done so far.
        done: usize,
    },
}

impl Experiment {
    /// The command and its arms, with the defaults of `relatch try` for everything else and a new
    /// seed.
    pub fn new(command: Vec<OsString>, arms: Vec<Arm>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            command,
            arms,
            metrics: vec![Metric::time()],
            rounds: None,
            until_ci: None,
            max_time: None,
            timeout: None,
            warmup: 1,
            prepare: None,
            check: None,
            cpus: Vec::new(),
            // Short, since people type it again.
            seed: now.subsec_micros().into(),
            level: 0.95,
            equivalence: relatch_stats::verdict::EQUIVALENCE,
        }
    }

    /// Most rounds there can be.
    pub fn most_rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.until_ci.is_some() { MOST_ROUNDS } else { ROUNDS })
    }

    /// Runs it to its end, or to the user's interrupt, and analyses what there is.
    ///
    /// # Errors
    /// When nothing can be run at all: the program cannot be started, or there is no room for
    /// temporary files.
    pub fn run(&self, progress: &mut dyn FnMut(Event)) -> Result<Outcome, String> {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut session =
            Session::new(self).map_err(|error| format!("no room for temporary files: {error}"))?;
        let (rounds, ended) = session.run(progress)?;
        let elapsed = session.elapsed();
        Ok(analysis::outcome(self, session.into_states(), rounds, ended, started, elapsed))
    }
}
