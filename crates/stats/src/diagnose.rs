//! What in a series of results should make its reader suspicious. Nothing is ever dropped.
//!
//! Each threshold is set so that a quiet normal series of 10 to 50 results is warned of in about 1 of
//! 100 cases per kind of warning; the tests hold that.

use std::fmt;

use crate::{quantile, rank, summary};

/// Something that a series shows and that its mean or interval would hide.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind"))]
pub enum Warning {
    /// The results rise or fall with their order.
    Trend {
        /// Spearman's correlation with the order.
        rho: f64,
        /// Its two-sided p-value.
        p: f64,
        /// Median of the last third over the median of the first third, less 1.
        change: f64,
    },
    /// The first result does not belong to the others: a cold cache, a file read from disk.
    FirstRun {
        /// First result over the median of the others.
        ratio: f64,
    },
    /// The results fall into two groups with a gap between them.
    Bimodal {
        /// Mean of the lower group.
        low: f64,
        /// Mean of the upper group.
        high: f64,
        /// Results in the upper group.
        upper: usize,
    },
    /// Some results lie far from all others. They are kept.
    Outliers {
        /// Their places in the series, from 0.
        at: Vec<usize>,
    },
    /// The hypervisor ran someone else while this machine wanted to run.
    Stolen {
        /// Part of the CPU time of the experiment, 0 to 1.
        part: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Trend { rho, p, change } => {
                let way = if *rho > 0.0 { "rise" } else { "fall" };
                let change = 100.0 * change;
                write!(
                    f,
                    "trend: results {way} with their order, {change:+.1}% from the first to "
                )?;
                write!(f, "the last third (Spearman {rho:.2}, {})", P(*p))
            }
            Warning::FirstRun { ratio } => {
                let away = 100.0 * (ratio - 1.0);
                write!(
                    f,
                    "first run: {away:+.1}% away from the median of the others; warm up first"
                )
            }
            Warning::Bimodal { low, high, upper } => {
                let away = 100.0 * (high / low - 1.0);
                write!(
                    f,
                    "two groups: {upper} results {away:.1}% above the others; no mean tells both"
                )
            }
            Warning::Outliers { at } => {
                const SHOWN: usize = 5;
                let places: Vec<String> =
                    at.iter().take(SHOWN).map(|i| (i + 1).to_string()).collect();
                let more = match at.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let (run, is) = if at.len() == 1 { ("run", "is") } else { ("runs", "are") };
                let places = places.join(", ");
                write!(f, "outliers: {run} {places}{more} {is} far from the rest (kept)")
            }
            Warning::Stolen { part } => {
                write!(f, "stolen CPU: the hypervisor took {:.1}% of the time", 100.0 * part)
            }
        }
    }
}

/// A p-value as people write it.
pub struct P(pub f64);

impl fmt::Display for P {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            p if p < 0.0001 => write!(f, "p < 0.0001"),
            p => write!(f, "p = {p:.4}"),
        }
    }
}

/// All warnings of one series, in the order in which it was measured.
pub fn warnings(series: &[f64]) -> Vec<Warning> {
    let found = [first_run(series), trend(series), two_groups(series), far_out(series)];
    let mut warnings: Vec<Warning> = found.into_iter().flatten().collect();
    // A first run far out is one finding, not two.
    if warnings.iter().any(|w| matches!(w, Warning::FirstRun { .. })) {
        warnings.retain(|w| !matches!(w, Warning::Outliers { at } if at[..] == [0]));
    }
    warnings
}

/// Warns if more than 1 % of the CPU time of an experiment was stolen. `part` within 0..=1.
pub fn stolen(part: f64) -> Option<Warning> {
    const TOLERATED: f64 = 0.01;
    (part > TOLERATED).then_some(Warning::Stolen { part })
}

fn trend(series: &[f64]) -> Option<Warning> {
    const SURE: f64 = 0.01;
    let trend = rank::trend(series)?;
    let third = (series.len() / 3).max(1);
    let last = summary::median(&series[series.len() - third..]);
    let change = last / summary::median(&series[..third]) - 1.0;
    (trend.p < SURE).then_some(Warning::Trend { rho: trend.rho, p: trend.p, change })
}

