//! The t of three decimals.
//!
//! The printed table holds Student's quantiles rounded to three decimals, with three ways of its own:
//! the column called 99.5 % is that of 99.8 %; seven entries of that column are not the nearest; and
//! above 100 degrees of freedom the normal quantile is used at once (2.576 follows 2.626).

use crate::quantile;

/// Levels of confidence that there are, in percent.
pub const LEVELS: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];

/// Degrees of freedom of the last row.
const LAST_ROW: usize = 100;

/// Entries of the last column that are not the rounded quantile: degrees of freedom and entry.
const MISPRINTS: [(usize, f64); 7] =
    [(1, 318.313), (7, 4.782), (8, 4.499), (9, 4.296), (10, 4.143), (11, 4.024), (12, 3.929)];

/// One of [`LEVELS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level(f64);

impl Level {
    /// The level of so many percent, if there is one.
    pub fn of(percent: f64) -> Option<Level> {
        LEVELS.contains(&percent).then_some(Level(percent))
    }

    /// In percent, as it is called.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// What the column really holds, as a fraction.
    fn held(self) -> f64 {
        if self.is_last() { 0.998 } else { self.0 / 100.0 }
    }

    fn is_last(self) -> bool {
        self.0 == LEVELS[LEVELS.len() - 1]
    }
}

impl Default for Level {
    /// 95 %.
    fn default() -> Level {
        Level(95.0)
    }
}

/// The entry for so many degrees of freedom.
///
/// # Panics
/// If `df` is 0.
pub fn t(level: Level, df: usize) -> f64 {
    if let Some((_, entry)) = MISPRINTS.iter().find(|&&(at, _)| level.is_last() && at == df) {
        return *entry;
    }
    let exact = if df > LAST_ROW {
        quantile::z_two_sided(level.held())
    } else {
        quantile::t_two_sided(level.held(), df as f64)
    };
    (exact * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_printed_table() {
        let rows: [(usize, [f64; 6]); 9] = [
            (1, [3.078, 6.314, 12.706, 31.821, 63.657, 318.313]),
            (2, [1.886, 2.920, 4.303, 6.965, 9.925, 22.327]),
            (5, [1.476, 2.015, 2.571, 3.365, 4.032, 5.893]),
            (9, [1.383, 1.833, 2.262, 2.821, 3.250, 4.296]),
            (14, [1.345, 1.761, 2.145, 2.624, 2.977, 3.787]),
            (36, [1.306, 1.688, 2.028, 2.434, 2.719, 3.333]),
            (78, [1.292, 1.665, 1.991, 2.375, 2.640, 3.198]),
            (100, [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]),
            (101, [1.282, 1.645, 1.960, 2.326, 2.576, 3.090]),
        ];
        for (df, row) in rows {
            for (level, entry) in LEVELS.into_iter().zip(row) {
                assert_eq!(t(Level::of(level).unwrap(), df), entry, "{df} at {level}");
            }
        }
    }

    #[test]
    fn the_columns_add_up_to_those_of_the_printed_table() {
        // Per column, of 1 to 100 degrees of freedom: the sum of the entries in thousandths, and the
        // sum of entries times degrees; taken from the table in the program of Debian 12.
        let sums = [
            (133_918, 6_559_967),
            (176_683, 8_468_833),
            (219_156, 10_157_367),
            (283_368, 12_176_239),
            (348_777, 13_603_930),
            (685_224, 16_849_208),
        ];
        for (level, sums) in LEVELS.into_iter().zip(sums) {
            let entry = |df| (t(Level::of(level).unwrap(), df) * 1000.0).round() as u64;
            let plain: u64 = (1..=100).map(entry).sum();
            let weighted: u64 = (1..=100).map(|df| df as u64 * entry(df)).sum();
            assert_eq!((plain, weighted), sums, "{level}");
        }
    }

    #[test]
    fn other_levels_do_not_exist() {
        assert_eq!(Level::of(97.0), None);
        assert_eq!(Level::default(), Level::of(95.0).unwrap());
    }
}
