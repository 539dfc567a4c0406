//! `relatch compare`.

use std::process::ExitCode;

use relatch_report::compare::{self, Layout};
use relatch_stats::ministat::{LEVELS, Level, MIN_WIDTH, Options};

use crate::output::{self, Format};

const EXAMPLES: &str = "\
Examples:
  relatch compare before.txt after.txt
  relatch compare -C 3 -d , -c 99 before.csv after.csv
  relatch compare --summary rwlock=6,2798.06,43.32 --summary rmlock=5,2495.76,5.05
  relatch compare --format json before.txt - < after.txt";

/// Compare columns of numbers as ministat does, and by what ministat lacks.
///
/// Prints ministat's block, with its rounded t and its percent formula, so that published figures can
/// be checked against it; below it, by exact quantiles, bootstrap intervals of the ratio,
/// Mann-Whitney's test, the effect size, and notes on outliers, order and size. Each column is compared
/// to the first.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files with one number per line; `-` is standard input, as is no file
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Column of the number, from 1
    #[arg(short = 'C', value_name = "COL", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    column: u32,
    /// Level of confidence in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short = 'c', value_name = "LEVEL", default_value = "95", value_parser = level)]
    level: Level,
    /// Characters that part columns
    #[arg(short = 'd', value_name = "DELIM", default_value = " \t", hide_default_value = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    delimiters: String,
    /// Width of the plot [default: 74, or what the terminal has]
    #[arg(short = 'w', value_name = "WIDTH", value_parser = width)]
    width: Option<usize>,
    /// No plot
    #[arg(short = 'A')]
    no_plot: bool,
    /// Summaries only, neither plot nor comparison
    #[arg(short = 'n')]
    summary_only: bool,
    /// Neither names nor header in the block
    #[arg(short = 'q')]
    quiet: bool,
    /// A line for each column's bar
    #[arg(short = 's')]
    separate_bars: bool,
    /// A column of which only these are known, and perhaps its name; comes before the files
    #[arg(long, value_name = "[NAME=]N,MEAN,SD[,MIN,MAX,MEDIAN]")]
    summary: Vec<String>,
    /// Seed of the resampling
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Form of the result
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub fn run(args: Args) -> Result<ExitCode, String> {
    let layout = Layout { column: args.column as usize, delimiters: args.delimiters };
    let options = Options {
        level: args.level,
        width: args.width.unwrap_or_else(terminal_width),
        no_plot: args.no_plot,
        summary_only: args.summary_only,
        quiet: args.quiet,
        separate_bars: args.separate_bars,
    };
    let format = match args.format {
        Format::Table => compare::Format::Table,
        Format::Json => compare::Format::Json,
        Format::Csv => compare::Format::Csv,
    };
    let columns = compare::read(&args.summary, &args.files, &layout)?;
    let comparison = compare::compare(&columns, &options, args.seed);
    output::show(&comparison.render(format)?)?;
    Ok(ExitCode::SUCCESS)
}

fn level(text: &str) -> Result<Level, String> {
    let known = text.parse().ok().and_then(Level::of);
    known.ok_or_else(|| {
        let levels: Vec<String> = LEVELS.iter().map(f64::to_string).collect();
        format!("ministat has the levels {}", levels.join(", "))
    })
}

fn width(text: &str) -> Result<usize, String> {
    const MOST: usize = 10_000;
    match text.parse() {
        Ok(width) if (MIN_WIDTH..=MOST).contains(&width) => Ok(width),
        _ => Err(format!("a width from {MIN_WIDTH} to {MOST} is needed")),
    }
}

fn terminal_width() -> usize {
    const ELSEWHERE: usize = 74;
    const BORDERS: usize = 2;
    match terminal_size::terminal_size() {
        Some((width, _)) => (width.0 as usize).saturating_sub(BORDERS).max(MIN_WIDTH),
        None => ELSEWHERE,
    }
}
