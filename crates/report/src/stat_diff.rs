//! `relatch stat --diff A B`: two recordings side by side.
//!
//! Runs differ in length, so counts are compared per second, and waits by the share of the CPU time
//! available that they took.

use std::fmt::Write;

use relatch_record::diff::Change;
use relatch_record::recording::{Figures, Recording};
use serde::Serialize;

use crate::stat::{Sort, cost};
use crate::units::{csv_field, percent, time};

/// Version of the json.
pub const SCHEMA: &str = "relatch.stat-diff/1";

/// One side of a change, as figures that compare.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Side {
    per_second: f64,
    contended: f64,
    hold_mean_ns: f64,
    wait_mean_ns: f64,
    wait_of_cpu: Option<f64>,
}

#[derive(Serialize)]
struct Row<'a> {
    class: &'a str,
    kind: &'static str,
    site: Option<&'a str>,
    mode: &'static str,
    a: Side,
    b: Side,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    rows: Vec<Row<'a>>,
}

impl Side {
    fn of(figures: &Figures, recording: &Recording) -> Side {
        let seconds = recording.environment.elapsed_ns as f64 / 1e9;
        let available = seconds * 1e9 * f64::from(recording.environment.cpus);
        let total = figures.total() as f64;
        let missed = figures.contended.saturating_add(figures.rejected) as f64;
        Side {
            per_second: if seconds > 0.0 { total / seconds } else { 0.0 },
            contended: if total > 0.0 { missed / total } else { 0.0 },
            hold_mean_ns: figures.hold_mean_ns(),
            wait_mean_ns: figures.wait_mean_ns(),
            wait_of_cpu: (available > 0.0).then(|| figures.wait_ns as f64 / available),
        }
    }
}

/// Classes by the larger of both costs, each in front of its sites.
fn in_order(changes: &[Change], sort: Sort) -> Vec<&Change> {
    let weight = |change: &Change| cost(&change.before, sort).max(cost(&change.after, sort));
    let class_of = |change: &Change| {
        let is_class = |other: &&Change| {
            other.site.is_none()
                && other.kind == change.kind
                && other.class == change.class
                && other.shared == change.shared
        };
        changes.iter().find(is_class).map(weight)
    };
    let mut keyed: Vec<_> = changes
        .iter()
        .map(|change| {
            let class = (std::cmp::Reverse(class_of(change)), &change.class, change.shared);
            let site = change.site.as_ref().map(|site| (std::cmp::Reverse(weight(change)), site));
            ((class, site), change)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.into_iter().map(|(_, change)| change).collect()
}

/// The table.
pub fn table(a: &Recording, b: &Recording, changes: &[Change], sort: Sort) -> String {
    let mut out = String::from(
        "            TOTAL/s               CON         HOLD MEAN        WAIT MEAN         % CPU\n        \
         A         B    B/A       A     B        A      B        A      B        A     B  NAME\n",
    );
    for change in in_order(changes, sort) {
        let (before, after) = (Side::of(&change.before, a), Side::of(&change.after, b));
        let ratio = if before.per_second > 0.0 {
            format!("{:.2}", after.per_second / before.per_second)
        } else {
            "new".to_owned()
        };
        let cpu = |side: Side| side.wait_of_cpu.map_or_else(String::new, percent);
        let _ = write!(
            out,
            "{:>9.0} {:>9.0} {ratio:>6}   {:>5} {:>5}   {:>6} {:>6}   {:>6} {:>6}   {:>5} {:>5}  ",
            before.per_second,
            after.per_second,
            percent(before.contended),
            percent(after.contended),
            time(before.hold_mean_ns),
            time(after.hold_mean_ns),
            time(before.wait_mean_ns),
            time(after.wait_mean_ns),
            cpu(before),
            cpu(after),
        );
        let name = match &change.site {
            Some(site) => format!("  {site}"),
            None => format!("{} ({}, {})", change.class, change.kind.name(), mode(change)),
        };
        let _ = writeln!(out, "{name}");
    }
    if changes.is_empty() {
        out.push_str("neither recording has any acquisition\n");
    }
    out
}

fn mode(change: &Change) -> &'static str {
    if change.shared { "shared" } else { "exclusive" }
}

fn rows<'a>(a: &Recording, b: &Recording, changes: &'a [Change], sort: Sort) -> Vec<Row<'a>> {
    let row = |change: &'a Change| Row {
        class: &change.class,
        kind: change.kind.name(),
        site: change.site.as_deref(),
        mode: mode(change),
        a: Side::of(&change.before, a),
        b: Side::of(&change.after, b),
    };
    in_order(changes, sort).into_iter().map(row).collect()
}

