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
        NONE => begin(),
        _ => None,
    }
}

#[cold]
fn begin() -> Option<&'static Writer> {
    {
        let _beginning = BEGINNING.lock();
        if SESSION.state.load(Relaxed) == NONE {
            let mode = if settings::mode() == Some(Mode::Convert) { 2 } else { 1 };
            match Writer::create(settings::directory().as_bytes(), mode, settings::by_lock()) {
                Ok(writer) => {
                    // SAFETY: nobody reads it before the state says so, and nobody else writes it.
                    unsafe { (*SESSION.writer.get()).write(writer) };
                    // Release, pairs with the load in `writer`.
                    SESSION.state.store(RECORDING, Release);
                }
                Err(_) => stop(),
            }
        }
    }
    match SESSION.state.load(Acquire) {
        // SAFETY: as in `writer`.
        RECORDING => Some(unsafe { (*SESSION.writer.get()).assume_init_ref() }),
        _ => None,
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

/// Holds the lock of the beginning across a fork.
pub fn before_fork() {
    BEGINNING.hold();
}

/// Gives it back.
///
/// # Safety
/// After [`before_fork`], on the same thread or its copy.
pub unsafe fn after_fork() {
    // SAFETY: the caller's promise.
    unsafe { BEGINNING.release() };
}

/// In the child: a recording of its own.
pub fn follow_fork() {
    if !is_recording() {
        return;
    }
    // SAFETY: RECORDING, so it was written; this child has one thread.
    let followed = unsafe {
        (*SESSION.writer.get()).assume_init_mut().follow_fork(settings::directory().as_bytes())
    };
    if followed.is_err() {
        stop();
        crate::tls::set(core::ptr::null_mut());
    }
}
