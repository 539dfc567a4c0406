//! One run of one arm: prepare, run, check, measure.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use relatch_plan::env;

use crate::arm::Arm;
use crate::guard::Guard;
use crate::interrupt;
use crate::metric::Metric;
use crate::outcome::{Ended, RunRecord};
use crate::process::{self, Ending, Job, Ran};
use crate::settings::Experiment;
use crate::steal::Ticks;
use crate::{tail, waits};

/// Names the file with the standard output of a run, for `check`.
pub const OUTPUT: &str = "RELATCH_OUTPUT";
/// Names the file with the standard error of a run, for `check`.
pub const ERRORS: &str = "RELATCH_ERRORS";
/// Holds the padding of the environment.
const PADDING: &str = "RELATCH_PADDING";

/// Where no limit is given, a run may take this many times as long as the longest good one (a
/// converted lock may make a program hang) ...
const PATIENCE: u32 = 20;
/// ... and this on top of it.
const PATIENCE_AT_LEAST: Duration = Duration::from_secs(60);

/// The limit of a run where none is given: none as long as nothing is known.
pub(crate) fn patience(longest: Duration) -> Option<Duration> {
    (longest > Duration::ZERO).then(|| longest * PATIENCE + PATIENCE_AT_LEAST)
}

/// What is to be run.
pub(crate) struct Turn<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) arm: &'a Arm,
    pub(crate) padding: String,
    /// Longest time of the program.
    pub(crate) timeout: Option<Duration>,
    /// When the whole experiment is over.
    pub(crate) end: Option<Instant>,
    /// The directory for its files.
    pub(crate) scratch: &'a Path,
    /// Ends it should this process be killed.
    pub(crate) guard: Option<&'a Guard>,
}

/// A good run; round and place in its record are for the caller to fill in.
pub(crate) struct Done {
    pub(crate) record: RunRecord,
    pub(crate) wall: Duration,
    pub(crate) left_behind: bool,
}

/// Why there is no good run.
pub(crate) enum Stop {
    /// The program could not be started.
    CannotStart(String),
    /// Program or check failed: this is the arm's result.
    Failed { what: String, output: String },
    /// The experiment is over.
    BrokenOff(Ended),
    /// Nothing can be run.
    Error(String),
}

/// The files of one run; removed with it.
struct Scratch {
    dir: tempfile::TempDir,
    recordings: PathBuf,
}

impl Scratch {
    fn new(parent: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("run-").tempdir_in(parent)?;
        let recordings = dir.path().join("recordings");
        fs::create_dir(&recordings)?;
        // The program may become another user before its first lock.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711))?;
        fs::set_permissions(&recordings, fs::Permissions::from_mode(0o1777))?;
        Ok(Self { dir, recordings })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Turn<'_> {
    pub(crate) fn run(&self) -> Result<Done, Stop> {
        let experiment = self.experiment;
        let scratch = Scratch::new(self.scratch)
            .map_err(|error| Stop::Error(format!("no room for temporary files: {error}")))?;
        if let Some(script) = &experiment.prepare {
            self.script("--prepare", script, &[], &scratch, &[])?;
        }

        let (stdout, stderr) = (scratch.file("stdout"), scratch.file("stderr"));
        let before = Ticks::now();
        let ran = process::run(&Job {
            argv: &experiment.command,
            env: &self.environment(&scratch),
            cpus: &experiment.cpus,
            stdout: &stdout,
            stderr: &stderr,
            timeout: self.limit(self.timeout),
            sweep: true,
            guard: self.guard,
        })
        .map_err(|error| {
            let program = experiment.command.first().map(|word| word.to_string_lossy());
            Stop::CannotStart(format!("cannot run {}: {error}", program.unwrap_or_default()))
        })?;
        let stolen = before.zip(Ticks::now()).map(|(before, now)| now.stolen_since(before));
        self.expect_success("the command", &ran, &[&stdout, &stderr])?;

        if let Some(script) = &experiment.check {
            let path = |path: &Path| path.to_string_lossy().into_owned();
            let env = [(OUTPUT.to_owned(), path(&stdout)), (ERRORS.to_owned(), path(&stderr))];
            self.script("--check", script, &env, &scratch, &[&stdout, &stderr])?;
        }

        let output: Vec<String> = match experiment.metrics.iter().any(Metric::reads_output) {
            true => [&stdout, &stderr].map(|path| tail::whole(path)).into(),
            false => Vec::new(),
        };
        let values = (experiment.metrics.iter())
            .map(|metric| metric.value(&ran, &output))
            .collect::<Result<Vec<f64>, String>>()
            .map_err(|what| Stop::Failed { what, output: tail::of(&[&stdout, &stderr]) })?;
        let record = RunRecord {
            round: 0,
            place: 0,
            values,
            time_s: ran.wall.as_secs_f64(),
            user_s: ran.user.as_secs_f64(),
            sys_s: ran.sys.as_secs_f64(),
            maxrss_kib: ran.maxrss_kib,
            stolen,
            waits: waits::waits_of(&scratch.recordings),
        };
        Ok(Done { record, wall: ran.wall, left_behind: ran.left_behind })
    }

    fn environment(&self, scratch: &Scratch) -> Vec<(String, String)> {
        let mut env = self.arm.env.clone();
        env.push((PADDING.to_owned(), self.padding.clone()));
        if self.arm.writes_recordings() {
            let recordings = scratch.recordings.to_string_lossy().into_owned();
            env.push((env::DIR.to_owned(), recordings));
        }
        env
    }

    /// Runs a shell command of the user's. What it starts in the background may stay: `--prepare` is
    /// the place to start a server.
    fn script(
        &self,
        what: &str,
        script: &str,
        env: &[(String, String)],
        scratch: &Scratch,
        also_show: &[&Path],
    ) -> Result<(), Stop> {
        let (stdout, stderr) = (scratch.file("script-stdout"), scratch.file("script-stderr"));
        let argv = ["sh", "-c", script].map(Into::into);
        let ran = process::run(&Job {
            argv: &argv,
            env,
            cpus: &[],
            stdout: &stdout,
            stderr: &stderr,
            timeout: self.limit(None),
            sweep: false,
            guard: self.guard,
        })
        .map_err(|error| Stop::Error(format!("cannot run sh: {error}")))?;
        let shown: Vec<&Path> = [also_show, &[&stdout, &stderr]].concat();
        self.expect_success(what, &ran, &shown)
    }

    fn expect_success(&self, what: &str, ran: &Ran, output: &[&Path]) -> Result<(), Stop> {
        let what = match ran.ending {
            Ending::Exit(0) => return Ok(()),
            // Whatever else it looks like, the request may have been its cause.
            _ if interrupt::asked() => return Err(Stop::BrokenOff(Ended::Interrupt)),
            Ending::TimedOut if self.left() == Some(Duration::ZERO) => {
                return Err(Stop::BrokenOff(Ended::Time));
            }
            Ending::TimedOut | Ending::Interrupted => {
                format!("{what} was ended after {:.1} s without an end", ran.wall.as_secs_f64())
            }
            Ending::Exit(code) => format!("{what} ended with exit code {code}"),
            Ending::Signal(signal) => format!("{what} was ended by {}", signal_name(signal)),
        };
        Err(Stop::Failed { what, output: tail::of(output) })
    }

    /// Time until the whole experiment is over.
    fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    fn limit(&self, timeout: Option<Duration>) -> Option<Duration> {
        [timeout, self.left()].into_iter().flatten().min()
    }
}

/// The name of a signal where programs commonly end by it.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL (out of memory?)",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
