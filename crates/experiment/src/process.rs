//! One program, run once: started in a process group of its own, its output kept in files, timed
//! from before the fork to its end, and ended with all it left behind.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::guard::Guard;
use crate::{affinity, interpose, interrupt};

/// How long a program that was told to end (SIGTERM) may take before SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How often a wait looks whether the user asked us to stop; the end of the program is seen at once.
const GLANCE: Duration = Duration::from_millis(100);

/// A program to run.
pub(crate) struct Job<'a> {
    /// The program and its arguments; no shell.
    pub argv: &'a [OsString],
    /// Variables on top of the inherited environment, which is cleaned of relatch's own first.
    pub env: &'a [(String, String)],
    /// CPUs it may use; empty for all.
    pub cpus: &'a [usize],
    /// File that takes its standard output.
    pub stdout: &'a Path,
    /// File that takes its standard error.
    pub stderr: &'a Path,
    /// It is ended when it runs longer than this.
    pub timeout: Option<Duration>,
    /// Whether processes of its group that outlive it are ended too.
    pub sweep: bool,
    /// Ends it should this process be killed.
    pub guard: Option<&'a Guard>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// By us, because it exceeded its time.
    TimedOut,
    /// By us, because the user asked to stop.
    Interrupted,
}

/// What one run cost and how it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// From before the fork to the end of the program, CLOCK_MONOTONIC.
    pub wall: Duration,
    /// CPU time in user mode, of the program and of those of its descendants that it waited for.
    pub user: Duration,
    /// CPU time in the kernel, of the same processes.
    pub sys: Duration,
    /// Peak resident memory in KiB, of the largest single one of the same processes (not their sum).
    pub maxrss_kib: u64,
    /// Whether processes of its group outlived it and were ended (only with [`Job::sweep`]).
    pub left_behind: bool,
}

/// Runs `job` to its end.
///
/// # Errors
/// When the program cannot be started (not found, not executable, CPUs that do not exist) or its
/// output files cannot be created.
pub(crate) fn run(job: &Job) -> io::Result<Ran> {
    let (program, arguments) = job
        .argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command given"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(File::create(job.stdout)?).stderr(File::create(job.stderr)?);
    interpose::clean(&mut command);
    command.envs(job.env.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value))));
    let set = (!job.cpus.is_empty()).then(|| affinity::set_of(job.cpus));
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe system calls are made, and nothing is
    // allocated (errors made of an errno are not).
    unsafe {
        command.pre_exec(move || {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            if libc::getppid() as u32 != parent {
                libc::_exit(127); // the parent died before the request above took hold
            }
            if let Some(set) = &set
                && libc::sched_setaffinity(0, size_of_val(set), set) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let start = Instant::now();
    let child = command.spawn()?;
    let pid = child.id() as i32;
    interrupt::watch(pid);
    if let Some(guard) = job.guard {
        guard.watch(pid);
    }
    let ran = wait(pid, start, job.timeout);
    let left_behind = job.sweep && sweep(pid);
    interrupt::watch(0);
    if let Some(guard) = job.guard {
        guard.watch(0);
    }
    Ok(Ran { left_behind, ..ran })
}

/// Waits for `pid`, the leader of its own group, and ends the group when it must.
fn wait(pid: i32, start: Instant, timeout: Option<Duration>) -> Ran {
    let exit = ExitOf::new(pid);
    let mut ended_by_us = None;
    let mut kill_at = None;
    loop {
        let now = Instant::now();
        if ended_by_us.is_none() {
            let too_long = timeout.is_some_and(|limit| now - start >= limit);
            if interrupt::asked() || too_long {
                let why = if too_long { Ending::TimedOut } else { Ending::Interrupted };
                ended_by_us = Some(why);
                kill_at = Some(now + GRACE);
                signal_group(pid, libc::SIGTERM);
                // A stopped process acts on SIGTERM only when it goes on.
                signal_group(pid, libc::SIGCONT);
            }
        } else if kill_at.is_some_and(|at| now >= at) {
            kill_at = None;
            signal_group(pid, libc::SIGKILL);
        }
        let deadline =
            timeout.map_or(GLANCE, |limit| (start + limit).saturating_duration_since(now));
        exit.wait(deadline.clamp(Duration::from_millis(1), GLANCE));

        let mut status = 0;
        // SAFETY: an all-zero rusage is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both out-pointers are valid; `pid` is a child that nobody else waits for.
        let reaped = unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) };
        if reaped == pid {
            let wall = start.elapsed();
            let own = if libc::WIFSIGNALED(status) {
                Ending::Signal(libc::WTERMSIG(status))
            } else {
                Ending::Exit(libc::WEXITSTATUS(status))
            };
            return Ran {
                ending: ended_by_us.unwrap_or(own),
                wall,
                user: duration(usage.ru_utime),
                sys: duration(usage.ru_stime),
                maxrss_kib: usage.ru_maxrss as u64,
                left_behind: false,
            };
        }
    }
}

