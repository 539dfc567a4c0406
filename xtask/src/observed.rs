//! What `relatch stat` said of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, capture};

/// A program's own output and the document `relatch.stat/1` about it.
pub struct Observed {
    /// What the program wrote to its standard output.
    pub output: String,
    /// The document.
    pub json: Value,
}

/// Acquisitions and rejected tries, by function and mode (`exclusive`, `shared`).
pub type Counts = BTreeMap<(String, String), (u64, u64)>;

impl Observed {
    /// Runs a command under `relatch stat`.
    ///
    /// # Errors
    /// When there is no document at the end of its output.
    pub fn run(bench: &Bench, args: &[&str], command: &[&str]) -> Result<Observed, String> {
        let args = [&["stat", "--format", "json"], args, &["--"], command].concat();
        Observed::of(&mut bench.relatch(&args))
    }

    /// Prints the recordings in a directory.
    ///
    /// # Errors
    /// When there are none.
    pub fn load(bench: &Bench, directory: &Path) -> Result<Observed, String> {
        let directory = directory.to_string_lossy();
        Observed::of(&mut bench.relatch(&["stat", "--format", "json", "--load", &directory]))
    }

    fn of(command: &mut Command) -> Result<Observed, String> {
        let output = capture(command)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The document is the last line; the program may not have ended its own.
        let at = text.rfind("{\"schema\"");
        let found = at.and_then(|at| Some((at, serde_json::from_str(&text[at..]).ok()?)));
        let (at, json) = found.ok_or_else(|| {
            format!("no document, but: {text}{}", String::from_utf8_lossy(&output.stderr))
        })?;
        Ok(Observed { output: text[..at].to_owned(), json })
    }

    /// Every class.
    pub fn classes(&self) -> impl Iterator<Item = &Value> {
        self.json["classes"].as_array().into_iter().flatten()
    }

    /// The sites of all classes.
    pub fn sites(&self) -> impl Iterator<Item = &Value> {
        self.classes().flat_map(|class| class["sites"].as_array().into_iter().flatten())
    }

    /// What was counted at the sites of each function.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        for site in self.sites() {
            for mode in ["exclusive", "shared"] {
                let (acquired, rejected) =
                    (number(&site[mode]["acquisitions"]), number(&site[mode]["rejected"]));
                if acquired + rejected > 0 {
                    let function = site["function"].as_str().unwrap_or("").to_owned();
                    let count = counts.entry((function, mode.to_owned())).or_default();
                    *count = (count.0 + acquired, count.1 + rejected);
                }
            }
        }
        counts
    }

    /// A field of the only site that a function has in that mode.
    ///
    /// # Errors
    /// When it has none, or several.
    pub fn field_of(&self, function: &str, mode: &str, field: &str) -> Result<f64, String> {
        let named = self.sites().filter(|site| site["function"] == function);
        let mut figures =
            named.map(|site| &site[mode]).filter(|figures| number(&figures["acquisitions"]) > 0);
        let (first, second) = (figures.next(), figures.next());
        match (first, second) {
            (Some(figures), None) => Ok(number(&figures[field]) as f64),
            (None, _) => Err(format!("no site in {function}")),
            _ => Err(format!("several sites in {function}")),
        }
    }
}

/// A count; 0 where there is none.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// What a program says that it did: lines "FUNCTION exclusive|shared ACQUISITIONS REJECTED".
pub fn counts_told(output: &str) -> Counts {
    let mut counts = Counts::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [function, mode, acquired, rejected] = words[..]
            && let (Ok(acquired), Ok(rejected)) = (acquired.parse::<u64>(), rejected.parse::<u64>())
        {
            let count = counts.entry((function.to_owned(), mode.to_owned())).or_default();
            *count = (count.0 + acquired, count.1 + rejected);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_processes_add_up() {
        let counts = counts_told("f exclusive 3 1\ng shared 2 0\nf exclusive 4 0\nother words\n");
        assert_eq!(counts[&("f".to_owned(), "exclusive".to_owned())], (7, 1));
        assert_eq!(counts.len(), 2);
    }
}
