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
//! thread most likely lost its processor, counts once: eight times the slice of another program would
//! make the sum of holds an estimate that is worse than one without it.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::clock;
use relatch_record::layout::{CLOCK_TSC, KIND_SPIN, Row};
use relatch_record::writer::{Writer, add};

use crate::class;
use crate::places::{self, FRAMES};
use crate::section::{self, DEPTH, Held};
use crate::session;
use crate::thread::Thread;

/// Sections that are measured before any is left out.
const ENOUGH: u64 = 512;
/// Ticks: about two microseconds.
const SHORT: u64 = 6000;
/// Ticks: about a millisecond.
const LONG: u64 = 3_000_000;
/// One of so many short sections is measured.
const PERIOD: u32 = 8;

/// Wrappers that a thread remembers; a power of two.
const WRAPPERS: usize = 32;
/// Pairs of site and class that a thread remembers; a power of two.
const ROWS: usize = 512;

/// What a thread remembers of the places that it was at, in few lines of the cache: a program that takes
/// a lock each microsecond has its own use for them.
pub struct Memory {
    wrappers: [Wrapper; WRAPPERS],
    /// Numbers of rows, counted from the recording's first page, plus one. A row's notes say whose it is.
    rows: [u32; ROWS],
}

impl Memory {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.wrappers.fill(Wrapper { address: 0, step: 0 });
        self.rows.fill(0);
    }
}

/// The step up from a wrapper's return address.
#[derive(Clone, Copy)]
struct Wrapper {
    address: usize,
    /// From where the return address lies to where the next one does, where that is always the same; 0:
    /// it takes the frame pointer.
    step: usize,
}

/// Notes of a row: the site's return address; class, kind and mode; and, in the low half of the third,
/// how many sections are left out before the next is measured, in the high half the state of the
/// generator that draws it.
const ADDRESS: usize = 0;
const WHAT: usize = 1;
const DRAW: usize = 2;

#[inline(always)]
fn what(class: u32, kind: u8, mode: u8) -> u64 {
    u64::from(class) << 8 | u64::from(kind) << 1 | u64::from(mode)
}

#[inline(always)]
fn mixed(key: u64, room: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - room.trailing_zeros())) as usize
}

/// The row of what a hook is about to acquire, if this thread remembers it.
#[inline(always)]
pub fn row(
    thread: &Thread,
    lock: usize,
    kind: u8,
    mode: u8,
    stack: usize,
    frame_pointer: usize,
) -> Option<&'static Row> {
    let class = match kind {
        KIND_SPIN => class::of_lock(lock, kind)?,
        _ => class::inside_lock(lock, kind)?,
    };
    let what = what(class, kind, mode);
    let mut return_at = stack;
    // SAFETY: at a hook's entry the return address lies at the stack pointer.
    let mut address = unsafe { (return_at as *const usize).read() };
    loop {
        let wrapper = &thread.memory.wrappers[mixed(address as u64, WRAPPERS)];
        if wrapper.address != address {
            return recall(thread, address, what);
        }
        if wrapper.step == 0 {
            return climb(thread, what, stack, frame_pointer);
        }
        return_at += wrapper.step;
        // SAFETY: where the wrapper's unwind row says that the next return address lies.
        address = unsafe { (return_at as *const usize).read() };
    }
}

#[inline(always)]
fn recall(thread: &Thread, address: usize, what: u64) -> Option<&'static Row> {
    let number = thread.memory.rows[mixed(address as u64 ^ what << 20, ROWS)] as usize;
    // SAFETY: remembered rows lie within the recording's pages, and stay.
    let row = unsafe { &*(thread.pages as *const Row).add(number.checked_sub(1)?) };
    let known =
        row.notes[ADDRESS].load(Relaxed) == address as u64 && row.notes[WHAT].load(Relaxed) == what;
    known.then_some(row)
}

/// The same where a wrapper keeps a frame pointer, as unoptimised code does.
#[inline(never)]
fn climb(thread: &Thread, what: u64, stack: usize, frame_pointer: usize) -> Option<&'static Row> {
    recall(thread, places::climb(stack, frame_pointer).address(), what)
}