/// One json document, on one line.
pub fn json(a: &Recording, b: &Recording, changes: &[Change], sort: Sort) -> String {
    let document = Document { schema: SCHEMA, rows: rows(a, b, changes, sort) };
    serde_json::to_string(&document).expect("text and numbers alone")
}

/// One row per class and mode, and per site.
pub fn csv(a: &Recording, b: &Recording, changes: &[Change], sort: Sort) -> String {
    let mut out = String::from("class,kind,site,mode");
    for side in ["a", "b"] {
        let fields = ["per_second", "contended", "hold_mean_ns", "wait_mean_ns", "wait_of_cpu"];
        fields.iter().for_each(|field| out.extend([",", side, "_", field]));
    }
    out.push('\n');
    for row in rows(a, b, changes, sort) {
        let texts = [row.class, row.kind, row.site.unwrap_or(""), row.mode];
        out.push_str(&texts.map(csv_field).join(","));
        for side in [row.a, row.b] {
            let _ = write!(
                out,
                ",{},{},{},{},{}",
                side.per_second,
                side.contended,
                side.hold_mean_ns,
                side.wait_mean_ns,
                side.wait_of_cpu.map_or_else(String::new, |share| share.to_string())
            );
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use relatch_record::recording::{Environment, Kind};

    fn change(class: &str, site: Option<&str>, before: u64, after: u64) -> Change {
        let figures = |n: u64| Figures {
            acquisitions: n,
            contended: n / 4,
            wait_ns: n * 1000,
            held: n,
            hold_ns: n * 250,
            ..Figures::default()
        };
        Change {
            kind: Kind::Mutex,
            class: class.into(),
            site: site.map(str::to_owned),
            shared: false,
            before: figures(before),
            after: figures(after),
        }
    }

    fn run(seconds: u64) -> Recording {
        let environment =
            Environment { cpus: 2, elapsed_ns: seconds * 1_000_000_000, ..Environment::default() };
        Recording { environment, ..Recording::default() }
    }

    #[test]
    fn counts_compare_per_second() {
        let changes = [change("c", None, 1_000_000, 1_000_000)];
        let text = table(&run(1), &run(2), &changes, Sort::Wait);
        let line = text.lines().nth(2).unwrap();
        assert_eq!(
            line,
            "  1000000    500000   0.50   25.0% 25.0%    0.2us  0.2us    4.0us  4.0us   50.0% 25.0%  \
             c (mutex, exclusive)"
        );
    }

    #[test]
    fn costly_classes_come_first_with_their_sites() {
        let changes = [
            change("a", None, 1, 1),
            change("a", Some("x"), 1, 1),
            change("b", None, 10, 90),
            change("b", Some("y"), 10, 0),
            change("b", Some("z"), 0, 90),
        ];
        let order = in_order(&changes, Sort::Wait);
        let names: Vec<_> =
            order.iter().map(|c| (c.class.as_str(), c.site.as_deref().unwrap_or(""))).collect();
        assert_eq!(names, [("b", ""), ("b", "z"), ("b", "y"), ("a", ""), ("a", "x")]);
        assert!(table(&run(1), &run(1), &changes, Sort::Wait).contains("   new "));
        assert_eq!(csv(&run(1), &run(1), &changes, Sort::Wait).lines().count(), 6);
        let value: serde_json::Value =
            serde_json::from_str(&json(&run(1), &run(1), &changes, Sort::Wait)).unwrap();
        assert_eq!(value["rows"][0]["b"]["per_second"], 90.0);
    }
}
