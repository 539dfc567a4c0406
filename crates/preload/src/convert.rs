//! Convert mode: hooks that put another algorithm in a lock's place.
//!
//! # Where the algorithm lives
//! Inside the program's own lock, in bytes that glibc does not use for the kinds that are converted, so
//! there is no table to look in, nothing to free, and a lock that is copied or cleared is what it would
//! be with glibc. glibc's own words stay as those of a free lock.
//!
//! | structure | marker | state of the algorithm |
//! |---|---|---|
//! | `pthread_mutex_t` | 22..24 (`__elision`) | 24..40 (`__list`) |
//! | `pthread_rwlock_t` | 20..24 (padding) | 32..48 (padding) |
//! | `pthread_spinlock_t` | a table by address | all 4 bytes |
//!
//! # When it is decided
//! 1. A lock is decided when it is initialised, or when it is first used: by its kind, by the name of its
//!    class (place of the init call, or symbol of a static lock), else it is *watched*.
//! 2. A watched lock is glibc's. Each acquisition looks whether its site is selected; the first that is
//!    converts the lock: it takes glibc's lock, so that nobody holds it, takes the new lock, sets the
//!    marker and releases glibc's. Whoever waits for glibc's lock looks at the marker when it gets it,
//!    and goes on to the new one.
//! 3. Watching ends after [`WATCHED_FOR`] acquisitions, so that a lock that is not selected costs no more
//!    than under `same`.
//!
//! # Kinds
//! What an algorithm can not honour stays glibc's and is counted with the reason ([`Kept`]).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU16, AtomicU32};

use relatch_plan::{Algorithm, Kind};
use relatch_record::layout::Kept;

use crate::places::{self, Caller, Place};
use crate::slots::{self, Symbol};
use crate::{names, session, settings, unwind};

mod cond;
mod mutex;
mod rwlock;
mod share;
mod spin;
mod until;
mod waits;
pub mod watch;

/// Acquisitions that a lock is watched for.
const WATCHED_FOR: u32 = 4096;

/// Directs the hooks of the kinds that the plan names; the others stay glibc's.
pub fn direct() {
    let conversions = settings::conversions();
    let hooks: [(Kind, &[(Symbol, Hook)]); 4] = [
        (Kind::Mutex, &mutex::HOOKS),
        (Kind::Mutex, &cond::HOOKS),
        (Kind::Rwlock, &rwlock::HOOKS),
        (Kind::Spin, &spin::HOOKS),
    ];
    for (kind, hooks) in hooks {
        if conversions.has_kind(kind) {
            for (symbol, hook) in hooks {
                slots::direct(*symbol, hook.0);
            }
        }
    }
}

/// A hook's address.
struct Hook(*const ());
// SAFETY: the address of a function.
unsafe impl Sync for Hook {}

type Hooks<const N: usize> = [(Symbol, Hook); N];

/// What is decided about a lock; kept in the lock as a [`Code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Undecided,
    /// glibc's for good.
    Keep,
    /// glibc's, until a site is selected.
    Watch,
    /// Converted, by the conversion at this position of the plan.
    Convert(Algorithm, usize),
}

/// A decision in 16 bits. Zero, what an initialiser leaves, is [`Decision::Undecided`]; the high byte
/// tells a marker from whatever else the bytes may hold, which means [`Decision::Keep`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Code(u16);

const MARK: u16 = 0x5200;
const KEEP: u16 = MARK | 1;
const WATCH: u16 = MARK | 2;
/// Bit 7: converted; bits 3 to 6: position in the plan, at most 15; bits 0 to 2: algorithm.
const CONVERTED: u16 = MARK | 0x80;

impl Code {
    fn of(decision: Decision) -> Code {
        Code(match decision {
            Decision::Undecided => 0,
            Decision::Keep => KEEP,
            Decision::Watch => WATCH,
            Decision::Convert(algorithm, position) => {
                CONVERTED | (position.min(15) as u16) << 3 | number_of(algorithm)
            }
        })
    }

    #[inline(always)]
    fn decision(self) -> Decision {
        if self.0 & 0xff80 == CONVERTED {
            return Decision::Convert(algorithm_of(self.0 & 7), usize::from(self.0 >> 3) & 15);
        }
        match self.0 {
            0 => Decision::Undecided,
            WATCH => Decision::Watch,
            _ => Decision::Keep,
        }
    }
}

#[inline(always)]
fn algorithm_of(number: u16) -> Algorithm {
    match number {
        0 => Algorithm::Ttas,
        1 => Algorithm::Mutex,
        2 => Algorithm::Qrwlock,
        _ => Algorithm::Rwsem,
    }
}

fn number_of(algorithm: Algorithm) -> u16 {
    match algorithm {
        Algorithm::Ttas => 0,
        Algorithm::Mutex => 1,
        Algorithm::Qrwlock => 2,
        // `same` is no conversion: see `decide`.
        Algorithm::Rwsem | Algorithm::Same => 3,
    }
}

