//! Patterns over names: `*` is any run of characters, also none, `?` is one character, `\` takes the
//! next character for itself. Everything else, brackets too, stands for itself: names contain
//! `operator[]` and `{lambda#1}`, and thus every name, put as a pattern, matches itself (`*` matches
//! the `*` of `char*`). Upper and lower case differ.

/// Whether the pattern matches the whole text.
///
/// Allocates nothing and does not recurse. The last `*` alone is ever tried again, so time is at
/// worst the product of both lengths.
///
/// ```
/// use relatch_plan::glob::matches;
/// assert!(matches("*Shard::Look?p", "cache::Shard::Lookup"));
/// assert!(!matches("Shard", "cache::Shard"));
/// assert!(matches(r"\*", "*") && !matches(r"\*", "x"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let (mut p, mut t) = (pattern.chars(), text.chars());
    // Where to go on after a mismatch: behind the last star, with one more character under it.
    let mut retry = None;
    loop {
        let (pattern_here, text_here) = (p.clone(), t.clone());
        match p.next() {
            Some('*') => {
                retry = Some((p.clone(), text_here));
                continue;
            }
            Some(wanted) => {
                let (wanted, any) = match wanted {
                    '?' => (wanted, true),
                    // A backslash at the very end stands for itself.
                    '\\' => (p.next().unwrap_or('\\'), false),
                    _ => (wanted, false),
                };
                match t.next() {
                    // No star can make the text longer.
                    None => return only_stars(pattern_here),
                    Some(found) if any || found == wanted => continue,
                    Some(_) => {}
                }
            }
            None if t.next().is_none() => return true,
            None => {}
        }
        match &mut retry {
            None => return false,
            Some((behind_star, under_star)) => {
                under_star.next();
                p = behind_star.clone();
                t = under_star.clone();
            }
        }
    }
}

fn only_stars(mut pattern: core::str::Chars<'_>) -> bool {
    pattern.all(|c| c == '*')
}

/// Whether the pattern matches a name as `relatch stat` prints it, either whole (`function+0x30`) or
/// without its offset (`function`).
pub fn matches_name(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || without_offset(name).is_some_and(|bare| matches(pattern, bare))
}

/// Whether the pattern matches an executable: its whole path if the pattern has a `/`, else the
/// last part of the path.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let name = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    matches(pattern, name)
}

/// `function` of `function+0x30`; `None` if there is no offset.
pub fn without_offset(name: &str) -> Option<&str> {
    let (bare, offset) = name.rsplit_once("+0x")?;
    let is_offset = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, slow and by recursion.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|n| by_definition(rest, &text[n..])),
            ['?', rest @ ..] => !text.is_empty() && by_definition(rest, &text[1..]),
            ['\\', c, rest @ ..] => text.first() == Some(c) && by_definition(rest, &text[1..]),
            [c, rest @ ..] => text.first() == Some(c) && by_definition(rest, &text[1..]),
        }
    }

    fn words(alphabet: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let to = all.len();
            for i in from..to {
                for c in alphabet {
                    let longer = format!("{}{c}", all[i]);
                    all.push(longer);
                }
            }
            from = to;
        }
        all
    }

    #[test]
    fn agrees_with_its_definition_on_every_short_pair() {
        let texts = words(&['a', 'b', '*', '\\'], 4);
        let mut matching = 0;
        for pattern in words(&['a', 'b', '*', '?', '\\'], 4) {
            let p: Vec<char> = pattern.chars().collect();
            for text in &texts {
                let t: Vec<char> = text.chars().collect();
                let expected = by_definition(&p, &t);
                matching += u32::from(expected);
                assert_eq!(matches(&pattern, text), expected, "{pattern:?} {text:?}");
            }
        }
        assert!(matching > 1000, "{matching}");
    }

    #[test]
    fn names_match_themselves() {
        for name in [
            "operator[]+0x10",
            "std::map<char*, int>::operator*",
            "f::{lambda#1}::operator()",
            "(anonymous namespace)::g[abi:cxx11]",
            "größe",
        ] {
            assert!(matches(name, name), "{name}");
        }
        assert!(matches("gr??e", "größe"));
    }

    #[test]
    fn many_stars_stay_quick() {
        let text = "a".repeat(20_000);
        let pattern = "a*".repeat(500) + "b";
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn offsets() {
        assert_eq!(without_offset("f+0x30"), Some("f"));
        assert_eq!(without_offset("f+0x"), None);
        assert_eq!(without_offset("f+0x3g"), None);
        assert_eq!(without_offset("operator+"), None);
        assert!(matches_name("f", "f+0x30") && matches_name("f+0x3*", "f+0x30"));
        assert!(!matches_name("f+0x4*", "f+0x30"));
    }

    #[test]
    fn paths() {
        assert!(matches_path("db_*", "/usr/bin/db_bench"));
        assert!(matches_path("/usr/*/db_bench", "/usr/bin/db_bench"));
        assert!(!matches_path("bin", "/usr/bin/db_bench"));
    }
}
