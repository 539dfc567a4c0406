//! `relatch try`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgAction;
use relatch_experiment::{
    Event, Experiment, Interposition, Metric, affinity, arms, interrupt, span,
};
use relatch_report::trial::Trial;
use relatch_stats::verdict::{self, Better};

use crate::conversions::Conversions;
use crate::output::{self, Format};
use crate::preload;
use crate::progress::Progress;

/// Measure conversions on a real program, in randomised rounds, with a verdict for each
///
/// Runs CMD bare, interposed (`same`), interposed again (`same again`, the control) and once per -c, all
/// of them once per round in random order, and compares each to `same` within rounds.
///
/// Exit code: 0, or 1 if an arm failed, or 130 after Ctrl-C, or 2 if nothing could be run.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    conversions: Conversions,
    /// Rounds; with --until-ci the most there may be [default: 10]
    #[arg(short = 'n', long, value_name = "ROUNDS", value_parser = positive)]
    rounds: Option<usize>,
    /// What to measure: time, user, sys, cpu, maxrss or re:REGEX, whose one group captures a number in
    /// the output; repeat for more, the first is plotted
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,
    /// Higher numbers of re: metrics are better
    #[arg(long, conflicts_with = "lower")]
    higher: bool,
    /// Lower numbers of re: metrics are better
    #[arg(long)]
    lower: bool,
    /// Stop when every plan's ratio is known to plus or minus PCT percent (after 10 rounds or more)
    #[arg(long, value_name = "PCT", value_parser = percent)]
    until_ci: Option<f64>,
    /// Stop after this time: 90, 90s, 10m, 2h
    #[arg(long, value_name = "T", value_parser = span::parse)]
    max_time: Option<Duration>,
    /// A run that takes longer has failed [default: 20 times the longest good run, plus a minute]
    #[arg(long, value_name = "T", value_parser = span::parse)]
    timeout: Option<Duration>,
    /// Runs of the bare command before the first round, which do not count
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// Shell command before each run, not timed
    #[arg(long, value_name = "CMD")]
    prepare: Option<String>,
    /// Shell command after each run that fails if the run did; $RELATCH_OUTPUT and $RELATCH_ERRORS are
    /// the files with what CMD printed
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Interpose only programs whose path matches this glob
    #[arg(long, value_name = "EXE-GLOB")]
    only: Option<String>,
    /// A function that passes its argument on to a lock call; sites are named by who calls it
    #[arg(long = "wrapper", value_name = "GLOB")]
    wrappers: Vec<String>,
    /// CPUs that CMD may use, as 0-3,6
    #[arg(long, value_name = "LIST", value_parser = affinity_list)]
    cpus: Option<Cpus>,
    /// One more arm, observed as by `relatch stat`
    #[arg(long)]
    recorded: bool,
    /// What the random order follows from [default: the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A ratio within PCT percent of 1 counts as equivalent
    #[arg(long, value_name = "PCT", value_parser = percent, default_value_t = 100.0 * verdict::EQUIVALENCE)]
    equivalence: f64,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Save all results, as json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The program and its arguments; no shell
    #[arg(last = true, required = true, value_name = "CMD", action = ArgAction::Append)]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  relatch try -c mutex=ttas -- ./bench --threads 4
  relatch try -c 'mutex@*LRUCache*=ttas' -n 20 --metric 're:([0-9]+) ops/sec' --higher -- ./db_bench
  relatch try -c mutex=rwsem --share '*::Lookup' -c rwlock=qrwlock --check 'grep -q ok $RELATCH_OUTPUT' -- ./test.sh";

/// The CPUs of `--cpus`; a type of its own, since a plain list would mean one value per option.
#[derive(Clone)]
struct Cpus(Vec<usize>);

fn affinity_list(list: &str) -> Result<Cpus, String> {
    affinity::parse(list).map(Cpus)
}

pub(crate) fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "a number above 0 is needed".into())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok();
    number.filter(|pct| *pct > 0.0 && *pct < 100.0).ok_or_else(|| "a percentage is needed".into())
}

pub fn run(args: Args) -> Result<ExitCode, String> {
    let better = match (args.higher, args.lower) {
        (true, _) => Some(Better::Higher),
        (_, true) => Some(Better::Lower),
        _ => None,
    };
    let metrics = Metric::parse_all(&args.metrics, better)?;
    let plans = args.conversions.plans()?;
    if let Some(path) = &args.output {
        // Before an hour of runs, not after it.
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let interposition =
        Interposition { library: preload::unpack()?, only: args.only, wrappers: args.wrappers };

    let mut experiment = Experiment::new(args.command, arms(&interposition, &plans, args.recorded));
    experiment.metrics = metrics;
    experiment.rounds = args.rounds;
    experiment.until_ci = args.until_ci;
    experiment.max_time = args.max_time;
    experiment.timeout = args.timeout;
    experiment.warmup = args.warmup;
    experiment.prepare = args.prepare;
    experiment.check = args.check;
    experiment.cpus = args.cpus.map(|cpus| cpus.0).unwrap_or_default();
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    experiment.equivalence = args.equivalence / 100.0;

    interrupt::listen().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
    let progress = Progress::new(std::io::stderr().is_terminal());
    let outcome = experiment.run(&mut |event: Event| progress.show(&event))?;
    progress.end();

    let json = outcome.to_json();
    if let Some(path) = &args.output {
        std::fs::write(path, &json).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let trial = Trial::read(&json)?;
    match args.format {
        Format::Table => output::show(&trial.table(output::width()))?,
        Format::Json => output::show(&json)?,
        Format::Csv => output::show(&trial.csv())?,
    }
    Ok(if trial.was_interrupted() {
        ExitCode::from(interrupt::EXIT_CODE)
    } else if trial.has_failures() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
