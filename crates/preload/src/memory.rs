//! What a thread remembers of the places that it was at: which row the lock call there counts into.
//!
//! A program that takes a lock each microsecond has its own use for the caches, so one line of the cache
//! answers for one return address. A line tells how far up the next return address lies, if the function
//! is a wrapper, and of up to [`WAYS`] pairs of a site and a class their rows. A site has a line of its
//! own; one that is reached through a wrapper is in the wrapper's line as well, so that it is found at
//! once, until others take its place there.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::layout::Row;

use crate::places::{self, Caller, FRAMES};
use crate::thread::Thread;

/// Lines that a thread has; a power of two.
const LINES: usize = 64;
/// Rows that a line has room for.
const WAYS: usize = 4;
/// Note of a row: class, kind and mode, as [`what`] packs them.
const WHAT: usize = 0;

/// All lines. Zeros are an empty one.
pub struct Memory {
    lines: [Line; LINES],
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    /// The return address; 0: an empty line.
    address: usize,
    /// From where it lies to where the next one does; 0: it is a site's own, or a wrapper's that keeps a
    /// frame pointer, as unoptimised code does, and then has no ways.
    step: u32,
    /// The way that is given up next.
    oldest: u32,
    sites: [usize; WAYS],
    /// Numbers of rows, counted from the recording's first page.
    rows: [u32; WAYS],
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    const EMPTY: Line = Line { address: 0, step: 0, oldest: 0, sites: [0; WAYS], rows: [0; WAYS] };
}

/// Class, kind and mode in one word.
#[inline(always)]
pub fn what(class: u32, kind: u8, mode: u8) -> u64 {
    u64::from(class) << 8 | u64::from(kind) << 1 | u64::from(mode)
}

/// The row for `what`, acquired by the caller of a hook that was entered with `stack`, if it is the first
/// one of its site in the line that is looked at first. This is nearly always so.
#[inline(always)]
pub fn recall(thread: &Thread, what: u64, stack: usize) -> Option<&'static Row> {
    // SAFETY: at a hook's entry the return address lies at the stack pointer.
    let address = unsafe { (stack as *const usize).read() };
    let line = &thread.memory.lines[Memory::first(address)];
    if line.address != address {
        return None;
    }
    // SAFETY: where the wrapper's unwind row says that the next return address lies.
    let site = unsafe { ((stack + line.step as usize) as *const usize).read() };
    let way = line.sites.iter().position(|&known| known == site)?;
    let row = row_at(thread.pages, line.rows[way]);
    (row.notes[WHAT].load(Relaxed) == what).then_some(row)
}

/// The row for `what`, wherever it may be; the next time it is found at once.
pub fn search(thread: &mut Thread, what: u64, caller: Caller) -> Option<&'static Row> {
    let mut return_at = caller.stack;
    let mut below = None;
    loop {
        // SAFETY: as in `recall`.
        let address = unsafe { (return_at as *const usize).read() };
        let line = thread.memory.line(address)?;
        let step = line.step as usize;
        // SAFETY: as in `recall`.
        let site = unsafe { ((return_at + step) as *const usize).read() };
        if let Some((row, number)) = line.row(thread.pages, site, what) {
            if let Some(below) = below {
                thread.memory.add(thread.pages, below, site, number);
            }
            return Some(row);
        }
        if step == 0 {
            let site = places::climb(caller).address();
            return Some(thread.memory.line(site)?.row(thread.pages, site, what)?.0);
        }
        below = Some(address);
        return_at += step;
    }
}

/// Remembers the row, and the wrappers below its site, of a hook's caller.
pub fn remember(thread: &mut Thread, what: u64, caller: Caller, row: &'static Row) {
    let number = ((&raw const *row as usize - thread.pages) / size_of::<Row>()) as u32;
    row.notes[WHAT].store(what, Relaxed);
    let (mut return_at, mut frame_pointer) = (caller.stack, caller.frame_pointer);
    let mut below = None;
    for _ in 0..FRAMES {
        // SAFETY: a return address, by the hook's contract or by the unwind row below it.
        let place = places::at(unsafe { (return_at as *const usize).read() });
        let (address, up) = (place.address(), place.up());
        match (place.state(), up) {
            (places::WRAPPER, Some(up)) => {
                let Some(above) = up.step(return_at, frame_pointer) else { return };
                let step = if up.from_frame_pointer { 0 } else { (above.0 - return_at) as u32 };
                thread.memory.enter(address, step);
                below = (step != 0).then_some(address);
                (return_at, frame_pointer) = above;
            }
            (places::SITE, _) if address != 0 => {
                thread.memory.enter(address, 0);
                thread.memory.add(thread.pages, address, address, number);
                if let Some(below) = below {
                    thread.memory.add(thread.pages, below, address, number);
                }
                return;
            }
            _ => return,
        }
    }
}

#[inline(always)]
fn row_at(pages: usize, number: u32) -> &'static Row {
    // SAFETY: remembered rows lie within the recording's pages, and stay.
    unsafe { &*(pages as *const Row).add(number as usize) }
}

