//! Sections: from an acquire to its release, by one thread.
//!
//! # Cost
//! Acquiring counts into the thread's own row and notes the time; releasing looks up the note. The
//! histogram and the sums are written after the lock has been released, since recording while holding
//! it would lengthen the very wait that is measured.

use core::sync::atomic::Ordering::Relaxed;

use relatch_record::clock;
use relatch_record::layout::{Dropped, EXCLUSIVE, Row, SHARED};
use relatch_record::writer::{Writer, add, count_ticks, raise};

use crate::class;
use crate::places::{self, Caller, Chain, Place};
use crate::refused;
use crate::thread::{Thread, What};
use crate::usual::{self, PERIOD};

/// Sections that a thread can be in at once, and have measured.
pub const DEPTH: usize = 48;

/// A section that a thread is in: what every one has. Small, so that the innermost two share a line
/// with what else a thread needs at each lock.
#[derive(Clone, Copy)]
pub struct Held {
    /// The lock's address.
    pub lock: usize,
    /// When it was acquired, in ticks.
    since: u64,
    /// The row's address, null where there is none, and in the low bits, which an aligned row leaves
    /// free, the marks below. A usual section without any is not measured.
    row: usize,
}

/// Marks a section that is measured.
const MEASURED: usize = 1;
/// Marks a measured section that was drawn, and stands for [`PERIOD`] of them.
const DRAWN: usize = 2;
/// Marks a usual section whose lock was waited for: [`More::waited_usual`] says how long.
const WAITED: usize = 4;
/// Marks a section that has [`More`].
const UNUSUAL: usize = 8;
const MARKS: usize = 15;
const _: () = assert!(align_of::<Row>() > MARKS);

/// What a section has that did not begin in the usual way.
#[derive(Clone, Copy)]
pub struct More {
    lock_row: *const Row,
    what: What,
    /// The same thread held the lock already: the outer section measures.
    nested: bool,
    waited: Option<u64>,
    /// How long a usual section's lock was waited for; the rest then means nothing.
    pub waited_usual: u64,
    /// The frames above, where the site is not known yet.
    chain: Chain,
}

impl Held {
    /// A section that begins in the usual way, and is not measured yet.
    #[inline(always)]
    pub fn usual(lock: usize, row: &'static Row) -> Held {
        Held { lock, since: 0, row: &raw const *row as usize }
    }

    /// Notes when it began, and whether it was drawn.
    #[inline(always)]
    pub fn begins(&mut self, at: u64, drawn: bool) {
        self.since = at;
        self.row |= MEASURED | if drawn { DRAWN } else { 0 };
    }

    /// Notes when it began, after a wait; it is then measured, for itself alone.
    pub fn begins_after_wait(&mut self, at: u64) {
        self.since = at;
        self.row |= MEASURED | WAITED;
    }

    /// Whether its lock was waited for.
    #[inline(always)]
    pub fn has_waited(&self) -> bool {
        self.row & WAITED != 0
    }

    fn unusual(lock: usize, since: u64, row: *const Row) -> Held {
        Held { lock, since, row: row as usize | UNUSUAL | MEASURED }
    }

    /// Begin, weight and row, if it is a usual section of the lock.
    #[inline(always)]
    pub fn as_usual(&self, lock: usize) -> Option<(u64, u32, &'static Row)> {
        if self.lock != lock || self.row & UNUSUAL != 0 {
            return None;
        }
        Some((self.since, self.weight(), self.usual_row()))
    }

    /// Whether it is a usual section of the lock that nobody measures.
    #[inline(always)]
    pub fn is_unmeasured(&self, lock: usize) -> bool {
        self.lock == lock && self.row & MARKS == 0
    }

