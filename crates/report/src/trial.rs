//! The results of `relatch try`, from its document `relatch.try/1` (see `docs/json-try.md`).
//!
//! What is read here is what the tables show; the document holds more.

use std::collections::BTreeMap;

use serde::Deserialize;

mod csv;
mod table;

/// The version of the document that is read here.
const SCHEMA: &str = "relatch.try/1";

/// What the tables show of an experiment; the document holds more.
#[derive(Clone, Debug, Deserialize)]
pub struct Trial {
    seed: u64,
    elapsed_s: f64,
    ended: String,
    rounds: usize,
    level: f64,
    equivalence: f64,
    metrics: Vec<Metric>,
    arms: Vec<Arm>,
    warnings: Vec<Warning>,
}

#[derive(Clone, Debug, Deserialize)]
struct Metric {
    name: String,
    unit: String,
    better: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Arm {
    name: String,
    role: String,
    share: Vec<String>,
    failure: Option<Failure>,
    results: Vec<MetricResult>,
    cpu_s: Option<f64>,
    maxrss_kib: Option<f64>,
    waits: Option<Waits>,
    runs: Vec<Run>,
}

#[derive(Clone, Debug, Deserialize)]
struct Failure {
    round: usize,
    what: String,
    output: String,
}

#[derive(Clone, Debug, Deserialize)]
struct MetricResult {
    summary: relatch_stats::summary::Summary,
    versus_same: Option<Versus>,
}

#[derive(Clone, Debug, Deserialize)]
struct Versus {
    ratio: f64,
    low: f64,
    high: f64,
    p: f64,
    p_adjusted: f64,
    verdict: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Waits {
    shared_p99_ns: Option<f64>,
    shared_max_ns: Option<u64>,
    exclusive_p99_ns: Option<f64>,
    exclusive_max_ns: Option<u64>,
    converted: f64,
    kept: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Run {
    values: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Warning {
    arm: Option<String>,
    text: String,
}

impl Trial {
    /// Reads the document.
    ///
    /// # Errors
    /// One line when it is no such document, or one of another version.
    pub fn read(json: &str) -> Result<Self, String> {
        // First of all the version, since another one may lack what is read below.
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let foreign = |error| format!("no {SCHEMA} document: {error}");
        let version: Version = serde_json::from_str(json).map_err(foreign)?;
        if version.schema != SCHEMA {
            return Err(format!("a {} document, not {SCHEMA}", version.schema));
        }
        serde_json::from_str(json).map_err(foreign)
    }

    /// Whether any arm failed.
    pub fn has_failures(&self) -> bool {
        self.arms.iter().any(|arm| arm.failure.is_some())
    }

    /// Whether the user broke it off.
    pub fn was_interrupted(&self) -> bool {
        self.ended == "interrupt"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two metrics, an arm of every kind, waits, a failure and a warning.
    pub(super) fn example() -> Trial {
        let summary = r#"{"n":10,"min":0.9,"max":1.4,"median":1.0,"mean":1.0625,"sd":0.1}"#;
        let arm = |name: &str, role: &str, versus: &str, rest: &str| {
            let result = format!(r#"{{"summary":{summary},"versus_same":{versus}}}"#);
            format!(
                r#"{{"name":"{name}","role":"{role}","conversions":[],"share":[],"failure":null,
                   "results":[{result},{result}],"cpu_s":2.0,"maxrss_kib":20480,
                   "runs":[{{"values":[0.9,5]}},{{"values":[1.4,6]}}],{rest}}}"#
            )
        };
        let versus = |ratio: f64, verdict: &str| {
            let (low, high) = (ratio - 0.1, ratio + 0.1);
            format!(
                r#"{{"n":10,"ratio":{ratio},"low":{low},"high":{high},"p":0.01,"p_adjusted":0.00002,"verdict":"{verdict}"}}"#
            )
        };
        let waits = r#""waits":{"shared_p99_ns":1500.0,"shared_max_ns":2000000,"exclusive_p99_ns":null,
            "exclusive_max_ns":null,"converted":3.0,"kept":{"recursive":2,"robust":1}}"#;
        let none = r#""waits":null"#;
        let arms = [
            arm("bare", "bare", &versus(0.5, "faster"), none),
            arm("same", "same", "null", none),
            arm("same again", "control", &versus(1.0, "undecided"), none),
            arm("mutex@a,b=ttas", "plan", &versus(0.8, "faster"), waits),
        ];
        let failed = r#"{"name":"spin=ttas","role":"plan","conversions":[],"share":[],"results":[],
            "failure":{"round":3,"what":"it broke","output":"first\nsecond"},"cpu_s":null,"maxrss_kib":null,
            "waits":null,"runs":[]}"#;
        let json = format!(
            r#"{{"schema":"relatch.try/1","seed":7,"elapsed_s":12.34,"ended":"interrupt","rounds":10,
               "level":0.95,"equivalence":0.01,"added later":true,
               "metrics":[{{"name":"time","unit":"s","better":"lower"}},{{"name":"re:(.)","unit":"","better":"higher"}}],
               "arms":[{},{failed}],"warnings":[{{"arm":"same","text":"trend"}},{{"arm":null,"text":"few"}}]}}"#,
            arms.join(",")
        );
        Trial::read(&json).unwrap()
    }

    #[test]
    fn other_documents_are_refused_in_one_line() {
        let other = r#"{"schema":"relatch.try/2"}"#;
        for (json, says) in
            [("", "no relatch.try/1"), ("{}", "no relatch.try/1"), (other, "relatch.try/2")]
        {
            let error = Trial::read(json).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        assert!(example().has_failures() && example().was_interrupted());
    }
}