/// Ends what is left of the group `pid`; says whether there was anything.
fn sweep(pid: i32) -> bool {
    if !is_alive(pid) {
        return false;
    }
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        signal_group(pid, signal);
        signal_group(pid, libc::SIGCONT);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if !is_alive(pid) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    true
}

/// Whether a process of the group still runs. Zombies do not: where nobody reaps orphans (a container
/// whose first process does not), they stay for good.
fn is_alive(group: i32) -> bool {
    // SAFETY: signal 0 only asks whether the group exists.
    if unsafe { libc::kill(-group, 0) } != 0 {
        return false; // the common case, without a look at every process
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // The name before may hold anything, even `)`.
        let Some((_, fields)) = stat.rsplit_once(')') else { return false };
        let mut fields = fields.split_whitespace();
        let state = fields.next();
        fields.nth(1) == Some(&group.to_string()) && !matches!(state, Some("Z" | "X"))
    })
}

fn signal_group(pid: i32, signal: i32) {
    // SAFETY: `pid` leads a group that this process made; at worst it is gone, which is an error of
    // kill alone.
    unsafe { libc::kill(-pid, signal) };
}

/// The end of a process as something to wait for with a deadline.
struct ExitOf {
    /// A pidfd, or -1 on a kernel without (before 5.3), where the wait is short sleeps.
    fd: i32,
}

impl ExitOf {
    fn new(pid: i32) -> Self {
        // SAFETY: the system call takes no pointers; `pid` is an unreaped child, so it is still ours.
        Self { fd: unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32 }
    }

    fn wait(&self, at_most: Duration) {
        if self.fd < 0 {
            std::thread::sleep(Duration::from_millis(1));
            return;
        }
        let mut poll = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, at_most.as_millis() as i32) };
    }
}

impl Drop for ExitOf {
    fn drop(&mut self) {
        if self.fd >= 0 {
            // SAFETY: a descriptor that this value owns.
            unsafe { libc::close(self.fd) };
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Option<Duration>) -> (Ran, String) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let argv = ["sh", "-c", script].map(OsString::from);
        let err = dir.path().join("err");
        let job = Job {
            argv: &argv,
            env: &[("WORD".into(), "hello".into())],
            cpus: &[],
            stdout: &out,
            stderr: &err,
            timeout,
            sweep: true,
            guard: None,
        };
        let ran = run(&job).unwrap();
        (ran, std::fs::read_to_string(&out).unwrap())
    }

    #[test]
    fn tells_how_it_ended() {
        let (ran, out) = shell("echo $WORD; exit 3", None);
        assert_eq!(ran.ending, Ending::Exit(3));
        assert_eq!(out, "hello\n");
        assert!(!ran.left_behind);
        let (ran, _) = shell("kill -SEGV $$", None);
        assert_eq!(ran.ending, Ending::Signal(libc::SIGSEGV));
    }

    #[test]
    fn a_run_that_takes_too_long_is_ended() {
        let (ran, _) = shell("sleep 100", Some(Duration::from_millis(50)));
        assert_eq!(ran.ending, Ending::TimedOut);
        assert!(ran.wall >= Duration::from_millis(50) && ran.wall < Duration::from_secs(50));
    }

    #[test]
    fn what_outlives_the_program_is_ended() {
        let (ran, out) = shell("sleep 100 & echo $!", None);
        assert_eq!(ran.ending, Ending::Exit(0));
        assert!(ran.left_behind);
        let pid: i32 = out.trim().parse().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "the sleeper is still there: {stat}");
    }

    #[test]
    fn cpu_time_of_descendants_counts() {
        let (ran, _) = shell("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'", None);
        assert!(ran.user > Duration::ZERO && ran.user + ran.sys <= ran.wall * 2);
        assert!(ran.maxrss_kib > 100);
    }
}
