//! Quantiles and tails of the distributions that the tests need.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The `t` with `P(|T| <= t) = level` under Student's distribution; `df` may be fractional (Welch).
///
/// # Panics
/// If `df` is not positive or `level` is not strictly between 0 and 1.
pub fn t_two_sided(level: f64, df: f64) -> f64 {
    check_level(level);
    student(df).inverse_cdf(0.5 + level / 2.0)
}

/// `P(|T| >= |t|)` under Student's distribution.
///
/// # Panics
/// If `df` is not positive.
pub fn t_p_two_sided(t: f64, df: f64) -> f64 {
    (2.0 * student(df).cdf(-t.abs())).min(1.0)
}

/// The `z` with `P(|Z| <= z) = level` under the normal distribution.
///
/// # Panics
/// If `level` is not strictly between 0 and 1.
pub fn z_two_sided(level: f64) -> f64 {
    check_level(level);
    normal().inverse_cdf(0.5 + level / 2.0)
}

/// `P(|Z| >= |z|)` under the normal distribution.
pub fn z_p_two_sided(z: f64) -> f64 {
    (2.0 * normal().cdf(-z.abs())).min(1.0)
}

/// `P(Z <= z)` under the normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    normal().cdf(z)
}

fn check_level(level: f64) {
    assert!(level > 0.0 && level < 1.0, "a confidence level lies between 0 and 1, not {level}");
}

fn student(df: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive")
}

fn normal() -> Normal {
    Normal::standard()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-8, "{got} is not {want}");
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy 1.17.1: t.ppf(1 - (1 - level) / 2, df), norm.ppf.
        near(t_two_sided(0.95, 9.0), 2.262157162798205);
        near(t_two_sided(0.95, 1.0), 12.706204736174694);
        near(t_two_sided(0.80, 78.0), 1.2924995974099205);
        near(t_two_sided(0.998, 7.0), 4.785289628638333);
        near(t_two_sided(0.99, 4.3), 4.3919667076840545);
        near(z_two_sided(0.95), 1.959963984540054);
    }

    #[test]
    fn tails_are_those_of_scipy() {
        // scipy 1.17.1: 2 * t.sf(t, df), 2 * norm.sf(z).
        near(t_p_two_sided(2.5, 9.0), 0.033861827682985735);
        near(t_p_two_sided(-12.0, 4.5), 0.00013783197653273045);
        near(z_p_two_sided(-3.0), 0.0026997960632601866);
    }
}
