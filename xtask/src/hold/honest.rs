//! Verdicts on nothing and on something small: on simulated rounds, and in real experiments.
//!
//! The experiments are kept beside the program, so that a run that was interrupted goes on; another build
//! of the preload library begins anew.

use std::path::{Path, PathBuf};
use std::time::Instant;

use relatch_stats::honesty;

use crate::bench::Bench;
use crate::figures::Figures;
use crate::trial::Trial;

const TRIALS: usize = 100;
/// The sample's threads and calls: some milliseconds.
const SAMPLE: [&str; 3] = ["./sample", "4", "20000"];
/// Most trials of 100 that may see a difference where there is none.
const FALSE_WORDS: f64 = 10.0;
/// Least trials of 100 that must see a slowdown of 5 %.
const FOUND: f64 = 80.0;

/// Simulated rounds, then real `same` against `same again` and a real slowdown of 5 %.
///
/// # Errors
/// When an experiment could not be made.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    figures.note(format!("simulated: {} experiments per figure", honesty::TRIALS));
    for check in honesty::run() {
        let figure = format!("{:.2} %", check.figure);
        figures.told(format!("simulated: {}", check.what), figure, check.bound(), check.pass());
    }

    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/sample/cache.c");
    bench.compile_at("sample", &source, &["-O1", "-fno-inline"])?;
    bench.compile("slower", "slower.c", &["-O1"])?;
    let kept = directory(bench)?;

    let trials =
        Trials { bench, kept: &kept, name: "same", rounds: "10", plan: &[], command: &SAMPLE };
    let said = trials.count(figures, "control", &["faster", "slower"])?;
    let what = "real: same again against same, the sample, 10 rounds: faster or slower";
    figures.at_most(what, said, FALSE_WORDS, "of 100");

    // A plan that converts nothing: the program itself is slower where it is told of one.
    let plan = ["-c", "mutex@no lock is called so=ttas"];
    let command = ["./slower"];
    let trials =
        Trials { bench, kept: &kept, name: "slower", rounds: "20", plan: &plan, command: &command };
    let said = trials.count(figures, "plan", &["slower"])?;
    figures.at_least("real: 5 % more work, 20 rounds: slower", said, FOUND, "of 100");
    let said = trials.count(figures, "control", &["faster", "slower"])?;
    figures.at_most(
        "real: same again against same there: faster or slower",
        said,
        FALSE_WORDS,
        "of 100",
    );
    Ok(())
}

struct Trials<'a> {
    bench: &'a Bench,
    kept: &'a Path,
    name: &'a str,
    rounds: &'a str,
    plan: &'a [&'a str],
    command: &'a [&'a str],
}

impl Trials<'_> {
    /// In how many the arm got one of the words.
    fn count(&self, figures: &mut Figures, arm: &str, words: &[&str]) -> Result<f64, String> {
        let started = Instant::now();
        let (mut said, mut made) = (0, 0);
        for number in 0..TRIALS {
            let path = self.kept.join(format!("{}-{number:03}.json", self.name));
            let kept = std::fs::read_to_string(&path).ok().and_then(|text| Trial::read(&text).ok());
            let trial = match kept {
                Some(trial) => trial,
                None => {
                    made += 1;
                    let args = [&["-n", self.rounds], self.plan].concat();
                    Trial::run(self.bench, &args, self.command, Some(&path))?
                }
            };
            said += usize::from(words.contains(&trial.verdict(arm)?));
        }
        if made > 0 {
            let seconds = started.elapsed().as_secs();
            figures.note(format!("{TRIALS} real experiments, {made} of them now, in {seconds} s"));
        }
        Ok(said as f64)
    }
}

/// Where the experiments of this build are kept.
fn directory(bench: &Bench) -> Result<PathBuf, String> {
    let build =
        bench.library().parent().and_then(Path::file_name).ok_or("the library has no directory")?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let directory = this.with_file_name("honest").join(build);
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}
