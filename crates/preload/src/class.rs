//! Classes: the locks of one origin. And sites, which are entered into the recording the same way.
//!
//! A lock carries its class in four bytes of its own that glibc leaves alone, mixed with a tag made of its
//! address, so that a copied lock, or one whose memory was used for something else before, is not taken
//! for what it was:
//!
//! | structure | class | what glibc has there |
//! |---|---|---|
//! | `pthread_mutex_t` | 24..28 | `__list`, used by robust and PI kinds only |
//! | `pthread_rwlock_t` | 20..24 | padding |
//!
//! They lie on the line of the cache that glibc's own words are on: a further one per acquisition would
//! be the most expensive part of observing.
//!
//! Robust, PI and process-shared locks, and spinlocks, whose four bytes have no room, are looked up in
//! a table by address.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use relatch_record::layout::{
    CLASSES, KIND_MUTEX, KIND_RWLOCK, ORIGIN_INIT, ORIGIN_SITE, ORIGIN_STATIC,
};
use relatch_record::writer::Writer;

use crate::guard::Guarded;
use crate::kind::{mutex_keeps_list, mutex_kind, rwlock_is_shared};
use crate::places::{self, Caller, Place};
use crate::table::Table;
use crate::unwind::{self, Object};

/// Serialises what is added to the recording's tables.
static ADDING: Guarded<()> = Guarded::new(());

/// The tagged class inside a lock, where it has room.
#[inline(always)]
fn inside(lock: usize, kind: u8) -> Option<*const AtomicU32> {
    let at = match kind {
        KIND_MUTEX if !mutex_keeps_list(mutex_kind(lock)) => 24,
        KIND_RWLOCK if !rwlock_is_shared(lock) => 20,
        _ => return None,
    };
    Some((lock + at) as *const AtomicU32)
}

/// The tag of a lock's address: the bits above a class's, and the highest always, so that zeros, what an
/// initialiser leaves, are no class.
#[inline(always)]
fn tag(lock: usize) -> u32 {
    const HIGHEST: u32 = 1 << 31;
    (lock as u32).wrapping_mul(0x9E37_79B9_u32.wrapping_mul(CLASSES as u32)) | HIGHEST
}

/// The class that the lock carries itself, if it has room for it and has been seen.
#[inline(always)]
pub fn inside_lock(lock: usize, kind: u8) -> Option<u32> {
    // SAFETY: it lies, aligned, within a lock that the program handed us as initialised; glibc does not
    // use it for these kinds.
    let word = unsafe { &*inside(lock, kind)? };
    // Acquire, pairs with the release in `note`.
    let class = word.load(Acquire) ^ tag(lock);
    (class < CLASSES as u32).then_some(class)
}

/// The lock's class, if it has been seen.
#[inline]
pub fn of_lock(lock: usize, kind: u8) -> Option<u32> {
    match inside(lock, kind) {
        Some(_) => inside_lock(lock, kind),
        None => BY_ADDRESS
            .find(lock)
            .map(|entry| entry.number.load(Relaxed))
            .filter(|&class| class != 0),
    }
}

/// Notes the lock's class.
fn note(lock: usize, kind: u8, class: u32) {
    match inside(lock, kind) {
        // Release, pairs with the load in `inside_lock`: the class is in the recording.
        // SAFETY: as there.
        Some(word) => unsafe { (*word).store(class ^ tag(lock), Release) },
        None => {
            if let Some(entry) = BY_ADDRESS.enter(lock) {
                entry.number.store(class, Relaxed);
            }
        }
    }
}

/// Forgets the lock: it is destroyed.
pub fn forget(lock: usize, kind: u8) {
    match inside(lock, kind) {
        // SAFETY: as in `inside_lock`.
        Some(word) => unsafe { (*word).store(0, Relaxed) },
        None => {
            if let Some(entry) = BY_ADDRESS.find(lock) {
                entry.number.store(0, Relaxed);
            }
        }
    }
}

/// Whether a thread may acquire the lock again while it holds it.
pub fn is_recursive(lock: usize, kind: u8) -> bool {
    kind == KIND_MUTEX && mutex_kind(lock) & 3 == 1
}

