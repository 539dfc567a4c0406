//! Times and shares in few characters, as kernel people know them from the lockmeter's tables.

/// A time: `7.4us`, `706us`, `3177us`, `25ms`; below 0.1 us in nanoseconds. Up to six characters below
/// 10 000 seconds.
pub fn time(ns: f64) -> String {
    let (us, ms) = (ns / 1e3, ns / 1e6);
    if ns <= 0.0 {
        "0us".to_owned()
    } else if ns < 99.5 {
        format!("{ns:.0}ns")
    } else if us < 9.95 {
        format!("{us:.1}us")
    } else if us < 9999.5 {
        format!("{us:.0}us")
    } else if ms < 9999.5 {
        format!("{ms:.0}ms")
    } else {
        format!("{:.0}s", ms / 1e3)
    }
}

/// A share, of 1: `26.7%`, `0.05%`, `0%`. Up to five characters below 10 000 %.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        "0%".to_owned()
    } else if percent < 0.995 {
        format!("{percent:.2}%")
    } else if percent < 99.95 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// A length of time for a sentence: `263 ms`, `8.42 s`.
pub fn duration(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.3} us", ns / 1e3)
    } else if ns < 1e9 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.2} s", ns / 1e9)
    }
}

/// The name in at most `room` characters, cut in the middle: the end, with function and offset, tells
/// most.
pub fn cut(name: &str, room: usize) -> String {
    let len = name.chars().count();
    if len <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let front = kept / 3;
    let start: String = name.chars().take(front).collect();
    let end: String = name.chars().skip(len - (kept - front)).collect();
    format!("{start}\u{2026}{end}")
}

/// A field of a CSV file (RFC 4180): quoted where it must be.
pub fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_lockmeter() {
        for (ns, text) in [
            (0.0, "0us"),
            (12.3, "12ns"),
            (100.0, "0.1us"),
            (2_500.0, "2.5us"),
            (7_400.0, "7.4us"),
            (9_949.0, "9.9us"),
            (9_950.0, "10us"),
            (62_000.0, "62us"),
            (706_000.0, "706us"),
            (3_177_000.0, "3177us"),
            (9_999_400.0, "9999us"),
            (9_999_600.0, "10ms"),
            (25_000_000.0, "25ms"),
            (9_999_000_000.0, "9999ms"),
            (12_000_000_000.0, "12s"),
        ] {
            assert_eq!(time(ns), text, "{ns}");
        }
    }

    #[test]
    fn shares_are_those_of_the_lockmeter() {
        for (share, text) in [
            (0.0, "0%"),
            (0.00001, "0.00%"),
            (0.0005, "0.05%"),
            (0.0082, "0.82%"),
            (0.00996, "1.0%"),
            (0.055, "5.5%"),
            (0.267, "26.7%"),
            (0.9994, "99.9%"),
            (0.9999, "100%"),
            (1.0, "100%"),
            (3.12, "312%"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn cutting_keeps_the_end() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("rocksdb::LRUCacheShard::Lookup+0x30", 19), "rocksd\u{2026}:Lookup+0x30");
        assert_eq!(cut("größe", 3).chars().count(), 3);
        assert_eq!(cut("abc", 0), "\u{2026}");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(csv_field("f+0x30"), "f+0x30");
        assert_eq!(csv_field("std::map<int, \"x\">"), "\"std::map<int, \"\"x\"\">\"");
    }
}
