//! `relatch stat` for programs: json and csv. The fields are described in `docs/json-stat.md`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use relatch_record::layout::{DROPPED, Dropped};
use relatch_record::recording::{
    Class, Environment, Figures, Lock, Mode, Process, Recording, Site, sum_of,
};
use serde::Serialize;

use crate::stat::{Sort, cost};
use crate::units::csv_field;

/// Version of the json.
pub const SCHEMA: &str = "relatch.stat/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    mode: Mode,
    environment: &'a Environment,
    total: Totals,
    classes: Vec<ClassOut<'a>>,
    locks: Vec<LockOut<'a>>,
    processes: &'a [Process],
    observation: Observation,
    dropped: BTreeMap<&'static str, u64>,
    kept: BTreeMap<&'static str, u64>,
    converted: u64,
    unseen: &'a [String],
}

#[derive(Serialize)]
struct Totals {
    acquisitions: u64,
    contended: u64,
    rejected: u64,
    wait_ns: u64,
    wait_max_ns: u64,
    wait_p50_ns: u64,
    wait_p99_ns: u64,
    held: u64,
    hold_ns: u64,
    hold_max_ns: u64,
    hold_p50_ns: u64,
    hold_p99_ns: u64,
}

#[derive(Serialize)]
struct ClassOut<'a> {
    name: &'a str,
    kind: &'static str,
    origin: relatch_record::recording::Origin,
    locks: u64,
    exclusive: Totals,
    shared: Totals,
    sites: Vec<SiteOut<'a>>,
}

#[derive(Serialize)]
struct SiteOut<'a> {
    name: &'a str,
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: &'a str,
    exclusive: Totals,
    shared: Totals,
}

#[derive(Serialize)]
struct LockOut<'a> {
    class: &'a str,
    kind: &'static str,
    pid: u32,
    address: String,
    exclusive: Totals,
    shared: Totals,
}

#[derive(Serialize)]
struct Observation {
    pairs: u64,
    pair_ns: Option<f64>,
    cost_ns: Option<f64>,
    cpu_percent: Option<f64>,
}

impl Totals {
    fn of(figures: &Figures) -> Totals {
        Totals {
            acquisitions: figures.acquisitions,
            contended: figures.contended,
            rejected: figures.rejected,
            wait_ns: figures.wait_ns,
            wait_max_ns: figures.wait_max_ns,
            wait_p50_ns: figures.wait_quantile_ns(0.5),
            wait_p99_ns: figures.wait_quantile_ns(0.99),
            held: figures.held,
            hold_ns: figures.hold_ns,
            hold_max_ns: figures.hold_max_ns,
            hold_p50_ns: figures.hold_quantile_ns(0.5),
            hold_p99_ns: figures.hold_quantile_ns(0.99),
        }
    }

    /// In the order of [`FIELDS`].
    fn values(&self) -> [u64; 12] {
        [
            self.acquisitions,
            self.contended,
            self.rejected,
            self.wait_ns,
            self.wait_max_ns,
            self.wait_p50_ns,
            self.wait_p99_ns,
            self.held,
            self.hold_ns,
            self.hold_max_ns,
            self.hold_p50_ns,
            self.hold_p99_ns,
        ]
    }
}

const FIELDS: &str = "acquisitions,contended,rejected,wait_ns,wait_max_ns,wait_p50_ns,wait_p99_ns,\
                      held,hold_ns,hold_max_ns,hold_p50_ns,hold_p99_ns";

/// The recording as one json document, on one line; classes and sites by cost.
pub fn json(recording: &Recording, sort: Sort) -> String {
    let recording = &in_order(recording, sort);
    let pairs = recording.total().total();
    let pair_ns = recording.cost.map(|cost| cost.pair_ns);
    let cost_ns = pair_ns.map(|ns| ns * pairs as f64);
    let cpu = recording.environment.cpu_ns.filter(|&cpu| cpu > 0);
    let document = Document {
        schema: SCHEMA,
        mode: recording.mode,
        environment: &recording.environment,
        total: Totals::of(&recording.total()),
        classes: recording.classes.iter().map(class_out).collect(),
        locks: recording.locks.iter().map(lock_out).collect(),
        processes: &recording.processes,
        observation: Observation {
            pairs,
            pair_ns,
            cost_ns,
            cpu_percent: cost_ns.zip(cpu).map(|(cost, cpu)| 100.0 * cost / cpu as f64),
        },
        dropped: DROPPED_NAMES.into_iter().map(|(d, name)| (name, recording.dropped(d))).collect(),
        kept: recording.kept().map(|(reason, locks)| (reason.words(), locks)).collect(),
        converted: recording.converted,
        unseen: &recording.unseen,
    };
    serde_json::to_string(&document).expect("text and numbers alone")
}

fn class_out(class: &Class) -> ClassOut<'_> {
    ClassOut {
        name: &class.name,
        kind: class.kind.name(),
        origin: class.origin,
        locks: class.locks,
        exclusive: Totals::of(&class.exclusive),
        shared: Totals::of(&class.shared),
        sites: class.sites.iter().map(site_out).collect(),
    }
}

fn site_out(site: &Site) -> SiteOut<'_> {
    SiteOut {
        name: &site.name,
        function: &site.function,
        file: site.file.as_deref(),
        line: site.line,
        module: &site.module,
        exclusive: Totals::of(&site.exclusive),
        shared: Totals::of(&site.shared),
    }
}

