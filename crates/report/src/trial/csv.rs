//! The results of `relatch try` for a spreadsheet.

use std::fmt::Write;

use relatch_stats::summary::Summary;

use super::{Trial, Versus};
use crate::units::csv_field;

impl Trial {
    /// One line per arm and metric, with a heading; empty fields for what there is not.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "metric,unit,better,arm,role,n,min,max,median,mean,sd,ratio,low,high,p,p_adjusted,verdict,\
             cpu_s,maxrss_kib,shared_p99_ns,shared_max_ns,exclusive_p99_ns,exclusive_max_ns,converted,\
             failure\n",
        );
        for (number, metric) in self.metrics.iter().enumerate() {
            for arm in &self.arms {
                let result = arm.results.get(number);
                let summary =
                    |of: fn(&Summary) -> f64| optional(result.map(|result| of(&result.summary)));
                let versus = result.and_then(|result| result.versus_same.as_ref());
                let compared = |of: fn(&Versus) -> f64| optional(versus.map(of));
                let waits = arm.waits.as_ref();
                let fields = [
                    csv_field(&metric.name),
                    metric.unit.clone(),
                    metric.better.clone(),
                    csv_field(&arm.name),
                    arm.role.clone(),
                    result.map_or(0, |result| result.summary.n).to_string(),
                    summary(|s| s.min),
                    summary(|s| s.max),
                    summary(|s| s.median),
                    summary(|s| s.mean),
                    summary(|s| s.sd),
                    compared(|v| v.ratio),
                    compared(|v| v.low),
                    compared(|v| v.high),
                    compared(|v| v.p),
                    compared(|v| v.p_adjusted),
                    versus.map_or(String::new(), |versus| versus.verdict.clone()),
                    optional(arm.cpu_s),
                    optional(arm.maxrss_kib),
                    optional(waits.and_then(|waits| waits.shared_p99_ns)),
                    optional(waits.and_then(|waits| waits.shared_max_ns)),
                    optional(waits.and_then(|waits| waits.exclusive_p99_ns)),
                    optional(waits.and_then(|waits| waits.exclusive_max_ns)),
                    optional(waits.map(|waits| waits.converted)),
                    arm.failure.as_ref().map_or(String::new(), |failure| csv_field(&failure.what)),
                ];
                let _ = writeln!(out, "{}", fields.join(","));
            }
        }
        out
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use crate::trial::tests::example;

    #[test]
    fn a_line_per_arm_and_metric() {
        let text = example().csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads = reader.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2 * 5);
        let field = |row: usize, head: &str| {
            rows[row].get(heads.iter().position(|other| other == head).unwrap()).unwrap().to_owned()
        };
        assert_eq!(field(3, "arm"), "mutex@a,b=ttas");
        assert_eq!(field(3, "shared_max_ns"), "2000000");
        assert_eq!(field(3, "exclusive_p99_ns"), "");
        assert_eq!(field(4, "failure"), "it broke");
        assert_eq!(field(1, "ratio"), "");
        assert_eq!(field(8, "metric"), "re:(.)");
        assert_eq!(field(8, "verdict"), "faster");
    }
}
