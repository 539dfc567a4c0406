//! System calls that leave `errno` alone.
//!
//! The pthread functions report errors by their return value and do not touch `errno`; a lock that
//! stands in for one must not either, so these do not go through the C library.

use core::sync::atomic::AtomicU32;

use crate::platform::{Clock, Deadline};

#[cfg(not(all(
    target_os = "linux",
    target_endian = "little",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("relatch's native platform is Linux on x86-64 or little-endian aarch64");

/// Six arguments in, the kernel's result (a negated error number or a value) out.
///
/// # Safety
/// The arguments must be what system call `number` expects, and it must not touch memory that Rust
/// holds to be unshared.
#[cfg(target_arch = "x86_64")]
unsafe fn syscall6(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the instruction clobbers rcx and r11 only; the rest is the caller's promise.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Six arguments in, the kernel's result (a negated error number or a value) out.
///
/// # Safety
/// The arguments must be what system call `number` expects, and it must not touch memory that Rust
/// holds to be unshared.
#[cfg(target_arch = "aarch64")]
unsafe fn syscall6(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the instruction clobbers x0 only; the rest is the caller's promise.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3],
            in("x4") args[4], in("x5") args[5],
            options(nostack),
        );
    }
    result
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// Sleeps while `*word == seen`; false only on reaching the deadline unwoken.
pub(super) fn futex_wait(word: *const AtomicU32, seen: u32, deadline: Option<Deadline>) -> bool {
    // WAIT_BITSET rather than WAIT: its time-out is absolute, so a signal costs no recomputation.
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    if matches!(deadline, Some(Deadline { clock: Clock::Realtime, .. })) {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let until = deadline.map(|deadline| timespec(deadline.ns));
    let until_pointer = until.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the kernel reads four bytes at `word`, where a bad address gives EFAULT, and
    // `until`, which outlives the call; it writes nothing.
    let result = unsafe {
        syscall6(
            libc::SYS_futex,
            [
                word as usize,
                operation as usize,
                seen as usize,
                until_pointer as usize,
                0,
                libc::FUTEX_BITSET_MATCH_ANY as u32 as usize,
            ],
        )
    };
    result != -(libc::ETIMEDOUT as isize)
}

/// Wakes up to `count` threads asleep on `word`.
pub(super) fn futex_wake(word: *const AtomicU32, count: u32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let count = count.min(i32::MAX as u32);
    // SAFETY: the kernel takes the address as a key; it neither reads nor writes there.
    unsafe {
        syscall6(libc::SYS_futex, [word as usize, operation as usize, count as usize, 0, 0, 0]);
    }
}

/// Lets another thread have this CPU.
pub(super) fn sched_yield() {
    // SAFETY: takes no arguments, touches no memory.
    unsafe { syscall6(libc::SYS_sched_yield, [0; 6]) };
}

/// Sleeps for about `ns`, less if a signal arrives.
pub(super) fn nap(ns: u64) {
    let duration = timespec(ns);
    // SAFETY: the kernel reads `duration`, which outlives the call; no remainder is written.
    unsafe {
        syscall6(libc::SYS_nanosleep, [core::ptr::from_ref(&duration) as usize, 0, 0, 0, 0, 0]);
    }
}
