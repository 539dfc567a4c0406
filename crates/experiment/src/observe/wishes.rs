//! Signals while a program is observed. A terminal sends Ctrl-C to the program too, so that the first
//! one needs nothing from us but patience; what was sent to us alone is passed on; the second one kills.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// How many requests to stop came.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// A signal that the program did not get itself, 0: none.
static TO_PASS_ON: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // Relaxed here and below: flags that publish nothing else.
    ASKED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // What a process sent (kill, sigqueue) has a code of 0 or less and came to us alone; the terminal's
    // come from the kernel, to all in the foreground.
    if code <= 0 {
        TO_PASS_ON.store(signal, Ordering::Relaxed);
    }
}

/// From here on SIGINT, SIGTERM, SIGQUIT and SIGHUP do not end this process. A program started later
/// has their defaults again, or ignores what we were told to ignore.
pub(crate) fn listen() -> io::Result<()> {
    // Relaxed: as above.
    ASKED.store(0, Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: both structures are valid; the handler only stores to atomics.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            if libc::sigaction(signal, &raw const new, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Does for the program what was asked of us: passes a signal on, and from the second one on kills.
pub(crate) fn pass_on(pid: i32) {
    // Relaxed: as above.
    let signal = TO_PASS_ON.swap(0, Ordering::Relaxed);
    let signal = if ASKED.load(Ordering::Relaxed) > 1 { libc::SIGKILL } else { signal };
    if signal != 0 {
        // SAFETY: signals our child, whose end was not seen yet; at worst it is a zombie.
        unsafe { libc::kill(pid, signal) };
    }
}
