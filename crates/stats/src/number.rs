//! Numbers as C's `printf` writes them with `%g`, which tables of measured numbers have always used.

/// `%.{digits}g`: that many significant digits, no trailing zeros, an exponent only where it is
/// shorter or below -4. `digits` of 0 count as 1.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let digits = digits.max(1);
    // Rounding comes first: 9.9999999 with three digits is 10 and has another exponent.
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` notation has an e");
    let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_string()
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn as_printf_writes_them() {
        // By printf(1) of GNU coreutils with %.6g and %.8g.
        let six = [
            (0.0, "0"),
            (-302.3057, "-302.306"),
            (44.47094, "44.4709"),
            (100000.0, "100000"),
            (999999.5, "1e+06"),
            (1234567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.00001234567, "1.23457e-05"),
            (150.0, "150"),
            (1e100, "1e+100"),
            (9.9999996, "10"),
            (-0.5, "-0.5"),
        ];
        for (value, text) in six {
            assert_eq!(general(value, 6), text);
        }
        assert_eq!(general(2798.06166667, 8), "2798.0617");
        assert_eq!(general(43.3248174, 8), "43.324817");
        assert_eq!(general(123456789.0, 8), "1.2345679e+08");
        assert_eq!(general(f64::NAN, 6), "nan");
        assert_eq!(general(f64::NEG_INFINITY, 6), "-inf");
    }
}
