//! One program under observation: `relatch stat`.
//!
//! Every process of it writes a live recording into one directory, which is read while they run (for
//! interim tables and windows) and when the program has ended. Nothing is asked of the program: windows
//! of time are the difference of two readings.

mod directory;
mod unseen;
mod wishes;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use relatch_plan::env::{self, Mode};
use relatch_record::file;
use relatch_record::names::Namer;
use relatch_record::recording::Recording;

use crate::interpose::{self, Interposition};
pub use directory::LiveDirectory;

/// How often a wait looks whether the user asked us to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// What to observe, and when.
pub struct Observation {
    /// The program and its arguments; no shell.
    pub command: Vec<OsString>,
    /// The library, and which executables it is for.
    pub interposition: Interposition,
    /// Whether locks are told apart.
    pub by_lock: bool,
    /// Where the processes write; `None`: a directory in memory that is gone afterwards.
    pub live: Option<PathBuf>,
    /// What happens before is left out.
    pub delay: Duration,
    /// What happens later is left out.
    pub duration: Option<Duration>,
    /// How often the figures since the last time are handed out.
    pub every: Option<Duration>,
}

/// What was observed.
pub struct Observed {
    /// The figures, of the window if there was one.
    pub recording: Recording,
    /// How the program ended.
    pub status: ExitStatus,
    /// What the user should know besides, one line each.
    pub warnings: Vec<String>,
    /// What the processes wrote, to be removed when the figures are safe.
    pub live: LiveDirectory,
}

/// Why nothing was observed.
#[derive(Debug)]
pub enum Error {
    /// The program could not be started.
    Start(PathBuf, io::Error),
    /// There is no directory for the recordings.
    Directory(PathBuf, io::Error),
    /// An earlier run's recordings lie where this one's should.
    Occupied(PathBuf),
    /// The kernel refused what waiting needs.
    Wait(io::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Start(program, error) => write!(f, "{}: {error}", program.display()),
            Error::Directory(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Occupied(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} holds the recordings of a run that was cut off: read them with \
                     `relatch stat --load {path}`, or remove it"
                )
            }
            Error::Wait(error) => write!(f, "cannot wait for the program: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// A reading at a moment.
struct Reading {
    at: Instant,
    recording: Recording,
}

/// How the program ended: status, CPU time, moment.
type Ended = io::Result<(ExitStatus, Duration, Instant)>;

impl Observation {
    /// Runs the program to its end. `interim` gets the figures since it was last called.
    ///
    /// The first Ctrl-C reaches the program alone, as any program in the foreground; the second kills
    /// it. What was recorded is there in either case.
    ///
    /// # Errors
    /// [`Error`]: the program was not run.
    pub fn run(&self, interim: &mut dyn FnMut(&Recording)) -> Result<Observed, Error> {
        let directory = LiveDirectory::create(self.live.as_deref())?;
        wishes::listen().map_err(Error::Wait)?;
        let mut readings = Readings { directory: directory.path(), namer: Namer::new(), run: self };
        let epoch_ns = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
        let start = Instant::now();
        let (pid, ended) = self.start(directory.path())?;
        let mut family = unseen::Family::new();
        let opens = start + self.delay;
        let mut first = (self.delay.is_zero()).then(|| Reading::nothing(start));
        let mut last: Option<Reading> = None;
        let mut previous: Option<Reading> = None;
        let mut due = self.every.map(|every| opens + every);
        let (status, cpu, ended_at) = loop {
            let now = Instant::now();
            if first.is_none() && now >= opens {
                first = Some(readings.take());
            }
            // From when it did open: a reading may come late on a busy machine.
            let closes = first.as_ref().zip(self.duration).map(|(first, time)| first.at + time);
            if last.is_none() && closes.is_some_and(|closes| now >= closes) {
                last = Some(readings.take());
            }
            if let (Some(at), Some(every), Some(first), None) = (due, self.every, &first, &last)
                && now >= at
            {
                let reading = readings.take();
                interim(&reading.since(previous.as_ref().unwrap_or(first)));
                previous = Some(reading);
                // A reading that took longer than the interval must not be followed by a burst.
                due = Some((at + every).max(Instant::now()));
            }
            let next = [
                first.is_none().then_some(opens),
                closes.filter(|_| last.is_none()),
                due.filter(|_| last.is_none()),
            ];
            let next = next.into_iter().flatten().min().unwrap_or(now + GLANCE);
            match ended.recv_timeout(next.saturating_duration_since(now).min(GLANCE)) {
                Ok(how) => break how.map_err(Error::Wait)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Wait(io::Error::other("its waiter is gone")));
                }
                Err(RecvTimeoutError::Timeout) => {
                    wishes::pass_on(pid);
                    family.look(pid);
                }
            }
        };
        let mut warnings = Vec::new();
        let windowed = !self.delay.is_zero() || last.is_some();
        let end = last.unwrap_or_else(|| Reading { at: ended_at, ..readings.take() });
        let first = first.unwrap_or_else(|| {
            warnings.push("the program ended before the observed time began".to_owned());
            Reading { at: end.at, recording: end.recording.clone() }
        });
        let mut recording = end.since(&first);
        recording.environment.start_epoch_ns =
            epoch_ns.saturating_add((first.at - start).as_nanos() as u64);
        recording.environment.cpu_ns = (!windowed).then_some(cpu.as_nanos() as u64);
        let (processes, errors) = file::live_in(directory.path());
        warnings.extend(errors.iter().map(ToString::to_string));
        recording.unseen = unseen::sentences(self, &processes, &family);
        Ok(Observed { recording, status, warnings, live: directory })
    }

