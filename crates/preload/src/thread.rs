//! What the library keeps of a thread: its rows in the recording and the sections it is in.
//!
//! A `Thread` lives in anonymous memory of its own and is found through one thread-local word. When a
//! thread ends, its `Thread`, rows included, waits for the next one to begin: rows are sums over whoever
//! used them, so a program that starts a thread per request needs no more of them than run at once.

use core::ffi::c_void;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use relatch_plan::env::Mode;
use relatch_record::layout::{Dropped, ROW_PAGE, ROWS, Row};
use relatch_record::sys;
use relatch_record::writer::Writer;

use crate::convert::watch::{self, Watched};
use crate::guard::Guarded;
use crate::memory::Memory;
use crate::refused::{self, Refused};
use crate::section::{DEPTH, Held, More};
use crate::{session, settings, tls};

/// Keys of rows that a thread can find; a power of two.
const KEYS: usize = 4096;
/// How far from its place a key is looked for.
const PROBES: usize = 16;
/// Shared acquisitions of converted locks remembered, to let a reader in again.
pub const READS: usize = 64;

/// A row's key and the row.
#[derive(Clone, Copy)]
struct Key {
    lock: u64,
    /// Class, site and mode; 0: empty.
    what: u64,
    row: *const Row,
}

/// A thread that acquired a lock. What every acquisition touches comes first: its line holds the two
/// innermost sections as well.
#[repr(C, align(64))]
pub struct Thread {
    /// How many sections it is in.
    pub depth: usize,
    /// The recording's first page: rows are numbered from there.
    pub pages: usize,
    /// The sections it is in, outermost first.
    pub held: [Held; DEPTH],
    /// The rows of the places that it was at.
    pub memory: Memory,
    /// What the sections have that did not begin in the usual way.
    pub more: [More; DEPTH],
    /// The converted rwlocks it holds shared.
    pub reads: [usize; READS],
    /// How many.
    pub reading: usize,
    /// The watched locks it holds whose site is not known yet.
    pub watched: [Watched; watch::DEPTH],
    /// How many.
    pub watching: usize,
    /// Attempts that were refused where the site is not known yet.
    pub refused: [Refused; refused::ROOM],
    /// How many.
    pub refusals: usize,
    /// Its thread id.
    pub id: u32,
    page: Option<u32>,
    rows_used: usize,
    next: *mut Thread,
    running: bool,
    /// Its rows are those of the process that this one was forked from.
    stale: bool,
    keys: [Key; KEYS],
}

/// Every `Thread` ever made; they are reused, never freed.
struct All(*mut Thread);
// SAFETY: reached under the lock alone.
unsafe impl Send for All {}

static ALL: Guarded<All> = Guarded::new(All(core::ptr::null_mut()));
/// The key whose destructor tells that a thread ends, plus one; 0: there is none, see [`make_key`].
static END_KEY: AtomicU32 = AtomicU32::new(0);
/// Keys below this have room in every thread; glibc allocates for the others.
const KEYS_WITH_ROOM: u32 = 32;
/// A value for the key that is not null.
static NOT_NULL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// This thread's `Thread`, if it has one yet.
#[inline(always)]
pub fn attached() -> Option<&'static mut Thread> {
    let thread = tls::get();
    // SAFETY: the word belongs to this thread, and hooks do not nest.
    (!thread.is_null()).then(|| unsafe { &mut *thread })
}

/// This thread's `Thread`; none where it can not be had (no memory, or recording has stopped).
#[inline(always)]
pub fn current() -> Option<&'static mut Thread> {
    let thread = tls::get();
    if thread.is_null() {
        return attach();
    }
    // SAFETY: the word belongs to this thread, and hooks do not nest.
    Some(unsafe { &mut *thread })
}

/// Makes the key by which the end of a thread is seen. A program that has 32 keys of its own by now leaves
/// only keys that glibc would allocate for; then a new thread looks which of the others still run.
pub fn make_key() {
    let mut key = 0;
    // SAFETY: `key` is writable, and the destructor has the right signature.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
        return;
    }
    if key < KEYS_WITH_ROOM {
        END_KEY.store(key + 1, Relaxed);
    } else {
        // SAFETY: made above, and no thread has a value for it.
        unsafe { libc::pthread_key_delete(key) };
    }
}

/// Whether a thread of this process has that id.
fn runs(id: u32) -> bool {
    sys::thread_exists(sys::pid(), id)
}

#[cold]
fn attach() -> Option<&'static mut Thread> {
    // A converted lock asks who is who even where nothing can be recorded.
    if session::writer().is_none() && settings::mode() != Some(Mode::Convert) {
        return None;
    }
    let thread = {
        let mut all = ALL.lock();
        let mut thread = all.0;
        // SAFETY: the list holds live `Thread`s, and only this code, under the lock, takes one that does
        // not run.
        unsafe {
            let ends_are_seen = END_KEY.load(Relaxed) != 0;
            while !thread.is_null() && (*thread).running && (ends_are_seen || runs((*thread).id)) {
                thread = (*thread).next;
            }
            if thread.is_null() {
                thread = sys::map_private(size_of::<Thread>())?.cast::<Thread>();
                // Zeroed memory is an empty Thread: see `zeroed_is_empty` below.
                (*thread).next = all.0;
                all.0 = thread;
                if let Some(writer) = session::writer() {
                    writer.header().threads.fetch_add(1, Relaxed);
                }
            }
            (*thread).running = true;
            (*thread).id = libc::gettid() as u32;
        }
        thread
    };
    tls::set(thread);
    if let Some(key) = END_KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: the key exists; the value is any address that is not null.
        unsafe { libc::pthread_setspecific(key, (&raw const NOT_NULL).cast()) };
    }
    // SAFETY: `thread` is this thread's from here on.
    let thread = unsafe { &mut *thread };
    if thread.stale {
        thread.renew();
    }
    thread.depth = 0;
    thread.reading = 0;
    thread.watching = 0;
    thread.refusals = 0;
    Some(thread)
}

