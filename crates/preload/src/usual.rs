//! The usual section: a site and a class that this thread has seen before, and a lock that is free.
//!
//! Observing may cost a few per cent of a program that does little else than lock. Whatever is unusual (a
//! new site, a contended lock, recursion, a row per lock) goes the long way, through
//! [`section`], which remembers here what it found.
//!
//! # Sampling
//! Two readings of the time stamp counter cost as much as everything else together, and more than many a
//! section is long. So when a site has shown [`ENOUGH`] sections that are shorter than [`SHORT`] ticks in
//! the mean, one of [`PERIOD`] of its uncontended sections is measured, drawn at random, and counts for
//! that many. Acquisitions are counted one by one all the same, contended ones are all measured, and so
//! is every section of a site where sections are longer. A drawn section that took [`LONG`], in which the
//! thread most likely lost its processor, counts once: the slice of another program, counted so often, would
//! make the sum of holds an estimate that is worse than one without it.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::clock;
use relatch_record::layout::{CLOCK_TSC, KIND_SPIN, Row};
use relatch_record::writer::{Writer, add};

use crate::class;
use crate::memory;
use crate::places::Caller;
use crate::section::{self, DEPTH, Held};
use crate::session;
use crate::thread::{self, Thread};

/// Sections that are measured before any is left out.
const ENOUGH: u64 = 2048;
/// Ticks: about ten microseconds.
const SHORT: u64 = 30_000;
/// Ticks: about a millisecond.
const LONG: u64 = 3_000_000;
/// One of so many short sections is measured.
pub const PERIOD: u32 = 32;

/// Note of a row: in the low half how many sections are left out before the next is measured, in the
/// high half the state of the generator that draws it.
const DRAW: usize = 1;

/// The row of a lock that a hook, entered with `stack`, is about to acquire, as this thread remembers it.
#[inline(always)]
pub fn recall(
    thread: &Thread,
    lock: usize,
    kind: u8,
    mode: u8,
    stack: usize,
) -> Option<&'static Row> {
    memory::recall(thread, what_of(lock, kind, mode)?, stack)
}

/// The same, for what is not found at once.
pub fn search(
    thread: &mut Thread,
    lock: usize,
    kind: u8,
    mode: u8,
    caller: Caller,
) -> Option<&'static Row> {
    memory::search(thread, what_of(lock, kind, mode)?, caller)
}

#[inline(always)]
fn what_of(lock: usize, kind: u8, mode: u8) -> Option<u64> {
    let class = match kind {
        KIND_SPIN => class::of_lock(lock, kind)?,
        _ => class::inside_lock(lock, kind)?,
    };
    Some(memory::what(class, kind, mode))
}

/// Remembers what a hook's caller acquires. Only recordings whose sections the usual way can write have
/// anything to remember.
pub fn remember(
    thread: &mut Thread,
    writer: &Writer,
    caller: Caller,
    (class, kind, mode): (u32, u8, u8),
    row: &'static Row,
) {
    let header = writer.header();
    if header.clock == CLOCK_TSC && header.by_lock == 0 {
        if row.notes[DRAW].load(Relaxed) == 0 {
            let seed = u64::from(row.site.load(Relaxed)) << 1 | 1;
            row.notes[DRAW].store(seed << 32, Relaxed);
        }
        memory::remember(thread, memory::what(class, kind, mode), caller, row);
    }
}

/// Writes a section down whose lock is about to be tried, and whether it is to be measured; none: it is
/// unusual after all. Before the try: what costs a cache miss is then not done while holding the lock,
/// which would lengthen the waits that are measured.
#[inline(always)]
pub fn begin(thread: &mut Thread, lock: usize, row: &'static Row) -> Option<bool> {
    let depth = thread.depth;
    if depth >= DEPTH || thread.held[..depth].iter().any(|held| held.lock == lock) {
        return None;
    }
    add(&row.acquisitions, 1);
    thread.held[depth] = Held::usual(lock, row);
    thread.depth = depth + 1;
    let draw = row.notes[DRAW].load(Relaxed);
    let measured = draw as u32 == 0;
    if !measured {
        row.notes[DRAW].store(draw - 1, Relaxed);
    }
    Some(measured)
}

