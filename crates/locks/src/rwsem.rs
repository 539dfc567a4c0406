//! `rwsem`: a sleeping reader-writer lock that lets running threads pass sleepers, for a while.
//!
//! In the spirit of the Linux kernel's rw_semaphore (`kernel/locking/rwsem.c`): stealing keeps the
//! lock busy while a sleeper wakes up; a hand-off flag ends it before the sleeper starves; waiting
//! readers enter together. The kernel keeps a list of waiters; here there are only counts, so
//! that a waiter owns no memory and the lock fits into 16 bytes. What that costs is said in rule 6.
//!
//! | bits of `state` | meaning |
//! |---|---|
//! | 0 | *writer*: one is inside |
//! | 1 | *hand-off*: a waiting writer has starved; nobody steals |
//! | 2 | *woken*: a waiting writer was woken and has not looked yet |
//! | 3-4 | *phase*, counting the times waiting readers were let in, modulo 4 |
//! | 5-31 | readers inside, or passing through |
//! | 32-47 | waiting readers |
//! | 48-63 | waiting writers |
//!
//! Waiting readers sleep on the word `phase`: modulo 4 it is the same number, and follows `state`; the
//! bits above change when they are only to look again.
//!
//! 1. A newcomer reads if there is neither a writer inside nor one waiting, nor hand-off. It steals,
//!    passing waiting writers, if nobody at all is inside and there is no hand-off. A newcomer
//!    writes, passing all who wait, if nobody is inside and there is no hand-off. Writers try for a
//!    bounded time before they wait. (So a stream of readers ends: while one is inside and a
//!    writer waits, none is added.)
//! 2. A waiting reader sleeps. A writer that leaves, or downgrades, lets *all* waiting readers in:
//!    in one step they become readers inside, and the phase advances. So a reader waits for the
//!    writer inside and for no other.
//! 3. When the lock becomes free otherwise and writers wait, one is woken. It competes with those who
//!    steal. Having slept in vain for 4 ms it sets hand-off: from then on only waiting writers,
//!    and readers let in by rule 2, enter. The writer that enters clears it.
//! 4. Readers only wait while a writer is inside or waits. If the last waiting writer's time runs out,
//!    it wakes the waiting readers without letting them in: they enter by themselves.
//! 5. Nobody sleeps beside a free lock: a writer that stops waiting and finds it free wakes another,
//!    since the wake-up it may have used was meant for one of them. *Woken* only saves needless
//!    wake-ups: every waiting writer clears it whenever it has looked.
//! 6. No list, no order: which waiting writer is woken is the kernel's choice (the longest asleep), it
//!    may lose to another, and then sleeps behind the others. Readers passing through a held lock
//!    make `try_write` fail when the writer leaves at that moment.
//! 7. Whoever lets readers in advances `phase` before they can leave: they hold the lock meanwhile,
//!    so nobody can have freed it. A reader whose time runs out after being let in waits for that.
//!    Hence no reader is let in while one who was let in before has yet to notice.
//!
//! There is room for 134 217 727 readers inside and 65 535 waiting threads of each mode; one too
//! many to be counted waits spinning.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::platform::{Clock, Deadline, Native, Platform, Word};
use crate::raw::{RawRwLock, ZeroIsFree};

const WRITER: u64 = 1;
const HANDOFF: u64 = 1 << 1;
const WOKEN: u64 = 1 << 2;
const PHASE: u64 = 1 << 3;
const PHASE_MASK: u64 = 3 * PHASE;
const PHASES: u32 = 4;
/// One step of the bits above the phase in the word `phase`.
const LOOK_AGAIN: u32 = PHASES;
const READER: u64 = 1 << 5;
const READERS: u64 = (1 << 32) - READER;
const WAITING_READER: u64 = 1 << 32;
const WAITING_READERS: u64 = 0xffff * WAITING_READER;
const WAITING_WRITER: u64 = 1 << 48;
const WAITING_WRITERS: u64 = 0xffff * WAITING_WRITER;

/// How long a writer sleeps in vain before it asks for hand-off: the kernel's `HZ / 250`.
const PATIENCE_NS: u64 = 4_000_000;

/// Looks, and attempts when there is a chance, of a newcomer before it waits: some microseconds.
const SPINS: u32 = 256;

/// The `rwsem` lock; see the crate's table.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RwSem<P: Platform = Native> {
    state: P::U64,
    phase: P::U32,
}

impl RwSem {
    /// A free lock.
    pub const fn new() -> Self {
        RwSem { state: AtomicU64::new(0), phase: AtomicU32::new(0) }
    }
}

