//! The tables of `relatch try` for a terminal.

use std::fmt::Write;

use super::{Arm, Failure, Trial, Versus, Warning};
use crate::dotplot::dotplot;
use crate::units::{self, cut};

/// Most characters of an arm's name in a table, and beside the plot; notes have it whole.
const NAME: usize = 32;
const LABEL: usize = 20;

impl Trial {
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
            let mut row = vec![cut(&arm.name, NAME)];
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
        let series: Vec<(String, Vec<f64>)> = (self.arms.iter())
            .filter(|arm| !arm.runs.is_empty())
            .map(|arm| (cut(&arm.name, LABEL), arm.runs.iter().map(|run| run.values[0]).collect()))
            .collect();
        let series: Vec<(&str, &[f64])> =
            series.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let Some(label) = series.iter().map(|(name, _)| name.chars().count()).max() else { return };
        // Beside the label: a blank and two borders.
        let _ = write!(out, "\n{}", dotplot(&series, width.saturating_sub(label + 3)));
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
                cut(&arm.name, NAME),
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
        let waits = match (with_waits, self.arms.iter().any(|arm| arm.role == "recorded")) {
            (false, _) => "",
            (true, false) => ", and waits on converted locks",
            (true, true) => ", and waits (recorded: on all locks; plans: on converted ones)",
        };
        let _ = writeln!(out, "\nbeside it, medians of a run{waits}");
        columns(&heads, rows, out);
    }

    fn notes(&self, out: &mut String) {
        let compared = |arm: &&Arm| {
            arm.role == "plan" && arm.results.iter().any(|result| result.versus_same.is_some())
        };
        let plans = self.arms.iter().filter(compared).count();
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
            let kept: Vec<String> = (arm.waits.iter().flat_map(|waits| &waits.kept))
                .map(|(reason, count)| format!("{count} {reason}"))
                .collect();
            if !kept.is_empty() {
                notes.push(format!("{}: locks kept as they are: {}", arm.name, kept.join(", ")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::tests::example;

    #[test]
    fn numbers_with_four_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.034322, "0.03432"),
            (1.23456, "1.235"),
            (-12.3456, "-12.35"),
            (2754321.4, "2754321"),
            (95.0, "95"),
            (99.5, "99.50"),
            (1e-12, "0.000000000"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(p_value(0.00002), "<0.0001");
        assert_eq!(change(Some(1.5), Some(1.0)), "+50.0%");
        assert_eq!(change(Some(1.5), Some(0.0)), "-");
    }

    #[test]
    fn all_that_was_found_is_in_it() {
        let table = example().table(100);
        for line in [
            "10 rounds of 5 arms in 12.3 s, interrupted (seed 7)",
            "time (s, lower is better)",
            "re:(.) (higher is better)",
            "ARM              N  MEDIAN   MEAN  RATIO    95% INTERVAL        P  VERDICT",
            "same            10       1  1.062      1               -        -  reference",
            "mutex@a,b=ttas  10       1  1.062  0.800  0.700 .. 0.900  <0.0001  faster",
            "spin=ttas        0       -      -      -               -        -  failed in round 3",
            "interposition itself: same over bare is 2.000 (1.667 .. 2.500)",
            "beside it, medians of a run, and waits on converted locks",
            "mutex@a,b=ttas: locks kept as they are: 2 recursive, 1 robust",
            "warning: same: trend",
            "warning: few",
            "spin=ttas failed in round 3 and was not run again: it broke",
            "  | second",
        ] {
            assert!(table.lines().any(|shown| shown == line), "no {line:?} in\n{table}");
        }
        let beside = table.lines().find(|line| line.contains("1.500 us")).expect("no waits");
        assert!(beside.starts_with("mutex@a,b=ttas") && beside.contains("2.0 ms"), "{beside}");
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        assert!(!table.contains("adjusted"), "only one plan was compared");
    }
}
