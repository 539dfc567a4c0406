//! The kinds of locks that programs use, and the algorithms that can stand in for them.

use core::fmt;

/// What the program declared: the type of the lock, not how it is implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `pthread_mutex_t` (40 bytes): exclusive, may sleep, works with condition variables.
    Mutex,
    /// `pthread_rwlock_t` (56 bytes): exclusive or shared.
    Rwlock,
    /// `pthread_spinlock_t` (4 bytes): exclusive, waits without sleeping.
    Spin,
}

impl Kind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Kind; 3] = [Kind::Mutex, Kind::Rwlock, Kind::Spin];

    /// The word for it in conversions and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::Rwlock => "rwlock",
            Kind::Spin => "spin",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a lock can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Interposed, but left as it is.
    Same,
    /// Test and test-and-set: spins on one word.
    Ttas,
    /// Spins for a while, then parks on a three-state word.
    Mutex,
    /// Fair reader-writer lock: whoever has to wait queues and parks.
    Qrwlock,
    /// Reader-writer semaphore: writers that wait spin while the owner runs, then park.
    Rwsem,
}

impl Algorithm {
    /// Every algorithm that a conversion can name.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Same, Algorithm::Ttas, Algorithm::Mutex, Algorithm::Qrwlock, Algorithm::Rwsem];

    /// The word for it in conversions and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Same => "same",
            Algorithm::Ttas => "ttas",
            Algorithm::Mutex => "mutex",
            Algorithm::Qrwlock => "qrwlock",
            Algorithm::Rwsem => "rwsem",
        }
    }

    /// The algorithm of that name.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Whether several threads can hold it at once, in shared mode.
    pub const fn has_shared_mode(self) -> bool {
        matches!(self, Algorithm::Qrwlock | Algorithm::Rwsem)
    }

    /// Whether a lock of that kind can become this.
    ///
    /// - A spinlock has four bytes of room, which hold the word of `ttas` or `mutex` only.
    /// - An rwlock needs a shared mode: under an exclusive lock readers would exclude each other,
    ///   and a thread that reads twice, as POSIX allows, would wait for itself.
    /// - A mutex has room for every algorithm.
    pub const fn applies_to(self, kind: Kind) -> bool {
        match (self, kind) {
            (Algorithm::Same, _) | (_, Kind::Mutex) => true,
            (_, Kind::Rwlock) => self.has_shared_mode(),
            (_, Kind::Spin) => matches!(self, Algorithm::Ttas | Algorithm::Mutex),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Kind::from_name("Mutex"), None);
        assert_eq!(Algorithm::from_name(""), None);
    }

    #[test]
    fn which_applies_to_which() {
        let fitting = |kind| {
            Algorithm::ALL.into_iter().filter(move |a| a.applies_to(kind)).collect::<Vec<_>>()
        };
        use Algorithm::*;
        assert_eq!(fitting(Kind::Mutex), Algorithm::ALL);
        assert_eq!(fitting(Kind::Rwlock), [Same, Qrwlock, Rwsem]);
        assert_eq!(fitting(Kind::Spin), [Same, Ttas, Mutex]);
    }
}