/// Remembers a row, and the wrappers below its site. Only recordings whose sections the usual way can
/// write have anything to remember.
pub fn remember(
    thread: &mut Thread,
    writer: &Writer,
    (stack, frame_pointer): (usize, usize),
    (class, kind, mode): (u32, u8, u8),
    row: &'static Row,
) {
    let header = writer.header();
    if header.clock != CLOCK_TSC || header.by_lock != 0 {
        return;
    }
    let (mut return_at, mut frame_pointer) = (stack, frame_pointer);
    for _ in 0..FRAMES {
        // SAFETY: a return address, by the hook's contract or by the unwind row below it.
        let place = places::at(unsafe { (return_at as *const usize).read() });
        let (address, up) = (place.address(), place.up());
        match (place.state(), up) {
            (places::WRAPPER, Some(up)) => {
                let Some(above) = up.step(return_at, frame_pointer) else { return };
                (return_at, frame_pointer) = above;
                let step = if up.from_frame_pointer { 0 } else { up.offset as usize };
                thread.memory.wrappers[mixed(address as u64, WRAPPERS)] = Wrapper { address, step };
            }
            (places::SITE, _) if address != 0 => {
                let what = what(class, kind, mode);
                row.notes[ADDRESS].store(address as u64, Relaxed);
                row.notes[WHAT].store(what, Relaxed);
                if row.notes[DRAW].load(Relaxed) == 0 {
                    row.notes[DRAW].store((address as u64 | 1) << 32, Relaxed);
                }
                let number = (&raw const *row as usize - thread.pages) / size_of::<Row>();
                thread.memory.rows[mixed(address as u64 ^ what << 20, ROWS)] = number as u32 + 1;
                return;
            }
            _ => return,
        }
    }
}

/// A section that is written down before its lock is tried: what costs a cache miss is then not done
/// while holding it, which would lengthen the waits that are measured.
pub struct Prepared {
    row: &'static Row,
}

/// Prepares the section of a lock that is about to be tried; none: it is unusual after all.
#[inline(always)]
pub fn prepare(thread: &mut Thread, lock: usize, row: &'static Row) -> Option<Prepared> {
    let depth = thread.depth;
    if depth >= DEPTH || thread.held[..depth].iter().any(|held| held.lock == lock) {
        return None;
    }
    add(&row.acquisitions, 1);
    thread.held[depth] = Held::usual(lock, row);
    thread.depth = depth + 1;
    Some(Prepared { row })
}

impl Prepared {
    /// The lock was free, and is held. Whether it is measured is drawn only now: drawing takes its time,
    /// in which the lock may be taken, so that measured sections would be contended more often.
    #[inline(always)]
    pub fn acquired(self, thread: &mut Thread) {
        let draw = self.row.notes[DRAW].load(Relaxed);
        if draw as u32 > 0 {
            self.row.notes[DRAW].store(draw - 1, Relaxed);
        } else {
            let weight = self::draw(self.row, draw);
            thread.held[thread.depth - 1].begins(clock::ticks(CLOCK_TSC), weight);
        }
    }

    /// The lock was taken, and is held after so many ticks; they are counted when it is released.
    pub fn waited(self, thread: &mut Thread, at: u64, ticks: u64) {
        let innermost = thread.depth - 1;
        thread.held[innermost].begins_after_wait(at);
        thread.more[innermost].waited_usual = ticks;
    }

    /// The lock was taken, and is not held.
    #[cold]
    pub fn undo(self, thread: &mut Thread) {
        add(&self.row.acquisitions, 1u64.wrapping_neg());
        thread.depth -= 1;
    }
}

/// How many sections the one that begins stands for; notes how many of the next are left out.
#[inline(always)]
fn draw(row: &Row, draw: u64) -> u32 {
    let held = row.held.load(Relaxed);
    if held < ENOUGH || row.hold.load(Relaxed) >= held * SHORT {
        return 1;
    }
    // Marsaglia's xorshift; uniform from 0 to 2 * (PERIOD - 1), so PERIOD - 1 in the mean, without the
    // rhythm that the program may have.
    let mut random = (draw >> 32) as u32;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    let skip = (u64::from(random) * u64::from(2 * PERIOD - 1)) >> 32;
    row.notes[DRAW].store(u64::from(random) << 32 | skip, Relaxed);
    PERIOD
}

/// A usual section that has ended and is still to be written.
pub struct Ended {
    row: &'static Row,
    ticks: u64,
    weight: u32,
    waited: Option<u64>,
}

/// Ends this thread's innermost section, if it is a usual one of this lock.
#[inline(always)]
pub fn end(thread: &mut Thread, lock: usize) -> Option<Ended> {
    let innermost = thread.depth.wrapping_sub(1);
    let held = thread.held.get(innermost)?;
    let (since, weight, row) = held.as_usual(lock)?;
    let waited = held.has_waited().then(|| thread.more[innermost].waited_usual);
    let ticks = if weight == 0 { 0 } else { clock::ticks(CLOCK_TSC).saturating_sub(since) };
    thread.depth = innermost;
    Some(Ended { row, ticks, weight, waited })
}

impl Ended {
    /// Writes the hold, after the lock is free again.
    #[inline(always)]
    pub fn write(self) {
        if self.weight != 0
            && let Some(writer) = session::writer()
        {
            let weight = if self.ticks < LONG { self.weight } else { 1 };
            section::hold(writer, self.row, self.ticks, weight);
            if let Some(ticks) = self.waited {
                section::count_wait(writer, self.row, ticks);
                writer.note_time_now_and_then(clock::ticks(CLOCK_TSC));
            }
        }
    }
}
