//! One pointer per thread, reached without a call.
//!
//! The library is loaded with the program, so its thread-local word can lie in the static block
//! (initial-exec): an offset from the thread register. Rust's `thread_local!` would call
//! `__tls_get_addr` in a shared library, which may allocate.

use crate::thread::Thread;

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".section .tbss, \"awT\", @nobits",
    ".p2align 3",
    ".globl relatch_thread",
    ".hidden relatch_thread",
    ".type relatch_thread, @object",
    ".size relatch_thread, 8",
    "relatch_thread: .zero 8",
    ".text",
);

/// This thread's [`Thread`], or null before its first lock and after its end.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn get() -> *mut Thread {
    let thread;
    // SAFETY: reads this thread's own word.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + relatch_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) thread,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    thread
}

/// Sets this thread's [`Thread`].
#[cfg(target_arch = "x86_64")]
pub fn set(thread: *mut Thread) {
    // SAFETY: writes this thread's own word.
    unsafe {
        core::arch::asm!(
            "mov {1}, qword ptr [rip + relatch_thread@GOTTPOFF]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) thread,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}
