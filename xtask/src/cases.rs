//! Real programs, by their case scripts: under `stat`, `same` and conversions they must do what they do
//! without.
//!
//! A script takes the preload library as its argument, passes the environment on, checks what the program
//! under test did, and prints "NAME ok FIGURE UNIT" or "NAME FAIL WHY".

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::bench::{Bench, Setup, capture_within};
use crate::figures::Figures;
use crate::observed::{Observed, number};

const LIMIT: Duration = Duration::from_secs(300);
const DAY_S: u64 = 86_400;

/// Every conversion of one kind, and of both at once.
const PLANS: [&[&str]; 10] = [
    &["mutex=ttas"],
    &["rwlock=qrwlock"],
    &["mutex=mutex"],
    &["rwlock=rwsem"],
    &["mutex=qrwlock"],
    &["mutex=mutex", "rwlock=rwsem"],
    &["mutex=rwsem"],
    &["mutex=ttas", "rwlock=qrwlock"],
    &["mutex=qrwlock", "rwlock=qrwlock"],
    &["mutex=rwsem", "rwlock=rwsem"],
];

/// Which conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All, and the control that a broken lock is noticed.
    All,
    /// `same` and two of them.
    Turn(u64),
}

impl Choice {
    /// Another turn each day.
    ///
    /// # Errors
    /// When the clock is not set.
    pub fn today() -> Result<Choice, String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map(|now| Choice::Turn(now.as_secs() / DAY_S)).map_err(|error| error.to_string())
    }

    fn setups(self) -> Vec<Setup> {
        let plans = PLANS.iter().map(|plan| Setup::convert(plan));
        match self {
            Choice::All => [Setup::record(), Setup::same()].into_iter().chain(plans).collect(),
            Choice::Turn(turn) => {
                let first = (turn as usize).wrapping_mul(2) % PLANS.len();
                let plans = PLANS[first..].iter().take(2).map(|plan| Setup::convert(plan));
                std::iter::once(Setup::same()).chain(plans).collect()
            }
        }
    }
}

/// The directory of the scripts.
fn directory() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases");
    std::env::var_os("RELATCH_CASES").map_or_else(default, PathBuf::from)
}

/// The script of a case.
///
/// # Errors
/// When there is none.
pub fn script(case: &str) -> Result<String, String> {
    let path = directory().join(format!("{case}.sh"));
    let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

fn scripts() -> Result<Vec<PathBuf>, String> {
    let directory = directory();
    let entries = std::fs::read_dir(&directory).map_err(|error| {
        format!("{} (RELATCH_CASES names another): {error}", directory.display())
    })?;
    let mut scripts: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
    scripts.sort();
    if scripts.is_empty() {
        Err(format!("no cases in {}", directory.display()))
    } else {
        Ok(scripts)
    }
}

/// Runs every case in the chosen ways.
///
/// # Errors
/// When there are no cases.
pub fn run(bench: &Bench, choice: Choice, figures: &mut Figures) -> Result<(), String> {
    for script in scripts()? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        figures.part(&name);
        for setup in choice.setups() {
            one(bench, figures, &script, &name, &setup)?;
        }
        if choice == Choice::All {
            broken(bench, figures, &script, &name)?;
        }
    }
    Ok(())
}

fn one(
    bench: &Bench,
    figures: &mut Figures,
    script: &Path,
    name: &str,
    setup: &Setup,
) -> Result<(), String> {
    let recordings = bench.directory()?;
    let mut command = Command::new("bash");
    command.arg(script).arg(bench.library());
    bench.set(setup, recordings.path(), &mut command);
    let (said, passed) = ended(&mut command, name);
    let seen = seen(bench, setup, recordings.path());
    figures.told(format!("{name}, {}", setup.name()), format!("{said}{seen}"), "ok", passed);
    Ok(())
}

/// What the script said, and whether that is good.
fn ended(command: &mut Command, name: &str) -> (String, bool) {
    let output = match capture_within(command, LIMIT) {
        Ok(output) => output,
        Err(error) => return (error, false),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.lines().last().unwrap_or("nothing").to_owned();
    let passed = output.status.success() && said.starts_with(&format!("{name} ok "));
    let short = said.strip_prefix(&format!("{name} ")).unwrap_or(&said).to_owned();
    (short, passed)
}

/// That it was interposed at all.
fn seen(bench: &Bench, setup: &Setup, recordings: &Path) -> String {
    let Ok(observed) = Observed::load(bench, recordings) else { return String::new() };
    if setup.plan.is_empty() {
        format!(", {} acquisitions", number(&observed.json["total"]["acquisitions"]))
    } else {
        format!(", {} converted", number(&observed.json["converted"]))
    }
}

/// A case that does not notice locks that do not lock shows nothing of those that do.
fn broken(bench: &Bench, figures: &mut Figures, script: &Path, name: &str) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/broken.c");
    let library = bench.compile_at("broken.so", &source, &["-O1", "-shared", "-fPIC"])?;
    let mut command = Command::new("bash");
    command.arg(script).arg(library);
    let (said, passed) = ended(&mut command, name);
    figures.told(format!("{name}, control: locks that do not lock"), said, "FAIL is said", !passed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_reach_every_plan() {
        let mut reached: Vec<String> = (0..5)
            .flat_map(|turn| Choice::Turn(turn).setups())
            .filter(|setup| !setup.plan.is_empty())
            .map(|setup| setup.name())
            .collect();
        reached.sort();
        reached.dedup();
        assert_eq!(reached.len(), PLANS.len());
        assert_eq!(Choice::Turn(u64::MAX).setups().len(), 3);
        assert_eq!(Choice::All.setups().len(), PLANS.len() + 2);
    }
}
