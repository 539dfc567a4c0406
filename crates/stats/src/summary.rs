//! A sample in six numbers.

/// Count, extremes, median, mean and standard deviation of a sample, in the unit of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Middle sample; the mean of the two middle ones if `n` is even.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with `n - 1` below the line; 0 for a single sample.
    pub sd: f64,
}

impl Summary {
    /// Summarises a sample; `None` if it is empty or holds a number that is not finite.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        if samples.is_empty() || samples.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let sorted = sorted(samples);
        Some(Summary {
            n: samples.len(),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            median: median_of_sorted(&sorted),
            // Rounding must not put the mean of equal samples beside them.
            mean: mean(samples).clamp(sorted[0], sorted[sorted.len() - 1]),
            sd: sd(samples),
        })
    }
}

/// Arithmetic mean; NaN of an empty slice.
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Standard deviation with `n - 1` below the line; 0 for fewer than two samples and for equal ones.
///
/// In two passes: sums of squares lose all digits of a small spread on a large mean.
pub fn sd(samples: &[f64]) -> f64 {
    // Of equal samples the mean is rounded, and their distance from it would be noise.
    if samples.iter().all(|x| *x == samples[0]) {
        return 0.0;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

/// Middle of a sample; NaN of an empty slice.
pub fn median(samples: &[f64]) -> f64 {
    median_of_sorted(&sorted(samples))
}

/// Middle of an ascending sample; NaN of an empty slice.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Quantile of an ascending sample by linear interpolation between its neighbours (Hyndman and Fan's
/// type 7, what R and numpy do unasked). `at` within 0..=1.
pub(crate) fn quantile_of_sorted(sorted: &[f64], at: f64) -> f64 {
    let place = at * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// The samples in ascending order.
pub(crate) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_sample_has_the_mean_of_its_middle_ones_as_median() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (4, 1.0, 4.0));
        assert_eq!((summary.median, summary.mean), (2.5, 2.5));
        assert!((summary.sd - 1.2909944487358056).abs() < 1e-15);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn a_small_spread_on_a_large_mean_keeps_its_digits() {
        let far: Vec<f64> = [1.0, 2.0, 3.0, 4.0].iter().map(|x| x + 1e9).collect();
        assert!((sd(&far) - 1.2909944487358056).abs() < 1e-9);
    }

    #[test]
    fn equal_samples_have_no_spread_at_all() {
        let summary = Summary::of(&[0.001; 70]).unwrap();
        assert_eq!((summary.mean, summary.sd), (0.001, 0.0));
    }

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.quantile([1, 2, 4, 8, 16], [0.1, 0.25, 0.9])
        let sample = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert!((quantile_of_sorted(&sample, 0.1) - 1.4).abs() < 1e-12);
        assert_eq!(quantile_of_sorted(&sample, 0.25), 2.0);
        assert!((quantile_of_sorted(&sample, 0.9) - 12.8).abs() < 1e-12);
        assert_eq!(quantile_of_sorted(&sample, 1.0), 16.0);
    }

    #[test]
    fn nothing_is_made_of_nothing_or_of_infinity() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
        assert_eq!(Summary::of(&[7.0]).unwrap().sd, 0.0);
    }
}