// SAFETY: free is 0 in both words, and they have no drop glue.
unsafe impl ZeroIsFree for RwSem {}

fn is_free(state: u64) -> bool {
    state & (WRITER | READERS) == 0
}

fn may_write(state: u64) -> bool {
    is_free(state) && state & HANDOFF == 0
}

fn may_read(state: u64) -> bool {
    state & (WRITER | HANDOFF | WAITING_WRITERS) == 0
}

/// Rule 1: past waiting writers, into an empty lock.
fn may_steal_reading(state: u64) -> bool {
    may_write(state)
}

/// Rule 3: whether the one who left `state` behind has to wake a writer.
fn needs_writer(state: u64) -> bool {
    is_free(state) && state & WAITING_WRITERS != 0 && state & WOKEN == 0
}

fn phase_of(state: u64) -> u32 {
    ((state & PHASE_MASK) / PHASE) as u32
}

/// The word `phase` after another letting in.
fn next_phase(word: u32) -> u32 {
    word - word % PHASES + (word + 1) % PHASES
}

/// Rule 2: the state in which all waiting readers are inside.
fn with_readers_let_in(state: u64) -> u64 {
    let waiting = (state & WAITING_READERS) / WAITING_READER;
    let phase = state.wrapping_add(PHASE) & PHASE_MASK;
    ((state & !WAITING_READERS & !PHASE_MASK) | phase) + waiting * READER
}