    /// The row of a usual section.
    #[inline(always)]
    pub fn usual_row(&self) -> &'static Row {
        // SAFETY: a usual section has a row, and rows stay as long as the process.
        unsafe { &*self.row() }
    }

    fn weight(&self) -> u32 {
        match self.row & (MEASURED | DRAWN) {
            0 => 0,
            MEASURED => 1,
            _ => PERIOD,
        }
    }

    #[inline(always)]
    fn row(&self) -> *const Row {
        (self.row & !MARKS) as *const Row
    }

    /// What a usual section left out.
    fn more(&self, kept: &More) -> More {
        if self.row & UNUSUAL != 0 {
            return *kept;
        }
        let row = self.usual_row();
        let what = What {
            class: row.class.load(Relaxed) - 1,
            site: row.site.load(Relaxed),
            mode: row.mode.load(Relaxed) as u8,
            kind: row.kind.load(Relaxed),
            lock: 0,
        };
        let lock_row = core::ptr::null();
        More { lock_row, what, nested: false, waited: None, waited_usual: 0, chain: Chain::EMPTY }
    }
}

/// How an attempt to acquire ended.
#[derive(Clone, Copy)]
pub struct Acquired {
    /// When.
    pub at: u64,
    /// How long it waited, if the lock was found taken.
    pub waited: Option<u64>,
}

/// A place and a lock, looked up before the lock is taken.
pub struct Attempt {
    what: What,
    row: Option<&'static Row>,
    /// The site, or the class, is not known before the section ends. As seen before waiting: another
    /// thread may decide the place meanwhile, but this one still stands at a wrapper.
    undecided: bool,
}

/// Looks up where and what a hook is about to acquire.
pub fn attempt(
    thread: &mut Thread,
    writer: &Writer,
    lock: usize,
    kind: u8,
    mode: u8,
    caller: Caller,
) -> Attempt {
    if thread.refusals > 0 {
        refused::settle(thread, writer, lock);
    }
    let place = places::climb(caller);
    let known = class::of_lock(lock, kind);
    let (class, class_by_site) = match known {
        Some(class) => (class, false),
        None => class::first_seen(writer, lock, kind, place),
    };
    let what = What { class, site: site_of(writer, place), mode, kind, lock: 0 };
    let row = thread.row(writer, what);
    // Not `== UNDECIDED`: another thread may have made it a wrapper since `climb` looked.
    let undecided = class_by_site || place.state() != places::SITE;
    if let Some(row) = row
        && !undecided
    {
        usual::remember(thread, writer, caller, (class, kind, mode), row);
    }
    Attempt { what, row, undecided }
}

/// The recording's index of a site.
pub fn site_of(writer: &Writer, place: &'static Place) -> u32 {
    match place.site.load(Relaxed) {
        0 => class::new_site(writer, place),
        known => known - 1,
    }
}

impl Attempt {
    /// Begins the section of an acquired lock.
    pub fn begin(
        self,
        thread: &mut Thread,
        writer: &Writer,
        lock: usize,
        acquired: Acquired,
        caller: Caller,
    ) {
        let by_lock = writer.header().by_lock != 0;
        let lock_row = if by_lock {
            thread.row(writer, What { site: 0, lock: lock as u64, ..self.what })
        } else {
            None
        };
        match self.row {
            Some(row) => count(writer, row, acquired.waited),
            None => count_in_class(writer, self.what, acquired.waited),
        }
        if let Some(row) = lock_row {
            count(writer, row, acquired.waited);
        }
        let nested = thread.depth > 0 && is_held(thread, writer, lock, self.what.mode);
        if thread.depth == DEPTH {
            forget_oldest(thread, writer);
        }
        let chain = if self.undecided { Chain::collect(caller) } else { Chain::EMPTY };
        let row = self.row.map_or(core::ptr::null(), |row| &raw const *row);
        let lock_row = lock_row.map_or(core::ptr::null(), |row| &raw const *row);
        thread.held[thread.depth] = Held::unusual(lock, acquired.at, row);
        thread.more[thread.depth] = More {
            lock_row,
            what: self.what,
            nested,
            waited: acquired.waited,
            waited_usual: 0,
            chain,
        };
        thread.depth += 1;
    }

