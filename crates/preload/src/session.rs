//! This process's live recording: begun at the first lock, so that a shell between two programs leaves
//! nothing behind.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use relatch_plan::env::Mode;
use relatch_record::writer::Writer;

use crate::guard::Guarded;
use crate::{settings, slots};

const NONE: u8 = 0;
const RECORDING: u8 = 1;
/// No recording could be had, or its file was lost: nothing is observed any more.
const STOPPED: u8 = 2;
/// A child of a fork that has not locked yet: the recording is still its parent's.
const FORKED: u8 = 3;

struct Session {
    state: AtomicU8,
    writer: UnsafeCell<MaybeUninit<Writer>>,
}
// SAFETY: the writer is written before the state says RECORDING, and after that only in a forked child,
// which has one thread.
unsafe impl Sync for Session {}

static SESSION: Session =
    Session { state: AtomicU8::new(NONE), writer: UnsafeCell::new(MaybeUninit::uninit()) };
static BEGINNING: Guarded<()> = Guarded::new(());

/// The recording; begins it at the first call. None when it could not be had: then nothing is observed.
#[inline(always)]
pub fn writer() -> Option<&'static Writer> {
    // Acquire, pairs with the release in `begin`.
    match SESSION.state.load(Acquire) {
        // SAFETY: written before the state.
        RECORDING => Some(unsafe { (*SESSION.writer.get()).assume_init_ref() }),
        NONE | FORKED => begin(),
        _ => None,
    }
}

#[cold]
fn begin() -> Option<&'static Writer> {
    let _beginning = BEGINNING.lock();
    let directory = settings::directory().as_bytes();
    let begun = match SESSION.state.load(Relaxed) {
        NONE => {
            crate::passing::warm_up();
            let mode = if settings::mode() == Some(Mode::Convert) { 2 } else { 1 };
            Writer::create(directory, mode, settings::by_lock())
        }
        // SAFETY: the writer was written before the parent recorded. `in_child` has forgotten every
        // row and page.
        FORKED => unsafe { (*SESSION.writer.get()).assume_init_read().follow_fork(directory) },
        // SAFETY: another thread was first, and has written it.
        RECORDING => return Some(unsafe { (*SESSION.writer.get()).assume_init_ref() }),
        _ => return None,
    };
    match begun {
        Ok(writer) => {
            // SAFETY: nobody reads it before the state says so, and nobody else writes it.
            let writer = unsafe { (*SESSION.writer.get()).write(writer) };
            // Release, pairs with the load in `writer`.
            SESSION.state.store(RECORDING, Release);
            Some(writer)
        }
        Err(_) => {
            stop();
            None
        }
    }
}

/// Nothing is observed from here on. Converted locks stay converted.
fn stop() {
    SESSION.state.store(STOPPED, Release);
    if settings::mode() == Some(Mode::Record) {
        slots::forward_all();
    }
}

/// Whether a recording was begun.
fn is_recording() -> bool {
    SESSION.state.load(Acquire) == RECORDING
}

/// Marks the end of the recording, at the process's exit.
pub fn end() {
    if is_recording()
        && let Some(writer) = writer()
    {
        writer.end();
    }
}

/// In the child of a fork: its recording begins with its first lock, so that a child that only calls
/// exec costs nothing.
pub fn in_child() {
    // SAFETY: this child has one thread.
    unsafe { BEGINNING.force_free() };
    if is_recording() {
        SESSION.state.store(FORKED, Release);
    }
}
