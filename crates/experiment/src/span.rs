//! Lengths of time as people write them.

use std::time::Duration;

/// Reads `90`, `90s`, `1.5m`, `2h` or `500ms`; a bare number is seconds.
///
/// # Errors
/// One line when it is none of these, or not above zero.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no length of time; write 90, 500ms, 90s, 1.5m or 2h");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if time > Duration::ZERO => Ok(time),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, millis) in
            [("90", 90_000), ("90s", 90_000), ("1.5m", 90_000), ("2h", 7_200_000), ("500ms", 500)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "s", "-1s", "0", "5d", "1 s", "nan", "1e999", "inf"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
