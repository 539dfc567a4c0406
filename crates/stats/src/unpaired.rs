//! Two samples that were not measured together.
//!
//! Nothing cancels here: what drifted between one sample and the other looks like a difference between
//! them. What the numbers can tell of that is in [`crate::notes`].

use crate::ministat::{self, Dataset, Difference};
use crate::{bootstrap, quantile, rank, summary};

/// A ratio and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ratio {
    /// Test over reference.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Difference of two means by exact quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Means {
    /// With one standard deviation for both (as ministat's, but by the exact t).
    pub pooled: Difference,
    /// Half the width of Welch's interval, which leaves each sample its own standard deviation.
    pub welch_plus_minus: f64,
    /// Two-sided p-value of Welch's test.
    pub welch_p: f64,
}

/// What two samples tell by ranks and resampling.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Samples {
    /// Ratio of the means with a bootstrap interval; absent if a sample is not positive.
    pub means: Option<Ratio>,
    /// Ratio of the medians with a bootstrap interval; absent if a sample is not positive.
    pub medians: Option<Ratio>,
    /// The test of Mann and Whitney.
    pub mann_whitney: MannWhitney,
    /// Chance that a value of the test is below one of the reference, equal ones counted half: the
    /// effect size of Vargha and Delaney. 0.5 is no effect.
    pub below: f64,
}

/// Mann and Whitney's test.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MannWhitney {
    /// Pairs of which the test's value is above the reference's, equal ones counted half.
    pub u: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether `p` is exact: few values, none of them equal.
    pub exact: bool,
}

/// Difference of the means of two datasets, which may be known by their summaries alone.
pub fn means(test: &Dataset, reference: &Dataset, level: f64) -> Means {
    let pooled_df = (test.n + reference.n - 2) as f64;
    let pooled = ministat::difference_by(test, reference, quantile::t_two_sided(level, pooled_df));
    let part = |d: &Dataset| d.sd * d.sd / d.n as f64;
    let (a, b) = (part(test), part(reference));
    let error = (a + b).sqrt();
    if error == 0.0 {
        let p = if pooled.difference == 0.0 { 1.0 } else { 0.0 };
        return Means { pooled, welch_plus_minus: 0.0, welch_p: p };
    }
    let df = (a + b).powi(2) / (a * a / (test.n as f64 - 1.0) + b * b / (reference.n as f64 - 1.0));
    Means {
        pooled,
        welch_plus_minus: quantile::t_two_sided(level, df) * error,
        welch_p: quantile::t_p_two_sided(pooled.difference / error, df),
    }
}

/// Compares two samples by ranks and resampling. Equal seeds give equal intervals.
///
/// `None` if a sample has fewer than 3 values or one that is not finite.
pub fn samples(test: &[f64], reference: &[f64], level: f64, seed: u64) -> Option<Samples> {
    let few = |sample: &[f64]| sample.len() < 3 || sample.iter().any(|x| !x.is_finite());
    if few(test) || few(reference) {
        return None;
    }
    let positive = test.iter().chain(reference).all(|&x| x > 0.0);
    let ratio = |statistic: fn(&mut [f64]) -> f64| {
        positive.then(|| {
            let (low, high) = bootstrap::log_ratio(test, reference, level, seed, statistic);
            let of = |sample: &[f64]| statistic(&mut sample.to_vec());
            Ratio { ratio: of(test) / of(reference), low: low.exp(), high: high.exp() }
        })
    };
    let mann_whitney = mann_whitney(test, reference);
    let pairs = (test.len() * reference.len()) as f64;
    Some(Samples {
        means: ratio(|sample| summary::mean(sample)),
        medians: ratio(median),
        mann_whitney,
        below: 1.0 - mann_whitney.u / pairs,
    })
}

