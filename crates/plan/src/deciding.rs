//! Deciding within the observed program: the lists are lines of text in the environment, read anew
//! for every class, without memory from the heap.

use crate::algorithm::{Algorithm, Kind};
use crate::conversion::{Conversion, ParseError};
use crate::glob;

/// The conversions of a plan, one per line.
#[derive(Clone, Copy, Debug)]
pub struct Conversions<'a> {
    text: &'a str,
}

impl<'a> Conversions<'a> {
    /// Takes the text as it stands; see [`Conversions::check`].
    pub const fn new(text: &'a str) -> Self {
        Conversions { text }
    }

    /// The conversions in order, empty lines left out.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = Result<Conversion<&'a str>, ParseError<'a>>> + use<'a> {
        self.text.split('\n').filter(|line| !line.is_empty()).map(Conversion::parse)
    }

    /// Whether every line is a conversion.
    ///
    /// # Errors
    /// What is wrong with the first line that is none.
    pub fn check(&self) -> Result<(), ParseError<'a>> {
        self.iter().try_for_each(|conversion| conversion.map(drop))
    }

    /// What becomes of a lock of that kind, whose class and site bear these names (as
    /// `relatch stat` prints them): position and algorithm of the first conversion that selects it.
    /// Lines that are no conversion count, but never match.
    pub fn first_match(&self, kind: Kind, names: &[&str]) -> Option<(usize, Algorithm)> {
        self.iter().enumerate().find_map(|(position, conversion)| {
            let conversion = conversion.ok()?;
            conversion.selects(kind, names).then_some((position, conversion.algorithm))
        })
    }

    /// Whether any conversion has that kind; if not, its locks need no names.
    pub fn has_kind(&self, kind: Kind) -> bool {
        self.iter().flatten().any(|conversion| conversion.kind == kind)
    }

    /// Whether all that decides is the kind, since no conversion has a selector.
    pub fn by_kind_alone(&self) -> bool {
        self.iter().flatten().all(|conversion| conversion.selector.is_none())
    }
}

/// The sites that take converted locks shared, one glob per line. A line `#N GLOB` holds for the
/// locks of conversion `N` alone (counted from 0), any other for all.
#[derive(Clone, Copy, Debug)]
pub struct Shares<'a> {
    text: &'a str,
}

impl<'a> Shares<'a> {
    /// Takes the text as it stands.
    pub const fn new(text: &'a str) -> Self {
        Shares { text }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.text.split('\n').all(str::is_empty)
    }

    /// Whether a site with these names takes a lock shared that was converted by the conversion at
    /// that position.
    pub fn shares(&self, position: usize, names: &[&str]) -> bool {
        self.text.split('\n').filter(|line| !line.is_empty()).any(|line| {
            let (only, pattern) = split_position(line);
            only.is_none_or(|only| only == position)
                && names.iter().any(|name| glob::matches_name(pattern, name))
        })
    }
}

/// `#N GLOB` into its parts.
pub(crate) fn split_position(line: &str) -> (Option<usize>, &str) {
    let numbered = line.strip_prefix('#').and_then(|rest| {
        let (number, pattern) = rest.split_once(' ')?;
        Some((number.parse().ok()?, pattern))
    });
    match numbered {
        Some((position, pattern)) => (Some(position), pattern),
        None => (None, line),
    }
}

/// Whether any of the globs, one per line, matches the name with or without its offset.
pub fn any_line_matches(globs: &str, name: &str) -> bool {
    globs.split('\n').any(|pattern| !pattern.is_empty() && glob::matches_name(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_matches_wins() {
        let text = "mutex@*Shard*=same\nmutex=ttas\nrwlock@f=rwsem\nmutex@g=mutex";
        let c = Conversions::new(text);
        assert_eq!(c.check(), Ok(()));
        assert_eq!(c.first_match(Kind::Mutex, &["LRUShard::f+0x1"]), Some((0, Algorithm::Same)));
        assert_eq!(c.first_match(Kind::Mutex, &["g"]), Some((1, Algorithm::Ttas)));
        assert_eq!(c.first_match(Kind::Rwlock, &["a", "f+0x9"]), Some((2, Algorithm::Rwsem)));
        assert_eq!(c.first_match(Kind::Rwlock, &["ff"]), None);
        assert_eq!(c.first_match(Kind::Spin, &["f"]), None);
        assert!(c.has_kind(Kind::Rwlock) && !c.has_kind(Kind::Spin));
        assert!(!c.by_kind_alone() && Conversions::new("mutex=ttas").by_kind_alone());
    }

    #[test]
    fn a_bad_line_is_told_and_never_matches() {
        let c = Conversions::new("mutex=nothing\nmutex=ttas\n");
        assert_eq!(
            c.check(),
            Err(ParseError::Algorithm { kind: Kind::Mutex, algorithm: "nothing" })
        );
        assert_eq!(c.first_match(Kind::Mutex, &[]), Some((1, Algorithm::Ttas)));
        assert_eq!(Conversions::new("").first_match(Kind::Mutex, &["f"]), None);
        assert_eq!(Conversions::new("").check(), Ok(()));
    }

    #[test]
    fn shares_of_one_or_of_all() {
        let s = Shares::new("#1 *Lookup\n*Get*\n#x odd\n");
        assert!(s.shares(1, &["Shard::Lookup+0x20"]));
        assert!(!s.shares(0, &["Shard::Lookup+0x20"]));
        assert!(s.shares(0, &["main", "Shard::GetIt"]));
        assert!(s.shares(7, &["#x odd"]));
        assert!(!s.is_empty() && Shares::new("\n").is_empty());
    }

    #[test]
    fn lines_of_globs() {
        assert!(any_line_matches("a*\nport::Mutex::*", "port::Mutex::Lock+0x9"));
        assert!(!any_line_matches("", ""));
    }
}