/// The thread's last locks may still come, from other keys' destructors: it then attaches anew.
unsafe extern "C" fn ended(_value: *mut c_void) {
    let thread = tls::get();
    if !thread.is_null() {
        tls::set(core::ptr::null_mut());
        if let Some(writer) = session::writer() {
            // SAFETY: still this thread's own; no lock is at 0.
            refused::settle(unsafe { &mut *thread }, writer, 0);
        }
        let _all = ALL.lock();
        // SAFETY: this thread gives its `Thread` back, under the lock.
        unsafe { (*thread).running = false };
    }
}

impl Thread {
    /// Forgets rows and sections: they were those of the process that this one was forked from.
    fn renew(&mut self) {
        self.stale = false;
        self.depth = 0;
        self.watching = 0;
        self.refusals = 0;
        self.page = None;
        self.rows_used = 0;
        self.memory.clear();
        self.keys.fill(Key { lock: 0, what: 0, row: core::ptr::null() });
        // SAFETY: no arguments, never fails.
        self.id = unsafe { libc::gettid() } as u32;
    }

    /// The row for what is named; none when there is no room.
    #[inline(always)]
    pub fn row(&mut self, writer: &Writer, what: What) -> Option<&'static Row> {
        let packed = what.packed();
        let first = what.hash();
        let key = &self.keys[first];
        if key.what == packed && key.lock == what.lock {
            // SAFETY: rows stay where they are as long as the process lives.
            return Some(unsafe { &*key.row });
        }
        self.probe(writer, what, packed, first)
    }

    #[cold]
    fn probe(
        &mut self,
        writer: &Writer,
        what: What,
        packed: u64,
        first: usize,
    ) -> Option<&'static Row> {
        for i in 0..PROBES {
            let index = (first + i) % KEYS;
            let key = self.keys[index];
            if key.what == packed && key.lock == what.lock {
                // SAFETY: as in `row`.
                return Some(unsafe { &*key.row });
            }
            if key.what == 0 {
                let row = self.new_row(writer, what)?;
                self.keys[index] = Key { lock: what.lock, what: packed, row };
                return Some(row);
            }
        }
        writer.dropped(if what.lock == 0 { Dropped::Rows } else { Dropped::Locks });
        None
    }

    fn new_row(&mut self, writer: &Writer, what: What) -> Option<&'static Row> {
        if self.page.is_none() || self.rows_used == ROWS {
            let Some(page) = writer.new_page(ROW_PAGE) else {
                writer.dropped(if what.lock == 0 { Dropped::Rows } else { Dropped::Locks });
                return None;
            };
            self.page = Some(page);
            self.pages = writer.first_page();
            self.rows_used = 0;
        }
        // SAFETY: the mapping lives as long as the process.
        let writer: &'static Writer = unsafe { &*core::ptr::from_ref(writer) };
        let row = writer.row(self.page?, self.rows_used);
        self.rows_used += 1;
        row.site.store(what.site, Relaxed);
        row.lock.store(what.lock, Relaxed);
        row.mode.store(what.mode.into(), Relaxed);
        row.kind.store(what.kind, Relaxed);
        // Release: the reader takes a row whose class it sees, so the rest comes first.
        row.class.store(what.class + 1, Release);
        Some(row)
    }
}

/// What a row counts.
#[derive(Clone, Copy, PartialEq)]
pub struct What {
    /// Index of the class.
    pub class: u32,
    /// Index of the site.
    pub site: u32,
    /// Exclusive or shared.
    pub mode: u8,
    /// The lock's kind.
    pub kind: u8,
    /// The lock's address, or 0 for a site's row.
    pub lock: u64,
}

impl What {
    /// Never 0: kinds begin with 1.
    #[inline(always)]
    fn packed(self) -> u64 {
        (u64::from(self.class) << 32)
            | (u64::from(self.site) << 8)
            | (u64::from(self.kind) << 1)
            | u64::from(self.mode)
    }

    #[inline(always)]
    fn hash(self) -> usize {
        let mixed = (self.packed() ^ (self.lock >> 3)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - KEYS.trailing_zeros())) as usize
    }
}

/// In the child of a fork: no other thread is left, and this one begins anew as far as the recording
/// goes: what it holds was acquired, and counted, in its parent.
pub fn in_child() {
    // SAFETY: this child has one thread.
    unsafe { ALL.force_free() };
    let mine = tls::get();
    let all = ALL.lock();
    let mut thread = all.0;
    // SAFETY: the list holds live `Thread`s; the other threads do not exist in this process.
    unsafe {
        while !thread.is_null() {
            (*thread).running = thread == mine;
            (*thread).stale = thread != mine;
            thread = (*thread).next;
        }
        if let Some(thread) = mine.as_mut() {
            thread.renew();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_is_empty() {
        // SAFETY: exactly what is asked here: all fields are integers, bools, raw pointers and options
        // whose none is zero.
        let thread = unsafe { Box::<Thread>::new_zeroed().assume_init() };
        assert!(thread.depth == 0 && thread.page.is_none() && !thread.running);
        assert!(thread.keys.iter().all(|key| key.what == 0));
    }
}
