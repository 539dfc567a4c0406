//! `relatch stat`.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use relatch_experiment::observe::{Error, Observation, Observed};
use relatch_experiment::{Interposition, pair_cost, span};
use relatch_record::names::Namer;
use relatch_record::recording::{Cost, Recording};
use relatch_record::{diff, file};
use relatch_report::stat::{self, Layout};
use relatch_report::{stat_diff, stat_json};

use crate::output::Format;
use crate::preload;

/// Run a program and show which of its locks are waited for, and where
///
/// The table goes to standard error, so that CMD's own output stays as it is; json and csv go to standard
/// output. Ctrl-C ends CMD, not the table; a second one kills CMD.
///
/// Exit code: that of CMD, or 2 if it was not run, 127 if it was not found.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Save the recording, to be printed again with --load
    #[arg(short, long, value_name = "FILE", conflicts_with = "diff")]
    output: Option<PathBuf>,
    /// What a row of the table is
    #[arg(long, value_enum, default_value_t = By::Class)]
    by: By,
    /// What comes first: the longest waits, the longest holds, or the most acquisitions
    #[arg(long, value_enum, default_value_t = Sort::Wait)]
    sort: Sort,
    /// Observe only programs whose path matches this glob
    #[arg(long, value_name = "EXE-GLOB")]
    only: Option<String>,
    /// A function that passes its argument on to a lock call; sites are named by who calls it
    #[arg(long = "wrapper", value_name = "GLOB")]
    wrappers: Vec<String>,
    /// Leave out what happens in the first S seconds
    #[arg(long, value_name = "S", value_parser = span::parse)]
    delay: Option<Duration>,
    /// Leave out what happens S seconds later; CMD goes on
    #[arg(long, value_name = "S", value_parser = span::parse)]
    duration: Option<Duration>,
    /// Print what happened since the last time, every S seconds
    #[arg(short = 'I', long, value_name = "S", value_parser = span::parse)]
    interval: Option<Duration>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print recordings again, several as one: files of -o, or the *.live files and directories of runs
    /// that were cut off
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = RUN)]
    load: Vec<PathBuf>,
    /// Compare two recordings
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = RUN, conflicts_with = "load")]
    diff: Vec<PathBuf>,
    /// The program and its arguments; no shell
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["load", "diff"])]
    command: Vec<OsString>,
}

/// What only means something where a program is run.
const RUN: [&str; 6] = ["command", "only", "wrappers", "delay", "duration", "interval"];

const EXAMPLES: &str = "\
Examples:
  relatch stat -- ./bench --threads 4
  relatch stat --by site --sort hold -o before.relatch -- ./bench
  relatch stat --only '*_bench' --delay 5 --duration 30 -- ./run-all.sh
  relatch stat --diff before.relatch after.relatch";

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    Class,
    Site,
    Lock,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Sort {
    Wait,
    Hold,
    Count,
}

impl Args {
    fn layout(&self, width: Option<usize>, interim: bool) -> Layout {
        let by = match self.by {
            By::Class => stat::By::Class,
            By::Site => stat::By::Site,
            By::Lock => stat::By::Lock,
        };
        Layout { by, sort: self.sort(), width, interim }
    }

    fn sort(&self) -> stat::Sort {
        match self.sort {
            Sort::Wait => stat::Sort::Wait,
            Sort::Hold => stat::Sort::Hold,
            Sort::Count => stat::Sort::Count,
        }
    }

    fn by_lock(&self) -> bool {
        matches!(self.by, By::Lock)
    }
}

pub fn run(args: Args) -> Result<ExitCode, String> {
    if let [a, b] = &args.diff[..] {
        return compare(&args, a, b);
    }
    if !args.load.is_empty() {
        let recording = load(&args.load)?;
        if args.by_lock() && !recording.by_lock {
            return Err("locks were not told apart in this recording (stat --by lock)".into());
        }
        if let Some(path) = &args.output {
            save(&recording, path)?;
        }
        let width = width_of(&std::io::stdout());
        show(&args, &recording, args.layout(width, false), &mut std::io::stdout());
        return Ok(ExitCode::SUCCESS);
    }
    observe(&args)
}

fn observe(args: &Args) -> Result<ExitCode, String> {
    let library = preload::unpack()?;
    let observation = Observation {
        command: args.command.clone(),
        interposition: Interposition {
            library: library.clone(),
            only: args.only.clone(),
            wrappers: args.wrappers.clone(),
        },
        by_lock: args.by_lock(),
        live: args.output.as_ref().map(|path| with_suffix(path, ".live")),
        delay: args.delay.unwrap_or_default(),
        duration: args.duration,
        every: args.interval,
    };
    let observed = match observation.run(&mut |recording| print(args, recording, true)) {
        Ok(observed) => observed,
        Err(error) => {
            if let Error::Start(_, cause) = &error
                && cause.kind() == std::io::ErrorKind::NotFound
            {
                eprintln!("relatch: {error}");
                return Ok(ExitCode::from(127));
            }
            return Err(error.to_string());
        }
    };
    let Observed { mut recording, status, warnings, live } = observed;
    for warning in warnings {
        eprintln!("relatch: {warning}");
    }
    if !recording.classes.is_empty() {
        let this = std::env::current_exe().ok();
        let pair_ns = this.and_then(|relatch| pair_cost::added(&relatch, &library));
        recording.cost = pair_ns.map(|pair_ns| Cost { pair_ns });
    }
    if let Some(path) = &args.output {
        save(&recording, path)
            .map_err(|error| format!("{error}; what was recorded is in {path:?}.live"))?;
    }
    live.remove();
    print(args, &recording, false);
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(code as u8))
}

fn compare(args: &Args, a: &Path, b: &Path) -> Result<ExitCode, String> {
    let (a, b) = (load(&[a.to_path_buf()])?, load(&[b.to_path_buf()])?);
    let changes = diff::compare(&a, &b, true);
    let text = match args.format {
        Format::Table => stat_diff::table(&a, &b, &changes, args.sort()),
        Format::Json => stat_diff::json(&a, &b, &changes, args.sort()) + "\n",
        Format::Csv => stat_diff::csv(&a, &b, &changes, args.sort()),
    };
    // A reader that closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn load(paths: &[PathBuf]) -> Result<Recording, String> {
    file::load(paths, &mut Namer::new()).map_err(|error| error.to_string())
}

fn save(recording: &Recording, path: &Path) -> Result<(), String> {
    file::save(recording, path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints what was observed beside the program's own output.
fn print(args: &Args, recording: &Recording, interim: bool) {
    let mut stderr = std::io::stderr();
    if args.format == Format::Table {
        // The program may be within a line of its own.
        let _ = writeln!(stderr);
    }
    show(args, recording, args.layout(width_of(&stderr), interim), &mut stderr);
}

fn show(args: &Args, recording: &Recording, layout: Layout, table: &mut dyn Write) {
    // A reader that closed the pipe has seen enough.
    let _ = match args.format {
        Format::Table => table.write_all(stat::table(recording, layout).as_bytes()),
        Format::Json => writeln!(std::io::stdout(), "{}", stat_json::json(recording, layout.sort)),
        Format::Csv => {
            std::io::stdout().write_all(stat_json::csv(recording, layout.sort).as_bytes())
        }
    };
}

/// Columns of the terminal that it is, if it is one.
fn width_of(output: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    let size = output.is_terminal().then(|| terminal_size::terminal_size_of(output)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
