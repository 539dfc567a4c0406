//! `relatch env`.

use std::path::PathBuf;
use std::process::ExitCode;

use relatch_experiment::{Interposition, shell};
use relatch_plan::env::Mode;

use crate::conversions::Conversions;
use crate::{output, preload};

/// Print shell assignments that make every program started from that shell run converted
///
/// `eval "$(relatch env -c 'mutex@*LRUCache*=ttas')"`, then run the program; `eval "$(relatch env
/// --unset)"` ends it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    conversions: Conversions,
    /// Only programs whose path matches this glob; others are left alone
    #[arg(long, value_name = "EXE-GLOB")]
    only: Option<String>,
    /// A function that passes its argument on to a lock call; sites are named by who calls it
    #[arg(long = "wrapper", value_name = "GLOB")]
    wrappers: Vec<String>,
    /// `convert`, `same` (interposed, left as it is) or `record` (as `stat` observes) [default:
    /// convert with -c, same without]
    #[arg(long, value_parser = mode)]
    mode: Option<Mode>,
    /// Directory in which every process leaves a recording, for `relatch stat --load`
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Print the commands that take it all back
    #[arg(long, conflicts_with_all = ["only", "mode", "wrappers", "recordings"])]
    unset: bool,
}

fn mode(name: &str) -> Result<Mode, String> {
    let names = Mode::ALL.map(Mode::name).join(", ");
    Mode::from_name(name).ok_or_else(|| format!("the modes are {names}"))
}

pub fn run(args: Args) -> Result<ExitCode, String> {
    if args.unset {
        output::show(&shell::unset_lines())?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = args.conversions.one_plan()?;
    let mode = shell::mode_for(args.mode, plan.as_ref())?;
    let interposition =
        Interposition { library: preload::unpack()?, only: args.only, wrappers: args.wrappers };
    let directory = args.recordings.as_deref();
    output::show(&shell::export_lines(&interposition, mode, plan.as_ref(), directory)?)?;
    Ok(ExitCode::SUCCESS)
}