fn first_run(series: &[f64]) -> Option<Warning> {
    let n = series.len();
    if n < 6 {
        return None;
    }
    let (middle, scale) = middle_and_scale(&series[1..])?;
    // The scale of a few results is itself uncertain: the fewer, the farther.
    let far = 3.0 + 300.0 / (n * n) as f64;
    let away = (series[0] - middle).abs() / scale > far;
    (away && middle != 0.0).then(|| Warning::FirstRun { ratio: series[0] / middle })
}

/// The best cut into two groups, if it explains nearly all of the variance. The smaller group has at
/// least 3 results and a fifth of all: fewer are outliers.
fn two_groups(series: &[f64]) -> Option<Warning> {
    let n = series.len();
    if n < 8 {
        return None;
    }
    let sorted = summary::sorted(series);
    let mean = summary::mean(&sorted);
    let total: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
    let least = n.div_ceil(5).max(3);
    // How much of the variance a cut explains, from the sum of the distances below it.
    let below: Vec<f64> = (sorted.iter())
        .scan(0.0, |sum, x| {
            *sum += x - mean;
            Some(*sum)
        })
        .collect();
    let between = |cut: usize| below[cut - 1].powi(2) * n as f64 / (cut * (n - cut)) as f64;
    let cut = (least..=n - least).max_by(|&a, &b| between(a).total_cmp(&between(b)))?;
    let explained = 0.82 + 1.3 / n as f64;
    (total > 0.0 && between(cut) / total > explained).then(|| Warning::Bimodal {
        low: summary::mean(&sorted[..cut]),
        high: summary::mean(&sorted[cut..]),
        upper: n - cut,
    })
}

fn far_out(series: &[f64]) -> Option<Warning> {
    let n = series.len();
    if n < 6 {
        return None;
    }
    let (middle, scale) = middle_and_scale(series)?;
    // Few results have an uncertain scale; many have some that are far by chance.
    let by_chance = quantile::z_two_sided(1.0 - 0.01 / n as f64);
    let far = by_chance.max(4.2 + 22.0 / n as f64);
    let fences = outliers(series);
    let at: Vec<usize> =
        fences.at.into_iter().filter(|&i| (series[i] - middle).abs() / scale > far).collect();
    (!at.is_empty()).then_some(Warning::Outliers { at })
}

/// What lies outside Tukey's fences.
#[derive(Clone, Debug, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outliers {
    /// Beyond 1.5 but not beyond 3 interquartile ranges from the nearer quartile.
    pub mild: usize,
    /// Beyond 3 interquartile ranges.
    pub severe: usize,
    /// Places in the series of all of them, from 0.
    pub at: Vec<usize>,
}

/// Counts by Tukey's fences. Of 10 normal results one or more is *mild* in 28 of 100 cases, which is
/// why [`warnings`] asks for more. Nothing below 4 results.
pub fn outliers(series: &[f64]) -> Outliers {
    let mut found = Outliers::default();
    if series.len() < 4 {
        return found;
    }
    let sorted = summary::sorted(series);
    let (q1, q3) =
        (summary::quantile_of_sorted(&sorted, 0.25), summary::quantile_of_sorted(&sorted, 0.75));
    let range = q3 - q1;
    for (i, x) in series.iter().enumerate() {
        let beyond = (q1 - x).max(x - q3);
        if beyond > 3.0 * range {
            found.severe += 1;
        } else if beyond > 1.5 * range {
            found.mild += 1;
        } else {
            continue;
        }
        found.at.push(i);
    }
    found
}

