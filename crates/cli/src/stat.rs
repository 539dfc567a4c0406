//! `relatch stat`.

use std::process::ExitCode;

/// Arguments of `relatch stat`.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> Result<ExitCode, String> {
    Err("not available yet".into())
}
