//! `relatch demo`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use relatch_experiment::demo::{self, Demo, Scene};
use relatch_experiment::interrupt;
use relatch_experiment::outcome::Ended;
use relatch_report::stat::{self, Layout};
use relatch_report::{prose, trial::Trial};

use crate::progress::Progress;
use crate::try_::positive;
use crate::{output, preload};

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sample"));
static SOURCE: &[u8] = include_bytes!("../sample/cache.c");

/// See the way from a program to a verdict, on a small program that relatch brings along
///
/// Takes less than a minute. Observes the program, tries other locks on it and says what came of it; shows
/// each command as you would type it for a program of yours.
#[derive(clap::Args)]
pub struct Args {
    /// Leave the program and its source in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Rounds in which other locks are tried
    #[arg(short = 'n', long, value_name = "ROUNDS", default_value_t = demo::ROUNDS, value_parser = positive)]
    rounds: usize,
}

pub fn run(args: Args) -> Result<ExitCode, String> {
    let demo = Demo {
        program: PROGRAM,
        source: SOURCE,
        library: preload::unpack()?,
        keep: args.keep,
        rounds: args.rounds,
    };
    let progress = Progress::new(std::io::stderr().is_terminal());
    let width = output::width();
    let table_width = std::io::stdout().is_terminal().then_some(width);
    let mut shown = Ok(());
    let ended = demo.run(&mut |scene| {
        let text = match &scene {
            Scene::Event(event) => return progress.show(event),
            Scene::Step(title) => Ok(format!("\n{}", prose::title(title))),
            Scene::Text(text) => Ok(prose::paragraph(text, width)),
            Scene::Command(command) => Ok(prose::command(command)),
            Scene::Recording(recording) => {
                let layout = Layout { width: table_width, ..Layout::default() };
                Ok(stat::table(recording, layout))
            }
            Scene::Outcome(outcome) => {
                progress.end();
                let trial = Trial::read(&outcome.to_json());
                trial.map(|trial| trial.table(width).trim_end().to_owned())
            }
        };
        let now = text.and_then(|text| output::show(&format!("{text}\n")));
        shown = std::mem::replace(&mut shown, Ok(())).and(now);
    })?;
    shown?;
    Ok(match ended {
        Ended::Interrupt => ExitCode::from(interrupt::EXIT_CODE),
        _ => ExitCode::SUCCESS,
    })
}
