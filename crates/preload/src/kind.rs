//! What kind a lock was declared to be, read from glibc's structures.
//!
//! Offsets of glibc 2.31 to 2.41 on 64-bit machines: `pthread_mutex_t.__kind` at 16,
//! `pthread_rwlock_t.__shared` at 28 and `__flags` at 48.

/// Bits of a mutex's kind (`nptl/pthreadP.h`).
pub const ROBUST: i32 = 16;
/// Priority inheritance.
pub const INHERIT: i32 = 32;
/// Priority protection.
pub const PROTECT: i32 = 64;
/// Shared between processes; glibc sets it for robust ones too.
pub const PROCESS_SHARED: i32 = 128;

/// `__flags` of an rwlock that asks for writers first.
pub const PREFER_WRITER_NONRECURSIVE: u32 = 2;

/// `__kind` of a mutex.
#[inline(always)]
pub fn mutex_kind(mutex: usize) -> i32 {
    // SAFETY: the program handed the mutex to a pthread function, so it is readable and aligned.
    unsafe { ((mutex + 16) as *const i32).read() }
}

/// Whether glibc uses `__list` of a mutex of this kind, or another process may.
#[inline(always)]
pub fn mutex_keeps_list(kind: i32) -> bool {
    kind & (ROBUST | INHERIT | PROTECT | PROCESS_SHARED) != 0
}

/// Whether an rwlock is shared between processes.
#[inline(always)]
pub fn rwlock_is_shared(lock: usize) -> bool {
    // SAFETY: as in `mutex_kind`.
    unsafe { ((lock + 28) as *const i32).read() != 0 }
}

/// `__flags` of an rwlock: its preference.
#[inline(always)]
pub fn rwlock_flags(lock: usize) -> u32 {
    // SAFETY: as in `mutex_kind`.
    unsafe { ((lock + 48) as *const u32).read() }
}
