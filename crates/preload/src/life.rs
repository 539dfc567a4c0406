//! From the first call to the end of the process.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use relatch_plan::env::Mode;

use crate::{class, convert, names, observe, places, session, settings, slots, thread, unwind};

const NOT_BEGUN: u32 = 0;
const DONE: u32 = u32::MAX;

/// [`NOT_BEGUN`], the thread id of who begins, or [`DONE`].
static BEGUN: AtomicU32 = AtomicU32::new(NOT_BEGUN);

/// Finds glibc's functions and directs the hooks. Called as a constructor, or by the first hook of all:
/// a library's constructor may lock before ours has run.
#[unsafe(no_mangle)]
extern "C" fn relatch_begin() {
    if BEGUN.load(Acquire) == DONE {
        return;
    }
    // SAFETY: no arguments, never fails.
    let me = unsafe { libc::gettid() } as u32;
    match BEGUN.compare_exchange(NOT_BEGUN, me, Acquire, Acquire) {
        Ok(_) => {
            // SAFETY: this thread's errno; the hook that called us must leave it as it was.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            let saved = unsafe { errno.read() };
            begin();
            // SAFETY: as above.
            unsafe { errno.write(saved) };
            // Release, pairs with the loads above and below.
            BEGUN.store(DONE, Release);
        }
        // The dynamic linker locked while we asked it: what is found so far forwards.
        Err(owner) if owner == me => {}
        Err(_) => {
            while BEGUN.load(Acquire) != DONE {
                // SAFETY: no arguments.
                unsafe { libc::sched_yield() };
            }
        }
    }
}

fn begin() {
    slots::resolve();
    settings::read();
    let Some(mode) = settings::mode() else { return };
    if mode == Mode::Same {
        return;
    }
    unwind::resolve();
    thread::make_key();
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    match mode {
        Mode::Record => observe::direct(),
        Mode::Convert => convert::direct(),
        Mode::Same => {}
    }
}

/// The process ends by `exit` or by returning from `main`.
#[unsafe(no_mangle)]
extern "C" fn relatch_end() {
    if BEGUN.load(Relaxed) == DONE {
        session::end();
    }
}

/// Nothing is held across a fork: another library's handler may lock, after ours or before.
unsafe extern "C" fn in_child() {
    session::in_child();
    thread::in_child();
    names::in_child();
    places::in_child();
    class::in_child();
}