/// An initialised lock's class: the place of the init call above wrappers.
#[cold]
pub fn initialised(writer: &Writer, lock: usize, kind: u8, caller: Caller) {
    let place = places::origin(caller);
    let class = of_place(writer, place, ORIGIN_INIT, kind);
    writer.class(class).locks.fetch_add(1, Relaxed);
    note(lock, kind, class);
}

/// The class of a lock that was never initialised by a call: that of its symbol if it is static, else
/// that of its first acquiring site; and whether that site is still to be decided.
#[cold]
pub fn first_seen(writer: &Writer, lock: usize, kind: u8, place: &'static Place) -> (u32, bool) {
    if let Some(object) = unwind::object_at(lock) {
        let class = of_static(writer, lock, kind, &object);
        note(lock, kind, class);
        return (class, false);
    }
    if place.state() == places::SITE {
        return (by_first_site(writer, lock, kind, place), false);
    }
    (0, true)
}

/// The class of a lock that `place` acquires first.
pub fn by_first_site(writer: &Writer, lock: usize, kind: u8, place: &'static Place) -> u32 {
    // Another thread may have been first in the meantime.
    if let Some(class) = of_lock(lock, kind) {
        return class;
    }
    let class = of_place(writer, place, ORIGIN_SITE, kind);
    writer.class(class).locks.fetch_add(1, Relaxed);
    note(lock, kind, class);
    class
}

fn of_place(writer: &Writer, place: &'static Place, origin: u32, kind: u8) -> u32 {
    let known = &place.class[kind as usize];
    if known.load(Relaxed) == 0 {
        let _adding = ADDING.lock();
        if known.load(Relaxed) == 0 {
            let address = place.address();
            let module = if address == 0 { u32::MAX } else { module_of(writer, address) };
            let class = if address == 0 {
                0
            } else {
                writer.add_class(address as u64, module, origin, kind)
            };
            known.store(class + 1, Relaxed);
        }
    }
    known.load(Relaxed) - 1
}

fn of_static(writer: &Writer, lock: usize, kind: u8, object: &Object) -> u32 {
    let _adding = ADDING.lock();
    // A static lock may be seen as new again, after its memory was filled with zeros.
    let Some(entry) = STATICS.enter(lock) else { return 0 };
    if entry.number.load(Relaxed) == 0 {
        let module = enter_module(writer, object);
        let class = writer.add_class(lock as u64, module, ORIGIN_STATIC, kind);
        writer.class(class).locks.fetch_add(1, Relaxed);
        entry.number.store(class + 1, Relaxed);
    }
    entry.number.load(Relaxed) - 1
}

/// Enters a site into the recording; its index.
#[cold]
pub fn new_site(writer: &Writer, place: &'static Place) -> u32 {
    let _adding = ADDING.lock();
    if place.site.load(Relaxed) == 0 {
        let address = place.address();
        let site = if address == 0 {
            0
        } else {
            writer.add_site(address as u64, module_of(writer, address))
        };
        place.site.store(site + 1, Relaxed);
    }
    place.site.load(Relaxed) - 1
}

fn module_of(writer: &Writer, address: usize) -> u32 {
    unwind::object_at(address).map_or(u32::MAX, |object| enter_module(writer, &object))
}

/// Enters a module, once; its index.
fn enter_module(writer: &Writer, object: &Object) -> u32 {
    let known = writer.modules().iter().position(|module| module.start == object.start as u64);
    if let Some(index) = known {
        return index as u32;
    }
    let (base, path) = object.base_and_path();
    let path = if path.is_empty() { trimmed(&writer.header().exe) } else { path };
    writer.add_module(base as u64, object.start as u64, object.end as u64, path).unwrap_or(u32::MAX)
}

fn trimmed(padded: &[u8]) -> &[u8] {
    let end = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    &padded[..end]
}

/// Locks without room for their class.
static BY_ADDRESS: Table<32768> = Table::new();
/// Static locks; the class plus one.
static STATICS: Table<8192> = Table::new();

const _: () = assert!(CLASSES.is_power_of_two(), "a class and a tag share a word");

/// In the child of a fork.
pub fn in_child() {
    // SAFETY: this child has one thread.
    unsafe { ADDING.force_free() };
}
