//! A small process that outlives this one: should relatch be killed, it ends the program that runs and
//! removes the temporary files.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::interpose;

/// Reads process groups, one per line, until the other end of the pipe is closed, by whatever ended
/// that process; then ends the last one named, unless it is 0, and removes the directory.
const SCRIPT: &str = "trap '' INT TERM HUP; group=0; while read -r line; do group=$line; done; \
                      [ \"$group\" = 0 ] || kill -s KILL -- \"-$group\"; rm -rf -- \"$1\"";

/// The guard; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// A guard over this directory of temporary files; none where there is no shell.
    pub(crate) fn over(scratch: &Path) -> Option<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "relatch-guard"]).arg(scratch);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        interpose::clean(&mut command);
        // A group of its own: Ctrl-C on the terminal is not for it.
        command.process_group(0);
        Some(Self { child: command.spawn().ok()? })
    }

    /// From here on this group is to be ended; 0 for none.
    pub(crate) fn watch(&self, group: i32) {
        if let Some(mut pipe) = self.child.stdin.as_ref() {
            // If the guard is gone, somebody has killed it; the experiment goes on without.
            let _ = pipe.write_all(format!("{group}\n").as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.watch(0);
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
