//! Several comparisons at once.

/// Holm's step-down adjustment: with the adjusted p-values held against one threshold, the chance of
/// *any* false rejection among all of them stays below it, however they depend on each other.
///
/// In the order given. Source: S. Holm, A simple sequentially rejective multiple test procedure,
/// Scandinavian Journal of Statistics 6 (1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut so_far: f64 = 0.0;
    for (rejected, &index) in order.iter().enumerate() {
        let left = (p_values.len() - rejected) as f64;
        so_far = so_far.max((left * p_values[index]).min(1.0));
        adjusted[index] = so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_r_does() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn never_above_one_and_never_below_the_raw_value() {
        assert_eq!(holm(&[0.6, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[0.2]), [0.2]);
        assert!(holm(&[]).is_empty());
    }
}
