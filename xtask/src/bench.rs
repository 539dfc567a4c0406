//! Where checks are made: the built command, its preload library, and a directory for compiled programs.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use relatch_plan::env;

/// The sources of the programs.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cli/tests/programs");

/// The command and what checks compile.
pub struct Bench {
    relatch: PathBuf,
    library: PathBuf,
    place: tempfile::TempDir,
}

impl Bench {
    /// With a command that is built.
    ///
    /// # Errors
    /// When the command does not tell where its library is.
    pub fn new(relatch: &Path) -> Result<Bench, String> {
        let place = tempfile::Builder::new().prefix("relatch-hold.").tempdir();
        let place = place.map_err(|error| format!("no temporary directory: {error}"))?;
        let output = capture(Command::new(relatch).args(["env", "--mode", "same"]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let library = text.lines().find_map(|line| {
            let path = line.strip_prefix("export LD_PRELOAD='")?.strip_suffix('\'')?;
            // What the caller preloads stays behind ours.
            Some(PathBuf::from(path.split(':').next()?))
        });
        let library = library.ok_or("relatch env names no library")?;
        Ok(Bench { relatch: relatch.to_path_buf(), library, place })
    }

    /// With the command of this workspace, built anew beside the program that calls; or with the one
    /// that `RELATCH_BINARY` names.
    ///
    /// # Errors
    /// When it can not be built.
    pub fn of_this_workspace() -> Result<Bench, String> {
        if let Some(built) = std::env::var_os("RELATCH_BINARY") {
            return Bench::new(Path::new(&built));
        }
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let relatch = this.with_file_name("relatch");
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--release", "-p", "relatch-cli"]).current_dir(root);
        let status = build.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() || !relatch.exists() {
            return Err(format!("{} was not built", relatch.display()));
        }
        Bench::new(&relatch)
    }

    /// The preload library, unpacked.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// A path in the directory of compiled programs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A new, empty directory there.
    ///
    /// # Errors
    /// As of the file system.
    pub fn directory(&self) -> Result<tempfile::TempDir, String> {
        tempfile::tempdir_in(self.place.path()).map_err(|error| error.to_string())
    }

    /// Whether there is a C++ compiler; the tests ask for a C compiler only.
    pub fn has_cpp(&self) -> bool {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
        Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
    }

    /// Compiles one of `crates/cli/tests/programs` with threads and debug information; `.cpp` as C++17.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Result<PathBuf, String> {
        self.compile_at(name, &Path::new(PROGRAMS).join(source), flags)
    }

    /// The same for a source elsewhere.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn compile_at(&self, name: &str, source: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let cpp = source.extension() == Some(OsStr::new("cpp"));
        let (variable, default) = if cpp { ("CXX", "c++") } else { ("CC", "cc") };
        let mut compiler =
            Command::new(std::env::var_os(variable).unwrap_or_else(|| default.into()));
        if cpp {
            compiler.arg("-std=c++17");
        }
        let program = self.path(name);
        if let Some(directory) = program.parent() {
            std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        }
        // Functions of the same code must stay two: sites are told apart by their names.
        compiler
            .args(["-g", "-pthread", "-fno-ipa-icf", "-o"])
            .arg(&program)
            .arg(source)
            .args(flags);
        let output = capture(compiler.current_dir(self.place.path()))?;
        if output.status.success() {
            Ok(program)
        } else {
            Err(format!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// The command, in the directory of compiled programs, with nothing of ours in its environment.
    pub fn relatch(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.relatch);
        command.args(args).current_dir(self.place.path());
        clean(&mut command);
        command
    }

    /// A program there, interposed in a mode; recordings go to `recordings`. Further preloaded libraries
    /// come after ours.
    pub fn interposed(&self, run: &Setup, program: &OsStr, recordings: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.place.path());
        clean(&mut command);
        self.set(run, recordings, &mut command);
        let ours = run.mode.map(|_| self.library.clone());
        let libraries: Vec<PathBuf> =
            ours.into_iter().chain(run.libraries.iter().cloned()).collect();
        let libraries: Vec<String> =
            libraries.iter().map(|library| library.to_string_lossy().into_owned()).collect();
        if !libraries.is_empty() {
            command.env("LD_PRELOAD", libraries.join(":"));
        }
        command
    }

    /// Sets the variables that the library reads, not `LD_PRELOAD`.
    pub fn set(&self, run: &Setup, recordings: &Path, command: &mut Command) {
        if let Some(mode) = run.mode {
            command.env(env::MODE, mode.name()).env(env::DIR, recordings);
            if mode == env::Mode::Convert {
                command.env(env::PLAN, run.plan.join("\n"));
            }
        }
    }
}

/// How a program is run.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// None: bare.
    pub mode: Option<env::Mode>,
    /// Conversions.
    pub plan: Vec<String>,
    /// Libraries preloaded besides ours.
    pub libraries: Vec<PathBuf>,
}

impl Setup {
    /// Not interposed.
    pub fn bare() -> Setup {
        Setup::default()
    }

    /// Observed.
    pub fn record() -> Setup {
        Setup { mode: Some(env::Mode::Record), ..Setup::default() }
    }

    /// Interposed, left as it is.
    pub fn same() -> Setup {
        Setup { mode: Some(env::Mode::Same), ..Setup::default() }
    }

    /// Converted.
    pub fn convert(plan: &[&str]) -> Setup {
        let plan = plan.iter().map(|conversion| (*conversion).to_owned()).collect();
        Setup { mode: Some(env::Mode::Convert), plan, ..Setup::default() }
    }

    /// With these libraries preloaded too.
    pub fn with(&self, libraries: &[&Path]) -> Setup {
        let libraries = libraries.iter().map(|path| path.to_path_buf()).collect();
        Setup { libraries, ..self.clone() }
    }

    /// What to call it.
    pub fn name(&self) -> String {
        match self.mode {
            None => "bare".into(),
            Some(env::Mode::Convert) => self.plan.join(" "),
            Some(mode) => mode.name().into(),
        }
    }
}

/// Takes what is ours, and what others preload, out of a command's environment.
fn clean(command: &mut Command) {
    for name in env::ALL {
        command.env_remove(name);
    }
    command.env_remove("LD_PRELOAD");
}

/// Runs a command to its end.
///
/// # Errors
/// When it could not be started.
pub fn capture(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))
}

/// Runs a command that might hang: after `limit` it and what it started are killed.
///
/// # Errors
/// When it could not be started, or took too long.
pub fn capture_within(command: &mut Command, limit: Duration) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.process_group(0).spawn().map_err(|error| format!("{name}: {error}"))?;
    let group = child.id() as i32;
    let reader = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is what there is.
            let _ = from.read_to_end(&mut bytes);
            bytes
        })
    };
    let stdout = reader(Box::new(child.stdout.take().expect("it is piped")));
    let stderr = reader(Box::new(child.stderr.take().expect("it is piped")));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        if Instant::now() > end {
            // SAFETY: the group of a child that was not waited for, so its number is still its own.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            child.wait().map_err(|error| error.to_string())?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let status = status.ok_or_else(|| format!("{name}: hangs (killed after {limit:?})"))?;
    let read = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Output { status, stdout: read(stdout), stderr: read(stderr) })
}
