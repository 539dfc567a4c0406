//! The environment variables by which the command tells the preload library what to do, and what
//! they mean.

use core::fmt;

/// What the library does in this process: a [`Mode`]. Without it, nothing.
pub const MODE: &str = "RELATCH_MODE";
/// The conversions, one per line ([`crate::Conversions`]).
pub const PLAN: &str = "RELATCH_PLAN";
/// The sites that take a converted lock shared, one per line ([`crate::Shares`]).
pub const SHARE: &str = "RELATCH_SHARE";
/// The directory in which every process writes its live recording, `*.live`.
pub const DIR: &str = "RELATCH_DIR";
/// A glob; executables that it does not match ([`crate::glob::matches_path`]) are left alone.
pub const ONLY: &str = "RELATCH_ONLY";
/// Globs of further wrappers, one per line.
pub const WRAPPERS: &str = "RELATCH_WRAPPERS";
/// `1`: a row per lock as well, not only per class and site.
pub const BY_LOCK: &str = "RELATCH_BY_LOCK";

/// Every variable above.
pub const ALL: [&str; 7] = [MODE, PLAN, SHARE, DIR, ONLY, WRAPPERS, BY_LOCK];

/// What the library does with the locks that it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Observes them, with sites and classes.
    Record,
    /// Interposed, left as they are.
    Same,
    /// Converts those that the plan selects, and records the waits of these.
    Convert,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 3] = [Mode::Record, Mode::Same, Mode::Convert];

    /// The value of [`MODE`].
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Record => "record",
            Mode::Same => "same",
            Mode::Convert => "convert",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for mode in Mode::ALL {
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
        }
        assert_eq!(Mode::from_name("RECORD"), None);
    }
}
