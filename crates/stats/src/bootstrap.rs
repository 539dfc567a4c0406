//! Intervals by resampling.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::{quantile, summary};

/// Resamples that an interval is made of, unless the samples are large.
pub const RESAMPLES: usize = 10_000;

/// Resamples of samples so large that more would take minutes.
pub const FEWEST: usize = 1000;

/// Numbers drawn for one interval, about.
const DRAWN: usize = 200_000_000;

/// Interval of `ln(statistic(test) / statistic(reference))`, by drawing both samples again from
/// themselves. The statistic must be positive, as the mean of positive samples is.
///
/// It is the *expanded* percentile interval: resamples of `n` vary less than samples do, by
/// `sqrt((n - 1) / n)`, and they know nothing of Student's tails; so farther quantiles are taken, as
/// far as makes up for both. With two samples the smaller one counts.
/// Source: T. Hesterberg, What teachers should know about the bootstrap, American Statistician 69 (2015), 6.
pub fn log_ratio(
    test: &[f64],
    reference: &[f64],
    level: f64,
    seed: u64,
    statistic: impl Fn(&mut [f64]) -> f64,
) -> (f64, f64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut drawn = [vec![0.0; test.len()], vec![0.0; reference.len()]];
    let resamples = (DRAWN / (test.len() + reference.len())).clamp(FEWEST, RESAMPLES);
    let mut ratios: Vec<f64> = (0..resamples)
        .map(|_| {
            for (drawn, sample) in drawn.iter_mut().zip([test, reference]) {
                drawn.fill_with(|| sample[below(&mut random, sample.len())]);
            }
            (statistic(&mut drawn[0]) / statistic(&mut drawn[1])).ln()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let n = test.len().min(reference.len()) as f64;
    let reach = (n / (n - 1.0)).sqrt() * quantile::t_two_sided(level, n - 1.0);
    let tail = quantile::z_p_two_sided(reach) / 2.0;
    let at = |part| summary::quantile_of_sorted(&ratios, part);
    (at(tail), at(1.0 - tail))
}

/// A place below `n`; the bias of the multiplication is `n / 2^64`.
fn below(random: &mut Pcg64, n: usize) -> usize {
    ((u128::from(random.next_u64()) * n as u128) >> 64) as usize
}
