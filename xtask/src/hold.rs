//! What must hold, by name.

use std::path::Path;

use crate::bench::Bench;
use crate::figures::Figures;

pub mod corrupt;
pub mod cost;
pub mod counts;
pub mod finds;
pub mod honest;
pub mod lockpaths;
pub mod recorded;
pub mod selectors;
pub mod times;

/// Something that must hold.
pub struct Check {
    /// What it is called.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
    /// Takes more than ten minutes.
    pub long: bool,
    /// Makes it; what keeps it from being made is an error.
    pub run: fn(&Bench, &mut Figures) -> Result<(), String>,
}

/// Every check.
pub const ALL: &[Check] = &[
    Check {
        name: "counts",
        about: "counts are exact per site, however the program ends",
        long: false,
        run: counts::check,
    },
    Check {
        name: "times",
        about: "holds and waits are as long as the program measures them",
        long: false,
        run: times::check,
    },
    Check {
        name: "lockpaths",
        about: "lock paths do not allocate or print, and work early and in malloc",
        long: false,
        run: lockpaths::check,
    },
    Check {
        name: "cost",
        about: "what stat and same add to an uncontended pair",
        long: false,
        run: cost::check,
    },
    Check {
        name: "selectors",
        about: "sites and conversions on RocksDB and Kyoto Cabinet",
        long: false,
        run: selectors::check,
    },
    Check {
        name: "corrupt",
        about: "damaged recordings get one line and exit code 2",
        long: false,
        run: corrupt::check,
    },
    Check {
        name: "finds",
        about: "verdicts on Kyoto Cabinet and zstd that are known",
        long: false,
        run: finds::check,
    },
    Check {
        name: "recorded",
        about: "what stat costs Kyoto Cabinet, RocksDB and memcached",
        long: true,
        run: recorded::check,
    },
    Check {
        name: "honest",
        about: "verdicts on no change and on 5 %, 100 real trials each",
        long: true,
        run: honest::check,
    },
];

/// Makes a check with that command, as a test.
///
/// # Panics
/// With all figures, if one is out of its bound or the check could not be made.
pub fn must(relatch: &str, check: fn(&Bench, &mut Figures) -> Result<(), String>) {
    let mut figures = Figures::kept();
    let made = Bench::new(Path::new(relatch)).and_then(|bench| check(&bench, &mut figures));
    if let Err(error) = made {
        panic!("{error}\n{}", figures.lines());
    }
    assert!(figures.passed(), "{}", figures.lines());
}
