//! An experiment in progress: round after round, until there are enough, the time is over, the user
//! asks to stop, or every arm has failed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use relatch_stats::paired::Paired;
use relatch_stats::stopping;

use crate::analysis;
use crate::guard::Guard;
use crate::interrupt;
use crate::outcome::{Ended, Failure, RunRecord};
use crate::rounds::Rounds;
use crate::settings::{Event, Experiment};
use crate::turn::{self, Stop, Turn};

/// What an arm has done so far.
#[derive(Debug, Default)]
pub(crate) struct ArmState {
    /// Why it is not run any more.
    pub(crate) failure: Option<Failure>,
    /// Its good runs.
    pub(crate) runs: Vec<RunRecord>,
    /// Runs after which processes had to be ended.
    pub(crate) left_behind: usize,
}

pub(crate) struct Session<'a> {
    experiment: &'a Experiment,
    states: Vec<ArmState>,
    order: Rounds,
    start: Instant,
    /// Longest good run so far.
    longest: Duration,
    /// Runs so far, good and bad; those before the first round apart.
    done: usize,
    warmed_up: usize,
    /// Rounds there will probably be.
    expected: usize,
    guard: Option<Guard>,
    scratch: tempfile::TempDir,
}

impl<'a> Session<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> io::Result<Self> {
        let scratch = tempfile::Builder::new().prefix("relatch-try-").tempdir()?;
        // The program may become another user before its first lock.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o711))?;
        Ok(Self {
            guard: Guard::over(scratch.path()),
            scratch,
            experiment,
            states: experiment.arms.iter().map(|_| ArmState::default()).collect(),
            order: Rounds::new(experiment.seed),
            start: Instant::now(),
            longest: Duration::ZERO,
            done: 0,
            warmed_up: 0,
            expected: match experiment.until_ci {
                Some(_) => experiment.most_rounds().min(stopping::MIN_ROUNDS),
                None => experiment.most_rounds(),
            },
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn into_states(self) -> Vec<ArmState> {
        self.states
    }

    /// Runs everything; complete rounds, and why there are no more.
    pub(crate) fn run(
        &mut self,
        progress: &mut dyn FnMut(Event),
    ) -> Result<(usize, Ended), String> {
        let experiment = self.experiment;
        if experiment.arms.is_empty() {
            return Err("an experiment needs an arm".into());
        }
        while self.warmed_up < experiment.warmup && self.states[0].failure.is_none() {
            if let Some(ended) = self.turn(0, 0, 0, progress)? {
                return Ok((0, ended));
            }
        }
        self.warmed_up = experiment.warmup;

        let mut last_round = Duration::ZERO;
        let rounds = experiment.most_rounds();
        for round in 1..=rounds {
            let begun = self.start.elapsed();
            if round > 1 && experiment.max_time.is_some_and(|most| begun + last_round > most) {
                return Ok((round - 1, Ended::Time));
            }
            let order = self.order.next_order(experiment.arms.len());
            for (place, arm) in order.into_iter().enumerate() {
                if let Some(ended) = self.turn(arm, round, place + 1, progress)? {
                    return Ok((round - 1, ended));
                }
            }
            if self.states.iter().all(|state| state.failure.is_some()) {
                return Ok((round - 1, Ended::Failure));
            }
            last_round = self.start.elapsed() - begun;
            progress(Event::Round {
                round,
                rounds: self.expected,
                done: self.done + self.warmed_up,
            });
            if let Some(percent) = experiment.until_ci {
                let headlines = analysis::headlines(experiment, &self.states);
                if stopping::narrow_enough(&headlines, percent) {
                    return Ok((round, Ended::Interval));
                }
                self.expected = rounds_expected(round, &headlines, percent).min(rounds);
            }
        }
        Ok((rounds, Ended::Rounds))
    }

    /// Runs one arm once, unless it has failed; `Some` when nothing more is to be run.
    fn turn(
        &mut self,
        arm: usize,
        round: usize,
        place: usize,
        progress: &mut dyn FnMut(Event),
    ) -> Result<Option<Ended>, String> {
        // Drawn even for an arm that has failed, so that the others' orders follow from the seed alone.
        let padding = self.order.padding();
        if self.states[arm].failure.is_some() {
            return Ok(None);
        }
        if interrupt::asked() {
            return Ok(Some(Ended::Interrupt));
        }
        let experiment = self.experiment;
        let name = &experiment.arms[arm].name;
        let done = self.done + self.warmed_up;
        let to_do = self.runs_to_do(round);
        let left = self.time_left(done, to_do);
        progress(Event::Run { round, arm: name, done, total: done + to_do, left });

        let turn = Turn {
            experiment,
            arm: &experiment.arms[arm],
            padding,
            timeout: experiment.timeout.or_else(|| turn::patience(self.longest)),
            end: experiment.max_time.map(|most| self.start + most),
            scratch: self.scratch.path(),
            guard: self.guard.as_ref(),
        };
        match turn.run() {
            Ok(done) => {
                self.longest = self.longest.max(done.wall);
                let state = &mut self.states[arm];
                state.left_behind += usize::from(done.left_behind);
                if round > 0 {
                    state.runs.push(RunRecord { round, place, ..done.record });
                }
            }
            Err(Stop::CannotStart(why)) if done == 0 => return Err(why),
            Err(Stop::CannotStart(what)) => {
                self.fail(arm, Failure { round, what, output: String::new() }, progress);
            }
            Err(Stop::Failed { what, output }) => {
                self.fail(arm, Failure { round, what, output }, progress);
            }
            Err(Stop::BrokenOff(ended)) => return Ok(Some(ended)),
            Err(Stop::Error(error)) => return Err(error),
        }
        match round {
            0 => self.warmed_up += 1,
            _ => self.done += 1,
        }
        Ok(None)
    }

    fn fail(&mut self, arm: usize, failure: Failure, progress: &mut dyn FnMut(Event)) {
        let failure = self.states[arm].failure.insert(failure);
        progress(Event::Failed { arm: &self.experiment.arms[arm].name, failure });
    }

    /// Runs that are left from here on, if every arm that still runs does so in every round.
    fn runs_to_do(&self, round: usize) -> usize {
        let alive = || self.states.iter().filter(|state| state.failure.is_none());
        let in_this = match round {
            0 => alive().count() + self.experiment.warmup.saturating_sub(self.warmed_up),
            _ => alive()
                .filter(|state| state.runs.last().is_none_or(|run| run.round < round))
                .count(),
        };
        in_this + self.expected.saturating_sub(round.max(1)) * alive().count()
    }

    fn time_left(&self, done: usize, to_do: usize) -> Option<Duration> {
        let elapsed = self.start.elapsed();
        let by_runs = (done > 0).then(|| elapsed.mul_f64(to_do as f64 / done as f64));
        let by_time = self.experiment.max_time.map(|most| most.saturating_sub(elapsed));
        [by_runs, by_time].into_iter().flatten().min()
    }
}

/// How many rounds will probably make every interval narrow enough: widths shrink with the root of
/// the rounds.
fn rounds_expected(round: usize, headlines: &[Paired], percent: f64) -> usize {
    let widest = headlines.iter().map(|paired| 100.0 * paired.half_width()).fold(0.0, f64::max);
    let rounds = round as f64 * (widest / percent).powi(2);
    (rounds.ceil() as usize).max(round + 1).max(stopping::MIN_ROUNDS)
}
