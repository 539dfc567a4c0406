//! The comparison that FreeBSD's `ministat(1)` prints, to the letter.
//!
//! It is what hundreds of published kernel changes are argued with, so that a figure of theirs can be
//! held beside one of ours. Its ways are kept where they show in print:
//! - Student's t comes from a table of three decimals ([`table`]), not from the distribution;
//! - the error in percent is the error of the difference over the mean of the reference, as printed
//!   until 2017 (newer versions also count in how uncertain the reference itself is);
//! - the median of an even number of points is the upper one of the middle two, as until 2017;
//! - a plot has as many rows as the *last* dataset needs: points stacked higher are not drawn.
//!
//! Not kept is the sum of squares in one pass, as until 2017: it prints wrong last digits where the mean
//! is more than a thousand times the spread, and `-nan` for equal points.
//!
//! What it lacks is in [`crate::unpaired`]. Source: usr.bin/ministat in the FreeBSD source tree.

mod block;
mod plot;
pub mod table;

pub use block::{MIN_WIDTH, Options, Text, print};
pub use plot::Scale;
pub use table::{LEVELS, Level};

use crate::summary;

/// Marks of the datasets in plots and tables, in their order. There can be no more datasets.
pub const SYMBOLS: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];

/// Fewest points of a dataset.
pub const MIN_POINTS: usize = 3;

/// One column of numbers, or what was published of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// What it is called in print: the file.
    pub name: String,
    /// Number of points.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Smallest point, if known.
    pub min: Option<f64>,
    /// Largest point, if known.
    pub max: Option<f64>,
    /// Median, if known.
    pub median: Option<f64>,
    /// All points, ascending; empty if only a summary is known.
    pub(crate) sorted: Vec<f64>,
}

impl Dataset {
    /// A dataset of points; `None` if there are fewer than [`MIN_POINTS`] or one is not finite.
    pub fn of(name: impl Into<String>, points: &[f64]) -> Option<Dataset> {
        if points.len() < MIN_POINTS || points.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let sorted = summary::sorted(points);
        Some(Dataset {
            name: name.into(),
            n: points.len(),
            mean: summary::mean(points).clamp(sorted[0], sorted[sorted.len() - 1]),
            sd: summary::sd(points),
            min: Some(sorted[0]),
            max: Some(sorted[sorted.len() - 1]),
            median: Some(sorted[sorted.len() / 2]),
            sorted,
        })
    }

    /// A dataset of which count, mean and standard deviation are known; `None` if there are fewer than
    /// [`MIN_POINTS`], a number is not finite, or the deviation is negative.
    pub fn of_summary(name: impl Into<String>, n: usize, mean: f64, sd: f64) -> Option<Dataset> {
        let good = n >= MIN_POINTS && mean.is_finite() && sd.is_finite() && sd >= 0.0;
        good.then(|| Dataset {
            name: name.into(),
            n,
            mean,
            sd,
            min: None,
            max: None,
            median: None,
            sorted: Vec::new(),
        })
    }
}

/// What is printed of two datasets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Difference {
    /// Whether the difference is larger than its error.
    pub proven: bool,
    /// Mean less the mean of the reference.
    pub difference: f64,
    /// Half the width of its confidence interval.
    pub plus_minus: f64,
    /// The difference in percent of the reference.
    pub percent: f64,
    /// Its error in percent of the reference.
    pub percent_plus_minus: f64,
    /// Standard deviation of both together.
    pub pooled_sd: f64,
}

/// Compares a dataset to a reference as printed, by the t of the table.
pub fn difference(dataset: &Dataset, reference: &Dataset, level: Level) -> Difference {
    let df = dataset.n + reference.n - 2;
    difference_by(dataset, reference, table::t(level, df))
}

/// The same by a t of the caller.
pub(crate) fn difference_by(dataset: &Dataset, reference: &Dataset, t: f64) -> Difference {
    let (n, m) = (dataset.n as f64, reference.n as f64);
    let squares = (n - 1.0) * dataset.sd * dataset.sd + (m - 1.0) * reference.sd * reference.sd;
    let pooled_sd = (squares / (n + m - 2.0)).sqrt();
    let difference = dataset.mean - reference.mean;
    let plus_minus = t * pooled_sd * (1.0 / n + 1.0 / m).sqrt();
    Difference {
        proven: difference.abs() > plus_minus,
        difference,
        plus_minus,
        percent: difference * 100.0 / reference.mean,
        percent_plus_minus: plus_minus * 100.0 / reference.mean,
        pooled_sd,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::number::general;

    /// The name-cache change of FreeBSD, March 2015: seconds of a build, rwlock and rmlock.
    pub(crate) fn name_cache() -> [Dataset; 2] {
        let mut rwlock = Dataset::of_summary("rwlock", 6, 2798.0617, 43.324817).unwrap();
        (rwlock.min, rwlock.max, rwlock.median) = (Some(2710.31), Some(2821.35), Some(2816.75));
        let mut rmlock = Dataset::of_summary("rmlock", 5, 2495.756, 5.0494782).unwrap();
        (rmlock.min, rmlock.max, rmlock.median) = (Some(2488.25), Some(2500.25), Some(2498.04));
        [rwlock, rmlock]
    }

    #[test]
    fn the_published_name_cache_comparison_comes_out_to_the_last_digit() {
        let [rwlock, rmlock] = name_cache();
        let found = difference(&rmlock, &rwlock, Level::of(95.0).unwrap());
        assert!(found.proven);
        assert_eq!(general(found.difference, 6), "-302.306");
        assert_eq!(general(found.plus_minus, 6), "44.4709");
        assert_eq!(general(found.percent, 6), "-10.8041");
        assert_eq!(general(found.percent_plus_minus, 6), "1.58935");
        assert_eq!(general(found.pooled_sd, 6), "32.4674");
    }

    #[test]
    fn too_little_is_no_dataset() {
        assert_eq!(Dataset::of("a", &[1.0, 2.0]), None);
        assert_eq!(Dataset::of("a", &[1.0, 2.0, f64::NAN]), None);
        assert_eq!(Dataset::of_summary("a", 2, 1.0, 1.0), None);
        assert_eq!(Dataset::of_summary("a", 5, 1.0, -1.0), None);
    }
}