fn lock_out(lock: &Lock) -> LockOut<'_> {
    LockOut {
        class: &lock.class,
        kind: lock.kind.name(),
        pid: lock.pid,
        address: format!("{:#x}", lock.address),
        exclusive: Totals::of(&lock.exclusive),
        shared: Totals::of(&lock.shared),
    }
}

const DROPPED_NAMES: [(Dropped, &str); DROPPED] = [
    (Dropped::Places, "places"),
    (Dropped::Rows, "rows"),
    (Dropped::Histograms, "histograms"),
    (Dropped::Locks, "locks"),
    (Dropped::Sections, "sections"),
];

/// The most costly class first, and in each the most costly site.
fn in_order(recording: &Recording, sort: Sort) -> Recording {
    let mut ordered = recording.clone();
    let key = |exclusive: &Figures, shared: &Figures, name: &str| {
        (Reverse(cost(&sum_of([exclusive, shared]), sort)), name.to_owned())
    };
    ordered.classes.sort_by_cached_key(|class| key(&class.exclusive, &class.shared, &class.name));
    for class in &mut ordered.classes {
        class.sites.sort_by_cached_key(|site| key(&site.exclusive, &site.shared, &site.name));
    }
    ordered
}

/// The sites as csv: one row per class, site and mode, by cost.
pub fn csv(recording: &Recording, sort: Sort) -> String {
    let recording = &in_order(recording, sort);
    let mut out = format!("class,kind,site,function,file,line,module,mode,{FIELDS}\n");
    for class in &recording.classes {
        for site in &class.sites {
            for (mode, figures) in [("exclusive", &site.exclusive), ("shared", &site.shared)] {
                if figures.is_empty() {
                    continue;
                }
                let line = site.line.map_or_else(String::new, |line| line.to_string());
                let file = site.file.as_deref().unwrap_or("");
                let texts =
                    [&class.name, class.kind.name(), &site.name, &site.function, file, &line];
                for text in texts.into_iter().chain([site.module.as_str(), mode]) {
                    let _ = write!(out, "{},", csv_field(text));
                }
                let values = Totals::of(figures).values().map(|value| value.to_string());
                let _ = writeln!(out, "{}", values.join(","));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use relatch_record::recording::{Kind, Origin};
    use relatch_record::times::Times;

    fn recording() -> Recording {
        let figures = Figures {
            acquisitions: 10,
            contended: 2,
            rejected: 1,
            wait_ns: 1300,
            wait_max_ns: 660,
            held: 10,
            hold_ns: 150,
            hold_max_ns: 15,
            wait: Times::new(1.0, &[(100, 2)]),
            hold: Times::new(1.0, &[(15, 10)]),
        };
        let site = Site {
            name: "std::map<int, char>::at+0x30".into(),
            function: "std::map<int, char>::at".into(),
            file: Some("m.h".into()),
            line: Some(3),
            module: "/bin/p".into(),
            exclusive: figures.clone(),
            shared: Figures::default(),
        };
        let class = Class {
            name: "main+0x10".into(),
            kind: Kind::Mutex,
            origin: Origin::Init,
            locks: 4,
            exclusive: figures,
            shared: Figures::default(),
            sites: vec![site],
        };
        Recording { classes: vec![class], ..Recording::default() }
    }

    #[test]
    fn json_has_the_documented_fields() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&recording(), Sort::Wait)).unwrap();
        assert_eq!(value["schema"], SCHEMA);
        assert_eq!(value["total"]["acquisitions"], 10);
        assert_eq!(value["total"]["wait_p50_ns"], 650);
        assert_eq!(value["total"]["wait_max_ns"], 660);
        let class = &value["classes"][0];
        assert_eq!((&class["name"], &class["kind"]), (&"main+0x10".into(), &"mutex".into()));
        assert_eq!(class["exclusive"]["hold_ns"], 150);
        assert_eq!(class["shared"]["acquisitions"], 0);
        assert_eq!(class["sites"][0]["line"], 3);
        assert_eq!(class["sites"][0]["exclusive"]["contended"], 2);
        assert!(value["observation"]["pair_ns"].is_null());
        assert_eq!(value["dropped"]["rows"], 0);
    }

    #[test]
    fn costly_ones_come_first() {
        let mut recording = recording();
        let mut cheap = recording.classes[0].clone();
        cheap.name = "a".into();
        cheap.exclusive.wait_ns = 0;
        cheap.sites[0].exclusive.acquisitions = 99;
        cheap.exclusive.acquisitions = 99;
        recording.classes.insert(0, cheap);
        let value: serde_json::Value = serde_json::from_str(&json(&recording, Sort::Wait)).unwrap();
        assert_eq!(value["classes"][0]["name"], "main+0x10");
        let by_count = csv(&recording, Sort::Count);
        assert!(by_count.lines().nth(1).unwrap().starts_with("a,"), "{by_count}");
    }

    #[test]
    fn csv_has_a_row_per_site() {
        let text = csv(&recording(), Sort::Wait);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), 20);
        assert_eq!(
            lines[1],
            "main+0x10,mutex,\"std::map<int, char>::at+0x30\",\"std::map<int, char>::at\",m.h,3,\
             /bin/p,exclusive,10,2,1,1300,660,650,660,10,150,15,15,15"
        );
    }
}
