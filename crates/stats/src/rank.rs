//! Ranks, and the rank statistics that need no shape of distribution.

use crate::quantile;

/// Ranks from 1, in the order given; equal values share the mean of their ranks.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |&&i: &&usize| values[i] == values[order[start]];
        let end = start + order[start..].iter().take_while(same).count();
        for &i in &order[start..end] {
            ranks[i] = (start + 1 + end) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

/// Sizes of the groups of equal values that have more than one member.
pub(crate) fn ties(values: &[f64]) -> Vec<usize> {
    let sorted = crate::summary::sorted(values);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).filter(|&size| size > 1).collect()
}

/// `P(T <= at_most)` of Wilcoxon's signed-rank statistic for `n` differences whose signs are coin
/// tosses, exactly (up to 200 differences; beyond by the normal distribution with half a step of
/// continuity).
pub fn signed_rank_cdf(n: usize, at_most: usize) -> f64 {
    const EXACT: usize = 200;
    let most = n * (n + 1) / 2;
    if at_most >= most {
        return 1.0;
    }
    if n > EXACT {
        let mean = most as f64 / 2.0;
        let sd = (most as f64 * (2 * n + 1) as f64 / 12.0).sqrt();
        return quantile::normal_cdf((at_most as f64 + 0.5 - mean) / sd);
    }
    // chance[s]: that the ranks so far with a positive sign sum to s; sums above `at_most` only grow.
    let mut chance = vec![0.0; at_most + 1];
    chance[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=at_most).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    chance.iter().sum()
}

/// Spearman's correlation of a series with its own order: is there a trend? With the two-sided
/// p-value, exact up to 8 values (all orders are tried), by Student's distribution above.
///
/// `None` for fewer than 4 values or if all are equal.
pub fn trend(series: &[f64]) -> Option<Trend> {
    const EXACT: usize = 8;
    let n = series.len();
    if n < 4 {
        return None;
    }
    let ranks = ranks(series);
    let places: Vec<f64> = (1..=n).map(|place| place as f64).collect();
    let rho = correlation(&places, &ranks)?;
    let p = if n <= EXACT {
        let (mut as_far, mut orders) = (0u32, 0u32);
        for_each_order(&mut ranks.clone(), 0, &mut |order| {
            let other = correlation(&places, order).expect("not all equal");
            orders += 1;
            as_far += u32::from(other.abs() >= rho.abs() - 1e-9);
        });
        f64::from(as_far) / f64::from(orders)
    } else if rho.abs() >= 1.0 - 1e-12 {
        0.0
    } else {
        let df = (n - 2) as f64;
        quantile::t_p_two_sided(rho * (df / (1.0 - rho * rho)).sqrt(), df)
    };
    Some(Trend { rho, p })
}

/// How far a series moves with its order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Spearman's correlation with the order, -1 to 1.
    pub rho: f64,
    /// Chance of one at least as far from 0 if the order means nothing.
    pub p: f64,
}

/// Pearson's correlation; `None` if one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (crate::summary::mean(a), crate::summary::mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x - mean_a, y - mean_b);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

fn for_each_order(values: &mut [f64], fixed: usize, visit: &mut impl FnMut(&[f64])) {
    if fixed == values.len() {
        return visit(values);
    }
    for next in fixed..values.len() {
        values.swap(fixed, next);
        for_each_order(values, fixed + 1, visit);
        values.swap(fixed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(ties(&[3.0, 1.0, 3.0, 2.0, 2.0, 2.0]), [3, 2]);
    }

    #[test]
    fn signed_rank_distribution_is_the_published_one() {
        // Numbers of subsets of 1..=10 that sum to at most 8: 25 of 1024; to at most 10: 43.
        assert_eq!(signed_rank_cdf(10, 8), 25.0 / 1024.0);
        assert_eq!(signed_rank_cdf(10, 10), 43.0 / 1024.0);
        assert_eq!(signed_rank_cdf(5, 0), 1.0 / 32.0);
        assert_eq!(signed_rank_cdf(5, 15), 1.0);
        // Critical value of the printed tables for n = 20 at 5 % (two-sided): 52.
        assert!(2.0 * signed_rank_cdf(20, 52) <= 0.05 && 2.0 * signed_rank_cdf(20, 53) > 0.05);
    }

    #[test]
    fn the_normal_distribution_takes_over_smoothly() {
        // Both sides of the border, at the same distance in standard deviations from the middle.
        let at = |n: usize| {
            let most = (n * (n + 1) / 2) as f64;
            let sd = (most * (2 * n + 1) as f64 / 12.0).sqrt();
            signed_rank_cdf(n, (most / 2.0 - 2.0 * sd) as usize)
        };
        assert!((at(200) / at(201) - 1.0).abs() < 0.02, "{} and {}", at(200), at(201));
    }

    #[test]
    fn trends_are_those_of_scipy() {
        // scipy 1.17.1: spearmanr(range(10), ...)
        let up = trend(&[1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0, 8.0, 10.0]).unwrap();
        assert!((up.rho - 0.9515151515151514).abs() < 1e-12);
        assert!((up.p / 2.279854920641689e-5 - 1.0).abs() < 1e-6, "{}", up.p);
        // Five values: 1 of 60 orders is at least as straight on either side.
        let down = trend(&[5.0, 4.0, 3.0, 2.0, 1.0]).unwrap();
        assert!((down.rho + 1.0).abs() < 1e-12);
        assert!((down.p - 2.0 / 120.0).abs() < 1e-12);
        assert_eq!(trend(&[1.0; 9]), None);
    }
}