    /// Counts an attempt that gave up, after waiting so long, for a hook's `caller`.
    #[cold]
    pub fn rejected(
        self,
        thread: &mut Thread,
        writer: &Writer,
        lock: usize,
        waited: Option<u64>,
        caller: Caller,
    ) {
        let Some(row) = self.row else {
            writer.class(self.what.class).totals[self.what.mode as usize]
                .rejected
                .fetch_add(1, Relaxed);
            return;
        };
        count_rejected(row, waited);
        if self.undecided {
            refused::remember(thread, lock, self.what, waited, caller);
        }
    }
}

fn count(writer: &Writer, row: &Row, waited: Option<u64>) {
    add(&row.acquisitions, 1);
    if let Some(ticks) = waited {
        count_wait(writer, row, ticks);
    }
}

/// Counts an attempt that gave up, after waiting so long.
pub fn count_rejected(row: &Row, waited: Option<u64>) {
    add(&row.rejected, 1);
    if let Some(ticks) = waited {
        add(&row.wait, ticks);
        raise(&row.wait_max, ticks);
    }
}

/// Counts a wait.
#[cold]
pub fn count_wait(writer: &Writer, row: &Row, ticks: u64) {
    add(&row.contended, 1);
    add(&row.wait, ticks);
    raise(&row.wait_max, ticks);
    count_ticks(writer, &row.wait_page, ticks, 1);
}

#[cold]
fn count_in_class(writer: &Writer, what: What, waited: Option<u64>) {
    let totals = &writer.class(what.class).totals[what.mode as usize];
    totals.acquisitions.fetch_add(1, Relaxed);
    if let Some(ticks) = waited {
        totals.contended.fetch_add(1, Relaxed);
        totals.wait.fetch_add(ticks, Relaxed);
    }
}

/// Whether this thread holds the lock already. A lock that it holds exclusively and gets again was
/// released by another thread: that section's end was not seen.
#[inline]
fn is_held(thread: &mut Thread, writer: &Writer, lock: usize, mode: u8) -> bool {
    let Some(at) = thread.held[..thread.depth].iter().rposition(|held| held.lock == lock) else {
        return false;
    };
    let more = thread.held[at].more(&thread.more[at]);
    if mode == SHARED || class::is_recursive(lock, more.what.kind) {
        return true;
    }
    remove(thread, at);
    writer.dropped(Dropped::Sections);
    false
}

#[cold]
fn forget_oldest(thread: &mut Thread, writer: &Writer) {
    remove(thread, 0);
    writer.dropped(Dropped::Sections);
}

fn remove(thread: &mut Thread, at: usize) {
    thread.held[at..thread.depth].rotate_left(1);
    thread.more[at..thread.depth].rotate_left(1);
    thread.depth -= 1;
}

/// A section that has just ended: what is still to be written when the lock is free.
pub struct Ended {
    row: *const Row,
    lock_row: *const Row,
    what: What,
    ticks: u64,
    weight: u32,
}

/// Ends this thread's section of the lock, in a hook entered with `stack`, before the lock is released;
/// none where it has none, or an outer one measures.
pub fn end(thread: &mut Thread, writer: &Writer, lock: usize, stack: usize) -> Option<Ended> {
    let last = thread.depth.checked_sub(1)?;
    let mut at = last;
    if thread.held[last].lock != lock {
        at = thread.held[..last].iter().rposition(|held| held.lock == lock)?;
    }
    let held = thread.held[at];
    if held.has_waited()
        && let Some((_, _, row)) = held.as_usual(lock)
    {
        count_wait(writer, row, thread.more[at].waited_usual);
    }
    let more = held.more(&thread.more[at]);
    let now = clock::ticks(writer.header().clock);
    let mut ended = Ended {
        row: held.row(),
        lock_row: more.lock_row,
        what: more.what,
        // Ticks of two processors may differ by a few; a section can not have ended before it began.
        ticks: now.saturating_sub(held.since).min(i64::MAX as u64),
        weight: held.weight(),
    };
    if !more.chain.is_empty() {
        settle(thread, writer, lock, &more, stack, &mut ended);
    }
    if at == last {
        thread.depth = last;
    } else {
        remove(thread, at);
    }
    (!more.nested && ended.weight != 0).then_some(ended)
}

