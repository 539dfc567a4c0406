//! Record mode: hooks that observe, and leave every lock glibc's.
//!
//! A lock call tries first. What a try finds free was not contended; what it finds taken is waited for
//! by glibc's own call, timed. glibc's try and its lock take a free lock in the same way.

use core::ffi::c_int;

use relatch_record::clock;
use relatch_record::layout::CLOCK_TSC;
use relatch_record::writer::Writer;

use crate::class;
use crate::section::{self, Acquired, Attempt};
use crate::session;
use crate::slots::{self, Symbol};
use crate::thread::{self, Thread};
use crate::usual::{self, Prepared};

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
            let try_ = || unsafe { real::$try_($lock) };
            // SAFETY: as above.
            let wait = || unsafe { real::$wait($lock $(, $argument)*) };
            acquire($lock as usize, $kind, $mode, (stack, frame_pointer), try_, wait)
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
            try_acquire($lock as usize, $kind, $mode, (stack, frame_pointer), try_)
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
                initialised(lock as usize, $kind, stack, frame_pointer);
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
#[inline(always)]
fn acquire(
    lock: usize,
    kind: u8,
    mode: u8,
    (stack, frame_pointer): (usize, usize),
    try_: impl Fn() -> c_int,
    wait: impl Fn() -> c_int,
) -> c_int {
    if let Some(thread) = thread::attached()
        && let Some(row) = usual::row(thread, lock, kind, mode, stack, frame_pointer)
    {
        let prepared = usual::prepare(thread, lock, row);
        let code = try_();
        match prepared {
            Some(prepared) if code == 0 => {
                prepared.acquired(thread);
                return 0;
            }
            Some(prepared) if code == libc::EBUSY => {
                let caller = (stack, frame_pointer);
                return wait_usual(thread, prepared, (lock, kind, mode), caller, wait);
            }
            Some(prepared) => prepared.undo(thread),
            None => {}
        }
        return acquire_unusual(lock, kind, mode, (stack, frame_pointer), code, wait);
    }
    acquire_first(lock, kind, mode, (stack, frame_pointer), try_, wait)
}

/// A known site, and a lock that was found taken: the wait is timed, and written down on release.
#[inline(never)]
fn wait_usual(
    thread: &mut Thread,
    prepared: Prepared,
    (lock, kind, mode): (usize, u8, u8),
    (stack, frame_pointer): (usize, usize),
    wait: impl Fn() -> c_int,
) -> c_int {
    let from = clock::ticks(CLOCK_TSC);
    let code = wait();
    let at = clock::ticks(CLOCK_TSC);
    let ticks = at.saturating_sub(from);
    if is_acquired(code) {
        prepared.waited(thread, at, ticks);
        return code;
    }
    prepared.undo(thread);
    if code == libc::ETIMEDOUT
        && let Some(writer) = session::writer()
    {
        section::attempt(thread, writer, lock, kind, mode, stack, frame_pointer)
            .rejected(writer, Some(ticks));
    }
    code
}

/// The first time at a site.
#[cold]
fn acquire_first(
    lock: usize,
    kind: u8,
    mode: u8,
    caller: (usize, usize),
    try_: impl Fn() -> c_int,
    wait: impl Fn() -> c_int,
) -> c_int {
    // Before the lock is taken: looking a site up for the first time takes long.
    let Some((thread, writer)) = observed() else { return wait() };
    let attempt = section::attempt(thread, writer, lock, kind, mode, caller.0, caller.1);
    finish(thread, writer, attempt, lock, caller, try_(), wait)
}

/// A known site, but not the usual section, after a try that ended with `code`.
#[cold]
fn acquire_unusual(
    lock: usize,
    kind: u8,
    mode: u8,
    caller: (usize, usize),
    code: c_int,
    wait: impl Fn() -> c_int,
) -> c_int {
    let Some((thread, writer)) = observed() else { return if code == 0 { 0 } else { wait() } };
    let attempt = section::attempt(thread, writer, lock, kind, mode, caller.0, caller.1);
    finish(thread, writer, attempt, lock, caller, code, wait)
}

fn finish(
    thread: &mut Thread,
    writer: &Writer,
    attempt: Attempt,
    lock: usize,
    (stack, frame_pointer): (usize, usize),
    code: c_int,
    wait: impl Fn() -> c_int,
) -> c_int {
    if code == libc::EBUSY {
        return wait_for(thread, writer, attempt, lock, (stack, frame_pointer), wait);
    }
    if is_acquired(code) {
        let acquired = Acquired { at: clock::ticks(writer.header().clock), waited: None };
        attempt.begin(thread, writer, lock, acquired, stack, frame_pointer);
    }
    // EDEADLK and its like from a try that is no lock are for the real call to say.
    else if code != 0 {
        return wait();
    }
    code
}

#[cold]
fn wait_for(
    thread: &mut Thread,
    writer: &Writer,
    attempt: Attempt,
    lock: usize,
    (stack, frame_pointer): (usize, usize),
    wait: impl Fn() -> c_int,
) -> c_int {
    let clock = writer.header().clock;
    let from = clock::ticks(clock);
    let code = wait();
    let at = clock::ticks(clock);
    let waited = Some(at.saturating_sub(from));
    writer.note_time_now_and_then(at);
    if is_acquired(code) {
        attempt.begin(thread, writer, lock, Acquired { at, waited }, stack, frame_pointer);
    } else if code == libc::ETIMEDOUT {
        attempt.rejected(writer, waited);
    }
    code
}

/// A try call.
#[inline(always)]
fn try_acquire(
    lock: usize,
    kind: u8,
    mode: u8,
    (stack, frame_pointer): (usize, usize),
    try_: impl Fn() -> c_int,
) -> c_int {
    let Some((thread, writer)) = observed() else { return try_() };
    let attempt = section::attempt(thread, writer, lock, kind, mode, stack, frame_pointer);
    let code = try_();
    if is_acquired(code) {
        let acquired = Acquired { at: clock::ticks(writer.header().clock), waited: None };
        attempt.begin(thread, writer, lock, acquired, stack, frame_pointer);
    } else if code == libc::EBUSY {
        attempt.rejected(writer, None);
    }
    code
}

/// An unlock call.
#[inline(always)]
fn release(lock: usize, stack: usize, unlock: impl Fn() -> c_int) -> c_int {
    if let Some(thread) = thread::attached()
        && let Some(ended) = usual::end(thread, lock)
    {
        let code = unlock();
        ended.write();
        return code;
    }
    release_unusual(lock, stack, unlock)
}

#[cold]
fn release_unusual(lock: usize, stack: usize, unlock: impl Fn() -> c_int) -> c_int {
    let Some((thread, writer)) = observed() else { return unlock() };
    let ended = section::end(thread, writer, lock, stack);
    let code = unlock();
    if let Some(ended) = ended {
        ended.write(writer);
    }
    code
}

/// An init call that succeeded.
fn initialised(lock: usize, kind: u8, stack: usize, frame_pointer: usize) {
    if let Some(writer) = session::writer() {
        class::initialised(writer, lock, kind, stack, frame_pointer);
    }
}

/// A robust mutex whose owner died is acquired all the same.
#[inline(always)]
fn is_acquired(code: c_int) -> bool {
    code == 0 || code == libc::EOWNERDEAD
}

type Hooks<const N: usize> = [(Symbol, Hook); N];