/// The median, without sorting all of a sample that is drawn ten thousand times.
fn median(sample: &mut [f64]) -> f64 {
    let n = sample.len();
    let (below, &mut upper, _) = sample.select_nth_unstable_by(n / 2, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if n % 2 == 1 { upper } else { (lower + upper) / 2.0 }
}

/// Mann and Whitney's test: exact up to 50 values in all if none are equal, else by the normal
/// distribution with the correction for equal values and half a step of continuity.
pub fn mann_whitney(test: &[f64], reference: &[f64]) -> MannWhitney {
    const EXACT: usize = 50;
    let (n, m) = (test.len(), reference.len());
    let all: Vec<f64> = test.iter().chain(reference).copied().collect();
    let ranks: f64 = rank::ranks(&all)[..n].iter().sum();
    let u = ranks - (n * (n + 1)) as f64 / 2.0;
    let ties = rank::ties(&all);
    if ties.is_empty() && n + m <= EXACT {
        let far = u.min((n * m) as f64 - u) as usize;
        return MannWhitney { u, p: (2.0 * u_cdf(n, m, far)).min(1.0), exact: true };
    }
    let (pairs, total) = ((n * m) as f64, (n + m) as f64);
    let cubes: f64 = ties.iter().map(|&t| (t as f64).powi(3) - t as f64).sum();
    let variance = pairs / 12.0 * (total + 1.0 - cubes / (total * (total - 1.0)));
    let away = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
    let p = if variance > 0.0 { quantile::z_p_two_sided(away / variance.sqrt()) } else { 1.0 };
    MannWhitney { u, p, exact: false }
}

/// The smallest p-value that samples of these sizes can have: all of one below all of the other.
pub fn least_p(n: usize, m: usize) -> f64 {
    let orders: f64 = (1..=m).map(|i| (n + i) as f64 / i as f64).product();
    (2.0 / orders).min(1.0)
}

/// `P(U <= at_most)` for samples of `n` and `m` without equal values.
fn u_cdf(n: usize, m: usize, at_most: usize) -> f64 {
    // chance[j][u]: of U being u among the i smallest-ranked of one sample and j of the other. The
    // largest of all values is one of the i with chance i / (i + j), and is then above all j.
    let mut before = vec![vec![0.0; at_most + 1]; m + 1];
    for row in &mut before {
        row[0] = 1.0;
    }
    for i in 1..=n {
        let mut now = vec![vec![0.0; at_most + 1]; m + 1];
        now[0][0] = 1.0;
        for j in 1..=m {
            let largest = i as f64 / (i + j) as f64;
            for u in 0..=at_most {
                let above = if u >= j { before[j][u - j] } else { 0.0 };
                now[j][u] = largest * above + (1.0 - largest) * now[j - 1][u];
            }
        }
        before = now;
    }
    before[m].iter().sum()
}

/// A p-value for print.
pub fn p_text(p: f64) -> String {
    crate::diagnose::P(p).to_string()
}

/// Vargha and Delaney's words for their effect size.
pub fn effect_word(below: f64) -> &'static str {
    match (below - 0.5).abs() {
        d if d >= 0.21 => "large",
        d if d >= 0.14 => "medium",
        d if d >= 0.06 => "small",
        _ => "negligible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 6] = [10.1, 9.7, 10.4, 10.9, 9.2, 11.3];
    const B: [f64; 5] = [8.8, 9.0, 9.9, 8.1, 8.5];

    fn near(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-7, "{got} is not {want}");
    }

    #[test]
    fn mann_and_whitney_exactly_as_scipy() {
        // scipy 1.17.1: mannwhitneyu(A, B, method="exact")
        let found = mann_whitney(&A, &B);
        assert!(found.exact);
        assert_eq!(found.u, 28.0);
        near(found.p, 0.017316017316017316);
        near(mann_whitney(&B, &A).p, found.p);
    }

    #[test]
    fn the_least_p_is_that_of_samples_apart() {
        assert!((least_p(3, 3) - 0.1).abs() < 1e-12);
        assert!(
            (least_p(6, 5)
                - mann_whitney(&[9.0, 8.0, 7.0, 6.0, 5.5], &[1.0, 2.0, 3.0, 4.0, 5.0, 0.0]).p)
                .abs()
                < 1e-12
        );
    }

    #[test]
    fn mann_and_whitney_with_equal_values_as_scipy() {
        // scipy 1.17.1: mannwhitneyu(C, D, method="asymptotic")
        let found = mann_whitney(
            &[1.0, 2.0, 2.0, 3.0, 5.0, 5.0, 7.0],
            &[2.0, 4.0, 4.0, 5.0, 6.0, 8.0, 9.0, 9.0],
        );
        assert!(!found.exact);
        assert_eq!(found.u, 14.0);
        near(found.p, 0.11491974683155325);
        assert_eq!(mann_whitney(&[1.0; 4], &[1.0; 4]).p, 1.0);
    }

    #[test]
    fn means_as_scipy() {
        // scipy 1.17.1: ttest_ind(A, B, equal_var=...), confidence_interval(0.95)
        let [a, b] = [("a", &A[..]), ("b", &B[..])].map(|(n, x)| Dataset::of(n, x).unwrap());
        let found = means(&a, &b, 0.95);
        near(found.pooled.difference, 1.4066666666666645);
        near(found.pooled.plus_minus, (2.405500700997228 - 0.40783263233610134) / 2.0);
        near(found.welch_plus_minus, (2.3926360088208702 - 0.4206973245124588) / 2.0);
        near(found.welch_p, 0.010389415950196912);
    }

    #[test]
    fn the_quick_median_is_the_median() {
        for n in 1..=A.len() {
            assert_eq!(median(&mut A[..n].to_vec()), summary::median(&A[..n]));
        }
    }

    #[test]
    fn effect_size_counts_pairs() {
        let found = samples(&A, &B, 0.95, 1).unwrap();
        near(found.below, 2.0 / 30.0);
        assert_eq!(effect_word(found.below), "large");
        let same = samples(&A, &A, 0.95, 1).unwrap();
        assert_eq!((same.below, effect_word(same.below)), (0.5, "negligible"));
    }

    #[test]
    fn bootstrap_intervals_repeat_and_hold_their_ratio() {
        let found = samples(&A, &B, 0.95, 7).unwrap();
        assert_eq!(found, samples(&A, &B, 0.95, 7).unwrap());
        for ratio in [found.means.unwrap(), found.medians.unwrap()] {
            assert!(ratio.low < ratio.ratio && ratio.ratio < ratio.high, "{ratio:?}");
        }
        let narrow = samples(&A, &B, 0.8, 7).unwrap().means.unwrap();
        let wide = found.means.unwrap();
        assert!(narrow.low > wide.low && narrow.high < wide.high);
    }

    #[test]
    fn what_is_not_positive_has_ranks_but_no_ratio() {
        let found = samples(&[-1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.95, 1).unwrap();
        assert_eq!((found.means, found.medians), (None, None));
        near(found.mann_whitney.p, 0.1);
        assert_eq!(samples(&[1.0, 2.0], &B, 0.95, 1), None);
    }
}
