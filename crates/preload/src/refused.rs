//! Attempts that were refused at a place which nobody had released from yet.
//!
//! Whether a function acquires for its caller shows at a release ([`places`](crate::places)); a try that
//! finds the lock taken has none. It is counted where the frames above stood then, remembered with these
//! frames, and moved to its site once that is decided: by a later section of this thread, or of another.
//! What is still undecided when a thread ends stays where it was counted.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::writer::{Writer, add, raise};

use crate::class;
use crate::places::{Caller, Chain};
use crate::section::site_of;
use crate::thread::{Thread, What};

/// Places that a thread remembers refused attempts of.
pub const ROOM: usize = 4;

/// Attempts of one kind, refused at one place.
#[derive(Clone, Copy)]
pub struct Refused {
    lock: usize,
    what: What,
    chain: Chain,
    count: u64,
    wait: u64,
    wait_max: u64,
}

/// Remembers an attempt that has been counted as `what`, for a hook's `caller`.
#[cold]
pub fn remember(thread: &mut Thread, lock: usize, what: What, waited: Option<u64>, caller: Caller) {
    let chain = Chain::collect(caller);
    let ticks = waited.unwrap_or(0);
    let remembered = &mut thread.refused[..thread.refusals];
    if let Some(same) = remembered
        .iter_mut()
        .find(|refused| refused.lock == lock && refused.what == what && refused.chain.is_as(&chain))
    {
        same.count += 1;
        same.wait += ticks;
        same.wait_max = same.wait_max.max(ticks);
        return;
    }
    if thread.refusals == ROOM {
        thread.refused.rotate_left(1);
        thread.refusals -= 1;
    }
    thread.refused[thread.refusals] =
        Refused { lock, what, chain, count: 1, wait: ticks, wait_max: ticks };
    thread.refusals += 1;
}

/// Moves what has a site by now. `lock`, which this thread holds or is about to acquire, is one whose
/// class can be asked for; the others may be gone.
#[cold]
pub fn settle(thread: &mut Thread, writer: &Writer, lock: usize) {
    let mut at = 0;
    while at < thread.refusals {
        let refused = thread.refused[at];
        match now(writer, &refused, lock) {
            Some(what) => {
                move_counts(thread, writer, &refused, what);
                thread.refused[at..thread.refusals].rotate_left(1);
                thread.refusals -= 1;
            }
            None => at += 1,
        }
    }
}

/// What the attempts are to be counted as, if that can be said now.
fn now(writer: &Writer, refused: &Refused, lock: usize) -> Option<What> {
    let place = refused.chain.decided()?;
    let mut what = refused.what;
    if what.class == 0 {
        what.class =
            (lock == refused.lock).then(|| class::by_first_site(writer, lock, what.kind, place))?;
    }
    what.site = site_of(writer, place);
    Some(what)
}

fn move_counts(thread: &mut Thread, writer: &Writer, refused: &Refused, to: What) {
    if to == refused.what {
        return;
    }
    let (Some(old), Some(new)) = (thread.row(writer, refused.what), thread.row(writer, to)) else {
        return;
    };
    add(&old.rejected, refused.count.wrapping_neg());
    add(&old.wait, refused.wait.wrapping_neg());
    if old.rejected.load(Relaxed) == 0 && old.contended.load(Relaxed) == 0 {
        old.wait_max.store(0, Relaxed);
    }
    add(&new.rejected, refused.count);
    add(&new.wait, refused.wait);
    raise(&new.wait_max, refused.wait_max);
}
