//! Record mode: hooks that observe, and leave every lock glibc's.
//!
//! A lock call tries first. What a try finds free was not contended; what it finds taken is waited for
//! by glibc's own call, timed. glibc's try and its lock take a free lock in the same way.

use core::ffi::c_int;

use relatch_record::clock;
use relatch_record::layout::CLOCK_TSC;
use relatch_record::writer::Writer;

use crate::class;
use crate::places::Caller;
use crate::section::{self, Acquired, Attempt};
use crate::session;
use crate::slots::{self, Symbol};
use crate::thread::{self, Thread};
use crate::usual;

/// Hooks that acquire: `name(arguments; unused argument registers) mode, glibc's try, glibc's wait`.
macro_rules! acquiring {
    ($kind:expr; $($name:ident($lock:ident: $type:ty $(, $argument:ident: $argument_type:ty)*; $($unused:ident),*)
        $mode:expr, $try_:ident, $wait:ident;)*) => {$(
        unsafe extern "C" fn $name(
            $lock: $type,
            $($argument: $argument_type,)*
            $($unused: usize,)*
            stack: usize,
            frame_pointer: usize,
        ) -> c_int {
            // SAFETY: the program's own call, with its own arguments.
            let try_ = |lock: usize| unsafe { real::$try_(lock as $type) };
            // SAFETY: as above.
            let wait = |lock: usize| unsafe { real::$wait(lock as $type $(, $argument)*) };
            acquire($lock as usize, $kind, $mode, crate::places::Caller { stack, frame_pointer }, try_, wait)
        }
    )*};
}

/// Hooks that try: `name(lock: type) mode, glibc's try`.
macro_rules! trying {
    ($kind:expr; $($name:ident($lock:ident: $type:ty) $mode:expr, $try_:ident;)*) => {$(
        unsafe extern "C" fn $name(
            $lock: $type,
            _1: usize,
            _2: usize,
            _3: usize,
            stack: usize,
            frame_pointer: usize,
        ) -> c_int {
            // SAFETY: the program's own call.
            let try_ = || unsafe { real::$try_($lock) };
            try_acquire($lock as usize, $kind, $mode, crate::places::Caller { stack, frame_pointer }, try_)
        }
    )*};
}

/// The hooks of a lock's beginning, release and end: glibc's init (whose second argument has the type
/// given), destroy and unlock.
macro_rules! living {
    ($kind:expr; $type:ty, $attributes:ty, $init:ident, $destroy:ident, $unlock:ident) => {
        unsafe extern "C" fn init(
            lock: $type,
            attributes: $attributes,
            _2: usize,
            _3: usize,
            stack: usize,
            frame_pointer: usize,
        ) -> c_int {
            // SAFETY: the program's own call.
            let code = unsafe { real::$init(lock, attributes) };
            if code == 0 {
                initialised(lock as usize, $kind, crate::places::Caller { stack, frame_pointer });
            }
            code
        }

        unsafe extern "C" fn destroy(lock: $type) -> c_int {
            // Before: a destroyed lock's kind is no more what it was.
            class::forget(lock as usize, $kind);
            // SAFETY: the program's own call.
            unsafe { real::$destroy(lock) }
        }

        unsafe extern "C" fn unlock(
            lock: $type,
            _1: usize,
            _2: usize,
            _3: usize,
            stack: usize,
        ) -> c_int {
            // SAFETY: the program's own call.
            release(lock as usize, stack, || unsafe { real::$unlock(lock) })
        }
    };
}

mod cond;
mod mutex;
mod rwlock;
mod spin;

/// Directs the hooks of record mode.
pub fn direct() {
    for (symbol, hook) in
        mutex::HOOKS.iter().chain(&rwlock::HOOKS).chain(&spin::HOOKS).chain(&cond::HOOKS)
    {
        slots::direct(*symbol, hook.0);
    }
}

/// A hook's address.
struct Hook(*const ());
// SAFETY: the address of a function.
unsafe impl Sync for Hook {}

/// What a hook works with; none: this thread is not observed.
#[inline(always)]
fn observed() -> Option<(&'static mut Thread, &'static Writer)> {
    let thread = thread::current()?;
    Some((thread, session::writer()?))
}

/// A lock call: tries, and waits if it must. `try_` and `wait` are glibc's.
///
/// The usual way through it keeps no more than the lock over the try, so it saves few registers; what is
/// not on it is in functions of its own, which are `extern "C"` because they then do not unwind, and a
/// call of theirs that comes last is a jump.
#[inline(always)]
fn acquire(
    lock: usize,
    kind: u8,
    mode: u8,
    caller: Caller,
    try_: impl Fn(usize) -> c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    fetch(lock);
    if let Some(thread) = thread::attached()
        && let Some(row) = usual::recall(thread, lock, kind, mode, caller.stack)
        && let Some(measured) = usual::begin(thread, lock, row)
    {
        return try_usual(lock, measured, try_, wait);
    }
    acquire_searching(lock, kind, mode, caller, try_, wait)
}

/// Asks for the lock's line of the cache, to write to it: acquiring will, and the class is read before. Asked
/// for twice, once to read and once to write, the line would come from another processor's cache twice.
#[inline(always)]
fn fetch(lock: usize) {
    // SAFETY: a prefetch reads and writes nothing, and does not fault.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) lock, options(nostack, preserves_flags, readonly));
    }
}

/// A section that may be a usual one, though not among the first that are looked at.
#[inline(never)]
extern "C" fn acquire_searching(
    lock: usize,
    kind: u8,
    mode: u8,
    caller: Caller,
    try_: impl Fn(usize) -> c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    if let Some(thread) = thread::attached()
        && let Some(row) = usual::search(thread, lock, kind, mode, caller)
        && let Some(measured) = usual::begin(thread, lock, row)
    {
        return try_usual(lock, measured, try_, wait);
    }
    acquire_unusual(lock, kind, mode, caller, try_, wait)
}

