//! What observing adds to an uncontended acquire and release, measured on this machine.
//!
//! The command runs itself as a small program with a `pthread_mutex_t`, alternately bare and observed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Instant;

use crate::interpose::{self, Interposition};
use crate::observe;

/// The command's hidden verb that calls [`measure`].
pub const VERB: &str = "__pair-cost";

/// How often either variant is run.
const RUNS: usize = 5;
/// Pairs between two looks at the clock.
const BATCH: u32 = 1000;
const BATCHES: usize = 300;

/// Nanoseconds that a pair takes in this process, in which a second thread exists: the median of many
/// batches.
pub fn measure() -> f64 {
    // With one thread only, glibc takes a mutex without an atomic operation.
    let (release, idle) = channel::<()>();
    let second = std::thread::spawn(move || idle.recv());
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                // SAFETY: an initialised mutex that stays where it is, released by who acquired it.
                unsafe {
                    libc::pthread_mutex_lock(&raw mut mutex);
                    libc::pthread_mutex_unlock(&raw mut mutex);
                }
            }
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    drop(release);
    // It ends when the channel is closed, by an error that is expected.
    let _ = second.join();
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}

/// What observing adds, in nanoseconds: the difference of the medians of interleaved runs of `relatch`
/// (the command's own file). `None` if it could not be measured.
pub fn added(relatch: &Path, library: &Path) -> Option<f64> {
    let directory = tempfile::tempdir().ok()?;
    let interposition = Interposition::new(library.to_path_buf());
    let observed = observe::variables(&interposition, directory.path(), false);
    let (mut bare, mut with) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(run(relatch, &[])?);
        with.push(run(relatch, &observed)?);
    }
    Some((median(with) - median(bare)).max(0.0))
}

fn run(relatch: &Path, variables: &[(String, std::ffi::OsString)]) -> Option<f64> {
    let mut command = Command::new(relatch);
    command.arg(VERB).stdin(Stdio::null()).stderr(Stdio::null());
    interpose::clean(&mut command);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().parse().ok().filter(|_| output.status.success())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_takes_some_time() {
        let ns = measure();
        assert!(ns > 0.0 && ns < 100_000.0, "{ns}");
    }

    #[test]
    fn what_cannot_be_run_is_not_measured() {
        let nowhere = Path::new("/nonexistent/relatch");
        assert_eq!(added(nowhere, Path::new("/nonexistent/librelatch.so")), None);
        assert_eq!(added(Path::new("/bin/false"), nowhere), None);
    }
}
