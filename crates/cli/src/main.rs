//! The `relatch` command: arguments and progress, no logic.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod compare;
mod conversions;
mod demo;
mod env;
mod output;
mod pair_cost;
mod preload;
mod progress;
mod stat;
mod try_;

/// Which lock should this be? Find the contended lock of any program, try another one on it
/// without a rebuild, and get an honest verdict.
#[derive(Parser)]
#[command(name = "relatch", version, max_term_width = 100)]
struct Relatch {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Stat(stat::Args),
    Try(try_::Args),
    Env(env::Args),
    Compare(compare::Args),
    Demo(demo::Args),
    #[command(name = relatch_experiment::pair_cost::VERB, hide = true)]
    PairCost(pair_cost::Args),
}

fn main() -> ExitCode {
    let verb = Relatch::parse().verb;
    let ended = match verb {
        Verb::Stat(args) => stat::run(args),
        Verb::Try(args) => try_::run(args),
        Verb::Env(args) => env::run(args),
        Verb::Compare(args) => compare::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::PairCost(args) => pair_cost::run(args),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("relatch: {error}");
        ExitCode::from(2)
    })
}