/// Tries the lock of a usual section that has been written down.
#[inline(always)]
fn try_usual(
    lock: usize,
    measured: bool,
    try_: impl Fn(usize) -> c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    if measured {
        return acquire_measured(lock, try_, wait);
    }
    match try_(lock) {
        0 => 0,
        code => wait_usual(lock, code, wait),
    }
}

/// A usual section that is measured.
#[inline(never)]
extern "C" fn acquire_measured(
    lock: usize,
    try_: impl Fn(usize) -> c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    match try_(lock) {
        0 => {
            usual::measure();
            0
        }
        code => wait_usual(lock, code, wait),
    }
}

/// A usual section whose lock could not be had at once, and why: the wait is timed, and written down on
/// release.
#[inline(never)]
extern "C" fn wait_usual(lock: usize, code: c_int, wait: impl Fn(usize) -> c_int) -> c_int {
    // EDEADLK and its like from a try that is no lock are for the real call to say.
    if code != libc::EBUSY {
        usual::undo(None);
        return wait(lock);
    }
    let from = clock::ticks(CLOCK_TSC);
    let code = wait(lock);
    let at = clock::ticks(CLOCK_TSC);
    let ticks = at.saturating_sub(from);
    match code {
        0 => usual::waited(at, ticks),
        libc::ETIMEDOUT => usual::undo(Some(ticks)),
        _ => usual::undo(None),
    }
    code
}

/// The first time at a site, or not the usual section.
#[cold]
extern "C" fn acquire_unusual(
    lock: usize,
    kind: u8,
    mode: u8,
    caller: Caller,
    try_: impl Fn(usize) -> c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    // Before the lock is taken: looking a site up for the first time takes long.
    let Some((thread, writer)) = observed() else { return wait(lock) };
    let attempt = section::attempt(thread, writer, lock, kind, mode, caller);
    finish(thread, writer, attempt, lock, caller, try_(lock), wait)
}

fn finish(
    thread: &mut Thread,
    writer: &Writer,
    attempt: Attempt,
    lock: usize,
    caller: Caller,
    code: c_int,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    if code == libc::EBUSY {
        return wait_for(thread, writer, attempt, lock, caller, wait);
    }
    if is_acquired(code) {
        let acquired = Acquired { at: clock::ticks(writer.header().clock), waited: None };
        attempt.begin(thread, writer, lock, acquired, caller);
    }
    // EDEADLK and its like from a try that is no lock are for the real call to say.
    else if code != 0 {
        return wait(lock);
    }
    code
}

#[cold]
fn wait_for(
    thread: &mut Thread,
    writer: &Writer,
    attempt: Attempt,
    lock: usize,
    caller: Caller,
    wait: impl Fn(usize) -> c_int,
) -> c_int {
    let clock = writer.header().clock;
    let from = clock::ticks(clock);
    let code = wait(lock);
    let at = clock::ticks(clock);
    let waited = Some(at.saturating_sub(from));
    writer.note_time_now_and_then(at);
    if is_acquired(code) {
        attempt.begin(thread, writer, lock, Acquired { at, waited }, caller);
    } else if code == libc::ETIMEDOUT {
        attempt.rejected(thread, writer, lock, waited, caller);
    }
    code
}

/// A try call.
#[inline(always)]
fn try_acquire(lock: usize, kind: u8, mode: u8, caller: Caller, try_: impl Fn() -> c_int) -> c_int {
    let Some((thread, writer)) = observed() else { return try_() };
    let attempt = section::attempt(thread, writer, lock, kind, mode, caller);
    let code = try_();
    if is_acquired(code) {
        let acquired = Acquired { at: clock::ticks(writer.header().clock), waited: None };
        attempt.begin(thread, writer, lock, acquired, caller);
    } else if code == libc::EBUSY {
        attempt.rejected(thread, writer, lock, None, caller);
    }
    code
}

/// An unlock call.
#[inline(always)]
fn release(lock: usize, stack: usize, unlock: impl Fn() -> c_int) -> c_int {
    let Some(thread) = thread::attached() else { return release_unusual(lock, stack, unlock) };
    // Nothing is left to do then: the call is a jump.
    if usual::end(thread, lock) { unlock() } else { release_measured(thread, lock, stack, unlock) }
}

#[inline(never)]
extern "C" fn release_measured(
    thread: &mut Thread,
    lock: usize,
    stack: usize,
    unlock: impl Fn() -> c_int,
) -> c_int {
    // First of all: what comes before it would count as held.
    let now = clock::ticks(CLOCK_TSC);
    let Some(ended) = usual::end_measured(thread, lock, now) else {
        return release_unusual(lock, stack, unlock);
    };
    let code = unlock();
    ended.write();
    code
}

#[cold]
extern "C" fn release_unusual(lock: usize, stack: usize, unlock: impl Fn() -> c_int) -> c_int {
    let Some((thread, writer)) = observed() else { return unlock() };
    let ended = section::end(thread, writer, lock, stack);
    let code = unlock();
    if let Some(ended) = ended {
        ended.write(writer);
    }
    code
}

/// An init call that succeeded.
fn initialised(lock: usize, kind: u8, caller: Caller) {
    if let Some(writer) = session::writer() {
        class::initialised(writer, lock, kind, caller);
    }
}

/// A robust mutex whose owner died is acquired all the same.
#[inline(always)]
fn is_acquired(code: c_int) -> bool {
    code == 0 || code == libc::EOWNERDEAD
}

type Hooks<const N: usize> = [(Symbol, Hook); N];