/// A lock's marker.
trait Marker {
    fn get(&self) -> Code;
    /// Decides an undecided lock; what is decided afterwards.
    fn decide(&self, code: Code) -> Code;
    fn set(&self, code: Code);
}

macro_rules! marker {
    ($atomic:ty, $value:ty) => {
        impl Marker for $atomic {
            #[inline(always)]
            fn get(&self) -> Code {
                // Acquire, pairs with the release in `set`: a converted lock's state is there.
                Code(self.load(Acquire) as u16)
            }

            fn decide(&self, code: Code) -> Code {
                match self.compare_exchange(0, <$value>::from(code.0), Release, Acquire) {
                    Ok(_) => code,
                    Err(found) => Code(found as u16),
                }
            }

            fn set(&self, code: Code) {
                // Release, pairs with the acquire in `get`.
                self.store(<$value>::from(code.0), Release);
            }
        }
    };
}

marker!(AtomicU16, u16);
marker!(AtomicU32, u32);

/// What a lock is known by when it is decided.
#[derive(Clone, Copy)]
enum Origin {
    /// The place of its init call.
    Init(&'static Place),
    /// Used without one.
    Unknown,
}

/// Decides what becomes of a lock that no reason keeps.
#[cold]
fn decide(kind: Kind, lock: usize, origin: Origin) -> Decision {
    let conversions = settings::conversions();
    let without_name = || decision_of(conversions.first_match(kind, &[]));
    match origin {
        _ if conversions.by_kind_alone() => without_name(),
        Origin::Init(place) => by_place(kind, place),
        Origin::Unknown if unwind::object_at(lock).is_some() => {
            names::with_static(lock, |name| decision_of(conversions.first_match(kind, &[name])))
                .unwrap_or_else(without_name)
        }
        Origin::Unknown => without_name(),
    }
}

fn decision_of(found: Option<(usize, Algorithm)>) -> Decision {
    match found {
        Some((_, Algorithm::Same)) => Decision::Keep,
        Some((position, algorithm)) => Decision::Convert(algorithm, position),
        None => Decision::Watch,
    }
}

/// What the name of a place decides, whether locks begin there or are acquired; looked up once, since a
/// symbol table is long and a program may initialise a lock for every object.
fn by_place(kind: Kind, place: &'static Place) -> Decision {
    let known = &place.conversion[kind as usize];
    if known.load(Relaxed) == 0 {
        let conversions = settings::conversions();
        let found =
            names::with_place(place.address(), |name| conversions.first_match(kind, &[name]));
        let found = found.unwrap_or_else(|| conversions.first_match(kind, &[]));
        known.store(Code::of(decision_of(found)).0 as u8, Relaxed);
    }
    Code(MARK | u16::from(known.load(Relaxed))).decision()
}

/// The conversion that selects a site.
fn selected_by_site(kind: Kind, place: &'static Place) -> Option<(usize, Algorithm)> {
    match by_place(kind, place) {
        Decision::Convert(algorithm, position) => Some((position, algorithm)),
        _ => None,
    }
}

/// Counts a lock that stays glibc's.
#[cold]
fn count_kept(why: Kept) {
    if let Some(writer) = session::writer() {
        writer.header().kept[why as usize].fetch_add(1, Relaxed);
    }
}

/// Counts a converted lock; one that had been watched was counted as not selected.
#[cold]
fn count_converted(was_watched: bool) {
    if let Some(writer) = session::writer() {
        writer.header().converted.fetch_add(1, Relaxed);
        if was_watched {
            // A child of a fork counts from zero.
            let kept = &writer.header().kept[Kept::NotSelected as usize];
            let _ = kept.fetch_update(Relaxed, Relaxed, |kept| kept.checked_sub(1));
        }
    }
}

/// Notes what was decided about a lock for the first time.
fn count(decision: Decision) {
    match decision {
        Decision::Convert(..) => count_converted(false),
        Decision::Keep | Decision::Watch => count_kept(Kept::NotSelected),
        Decision::Undecided => {}
    }
}

/// Where an init call's class begins.
fn origin_of_init(caller: Caller) -> Origin {
    if settings::conversions().by_kind_alone() {
        return Origin::Unknown;
    }
    Origin::Init(places::origin(caller))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_survive_their_code() {
        for decision in [
            Decision::Undecided,
            Decision::Keep,
            Decision::Watch,
            Decision::Convert(Algorithm::Ttas, 0),
            Decision::Convert(Algorithm::Rwsem, 15),
            Decision::Convert(Algorithm::Qrwlock, 3),
        ] {
            assert_eq!(Code::of(decision).decision(), decision);
        }
    }

    #[test]
    fn foreign_bytes_keep_the_lock() {
        assert_eq!(Code(0x0007).decision(), Decision::Keep);
        assert_eq!(Code(0xffff).decision(), Decision::Keep);
    }
}
