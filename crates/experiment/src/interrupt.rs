//! Ctrl-C: the first one ends the running program and lets the results be printed, the second one
//! ends at once.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// How often the user asked us to stop.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// Process group of the program that runs now, 0 when none does.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// What a shell reports for a command that ended by SIGINT.
pub const EXIT_CODE: u8 = 130;

extern "C" fn on_signal(_signal: libc::c_int) {
    // Relaxed: a counter that is only compared with itself.
    if ASKED.fetch_add(1, Ordering::Relaxed) == 0 {
        return;
    }
    // Relaxed: at worst the group that has just ended is signalled, which is an error of kill alone.
    let group = GROUP.load(Ordering::Relaxed);
    // SAFETY: kill and _exit are async-signal-safe; the group is one that this process made.
    unsafe {
        if group > 0 {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::_exit(EXIT_CODE.into());
    }
}

/// From here on SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under `nohup`) make [`asked`]
/// true once and end this process when they come a second time.
///
/// # Errors
/// When the kernel refuses the handler.
pub fn listen() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both structures are valid; `on_signal` calls async-signal-safe functions only.
        // No SA_RESTART, so that a wait in progress returns and sees the request.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            if signal == libc::SIGHUP && old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            if libc::sigaction(signal, &new, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Whether the user asked us to stop.
pub fn asked() -> bool {
    // Relaxed: a flag that publishes nothing.
    ASKED.load(Ordering::Relaxed) > 0
}

/// Tells the handler which process group to end at the second request; 0 for none.
pub(crate) fn watch(group: i32) {
    // Relaxed: read by a handler on whichever thread, which copes with a stale group.
    GROUP.store(group, Ordering::Relaxed);
}