impl<P: Platform> RwSem<P> {
    /// Replaces the state by what `next` makes of it; gives the states before and after, or the one
    /// of which `next` made nothing. `success` is the ordering of the exchange.
    fn update(
        &self,
        success: core::sync::atomic::Ordering,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<(u64, u64), u64> {
        let mut state = self.state.load(Relaxed); // Relaxed: the exchange decides.
        loop {
            let Some(new) = next(state) else { return Err(state) };
            match self.state.compare_exchange_weak(state, new, success, Relaxed) {
                Ok(_) => return Ok((state, new)),
                Err(now) => state = now,
            }
        }
    }

    fn exchange(&self, state: u64, new: u64) -> bool {
        // A or B, pairs with E, F and G. Relaxed on failure: nothing was learned.
        self.state.compare_exchange(state, new, Acquire, Relaxed).is_ok()
    }

    #[inline(always)]
    fn enter_writing(&self) -> bool {
        // B, pairs with E, F and G.
        self.update(Acquire, |state| may_write(state).then_some(state | WRITER)).is_ok()
    }

    /// Unlocks, or takes back a count that came too late: others saw a reader inside meanwhile and
    /// may have gone to sleep over it, so the duties are the same.
    #[inline(always)]
    fn leave_reading(&self) {
        let left = self.state.fetch_sub(READER, Release).wrapping_sub(READER); // E, pairs with B and D
        if needs_writer(left) {
            self.wake_writer();
        }
    }

    #[cold]
    fn wake_writer(&self) {
        self.state.wake(1);
    }

    /// Rule 2's second half, after the exchange that let readers in (rule 7).
    #[cold]
    fn wake_readers(&self) {
        // H, pairs with C in wait_to_read. An exchange, since the carry must stay out of the bits above.
        let mut word = self.phase.load(Relaxed);
        while let Err(now) =
            self.phase.compare_exchange_weak(word, next_phase(word), Release, Relaxed)
        {
            word = now;
        }
        self.phase.wake(u32::MAX);
    }

    /// `before` is the state to which this thread has added itself in vain.
    #[cold]
    fn read_slow(&self, before: u64, deadline: Option<Deadline>) -> bool {
        if may_steal_reading(before) {
            return true;
        }
        self.leave_reading();
        // Relaxed: the attempt acquires.
        let attempt = |seen| {
            (may_read(seen) || may_steal_reading(seen)) && self.exchange(seen, seen + READER)
        };
        if self.state.spin_for(SPINS, Relaxed, attempt).is_some() {
            return true;
        }
        loop {
            // A, pairs with F and G; for joining the queue it is stronger than needed.
            let joined = self.update(Acquire, |state| {
                if may_read(state) || may_steal_reading(state) {
                    Some(state + READER)
                } else if state & WAITING_READERS == WAITING_READERS {
                    None
                } else {
                    Some(state + WAITING_READER)
                }
            });
            match joined {
                Ok((before, after)) if after == before + READER => return true,
                Ok((before, _)) => return self.wait_to_read(phase_of(before), deadline),
                Err(_) => {
                    let room = |state| state & WAITING_READERS != WAITING_READERS;
                    if !self.spin_until_opt(deadline, room) {
                        return false;
                    }
                }
            }
        }
    }

    fn try_read_now(&self) -> bool {
        // A, pairs with F and G.
        let may = |state| may_read(state) || may_steal_reading(state);
        self.update(Acquire, |state| may(state).then_some(state + READER)).is_ok()
    }

    /// Sleeps until let in; this thread is counted as waiting since `phase`.
    fn wait_to_read(&self, phase: u32, deadline: Option<Deadline>) -> bool {
        // Let in means the next phase. The word may still show the one before `phase`, if readers
        // were just being let in as this one came; it is never further ahead than the next, since
        // letting in takes a writer inside, and that takes all who were let in before to have left.
        let is_next = |word: u32| word % PHASES == (phase + 1) % PHASES;
        loop {
            let word = self.phase.load(Acquire); // C, pairs with H and I
            if is_next(word) {
                return true;
            }
            // Rule 4: the writers may be gone without having let anybody in. A, pairs with F and G.
            let entered = self.update(Acquire, |state| {
                let may = phase_of(state) == phase && may_read(state);
                may.then(|| state - WAITING_READER + READER)
            });
            if entered.is_ok() {
                return true;
            }
            if !self.phase.park_until(word, deadline) {
                break;
            }
        }
        // Relaxed: leaves without having seen what the lock protects.
        let left = self
            .update(Relaxed, |state| (phase_of(state) == phase).then(|| state - WAITING_READER));
        if left.is_ok() {
            return false;
        }
        // Rule 7: let in after all. C, pairs with H.
        self.phase.spin_until(Acquire, is_next);
        true
    }

    #[cold]
    fn write_slow(&self, deadline: Option<Deadline>) -> bool {
        // Relaxed: the attempt acquires.
        let attempt = |seen| may_write(seen) && self.exchange(seen, seen | WRITER);
        if self.state.spin_for(SPINS, Relaxed, attempt).is_some() {
            return true;
        }
        loop {
            // B, pairs with E, F and G; for joining the queue it is stronger than needed.
            let joined = self.update(Acquire, |state| {
                if may_write(state) {
                    Some(state | WRITER)
                } else if state & WAITING_WRITERS == WAITING_WRITERS {
                    None
                } else {
                    Some(state + WAITING_WRITER)
                }
            });
            match joined {
                Ok((before, after)) if after == before | WRITER => return true,
                Ok(_) => return self.wait_to_write(deadline),
                Err(_) => {
                    let room = |state| state & WAITING_WRITERS != WAITING_WRITERS;
                    if !self.spin_until_opt(deadline, room) {
                        return false;
                    }
                }
            }
        }
    }

    /// Sleeps and competes until inside; this thread is counted as waiting.
    fn wait_to_write(&self, deadline: Option<Deadline>) -> bool {
        let since = P::now(Clock::Monotonic);
        let mut starved = false;
        loop {
            // D, pairs with E, F and G; if it only clears or sets flags, stronger than needed.
            let looked = self.update(Acquire, |state| {
                if is_free(state) {
                    Some((state - WAITING_WRITER) & !(WOKEN | HANDOFF) | WRITER)
                } else {
                    let flagged = state & !WOKEN | if starved { HANDOFF } else { 0 };
                    (flagged != state).then_some(flagged)
                }
            });
            let state = match looked {
                Ok((before, _)) if is_free(before) => return true,
                Ok((_, after)) => after,
                Err(state) => state,
            };
            if !self.state.park_until(state, deadline) {
                self.leave_waiting_to_write();
                return false;
            }
            starved = starved || P::now(Clock::Monotonic).wrapping_sub(since) > PATIENCE_NS;
        }
    }

    /// Rules 4 and 5: this thread is counted as waiting, and gives up.
    fn leave_waiting_to_write(&self) {
        // Relaxed: leaves without having seen what the lock protects.
        let left =
            self.update(Relaxed, |state| Some((state - WAITING_WRITER) & !(WOKEN | HANDOFF)));
        let Ok((_, after)) = left else { unreachable!("always leaves") };
        if after & WAITING_READERS != 0 && may_read(after) {
            // Release: whoever sees that it is to look sees what to look at. I, pairs with C.
            self.phase.fetch_add(LOOK_AGAIN, Release);
            self.phase.wake(u32::MAX);
        } else if needs_writer(after) {
            self.wake_writer();
        }
    }

    /// Spins until `room`; false if the deadline comes first.
    fn spin_until_opt(&self, deadline: Option<Deadline>, room: impl Fn(u64) -> bool) -> bool {
        // Relaxed: a hint.
        match deadline {
            Some(deadline) => self.state.spin_until_deadline(Relaxed, deadline, room).is_some(),
            None => {
                self.state.spin_until(Relaxed, room);
                true
            }
        }
    }

    /// Leaves exclusive mode for `remaining`: nothing, or one reader.
    #[inline(always)]
    fn leave_writing(&self, remaining: u64) {
        // F (unlock) and G (downgrade), pair with A, B and D, and through H with C.
        let left = self.update(Release, |state| {
            let left = state - WRITER + remaining;
            Some(if left & WAITING_READERS != 0 {
                with_readers_let_in(left)
            } else if needs_writer(left) {
                left | WOKEN
            } else {
                left
            })
        });
        let Ok((before, after)) = left else { unreachable!("always leaves") };
        if before & (WAITING_READERS | WAITING_WRITERS) != 0 {
            self.wake_after_writing(before, after);
        }
    }

    #[cold]
    fn wake_after_writing(&self, before: u64, after: u64) {
        if phase_of(before) != phase_of(after) {
            self.wake_readers();
        } else if before & WOKEN != after & WOKEN {
            self.wake_writer();
        }
    }
}

// SAFETY: WRITER is only ever put in by an exchange that found no reader and no writer, and taken
// out by its holder. A reader is inside after an addition or exchange that found no WRITER, or after
// one that let it in as the writer left; from then its count keeps writers out. E to H release what
// A to D acquire; all other exchanges in between are read-modify-writes and carry the release on.
unsafe impl<P: Platform> RawRwLock for RwSem<P> {
    const NAME: &'static str = "rwsem";