/// This thread's innermost section, which has begun in the usual way: asked for again after the try, so
/// that a hook need not keep it. None in the child of a handler that forked meanwhile.
#[inline(always)]
fn innermost() -> Option<(&'static mut Thread, usize)> {
    let thread = thread::attached()?;
    let innermost = thread.depth.checked_sub(1)?;
    (innermost < DEPTH).then_some((thread, innermost))
}

/// The innermost section's lock was free, and is held: the section is measured.
#[inline(always)]
pub fn measure() {
    if let Some((thread, innermost)) = innermost() {
        let held = &mut thread.held[innermost];
        let drawn = draw(held.usual_row());
        held.begins(clock::ticks(CLOCK_TSC), drawn);
    }
}

/// The innermost section's lock was taken, and is held after so many ticks; they are counted when it is
/// released.
pub fn waited(at: u64, ticks: u64) {
    if let Some((thread, innermost)) = innermost() {
        thread.held[innermost].begins_after_wait(at);
        thread.more[innermost].waited_usual = ticks;
    }
}

/// The innermost section's lock is not held; if it was waited for, its time ran out after so many ticks.
#[cold]
pub fn undo(waited: Option<u64>) {
    if let Some((thread, innermost)) = innermost() {
        let row = thread.held[innermost].usual_row();
        add(&row.acquisitions, 1u64.wrapping_neg());
        thread.depth = innermost;
        if waited.is_some() {
            section::count_rejected(row, waited);
        }
    }
}

/// Whether the section that begins stands for others as well; draws how many of the next are left out.
#[inline(always)]
fn draw(row: &Row) -> bool {
    let held = row.held.load(Relaxed);
    if held < ENOUGH || row.hold.load(Relaxed) >= held * SHORT {
        return false;
    }
    // Marsaglia's xorshift; uniform from 0 to 2 * (PERIOD - 1), so PERIOD - 1 in the mean, without the
    // rhythm that the program may have.
    let mut random = (row.notes[DRAW].load(Relaxed) >> 32) as u32;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    let skip = (u64::from(random) * u64::from(2 * PERIOD - 1)) >> 32;
    row.notes[DRAW].store(u64::from(random) << 32 | skip, Relaxed);
    true
}

/// Ends this thread's innermost section, if it is a usual one of this lock that is not measured.
#[inline(always)]
pub fn end(thread: &mut Thread, lock: usize) -> bool {
    let innermost = thread.depth.wrapping_sub(1);
    let ends = thread.held.get(innermost).is_some_and(|held| held.is_unmeasured(lock));
    if ends {
        thread.depth = innermost;
    }
    ends
}

/// A usual section that has ended and is still to be written.
pub struct Ended {
    row: &'static Row,
    ticks: u64,
    weight: u32,
    waited: Option<u64>,
}

/// Ends this thread's innermost section at `now`, if it is a usual one of this lock.
#[inline(always)]
pub fn end_measured(thread: &mut Thread, lock: usize, now: u64) -> Option<Ended> {
    let innermost = thread.depth.wrapping_sub(1);
    let held = thread.held.get(innermost)?;
    let (since, weight, row) = held.as_usual(lock)?;
    let waited = held.has_waited().then(|| thread.more[innermost].waited_usual);
    let ticks = now.saturating_sub(since);
    thread.depth = innermost;
    Some(Ended { row, ticks, weight, waited })
}

impl Ended {
    /// Writes the hold, after the lock is free again.
    #[inline(always)]
    pub fn write(self) {
        let Some(writer) = session::writer() else { return };
        let weight = if self.ticks < LONG { self.weight } else { 1 };
        section::hold(writer, self.row, self.ticks, weight);
        if let Some(ticks) = self.waited {
            section::count_wait(writer, self.row, ticks);
            writer.note_time_now_and_then(clock::ticks(CLOCK_TSC));
        }
    }
}
