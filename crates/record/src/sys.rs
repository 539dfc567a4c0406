//! The system calls that the writer makes, raw: the libc functions of the same names are cancellation
//! points and set `errno`, and neither may happen to a program inside its lock call.

use core::ffi::{CStr, c_long};

/// `openat(AT_FDCWD, ...)`.
///
/// # Errors
/// The error number.
pub fn open(path: &CStr, flags: i32, mode: u32) -> Result<i32, i32> {
    // SAFETY: the path is a C string that outlives the call.
    check(unsafe {
        call([
            libc::SYS_openat,
            libc::AT_FDCWD as c_long,
            path.as_ptr() as c_long,
            flags as c_long,
            mode as c_long,
            0,
            0,
        ])
    })
    .map(|fd| fd as i32)
}

/// `close`.
pub fn close(fd: i32) {
    // SAFETY: closing touches no memory of ours.
    let _ = unsafe { call([libc::SYS_close, fd as c_long, 0, 0, 0, 0, 0]) };
}

/// `ftruncate`.
///
/// # Errors
/// The error number.
pub fn truncate(fd: i32, size: usize) -> Result<(), i32> {
    // SAFETY: sizes a file.
    check(unsafe { call([libc::SYS_ftruncate, fd as c_long, size as c_long, 0, 0, 0, 0]) })
        .map(drop)
}

/// `fallocate`: backs the bytes, so that writing to them can not fail later.
///
/// # Errors
/// The error number: `ENOSPC` when they can not be had.
pub fn allocate(fd: i32, offset: usize, size: usize) -> Result<(), i32> {
    // SAFETY: backs a part of a file.
    check(unsafe {
        call([libc::SYS_fallocate, fd as c_long, 0, offset as c_long, size as c_long, 0, 0])
    })
    .map(drop)
}

/// `pread`.
///
/// # Errors
/// The error number.
pub fn read(fd: i32, buffer: &mut [u8], offset: usize) -> Result<usize, i32> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    check(unsafe {
        call([
            libc::SYS_pread64,
            fd as c_long,
            buffer.as_mut_ptr() as c_long,
            buffer.len() as c_long,
            offset as c_long,
            0,
            0,
        ])
    })
    .map(|n| n as usize)
}

/// `lseek` to the end: the file's size.
pub fn size_of_file(fd: i32) -> Option<usize> {
    // SAFETY: moves the offset of a file.
    let size =
        unsafe { call([libc::SYS_lseek, fd as c_long, 0, libc::SEEK_END as c_long, 0, 0, 0]) };
    usize::try_from(size).ok()
}

/// `readlink`; the bytes written.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    let n = unsafe {
        call([
            libc::SYS_readlinkat,
            libc::AT_FDCWD as c_long,
            path.as_ptr() as c_long,
            buffer.as_mut_ptr() as c_long,
            buffer.len() as c_long,
            0,
            0,
        ])
    };
    n.max(0) as usize
}

/// `mmap` of `size` bytes: of a file, or anonymous where `fd` is negative.
///
/// # Errors
/// The error number.
pub fn map(size: usize, protection: i32, flags: i32, fd: i32) -> Result<*mut u8, i32> {
    // SAFETY: without MAP_FIXED a mapping touches nothing that is in use.
    check(unsafe {
        call([
            libc::SYS_mmap,
            0,
            size as c_long,
            protection as c_long,
            flags as c_long,
            fd as c_long,
            0,
        ])
    })
    .map(|address| address as *mut u8)
}

/// Anonymous zeroed memory of this process.
pub fn map_private(size: usize) -> Option<*mut u8> {
    map(size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).ok()
}

/// `munmap`.
///
/// # Safety
/// Nothing refers to the bytes any more.
pub unsafe fn unmap(address: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { call([libc::SYS_munmap, address as c_long, size as c_long, 0, 0, 0, 0]) };
}

/// Backs a part of a shared mapping with memory or disk (`MADV_POPULATE_WRITE`, Linux 5.14), so that
/// writing to it can not fail later.
///
/// # Errors
/// The error number: where the disk is full, or the kernel does not know the call.
///
/// # Safety
/// The bytes belong to a mapping of this process.
pub unsafe fn populate(address: *mut u8, size: usize) -> Result<(), i32> {
    const MADV_POPULATE_WRITE: c_long = 23;
    // SAFETY: the caller's promise; content stays what it is.
    check(unsafe {
        call([libc::SYS_madvise, address as c_long, size as c_long, MADV_POPULATE_WRITE, 0, 0, 0])
    })
    .map(drop)
}

/// `unlink`.
pub fn remove(path: &CStr) {
    // SAFETY: the path is a C string that outlives the call.
    let _ = unsafe {
        call([libc::SYS_unlinkat, libc::AT_FDCWD as c_long, path.as_ptr() as c_long, 0, 0, 0, 0])
    };
}

/// How large a file this process may make (`RLIMIT_FSIZE`), in bytes.
pub fn file_size_limit() -> u64 {
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel writes two words.
    let _ = unsafe {
        let to = limit.as_mut_ptr() as c_long;
        call([libc::SYS_prlimit64, 0, libc::RLIMIT_FSIZE as c_long, 0, to, 0, 0])
    };
    limit[0]
}

/// Process id, asked from the kernel each time: right after any kind of fork.
pub fn pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call([libc::SYS_getpid, 0, 0, 0, 0, 0, 0]) as u32 }
}

/// Whether a thread of that process has that id (`tgkill` with signal 0, which is not sent).
pub fn thread_exists(process: u32, thread: u32) -> bool {
    // SAFETY: sends nothing.
    unsafe { call([libc::SYS_tgkill, process as c_long, thread as c_long, 0, 0, 0, 0]) == 0 }
}

/// Parent's process id.
pub fn parent() -> u32 {
    // SAFETY: no arguments.
    unsafe { call([libc::SYS_getppid, 0, 0, 0, 0, 0, 0]) as u32 }
}

fn check(value: c_long) -> Result<c_long, i32> {
    if (-4095..0).contains(&value) { Err(-value as i32) } else { Ok(value) }
}

/// The system call, its result as the kernel gives it.
///
/// # Safety
/// As the call demands.
#[cfg(target_arch = "x86_64")]
unsafe fn call(arguments: [c_long; 7]) -> c_long {
    let [number, a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the caller's promise; the kernel keeps every register but rax, rcx and r11.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b,
            in("rdx") c, in("r10") d, in("r8") e, in("r9") f, out("rcx") _, out("r11") _,
            options(nostack));
    }
    result
}

/// The system call, its result as the kernel gives it.
///
/// # Safety
/// As the call demands.
#[cfg(target_arch = "aarch64")]
unsafe fn call(arguments: [c_long; 7]) -> c_long {
    let [number, a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the caller's promise; the kernel keeps every register but x0.
    unsafe {
        core::arch::asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b,
            in("x2") c, in("x3") d, in("x4") e, in("x5") f, options(nostack));
    }
    result
}