    fn new() -> Self {
        RwSem { state: P::U64::new(0), phase: P::U32::new(0) }
    }

    #[inline]
    fn read(&self) {
        let before = self.state.fetch_add(READER, Acquire); // A, pairs with F and G
        if !may_read(before) {
            self.read_slow(before, None);
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        self.try_read_now()
    }

    #[inline]
    fn read_until(&self, deadline: Deadline) -> bool {
        let before = self.state.fetch_add(READER, Acquire); // A, pairs with F and G
        may_read(before) || self.read_slow(before, Some(deadline))
    }

    #[inline]
    fn read_recursive(&self) {
        // A, pairs with F and G.
        if self.state.fetch_add(READER, Acquire) & WRITER != 0 {
            // The count is in: no writer can follow the one inside. A, pairs with F and G.
            self.state.spin_until(Acquire, |state| state & WRITER == 0);
        }
    }

    #[inline]
    fn try_read_recursive(&self) -> bool {
        // A, pairs with F and G.
        self.update(Acquire, |state| (state & WRITER == 0).then_some(state + READER)).is_ok()
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        self.leave_reading();
    }

    #[inline]
    fn write(&self) {
        if !self.enter_writing() {
            self.write_slow(None);
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        self.enter_writing()
    }

    #[inline]
    fn write_until(&self, deadline: Deadline) -> bool {
        self.enter_writing() || self.write_slow(Some(deadline))
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        self.leave_writing(0);
    }

    #[inline]
    unsafe fn downgrade(&self) {
        self.leave_writing(READER);
    }

    fn is_write_locked(&self) -> bool {
        self.state.load(Relaxed) & WRITER != 0 // Relaxed: true of some moment, orders nothing.
    }

    fn is_locked(&self) -> bool {
        !is_free(self.state.load(Relaxed)) // Relaxed: true of some moment, orders nothing.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letting_readers_in_moves_exactly_them() {
        for phase in 0..4 {
            let waiting = 3 * WAITING_READER + 5 * WAITING_WRITER;
            let state = phase * PHASE + 2 * READER + waiting;
            let after = with_readers_let_in(state | HANDOFF);
            assert_eq!((after & READERS) / READER, 5);
            assert_eq!(after & WAITING_READERS, 0);
            assert_eq!((after & WAITING_WRITERS) / WAITING_WRITER, 5);
            assert_eq!(after & (WRITER | HANDOFF | WOKEN), HANDOFF);
            assert_eq!(u64::from(phase_of(after)), (phase + 1) % 4);
        }
    }

    #[test]
    fn the_fields_do_not_overlap_and_leave_no_bit() {
        let fields =
            [WRITER, HANDOFF, WOKEN, PHASE_MASK, READERS, WAITING_READERS, WAITING_WRITERS];
        assert_eq!(fields.iter().map(|field| u64::from(field.count_ones())).sum::<u64>(), 64);
        assert_eq!(fields.iter().fold(0, |all, field| all | field), u64::MAX);
    }
}
