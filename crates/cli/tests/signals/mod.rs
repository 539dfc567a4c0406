//! Signals of commands under test.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the command end by the signals that a terminal sends: whoever runs the tests in the background
/// may have told them to ignore these, and commands inherit it.
pub fn as_at_a_terminal(command: &mut Command) {
    let reset = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default action needs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: `signal` may be called between fork and exec.
    unsafe { command.pre_exec(reset) };
}
