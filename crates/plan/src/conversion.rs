//! One conversion and its grammar, `KIND[@SELECTOR]=ALGORITHM`.

use core::fmt;

use crate::algorithm::{Algorithm, Kind};
use crate::glob;

/// Locks of one kind that a selector picks, and what they become.
///
/// `S` is how the selector's text is held: `&str` where nothing may be allocated, `String` in a
/// plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conversion<S> {
    /// Locks of this kind only.
    pub kind: Kind,
    /// A [`glob`] over the names of classes and sites; `None` picks every lock of the kind.
    pub selector: Option<S>,
    /// What the lock becomes.
    pub algorithm: Algorithm,
}

impl<'a> Conversion<&'a str> {
    /// Reads `KIND[@SELECTOR]=ALGORITHM`. It is split at the last `=` and the first `@`, so that a
    /// selector may contain both.
    ///
    /// # Errors
    /// Names the part that is wrong and what may stand there.
    pub fn parse(text: &'a str) -> Result<Self, ParseError<'a>> {
        let (left, algorithm) = text.rsplit_once('=').ok_or(ParseError::NoAlgorithm { text })?;
        let (kind, selector) = match left.split_once('@') {
            Some((kind, selector)) => (kind, Some(selector)),
            None => (left, None),
        };
        let kind = Kind::from_name(kind).ok_or(ParseError::Kind { kind })?;
        let algorithm =
            Algorithm::from_name(algorithm).ok_or(ParseError::Algorithm { kind, algorithm })?;
        let conversion = Conversion { kind, selector, algorithm };
        conversion.check()?;
        Ok(conversion)
    }

    /// Whether the parts fit together; [`Conversion::parse`] has asked already.
    ///
    /// # Errors
    /// An empty selector, one over several lines, or an algorithm that the kind cannot become.
    pub fn check(&self) -> Result<(), ParseError<'a>> {
        if let Some(selector) = self.selector {
            if selector.is_empty() {
                return Err(ParseError::EmptySelector { kind: self.kind });
            }
            if selector.contains('\n') {
                return Err(ParseError::SelectorOverLines { selector });
            }
        }
        if !self.algorithm.applies_to(self.kind) {
            return Err(ParseError::DoesNotApply { kind: self.kind, algorithm: self.algorithm });
        }
        Ok(())
    }
}

impl<S: AsRef<str>> Conversion<S> {
    /// Whether a lock of that kind, whose class and site bear these names, is one of those meant.
    ///
    /// Names are given as `relatch stat` prints them, `function+0x30`; the bare `function` is tried
    /// as well.
    pub fn selects(&self, kind: Kind, names: &[&str]) -> bool {
        self.kind == kind
            && self.selector.as_ref().is_none_or(|selector| {
                names.iter().any(|name| glob::matches_name(selector.as_ref(), name))
            })
    }
}

impl<S: AsRef<str>> fmt::Display for Conversion<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(selector) = &self.selector {
            write!(f, "@{}", selector.as_ref())?;
        }
        write!(f, "={}", self.algorithm)
    }
}

/// Why a text is no conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError<'a> {
    /// There is no `=`.
    NoAlgorithm {
        /// The whole text.
        text: &'a str,
    },
    /// No kind has this name.
    Kind {
        /// What stands before `@` or `=`.
        kind: &'a str,
    },
    /// No algorithm has this name.
    Algorithm {
        /// The kind before it, which limits the choice.
        kind: Kind,
        /// What stands behind the last `=`.
        algorithm: &'a str,
    },
    /// `KIND@=ALGORITHM`.
    EmptySelector {
        /// The kind before it.
        kind: Kind,
    },
    /// The selector contains the end of a line.
    SelectorOverLines {
        /// The selector.
        selector: &'a str,
    },
    /// A lock of that kind cannot become that.
    DoesNotApply {
        /// The kind.
        kind: Kind,
        /// The algorithm.
        algorithm: Algorithm,
    },
}

/// The algorithms that a kind can become, as a list for a message.
struct Fitting(Kind);