/// Median, and a standard deviation that a few wild results do not move: from the median absolute
/// deviation, or from the mean one where more than half of the results are equal. `None` if all are.
fn middle_and_scale(series: &[f64]) -> Option<(f64, f64)> {
    let middle = summary::median(series);
    let away: Vec<f64> = series.iter().map(|x| (x - middle).abs()).collect();
    let (median, mean) = (summary::median(&away), summary::mean(&away));
    // Factors that make either a standard deviation for normal results.
    let scale = if median > 0.0 { 1.482602 * median } else { 1.253314 * mean };
    (scale > 0.0).then_some((middle, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::honesty::Noise;

    const QUIET: [f64; 10] = [10.02, 9.97, 10.05, 9.99, 10.01, 9.95, 10.03, 10.00, 9.98, 10.04];

    fn with(place: usize, value: f64) -> Vec<f64> {
        let mut series = QUIET.to_vec();
        series[place] = value;
        series
    }

    #[test]
    fn a_quiet_series_is_left_alone() {
        assert_eq!(warnings(&QUIET), []);
        assert_eq!(warnings(&[5.0; 20]), []);
        assert_eq!(warnings(&[]), []);
        assert_eq!(warnings(&[1.0, 900.0]), []);
    }

    #[test]
    fn a_cold_start_is_a_first_run_and_not_an_outlier_too() {
        let found = warnings(&with(0, 13.0));
        assert!(matches!(found[..], [Warning::FirstRun { ratio }] if (ratio - 1.3).abs() < 0.01));
        assert!(found[0].to_string().starts_with("first run: +30.0%"), "{}", found[0]);
    }

    #[test]
    fn a_late_one_is_an_outlier() {
        assert_eq!(warnings(&with(6, 13.0)), [Warning::Outliers { at: vec![6] }]);
    }

    #[test]
    fn many_outliers_are_counted_and_not_all_listed() {
        let text = Warning::Outliers { at: (3..20).collect() }.to_string();
        assert_eq!(text, "outliers: runs 4, 5, 6, 7, 8 and 12 more are far from the rest (kept)");
    }

    #[test]
    fn rising_results_are_a_trend() {
        let rising: Vec<f64> = QUIET.iter().enumerate().map(|(i, x)| x + 0.1 * i as f64).collect();
        let found = warnings(&rising);
        assert!(matches!(found[..], [Warning::Trend { rho, .. }] if rho > 0.95), "{found:?}");
        assert!(found[0].to_string().contains("rise"), "{}", found[0]);
    }

    #[test]
    fn two_groups_are_seen() {
        let two: Vec<f64> =
            QUIET.iter().enumerate().map(|(i, x)| if i % 3 == 1 { x + 2.0 } else { *x }).collect();
        let found = warnings(&two);
        assert!(matches!(found[..], [Warning::Bimodal { upper: 3, .. }]), "{found:?}");
    }

    #[test]
    fn stolen_time_is_tolerated_up_to_one_percent() {
        assert_eq!(stolen(0.005), None);
        assert!(stolen(0.034).unwrap().to_string().contains("3.4%"));
    }

    #[test]
    fn fences_are_tukeys() {
        // Quartiles 2.5 and 5.5 (numpy), so the fences are at -2, 10 and -6.5, 14.5.
        let found = outliers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 11.0]);
        assert_eq!((found.mild, found.severe, found.at), (1, 0, vec![6]));
        let found = outliers(&[15.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0]);
        assert_eq!((found.mild, found.severe, found.at), (0, 1, vec![0]));
    }

    #[test]
    fn normal_noise_alone_is_seldom_warned_of() {
        const TRIALS: u32 = 2000;
        for n in [10, 20, 50] {
            let mut noise = Noise::seeded(n as u64);
            let mut counts = [0u32; 4];
            for _ in 0..TRIALS {
                let series: Vec<f64> = (0..n).map(|_| 100.0 + noise.normal()).collect();
                for warning in warnings(&series) {
                    counts[match warning {
                        Warning::Trend { .. } => 0,
                        Warning::FirstRun { .. } => 1,
                        Warning::Bimodal { .. } => 2,
                        Warning::Outliers { .. } => 3,
                        Warning::Stolen { .. } => unreachable!(),
                    }] += 1;
                }
            }
            assert!(counts.iter().all(|&c| c <= TRIALS / 40), "{n}: {counts:?} of {TRIALS}");
        }
    }
}
