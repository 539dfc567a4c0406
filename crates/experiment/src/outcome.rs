//! The results of an experiment as they are kept: the document `relatch.try/1`, described for its
//! readers in `docs/json-try.md`.

use std::collections::BTreeMap;

use relatch_stats::summary::Summary;
use serde::Serialize;

use crate::arm::Role;

/// The version of the document.
pub const SCHEMA: &str = "relatch.try/1";

/// All that an experiment found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the orders of arms follow from.
    pub seed: u64,
    /// Begin of the first run, seconds since 1970.
    pub started_unix_s: u64,
    /// From the first run to the last, seconds.
    pub elapsed_s: f64,
    /// Why it ended.
    pub ended: Ended,
    /// Complete rounds; comparisons rest on these alone.
    pub rounds: usize,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Half width of the zone around a ratio of 1 that counts as equivalent.
    pub equivalence: f64,
    /// What was measured; the first is the headline.
    pub metrics: Vec<MetricInfo>,
    /// The arms in the order of the table.
    pub arms: Vec<ArmOutcome>,
    /// What makes the results doubtful.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    /// The document, indented, with a newline at its end.
    pub fn to_json(&self) -> String {
        // It holds no map with keys other than text, the one thing that json could not take.
        let json = serde_json::to_string_pretty(self).expect("an outcome is a json document");
        json + "\n"
    }
}

/// Why an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All rounds were run.
    Rounds,
    /// All intervals were narrow enough.
    Interval,
    /// Its time was over.
    Time,
    /// The user asked to stop.
    Interrupt,
    /// Every arm had failed.
    Failure,
}

/// A metric.
#[derive(Clone, Debug, Serialize)]
pub struct MetricInfo {
    /// As on the command line.
    pub name: String,
    /// `s`, `KiB` or empty.
    pub unit: &'static str,
    /// `lower` or `higher`.
    pub better: &'static str,
}

/// What was found about one arm.
#[derive(Clone, Debug, Serialize)]
pub struct ArmOutcome {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Its conversions.
    pub conversions: Vec<String>,
    /// The sites that take converted locks shared.
    pub share: Vec<String>,
    /// Why it was not run to the end.
    pub failure: Option<Failure>,
    /// One per metric, in the order of [`Outcome::metrics`]; empty if it never ran well.
    pub results: Vec<MetricOutcome>,
    /// Median CPU time of a run, user and system, seconds.
    pub cpu_s: Option<f64>,
    /// Median peak resident memory of a run, KiB.
    pub maxrss_kib: Option<f64>,
    /// Waits on its converted locks.
    pub waits: Option<ArmWaits>,
    /// Its good runs, in order.
    pub runs: Vec<RunRecord>,
}

/// One metric of one arm.
#[derive(Clone, Debug, Serialize)]
pub struct MetricOutcome {
    /// Over all good runs.
    pub summary: Summary,
    /// Against `same`, over complete rounds; absent for `same` itself, with fewer than two rounds, or
    /// when a value was not positive.
    pub versus_same: Option<Versus>,
}

/// An arm against `same`.
#[derive(Clone, Debug, Serialize)]
pub struct Versus {
    /// Rounds compared.
    pub n: usize,
    /// This arm over `same`, typical for a round.
    pub ratio: f64,
    /// Lower end of its confidence interval.
    pub low: f64,
    /// Upper end of its confidence interval.
    pub high: f64,
    /// Of the ratio being 1, this comparison alone.
    pub p: f64,
    /// The same after Holm's adjustment over the plans' arms; equal to `p` for other arms.
    pub p_adjusted: f64,
    /// `faster`, `slower`, `equivalent` or `undecided`.
    pub verdict: String,
}

/// Waits on the converted locks of an arm, over its good runs.
#[derive(Clone, Debug, Serialize)]
pub struct ArmWaits {
    /// Median over the runs of the 99th percentile of waits in shared mode, nanoseconds.
    pub shared_p99_ns: Option<f64>,
    /// Longest wait in shared mode, nanoseconds.
    pub shared_max_ns: Option<u64>,
    /// Median over the runs of the 99th percentile of waits in exclusive mode, nanoseconds.
    pub exclusive_p99_ns: Option<f64>,
    /// Longest wait in exclusive mode, nanoseconds.
    pub exclusive_max_ns: Option<u64>,
    /// Median number of converted locks of a run.
    pub converted: f64,
    /// Most locks of one run that were selected but stayed as they are, by reason.
    pub kept: BTreeMap<String, u64>,
}

/// One good run.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Its round, from 1.
    pub round: usize,
    /// Its place in the round, from 1.
    pub place: usize,
    /// One value per metric.
    pub values: Vec<f64>,
    /// Wall-clock time, seconds.
    pub time_s: f64,
    /// CPU time in user mode, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// Peak resident memory of its largest process, KiB.
    pub maxrss_kib: u64,
    /// Share of the machine's CPU time that the hypervisor took meanwhile, 0 to 1.
    pub stolen: Option<f64>,
    /// What its recordings say.
    pub waits: Option<crate::waits::Waits>,
}

/// Why an arm was not run again.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The round, from 1; 0 for the run before the first.
    pub round: usize,
    /// What happened, in a few words.
    pub what: String,
    /// The end of the output.
    pub output: String,
}

/// What makes a result doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The arm that it is about; none for all.
    pub arm: Option<String>,
    /// One sentence.
    pub text: String,
}