impl fmt::Display for Fitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for algorithm in Algorithm::ALL.into_iter().filter(|a| a.applies_to(self.0)) {
            write!(f, "{separator}{algorithm}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for ParseError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ParseError::NoAlgorithm { text } => {
                write!(f, "`{text}` has no `=`; a conversion is KIND[@SELECTOR]=ALGORITHM")
            }
            ParseError::Kind { kind } => {
                write!(f, "unknown kind of lock `{kind}`; it is mutex, rwlock or spin")
            }
            ParseError::Algorithm { kind, algorithm } => {
                write!(
                    f,
                    "unknown algorithm `{algorithm}`; a {kind} becomes one of {}",
                    Fitting(kind)
                )
            }
            ParseError::EmptySelector { kind } => {
                write!(
                    f,
                    "the selector behind `{kind}@` is empty; leave out the `@` to mean every {kind}"
                )
            }
            ParseError::SelectorOverLines { selector } => {
                write!(f, "the selector {selector:?} has more than one line")
            }
            ParseError::DoesNotApply { kind, algorithm } => {
                let reason = match kind {
                    Kind::Rwlock => {
                        "has no shared mode, its readers would exclude each other and themselves"
                    }
                    _ => "does not fit into the four bytes of a spinlock",
                };
                write!(f, "{algorithm} {reason}; a {kind} becomes one of {}", Fitting(kind))
            }
        }
    }
}

impl core::error::Error for ParseError<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let c = Conversion::parse("mutex@*LRUCacheShard*=ttas").unwrap();
        assert_eq!(c.kind, Kind::Mutex);
        assert_eq!(c.selector, Some("*LRUCacheShard*"));
        assert_eq!(c.algorithm, Algorithm::Ttas);
        assert_eq!(Conversion::parse("rwlock=rwsem").unwrap().selector, None);
    }

    #[test]
    fn selectors_keep_their_equal_and_at_signs() {
        let c = Conversion::parse("mutex@X::operator==+0x30=mutex").unwrap();
        assert_eq!(c.selector, Some("X::operator==+0x30"));
        let c = Conversion::parse("mutex@f@@V1=mutex").unwrap();
        assert_eq!(c.selector, Some("f@@V1"));
    }

    #[test]
    fn text_leads_back() {
        for text in ["mutex=same", "spin=ttas", "rwlock@RWLock::*=qrwlock", "mutex@a=b@c=rwsem"] {
            assert_eq!(Conversion::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_which_part() {
        let message = |text| Conversion::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("mutex"),
            "`mutex` has no `=`; a conversion is KIND[@SELECTOR]=ALGORITHM"
        );
        assert_eq!(
            message("futex@x=ttas"),
            "unknown kind of lock `futex`; it is mutex, rwlock or spin"
        );
        assert_eq!(
            message("spin=mcs"),
            "unknown algorithm `mcs`; a spin becomes one of same, ttas, mutex"
        );
        assert_eq!(
            message("mutex@=ttas"),
            "the selector behind `mutex@` is empty; leave out the `@` to mean every mutex"
        );
        assert_eq!(
            message("spin=rwsem"),
            "rwsem does not fit into the four bytes of a spinlock; a spin becomes one of same, ttas, mutex"
        );
        assert_eq!(
            message("rwlock@*=ttas"),
            "ttas has no shared mode, its readers would exclude each other and themselves; \
             a rwlock becomes one of same, qrwlock, rwsem"
        );
        assert_eq!(message("mutex@a\nb=ttas"), r#"the selector "a\nb" has more than one line"#);
        assert!(message("").contains("has no `=`"));
        assert!(message("=").contains("unknown kind of lock ``"));
    }

    #[test]
    fn names_with_and_without_offset() {
        let c = Conversion::parse("mutex@*Shard::Lookup=ttas").unwrap();
        assert!(c.selects(Kind::Mutex, &["main+0x10", "cache::Shard::Lookup+0x30"]));
        assert!(!c.selects(Kind::Rwlock, &["cache::Shard::Lookup+0x30"]));
        assert!(!c.selects(Kind::Mutex, &["cache::Shard::Lookup2+0x30"]));
        assert!(!c.selects(Kind::Mutex, &[]));
        let every = Conversion::parse("mutex=ttas").unwrap();
        assert!(every.selects(Kind::Mutex, &[]));
        let exact = Conversion::parse("mutex@f+0x30=ttas").unwrap();
        assert!(exact.selects(Kind::Mutex, &["f+0x30"]) && !exact.selects(Kind::Mutex, &["f+0x3"]));
    }
}
