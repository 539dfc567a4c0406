//! `relatch __pair-cost`, by which `stat` measures what observing costs on this machine.

use std::process::ExitCode;

/// Arguments of `relatch __pair-cost`.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> Result<ExitCode, String> {
    println!("{}", relatch_experiment::pair_cost::measure());
    Ok(ExitCode::SUCCESS)
}
