//! The tables of `relatch try`, made from its document `relatch.try/1` (see `docs/json-try.md`).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::dotplot::dotplot;
use crate::units::{self, csv_field};

/// The version of the document that is read here.
const SCHEMA: &str = "relatch.try/1";

/// What the tables show of an experiment; the document holds more.
#[derive(Clone, Debug, Deserialize)]
pub struct Trial {
    schema: String,
    seed: u64,
    elapsed_s: f64,
    ended: String,
    rounds: usize,
    level: f64,
    equivalence: f64,
    metrics: Vec<Metric>,
    arms: Vec<Arm>,
    warnings: Vec<Warning>,
}

#[derive(Clone, Debug, Deserialize)]
struct Metric {
    name: String,
    unit: String,
    better: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Arm {
    name: String,
    role: String,
    share: Vec<String>,
    failure: Option<Failure>,
    results: Vec<MetricResult>,
    cpu_s: Option<f64>,
    maxrss_kib: Option<f64>,
    waits: Option<Waits>,
    runs: Vec<Run>,
}

#[derive(Clone, Debug, Deserialize)]
struct Failure {
    round: usize,
    what: String,
    output: String,
}

#[derive(Clone, Debug, Deserialize)]
struct MetricResult {
    summary: relatch_stats::summary::Summary,
    versus_same: Option<Versus>,
}

#[derive(Clone, Debug, Deserialize)]
struct Versus {
    ratio: f64,
    low: f64,
    high: f64,
    p: f64,
    p_adjusted: f64,
    verdict: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Waits {
    shared_p99_ns: Option<f64>,
    shared_max_ns: Option<u64>,
    exclusive_p99_ns: Option<f64>,
    exclusive_max_ns: Option<u64>,
    converted: f64,
    kept: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Run {
    values: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Warning {
    arm: Option<String>,
    text: String,
}

impl Trial {
    /// Reads the document.
    ///
    /// # Errors
    /// One line when it is no such document, or one of another version.
    pub fn read(json: &str) -> Result<Self, String> {
        let trial: Self =
            serde_json::from_str(json).map_err(|error| format!("no {SCHEMA} document: {error}"))?;
        match trial.schema == SCHEMA {
            true => Ok(trial),
            false => Err(format!("a {} document, not {SCHEMA}", trial.schema)),
        }
    }

    /// Whether any arm failed.
    pub fn has_failures(&self) -> bool {
        self.arms.iter().any(|arm| arm.failure.is_some())
    }

    /// Whether the user broke it off.
    pub fn was_interrupted(&self) -> bool {
        self.ended == "interrupt"
    }

    /// All of it for a terminal `width` columns wide.
    pub fn table(&self, width: usize) -> String {
        let mut out = String::new();
        self.heading(&mut out);
        for metric in 0..self.metrics.len() {
            self.metric(metric, &mut out);
            if metric == 0 {
                self.plot(width, &mut out);
            }
        }
        self.beside(&mut out);
        self.notes(&mut out);
        out
    }

    fn heading(&self, out: &mut String) {
        let why = match self.ended.as_str() {
            "interval" => ", all intervals narrow enough",
            "time" => ", the time was over",
            "interrupt" => ", interrupted",
            "failure" => ", every arm failed",
            _ => "",
        };
        let Self { rounds, elapsed_s, seed, .. } = self;
        let arms = self.arms.len();
        let s = if *rounds == 1 { "" } else { "s" };
        let _ = writeln!(
            out,
            "{rounds} round{s} of {arms} arms in {elapsed_s:.1} s{why} (seed {seed})"
        );
    }

    /// One metric of all arms.
    fn metric(&self, number: usize, out: &mut String) {
        let metric = &self.metrics[number];
        let unit = if metric.unit.is_empty() { "" } else { &format!("{}, ", metric.unit) };
        let _ = writeln!(out, "\n{} ({unit}{} is better)", metric.name, metric.better);
        let percent = figure(100.0 * self.level);
        let heads = [
            "ARM",
            "N",
            "MEDIAN",
            "MEAN",
            "RATIO",
            &format!("{percent}% INTERVAL"),
            "P",
            "VERDICT",
        ];
        let rows = self.arms.iter().map(|arm| {
            let mut row = vec![arm.name.clone()];
            let Some(result) = arm.results.get(number) else {
                row.extend([
                    "0".into(),
                    "-".into(),
                    "-".into(),
                    "-".into(),
                    "-".into(),
                    "-".into(),
                ]);
                row.push(failed_in(arm));
                return row;
            };
            let summary = &result.summary;
            row.extend([summary.n.to_string(), figure(summary.median), figure(summary.mean)]);
            match &result.versus_same {
                Some(versus) => row.extend([
                    format!("{:.3}", versus.ratio),
                    format!("{:.3} .. {:.3}", versus.low, versus.high),
                    p_value(versus.p_adjusted),
                ]),
                None => {
                    let ratio = if arm.role == "same" { "1" } else { "-" };
                    row.extend([ratio.into(), "-".into(), "-".into()]);
                }
            }
            row.push(match (&arm.failure, &result.versus_same) {
                (Some(_), _) => failed_in(arm),
                (None, Some(versus)) if arm.role != "control" => versus.verdict.clone(),
                (None, Some(versus)) => format!("{} (control)", versus.verdict),
                (None, None) if arm.role == "same" => "reference".into(),
                (None, None) => "-".into(),
            });
            row
        });
        columns(&heads, rows.collect(), out);
        for (role, numerator, what) in [
            ("bare", "same over bare", "interposition"),
            ("recorded", "recorded over same", "observation"),
        ] {
            let versus = self
                .arms
                .iter()
                .find(|arm| arm.role == role)
                .and_then(|arm| arm.results.get(number)?.versus_same.as_ref());
            if let Some(Versus { ratio, low, high, .. }) = versus {
                // The table has bare over same; here it is the other way round.
                let (ratio, low, high) = match role {
                    "bare" => (1.0 / ratio, 1.0 / high, 1.0 / low),
                    _ => (*ratio, *low, *high),
                };
                let _ = writeln!(
                    out,
                    "{what} itself: {numerator} is {ratio:.3} ({low:.3} .. {high:.3})"
                );
            }
        }
    }

    /// Every run of the headline metric.
    fn plot(&self, width: usize, out: &mut String) {
        let series: Vec<(&str, Vec<f64>)> = (self.arms.iter())
            .filter(|arm| !arm.runs.is_empty())
            .map(|arm| (arm.name.as_str(), arm.runs.iter().map(|run| run.values[0]).collect()))
            .collect();
        if series.is_empty() {
            return;
        }
        let series: Vec<(&str, &[f64])> =
            series.iter().map(|(name, values)| (*name, values.as_slice())).collect();
        let _ = write!(out, "\n{}", dotplot(&series, width));
    }

    /// What may have got worse meanwhile.
    fn beside(&self, out: &mut String) {
        let same = self.arms.iter().find(|arm| arm.role == "same");
        let (cpu, memory) =
            (same.and_then(|same| same.cpu_s), same.and_then(|same| same.maxrss_kib));
        let with_waits = self.arms.iter().any(|arm| arm.waits.is_some());
        let mut heads = vec!["ARM", "CPU s", "vs same", "PEAK MiB", "vs same"];
        if with_waits {
            heads.extend(["CONVERTED", "SHARED p99", "max", "EXCLUSIVE p99", "max"]);
        }
        let rows = (self.arms.iter()).filter(|arm| !arm.runs.is_empty()).map(|arm| {
            let mut row = vec![
                arm.name.clone(),
                arm.cpu_s.map_or("-".into(), figure),
                change(arm.cpu_s, cpu),
                arm.maxrss_kib.map_or("-".into(), |kib| figure(kib / 1024.0)),
                change(arm.maxrss_kib, memory),
            ];
            if with_waits {
                row.push(match &arm.waits {
                    Some(waits) if arm.role == "plan" => figure(waits.converted),
                    _ => "-".into(),
                });
                let waits = arm.waits.as_ref();
                row.extend([
                    nanoseconds(waits.and_then(|waits| waits.shared_p99_ns)),
                    nanoseconds(waits.and_then(|waits| Some(waits.shared_max_ns? as f64))),
                    nanoseconds(waits.and_then(|waits| waits.exclusive_p99_ns)),
                    nanoseconds(waits.and_then(|waits| Some(waits.exclusive_max_ns? as f64))),
                ]);
            }
            row
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return;
        }
        let waits = if with_waits { ", and waits on converted locks" } else { "" };
        let _ = writeln!(out, "\nbeside it, medians of a run{waits}");
        columns(&heads, rows, out);
    }

    fn notes(&self, out: &mut String) {
        let plans = self.arms.iter().filter(|arm| arm.role == "plan").count();
        let mut notes = Vec::new();
        if plans > 1 {
            notes.push(format!("P of the {plans} plans is adjusted for their number (Holm)"));
        }
        let said = |word: &str| {
            let results = self.arms.iter().flat_map(|arm| &arm.results);
            results.flat_map(|result| &result.versus_same).any(|versus| versus.verdict == word)
        };
        if said("equivalent") {
            let margin = figure(100.0 * self.equivalence);
            notes.push(format!("equivalent: the whole interval lies within {margin}% of same"));
        }
        if said("undecided") {
            notes.push("undecided: more rounds (-n) or a quieter machine may tell".into());
        }
        for arm in &self.arms {
            if !arm.share.is_empty() {
                notes.push(format!("{} is taken shared by {}", arm.name, arm.share.join(", ")));
            }
            for (reason, count) in arm.waits.iter().flat_map(|waits| &waits.kept) {
                notes.push(format!("{}: {count} locks kept as they are: {reason}", arm.name));
            }
        }
        if !notes.is_empty() {
            out.push('\n');
        }
        for note in notes {
            let _ = writeln!(out, "{note}");
        }
        if !self.warnings.is_empty() {
            out.push('\n');
        }
        for Warning { arm, text } in &self.warnings {
            let arm = arm.as_ref().map_or(String::new(), |arm| format!("{arm}: "));
            let _ = writeln!(out, "warning: {arm}{text}");
        }
        for (arm, failure) in self.arms.iter().filter_map(|arm| Some((arm, arm.failure.as_ref()?)))
        {
            let round = failure.round;
            let when = match round {
                0 => "before the first round".to_owned(),
                _ => format!("in round {round}"),
            };
            let _ = writeln!(
                out,
                "\n{} failed {when} and was not run again: {}",
                arm.name, failure.what
            );
            for line in failure.output.lines() {
                let _ = writeln!(out, "  | {line}");
            }
        }
    }

    /// One line per arm and metric, with a heading; empty fields for what there is not.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "metric,unit,better,arm,role,n,min,max,median,mean,sd,ratio,low,high,p,p_adjusted,verdict,\
             cpu_s,maxrss_kib,shared_p99_ns,shared_max_ns,exclusive_p99_ns,exclusive_max_ns,converted,\
             failure\n",
        );
        for (number, metric) in self.metrics.iter().enumerate() {
            for arm in &self.arms {
                let result = arm.results.get(number);
                let summary = |of: fn(&relatch_stats::summary::Summary) -> f64| {
                    optional(result.map(|result| of(&result.summary)))
                };
                let versus = result.and_then(|result| result.versus_same.as_ref());
                let compared = |of: fn(&Versus) -> f64| optional(versus.map(of));
                let waits = arm.waits.as_ref();
                let fields = [
                    csv_field(&metric.name),
                    metric.unit.clone(),
                    metric.better.clone(),
                    csv_field(&arm.name),
                    arm.role.clone(),
                    result.map_or(0, |result| result.summary.n).to_string(),
                    summary(|s| s.min),
                    summary(|s| s.max),
                    summary(|s| s.median),
                    summary(|s| s.mean),
                    summary(|s| s.sd),
                    compared(|v| v.ratio),
                    compared(|v| v.low),
                    compared(|v| v.high),
                    compared(|v| v.p),
                    compared(|v| v.p_adjusted),
                    versus.map_or(String::new(), |versus| versus.verdict.clone()),
                    optional(arm.cpu_s),
                    optional(arm.maxrss_kib),
                    optional(waits.and_then(|waits| waits.shared_p99_ns)),
                    optional(waits.and_then(|waits| waits.shared_max_ns)),
                    optional(waits.and_then(|waits| waits.exclusive_p99_ns)),
                    optional(waits.and_then(|waits| waits.exclusive_max_ns)),
                    optional(waits.map(|waits| waits.converted)),
                    arm.failure.as_ref().map_or(String::new(), |failure| csv_field(&failure.what)),
                ];
                let _ = writeln!(out, "{}", fields.join(","));
            }
        }
        out
    }
}

fn failed_in(arm: &Arm) -> String {
    match &arm.failure {
        Some(Failure { round: 0, .. }) => "failed".into(),
        Some(Failure { round, .. }) => format!("failed in round {round}"),
        None => "not run".into(),
    }
}

/// Rows below their heads: the first and a last column of words to the left, numbers to the right.
fn columns(heads: &[&str], rows: Vec<Vec<String>>, out: &mut String) {
    let heads: Vec<String> = heads.iter().map(|head| head.to_string()).collect();
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(rows).collect();
    let last = rows[0].len() - 1;
    let words = rows[0][last] == "VERDICT";
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..=last).filter_map(width).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let _ = match column == 0 || (words && column == last) {
                true => write!(line, "{gap}{cell:<width$}"),
                false => write!(line, "{gap}{cell:>width$}"),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Four digits that count.
fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') && value.fract() == 0.0 {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}

/// Relative change in percent.
fn change(value: Option<f64>, reference: Option<f64>) -> String {
    match (value, reference) {
        (Some(value), Some(reference)) if reference > 0.0 => {
            format!("{:+.1}%", 100.0 * (value / reference - 1.0))
        }
        _ => "-".into(),
    }
}

fn nanoseconds(time: Option<f64>) -> String {
    time.map_or("-".into(), units::duration)
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
