//! What is measured of a run: its time, its memory, or a number in its output.

use regex::{Regex, RegexBuilder};
use relatch_stats::verdict::Better;

use crate::process::Ran;

/// Where the number comes from.
#[derive(Clone, Debug)]
enum Source {
    Time,
    User,
    Sys,
    Cpu,
    MaxRss,
    Output(Regex),
}

/// One number per run, and which direction of it is good.
#[derive(Clone, Debug)]
pub struct Metric {
    name: String,
    source: Source,
    better: Better,
}

/// What a metric is called on the command line, and its unit.
const KNOWN: [(&str, Source, &str); 5] = [
    ("time", Source::Time, "s"),
    ("user", Source::User, "s"),
    ("sys", Source::Sys, "s"),
    ("cpu", Source::Cpu, "s"),
    ("maxrss", Source::MaxRss, "KiB"),
];

impl Metric {
    /// Reads `time`, `user`, `sys`, `cpu` (both together), `maxrss` or `re:REGEX`.
    ///
    /// A regular expression has one group, which captures the number; `^` and `$` match at lines.
    /// `better` says which direction is good for it and must be given then; time and memory are
    /// better lower.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(text: &str, better: Option<Better>) -> Result<Self, String> {
        if let Some(pattern) = text.strip_prefix("re:") {
            let regex = RegexBuilder::new(pattern).multi_line(true).build().map_err(|error| {
                let error = error.to_string();
                let last = error.lines().last().unwrap_or_default();
                format!(
                    "{pattern:?} is no regular expression: {}",
                    last.trim_start_matches("error: ")
                )
            })?;
            if regex.captures_len() != 2 {
                return Err(format!(
                    "the metric {text:?} needs exactly one group, (...), around its number"
                ));
            }
            let better = better.ok_or_else(|| {
                format!("say whether --higher or --lower values of {text:?} are better")
            })?;
            return Ok(Self { name: text.to_owned(), source: Source::Output(regex), better });
        }
        let known = KNOWN.into_iter().find(|(name, ..)| *name == text);
        let (name, source, _) = known.ok_or_else(|| {
            format!("unknown metric {text:?}; there are time, user, sys, cpu, maxrss and re:REGEX")
        })?;
        Ok(Self { name: name.to_owned(), source, better: Better::Lower })
    }

    /// Reads several; wall-clock time if there is none.
    ///
    /// # Errors
    /// As [`Metric::parse`]; and when a direction is given that none of them leaves open.
    pub fn parse_all(texts: &[String], better: Option<Better>) -> Result<Vec<Self>, String> {
        if better.is_some() && !texts.iter().any(|text| text.starts_with("re:")) {
            return Err(
                "--higher and --lower are about re: metrics; time and memory are better lower"
                    .into(),
            );
        }
        if texts.is_empty() {
            return Ok(vec![Self::time()]);
        }
        texts.iter().map(|text| Self::parse(text, better)).collect()
    }

    /// Wall-clock time, the metric where none is named.
    pub fn time() -> Self {
        Self { name: "time".into(), source: Source::Time, better: Better::Lower }
    }

    /// As it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `s`, `KiB`, or nothing for numbers of the program's own.
    pub fn unit(&self) -> &'static str {
        KNOWN.iter().find(|(name, ..)| *name == self.name).map_or("", |(.., unit)| unit)
    }

    /// Which direction is good.
    pub fn better(&self) -> Better {
        self.better
    }

    /// Whether the number is found in the program's output.
    pub(crate) fn reads_output(&self) -> bool {
        matches!(self.source, Source::Output(_))
    }

    /// The number of one run; `output` holds its standard output, then its standard error, which are
    /// searched in this order for the first match.
    ///
    /// # Errors
    /// When the output holds no such number.
    pub(crate) fn value(&self, ran: &Ran, output: &[String]) -> Result<f64, String> {
        Ok(match &self.source {
            Source::Time => ran.wall.as_secs_f64(),
            Source::User => ran.user.as_secs_f64(),
            Source::Sys => ran.sys.as_secs_f64(),
            Source::Cpu => (ran.user + ran.sys).as_secs_f64(),
            Source::MaxRss => ran.maxrss_kib as f64,
            Source::Output(regex) => {
                let captures = output.iter().find_map(|text| regex.captures(text));
                let captures = captures
                    .ok_or_else(|| format!("{} matches nothing in the output", self.name))?;
                let text = captures.get(1).map_or("", |group| group.as_str());
                let number = text.trim().replace([',', '_'], "").parse::<f64>();
                match number {
                    Ok(number) if number.is_finite() => number,
                    _ => {
                        return Err(format!("{} captures {text:?}, which is no number", self.name));
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ending;
    use std::time::Duration;

    const RAN: Ran = Ran {
        ending: Ending::Exit(0),
        wall: Duration::from_millis(1500),
        user: Duration::from_millis(700),
        sys: Duration::from_millis(300),
        maxrss_kib: 2048,
        left_behind: false,
    };

    fn value(metric: &str, output: &[&str]) -> Result<f64, String> {
        let output: Vec<String> = output.iter().map(|text| text.to_string()).collect();
        Metric::parse(metric, Some(Better::Higher)).unwrap().value(&RAN, &output)
    }

    #[test]
    fn numbers_of_the_kernel() {
        let values = ["time", "user", "sys", "cpu", "maxrss"].map(|name| value(name, &[]).unwrap());
        assert_eq!(values, [1.5, 0.7, 0.3, 1.0, 2048.0]);
    }

    #[test]
    fn numbers_of_the_output() {
        let line = "speed: 1,234.5 ops/s\nspeed: 9 ops/s\n";
        assert_eq!(value(r"re:speed: ([\d,.]+)", &[line, ""]), Ok(1234.5));
        assert_eq!(value(r"re:^took (\S+)$", &["", "x\ntook 1e-3\n"]), Ok(0.001));
        assert!(value(r"re:nothing (\d)", &[line]).unwrap_err().contains("matches nothing"));
        assert!(value(r"re:(speed)", &[line]).unwrap_err().contains("is no number"));
    }

    #[test]
    fn what_cannot_be_measured_is_said_before_anything_runs() {
        let wrong = |text, better| Metric::parse(text, better).unwrap_err();
        assert!(wrong("speed", None).starts_with("unknown metric"));
        assert!(wrong("re:x", Some(Better::Lower)).contains("one group"));
        assert!(wrong("re:(x)(y)", Some(Better::Lower)).contains("one group"));
        assert!(wrong("re:(x", Some(Better::Lower)).contains("is no regular expression"));
        assert!(!wrong("re:(x", Some(Better::Lower)).contains('\n'));
        assert!(wrong("re:(x)", None).contains("--higher or --lower"));
        assert!(Metric::parse_all(&["time".into()], Some(Better::Higher)).is_err());
        assert_eq!(Metric::parse_all(&[], None).unwrap()[0].name(), "time");
        assert!(matches!(Metric::parse("time", None).unwrap().better(), Better::Lower));
    }
}