    /// Starts the program; its pid, and where its end will be told.
    fn start(&self, live: &Path) -> Result<(i32, Receiver<Ended>), Error> {
        let program = PathBuf::from(self.command.first().cloned().unwrap_or_default());
        let mut command = Command::new(&program);
        command.args(self.command.iter().skip(1));
        interpose::clean(&mut command);
        command.envs(variables(&self.interposition, live, self.by_lock));
        let child = command.spawn().map_err(|error| Error::Start(program, error))?;
        let pid = child.id() as i32;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            // The main thread may have given up listening.
            let _ = sender.send(wait_for(pid));
        });
        Ok((pid, receiver))
    }
}

/// The environment of an observed program.
pub(crate) fn variables(
    interposition: &Interposition,
    live: &Path,
    by_lock: bool,
) -> Vec<(String, OsString)> {
    let mut all: Vec<(String, OsString)> = interposition
        .environment(Mode::Record, None)
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    all.push((env::DIR.to_owned(), live.into()));
    if by_lock {
        all.push((env::BY_LOCK.to_owned(), "1".into()));
    }
    all
}

/// Waits for the child, which nobody else waits for.
fn wait_for(pid: i32) -> Ended {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both out-pointers are valid.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if reaped == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let ended_at = Instant::now();
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    Ok((status, time(usage.ru_utime) + time(usage.ru_stime), ended_at))
}

struct Readings<'a> {
    directory: &'a Path,
    namer: Namer,
    run: &'a Observation,
}

impl Readings<'_> {
    /// What all processes have written so far. Files that are being begun at this moment are left out.
    fn take(&mut self) -> Reading {
        let at = Instant::now();
        let (processes, _) = file::live_in(self.directory);
        let mut recording = file::of_processes(&processes, &mut self.namer);
        recording.environment.command =
            self.run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let cpus = std::thread::available_parallelism();
        recording.environment.cpus = cpus.map_or(0, |cpus| cpus.get() as u32);
        Reading { at, recording }
    }
}

impl Reading {
    /// Before anything ran.
    fn nothing(at: Instant) -> Reading {
        Reading { at, recording: Recording::default() }
    }

    fn since(&self, earlier: &Reading) -> Recording {
        let mut window = self.recording.since(&earlier.recording);
        let elapsed = self.at.saturating_duration_since(earlier.at);
        window.environment.elapsed_ns = elapsed.as_nanos() as u64;
        window
    }
}
