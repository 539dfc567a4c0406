//! Watched locks: glibc's, until a site that is selected acquires them.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use relatch_plan::{Algorithm, Kind};

use super::{Code, Decision, Marker, WATCHED_FOR, selected_by_site};
use crate::places::{self, Caller, Chain};
use crate::thread;

/// Acquisitions of undecided sites that a thread can be in at once.
pub const DEPTH: usize = 8;

/// A lock that is held through a call whose site is not known yet.
#[derive(Clone, Copy)]
pub struct Watched {
    lock: usize,
    chain: Chain,
}

/// Looks at the site that is about to acquire a watched lock: the conversion that selects it.
pub(super) fn look(kind: Kind, caller: Caller) -> Option<(usize, Algorithm)> {
    let place = places::climb(caller);
    if place.state() == places::SITE { selected_by_site(kind, place) } else { None }
}

/// A watched lock has been acquired as glibc's: counts, and remembers the frames above if the site is
/// not known yet. Called while the lock is held, so that it is not converted meanwhile.
pub(super) fn acquired(marker: &impl Marker, count: &AtomicU32, lock: usize, caller: Caller) {
    let so_far = count.load(Relaxed) + 1;
    count.store(so_far, Relaxed);
    if so_far >= WATCHED_FOR {
        count.store(0, Relaxed);
        return marker.set(Code::of(Decision::Keep));
    }
    if places::climb(caller).state() == places::UNDECIDED {
        remember(lock, caller);
    }
}

/// Remembers the frames above an acquisition whose site is not known yet.
#[cold]
pub(super) fn remember(lock: usize, caller: Caller) {
    let Some(thread) = thread::current() else { return };
    if thread.watching == DEPTH {
        thread.watched.rotate_left(1);
        thread.watching -= 1;
    }
    let chain = Chain::collect(caller);
    thread.watched[thread.watching] = Watched { lock, chain };
    thread.watching += 1;
}

/// A lock is about to be released, by a hook entered with `stack`: its site can be decided.
#[cold]
pub(super) fn released(lock: usize, stack: usize) {
    let Some(thread) = thread::current() else { return };
    let watched = &thread.watched[..thread.watching];
    if let Some(at) = watched.iter().rposition(|watched| watched.lock == lock) {
        watched[at].chain.decide(stack);
        thread.watched[at..thread.watching].rotate_left(1);
        thread.watching -= 1;
    }
}