impl Line {
    fn row(&self, pages: usize, site: usize, what: u64) -> Option<(&'static Row, u32)> {
        (0..WAYS)
            .filter(|&way| self.sites[way] == site)
            .map(|way| (row_at(pages, self.rows[way]), self.rows[way]))
            .find(|(row, _)| row.notes[WHAT].load(Relaxed) == what)
    }
}

impl Memory {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
    }

    #[inline(always)]
    fn first(address: usize) -> usize {
        address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - LINES.trailing_zeros())
    }

    /// A line is where its address says, or beside that.
    fn line(&self, address: usize) -> Option<&Line> {
        let first = Memory::first(address);
        [first, first ^ 1]
            .map(|at| &self.lines[at])
            .into_iter()
            .find(|line| line.address == address)
    }

    /// Makes sure that the address has a line with this step.
    fn enter(&mut self, address: usize, step: u32) {
        let first = Memory::first(address);
        let places = [first, first ^ 1];
        let there = places.into_iter().find(|&at| self.lines[at].address == address);
        let free = places.into_iter().find(|&at| self.lines[at].address == 0);
        let line = &mut self.lines[there.or(free).unwrap_or(first)];
        if (line.address, line.step) != (address, step) {
            *line = Line { address, step, ..Line::EMPTY };
        }
    }

    /// Adds a row to the line of `address`, in another one's place if it is full.
    fn add(&mut self, pages: usize, address: usize, site: usize, row: u32) {
        let first = Memory::first(address);
        let Some(at) = [first, first ^ 1].into_iter().find(|&at| self.lines[at].address == address)
        else {
            return;
        };
        let line = &mut self.lines[at];
        let what = |row| row_at(pages, row).notes[WHAT].load(Relaxed);
        let free = (0..WAYS).find(|&way| {
            line.sites[way] == 0 || line.sites[way] == site && what(line.rows[way]) == what(row)
        });
        let way = free.unwrap_or_else(|| {
            line.oldest = (line.oldest + 1) % WAYS as u32;
            line.oldest as usize
        });
        line.sites[way] = site;
        line.rows[way] = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRAPPER: usize = 0x1000;

    /// Six rows, of which number n is noted as what n + 10 is.
    fn rows() -> Vec<Row> {
        // SAFETY: a Row is atomics and integers, which may be zero.
        let rows: Vec<Row> = (0..6).map(|_| unsafe { core::mem::zeroed() }).collect();
        for (number, row) in (10..).zip(&rows) {
            row.notes[WHAT].store(number, Relaxed);
        }
        rows
    }

    fn empty() -> Memory {
        Memory { lines: [Line::EMPTY; LINES] }
    }

    #[test]
    fn a_full_line_gives_up_its_oldest_way() {
        let rows = rows();
        let pages = rows.as_ptr() as usize;
        let mut memory = empty();
        memory.enter(WRAPPER, 24);
        for number in 0..6 {
            memory.add(pages, WRAPPER, 0x2000 + number as usize, number);
        }
        let line = memory.line(WRAPPER).expect("a line that was entered");
        let known = |number: u32| {
            line.row(pages, 0x2000 + number as usize, u64::from(number) + 10).is_some()
        };
        assert_eq!((0..6).filter(|&number| known(number)).count(), WAYS);
        assert!(known(4) && known(5), "the latest are kept");
        assert!(line.row(pages, 0x2005, 14).is_none(), "another class of that site");
    }

    #[test]
    fn a_site_has_a_way_for_each_class_and_one_at_most() {
        let rows = rows();
        let pages = rows.as_ptr() as usize;
        let mut memory = empty();
        memory.enter(WRAPPER, 0);
        for number in [0, 1, 0, 1, 0] {
            memory.add(pages, WRAPPER, WRAPPER, number);
        }
        let line = memory.line(WRAPPER).expect("a line that was entered");
        assert_eq!(line.sites, [WRAPPER, WRAPPER, 0, 0]);
        assert_eq!(line.row(pages, WRAPPER, 11).map(|(_, number)| number), Some(1));
    }

    #[test]
    fn a_line_with_another_step_begins_anew() {
        let rows = rows();
        let pages = rows.as_ptr() as usize;
        let mut memory = empty();
        memory.enter(WRAPPER, 0);
        memory.add(pages, WRAPPER, WRAPPER, 0);
        memory.enter(WRAPPER, 24);
        assert_eq!(memory.line(WRAPPER).map(|line| line.sites), Some([0; WAYS]));
    }

    #[test]
    fn two_addresses_of_one_place_both_have_a_line() {
        let mut memory = empty();
        let of_one_place: Vec<usize> =
            (1..).filter(|&address| Memory::first(address) == 7).take(3).collect();
        for &address in &of_one_place {
            memory.enter(address, 0);
        }
        let there = |address: &&usize| memory.line(**address).is_some();
        assert_eq!(of_one_place.iter().filter(there).count(), 2);
        assert!(there(&&of_one_place[2]), "the latest is there");
    }
}
