//! What `relatch try` said of an experiment.

use std::path::Path;

use relatch_stats::paired::{self, Paired};
use serde_json::Value;

use crate::bench::{Bench, capture};

/// The document `relatch.try/1`.
pub struct Trial {
    json: Value,
}

impl Trial {
    /// Runs an experiment, and keeps its document at `path` if there is one.
    ///
    /// # Errors
    /// When there is no document, or an arm failed.
    pub fn run(
        bench: &Bench,
        args: &[&str],
        command: &[&str],
        path: Option<&Path>,
    ) -> Result<Trial, String> {
        let args = [&["try", "--format", "json"], args, &["--"], command].concat();
        let output = capture(&mut bench.relatch(&args))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let trial = Trial::read(&text).map_err(|error| format!("{error}: {errors}"))?;
        if let Some(path) = path {
            std::fs::write(path, &*text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(trial)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When it is none, or an arm failed.
    pub fn read(text: &str) -> Result<Trial, String> {
        let json: Value = serde_json::from_str(text).map_err(|_| "no document of relatch try")?;
        let failed =
            json["arms"].as_array().into_iter().flatten().find(|arm| !arm["failure"].is_null());
        match failed {
            Some(arm) => Err(format!("arm {} failed: {}", arm["name"], arm["failure"])),
            None => Ok(Trial { json }),
        }
    }

    fn arm(&self, name: &str) -> Option<&Value> {
        let mut arms = self.json["arms"].as_array().into_iter().flatten();
        arms.find(|arm| arm["name"] == name || arm["role"] == name)
    }

    /// The word about an arm, by name or role, on the first metric.
    ///
    /// # Errors
    /// When there is none.
    pub fn verdict(&self, arm: &str) -> Result<&str, String> {
        let versus = self.arm(arm).map(|arm| &arm["results"][0]["versus_same"]);
        versus
            .and_then(|versus| versus["verdict"].as_str())
            .ok_or_else(|| format!("no verdict on {arm}"))
    }

    /// The ratio to `same` of an arm on the first metric, with its interval.
    pub fn ratio(&self, arm: &str) -> String {
        let Some(arm) = self.arm(arm) else { return "none".into() };
        let versus = &arm["results"][0]["versus_same"];
        let field = |name: &str| versus[name].as_f64().unwrap_or(f64::NAN);
        format!("{:.3} [{:.3}, {:.3}]", field("ratio"), field("low"), field("high"))
    }

    /// Compares two arms, by name or role, within rounds.
    ///
    /// # Errors
    /// When either has no runs, or they have too few.
    pub fn compare(&self, test: &str, reference: &str, metric: usize) -> Result<Paired, String> {
        let (test_runs, reference_runs) =
            (self.values(test, metric)?, self.values(reference, metric)?);
        let (mut tests, mut references) = (Vec::new(), Vec::new());
        for (round, value) in test_runs {
            if let Some((_, other)) = reference_runs.iter().find(|(other, _)| *other == round) {
                tests.push(value);
                references.push(*other);
            }
        }
        paired::compare(&tests, &references, 0.95)
            .ok_or_else(|| format!("too few runs of {test} and {reference}"))
    }

    fn values(&self, arm: &str, metric: usize) -> Result<Vec<(u64, f64)>, String> {
        let found = self.arm(arm).ok_or_else(|| format!("no arm {arm}"))?;
        let runs = found["runs"].as_array().into_iter().flatten();
        Ok(runs
            .filter_map(|run| Some((run["round"].as_u64()?, run["values"][metric].as_f64()?)))
            .collect())
    }
}
