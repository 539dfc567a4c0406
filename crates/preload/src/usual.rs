//! The usual section: a site and a class that this thread has seen before, and a lock that is free.
//!
//! Observing may cost a few per cent of a program that does little else than lock. Whatever is unusual (a
//! new site, a contended lock, recursion, a row per lock) goes the long way, through
//! [`section`](crate::section), which remembers here what it found.
//!
//! # Sampling
//! Two readings of the time stamp counter cost as much as everything else together, and more than many a
//! section is long. So when a site has shown [`ENOUGH`] sections that are shorter than [`SHORT`] ticks in
//! the mean, one of [`PERIOD`] of its uncontended sections is measured, drawn at random, and counts for
//! that many. Acquisitions are counted one by one all the same, contended ones are all measured, and so
//! is every section of a site where sections are longer.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::clock;
use relatch_record::layout::{CLOCK_TSC, Row};
use relatch_record::writer::{Writer, add};

use crate::class;
use crate::places::{self, Place};
use crate::section::{self, DEPTH};
use crate::session;
use crate::thread::Thread;

/// How many pairs of site and class a thread remembers; a power of two.
pub const REMEMBERED: usize = 256;

/// Sections that are measured before any is left out.
const ENOUGH: u64 = 512;
/// Ticks: about half a microsecond where measuring costs 13 ns, which is then below 3 %.
const SHORT: u64 = 1500;
/// One of so many short sections is measured.
const PERIOD: u32 = 8;

/// A row by its site and class.
#[derive(Clone, Copy)]
pub struct Remembered {
    /// The site's return address.
    address: usize,
    what: u64,
    row: *const Row,
    /// Sections that are not measured before the next one is.
    skip: u32,
    /// State of the generator that draws `skip`; never 0.
    random: u32,
}

/// A row that was found, and where it is remembered.
pub struct Found {
    row: &'static Row,
    slot: usize,
}

#[inline(always)]
fn what(class: u32, kind: u8, mode: u8) -> u64 {
    u64::from(class) << 8 | u64::from(kind) << 1 | u64::from(mode)
}

#[inline(always)]
fn slot(address: usize, what: u64) -> usize {
    let mixed = (address as u64 ^ what << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - REMEMBERED.trailing_zeros())) as usize
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
) -> Option<Found> {
    let what = what(class::of_lock(lock, kind)?, kind, mode);
    // SAFETY: at a hook's entry the return address lies at the stack pointer.
    let address = unsafe { (stack as *const usize).read() };
    recall(thread, address, what).or_else(|| {
        // Only sites are remembered: this one is a wrapper, or new.
        recall(thread, places::climb(stack, frame_pointer).address(), what)
    })
}

#[inline(always)]
fn recall(thread: &Thread, address: usize, what: u64) -> Option<Found> {
    let slot = slot(address, what);
    let remembered = &thread.remembered[slot];
    // SAFETY: rows stay where they are as long as the process lives; the address of an empty entry, 0,
    // is nobody's.
    (remembered.address == address && remembered.what == what && address != 0)
        .then(|| Found { row: unsafe { &*remembered.row }, slot })
}

/// Remembers a row. Only recordings whose sections the usual way can write have anything to remember.
pub fn remember(
    thread: &mut Thread,
    writer: &Writer,
    place: &Place,
    (class, kind, mode): (u32, u8, u8),
    row: &'static Row,
) {
    let header = writer.header();
    if header.clock == CLOCK_TSC && header.by_lock == 0 && place.state() == places::SITE {
        let (address, what) = (place.address(), what(class, kind, mode));
        let random = (address as u32) | 1;
        thread.remembered[slot(address, what)] = Remembered { address, what, row, skip: 0, random };
    }
}

/// Begins the section of a lock that was free; false: it is unusual after all.
#[inline(always)]
pub fn begin(thread: &mut Thread, lock: usize, found: Found) -> bool {
    let depth = thread.depth;
    if depth >= DEPTH || thread.held[..depth].iter().any(|held| held.lock == lock) {
        return false;
    }
    add(&found.row.acquisitions, 1);
    thread.depth = depth + 1;
    let remembered = &mut thread.remembered[found.slot];
    if remembered.skip > 0 {
        remembered.skip -= 1;
        thread.held[depth].begin_usual(lock, 0, 0, found.row);
        return true;
    }
    let weight = remembered.draw(found.row);
    thread.held[depth].begin_usual(lock, clock::ticks(CLOCK_TSC), weight, found.row);
    true
}

impl Remembered {
    /// How many sections the one that begins stands for, and how many of the next are left out.
    #[inline(always)]
    fn draw(&mut self, row: &Row) -> u32 {
        let held = row.held.load(Relaxed);
        if held < ENOUGH || row.hold.load(Relaxed) >= held * SHORT {
            return 1;
        }
        // Marsaglia's xorshift; uniform from 0 to 2 * (PERIOD - 1), so PERIOD - 1 in the mean, without
        // the rhythm that the program may have.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.skip = ((u64::from(self.random) * u64::from(2 * PERIOD - 1)) >> 32) as u32;
        PERIOD
    }
}

/// A usual section that has ended and is still to be written.
pub struct Ended {
    row: &'static Row,
    ticks: u64,
    weight: u32,
}

/// Ends this thread's innermost section, if it is a usual one of this lock.
#[inline(always)]
pub fn end(thread: &mut Thread, lock: usize) -> Option<Ended> {
    let innermost = thread.depth.wrapping_sub(1);
    let (row, since, weight) = thread.held.get(innermost)?.usual(lock)?;
    let ticks = if weight == 0 { 0 } else { clock::ticks(CLOCK_TSC).saturating_sub(since) };
    thread.depth = innermost;
    Some(Ended { row, ticks, weight })
}

impl Ended {
    /// Writes the hold, after the lock is free again.
    #[inline(always)]
    pub fn write(self) {
        if self.weight != 0
            && let Some(writer) = session::writer()
        {
            section::hold(writer, self.row, self.ticks, self.weight);
        }
    }
}
