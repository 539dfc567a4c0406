//! When an experiment has enough rounds.
//!
//! It may stop on the *width* of its intervals and never on a p-value: who looks after every round and
//! stops at the first p below 5 % finds a difference between equal things in 4 of 10 experiments.

use crate::paired::Paired;

/// Rounds before the width is looked at, because the first few make a width of little worth.
pub const MIN_ROUNDS: usize = 10;

/// Whether every comparison is known to plus or minus `percent`, after at least [`MIN_ROUNDS`] rounds.
///
/// No comparison at all is never enough.
pub fn narrow_enough(comparisons: &[Paired], percent: f64) -> bool {
    !comparisons.is_empty()
        && comparisons
            .iter()
            .all(|paired| paired.n >= MIN_ROUNDS && paired.half_width() * 100.0 <= percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_to(half: f64, n: usize) -> Paired {
        Paired { n, ratio: 1.3, low: 1.3 / (1.0 + half), high: 1.3 * (1.0 + half), p: 1e-6 }
    }

    #[test]
    fn the_widest_decides() {
        assert!(narrow_enough(&[known_to(0.019, 12), known_to(0.005, 12)], 2.0));
        assert!(!narrow_enough(&[known_to(0.021, 12), known_to(0.005, 12)], 2.0));
    }

    #[test]
    fn never_before_ten_rounds_nor_without_a_comparison() {
        assert!(!narrow_enough(&[known_to(0.001, 9)], 2.0));
        assert!(narrow_enough(&[known_to(0.001, 10)], 2.0));
        assert!(!narrow_enough(&[], 2.0));
    }
}