impl Ended {
    /// Writes the hold, after the lock is free again.
    pub fn write(self, writer: &Writer) {
        // SAFETY: rows stay as long as the process; null where there is none.
        let (row, lock_row) = unsafe { (self.row.as_ref(), self.lock_row.as_ref()) };
        match row {
            Some(row) => hold(writer, row, self.ticks, self.weight),
            None => drop(
                writer.class(self.what.class).totals[self.what.mode as usize]
                    .hold
                    .fetch_add(self.ticks * u64::from(self.weight), Relaxed),
            ),
        }
        if let Some(row) = lock_row {
            hold(writer, row, self.ticks, self.weight);
        }
    }

    /// What kind of acquisition the section began with.
    pub fn mode(&self) -> u8 {
        self.what.mode
    }
}

/// Counts a section that ended, and stands for `weight` of them.
#[inline(always)]
pub fn hold(writer: &Writer, row: &Row, ticks: u64, weight: u32) {
    let weight = u64::from(weight);
    add(&row.held, weight);
    add(&row.hold, ticks * weight);
    raise(&row.hold_max, ticks);
    count_ticks(writer, &row.hold_page, ticks, weight);
}

/// Decides the site of a section that began without one, and moves what was counted to it.
#[cold]
fn settle(
    thread: &mut Thread,
    writer: &Writer,
    lock: usize,
    more: &More,
    stack: usize,
    ended: &mut Ended,
) {
    let (place, waited, old) = (more.chain.decide(stack), more.waited, more.what);
    let mut what = old;
    what.site = site_of(writer, place);
    if what.class == 0 {
        what.class = class::by_first_site(writer, lock, what.kind, place);
    }
    refused::settle(thread, writer, lock);
    if (what.site, what.class) == (old.site, old.class) {
        return;
    }
    ended.what = what;
    move_counts(thread, writer, old, what, waited, &mut ended.row);
    if !ended.lock_row.is_null() && what.class != old.class {
        let lock = lock as u64;
        let (old, what) = (What { site: 0, lock, ..old }, What { site: 0, lock, ..what });
        move_counts(thread, writer, old, what, waited, &mut ended.lock_row);
    }
}

/// Takes one acquisition from a row and gives it to another one's.
fn move_counts(
    thread: &mut Thread,
    writer: &Writer,
    from: What,
    to: What,
    waited: Option<u64>,
    row: &mut *const Row,
) {
    // SAFETY: rows stay as long as the process; null where there is none.
    match unsafe { row.as_ref() } {
        Some(old) => {
            add(&old.acquisitions, 1u64.wrapping_neg());
            if let Some(ticks) = waited {
                add(&old.contended, 1u64.wrapping_neg());
                add(&old.wait, ticks.wrapping_neg());
                count_ticks(writer, &old.wait_page, ticks, 1u64.wrapping_neg());
                if old.acquisitions.load(Relaxed) == 0 {
                    old.wait_max.store(0, Relaxed);
                }
            }
        }
        None => {
            let totals = &writer.class(from.class).totals[from.mode as usize];
            totals.acquisitions.fetch_sub(1, Relaxed);
            if let Some(ticks) = waited {
                totals.contended.fetch_sub(1, Relaxed);
                totals.wait.fetch_sub(ticks, Relaxed);
            }
        }
    }
    match thread.row(writer, to) {
        Some(new) => {
            count(writer, new, waited);
            *row = new;
        }
        None => {
            count_in_class(writer, to, waited);
            *row = core::ptr::null();
        }
    }
}

const _: () = assert!(EXCLUSIVE == 0 && SHARED == 1, "modes index a class's totals");
