//! `cargo xtask`: what continuous integration does not run.

use std::process::ExitCode;

use xtask::bench::Bench;
use xtask::cases::{self, Choice};
use xtask::figures::Figures;
use xtask::hold;

const USAGE: &str = "\
usage: cargo xtask hold [NAME...|all]        what must hold: prints figure, bound, PASS or FAIL; no name lists them
       cargo xtask cases [--all|--rotate N]  real programs under stat, same and conversions (all, or two by turns)
       cargo xtask soak                      the checks of `hold` that take long
RELATCH_CASES names the directory of the case scripts (default: ../shared/cases),
RELATCH_BINARY a relatch that is built already (default: that of this workspace, built anew).";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(passed) => ExitCode::from(u8::from(!passed)),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[&str]) -> Result<bool, String> {
    match args {
        ["hold"] => {
            for check in hold::ALL {
                println!("{:<10} {}", check.name, check.about);
            }
            Ok(true)
        }
        ["hold", "all"] => checks(|_| true),
        ["hold", names @ ..] => {
            if let Some(unknown) =
                names.iter().find(|name| hold::ALL.iter().all(|check| check.name != **name))
            {
                return Err(format!("no check is called {unknown} (cargo xtask hold lists them)"));
            }
            checks(|check| names.contains(&check.name))
        }
        ["soak"] => checks(|check| check.long),
        ["cases"] => in_cases(Choice::today()?),
        ["cases", "--all"] => in_cases(Choice::All),
        ["cases", "--rotate", turn] => {
            let turn = turn.parse().map_err(|_| format!("--rotate takes a number, not {turn}"))?;
            in_cases(Choice::Turn(turn))
        }
        _ => Err(USAGE.into()),
    }
}

fn checks(wanted: impl Fn(&hold::Check) -> bool) -> Result<bool, String> {
    let bench = Bench::of_this_workspace()?;
    let mut figures = Figures::printed();
    for check in hold::ALL.iter().filter(|check| wanted(check)) {
        figures.part(check.name);
        if let Err(error) = (check.run)(&bench, &mut figures) {
            figures.told(check.name, error, "to be run", false);
        }
    }
    Ok(figures.passed())
}

fn in_cases(choice: Choice) -> Result<bool, String> {
    let bench = Bench::of_this_workspace()?;
    let mut figures = Figures::printed();
    cases::run(&bench, choice, &mut figures)?;
    Ok(figures.passed())
}
