//! The table of `relatch stat`: the lockmeter's, column by column.
//!
//! Three blocks (mutexes and spinlocks, rwlock reads, rwlock writes); in each `*TOTAL*` first, then
//! classes by cost with their sites below them. What the lockmeter counts in words that all readers
//! share (RDRS, BUSY PERIOD) is left out, and the wait of writers for writers (WW), which would need to
//! know the holder.

use std::fmt::Write;

use relatch_record::layout::Dropped;
use relatch_record::recording::{Class, Figures, Kind, Recording, Site, sum_of};

use crate::units::{cut, duration, percent, time};

/// Columns in front of the name.
const BEFORE_NAME: usize = 79;
/// A name is not cut shorter than this, however narrow the terminal.
const NAME_AT_LEAST: usize = 24;

/// What the rows of the table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Classes with their sites below.
    #[default]
    Class,
    /// Sites alone.
    Site,
    /// Locks alone.
    Lock,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The longest wait in all.
    #[default]
    Wait,
    /// The longest hold in all.
    Hold,
    /// The most acquisitions.
    Count,
}

/// How the table is laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Its rows.
    pub by: By,
    /// Their order.
    pub sort: Sort,
    /// Columns of the terminal that it goes to; `None`: as wide as it needs.
    pub width: Option<usize>,
    /// A table of one interval of many: without the closing lines.
    pub interim: bool,
}

/// The table.
pub fn table(recording: &Recording, layout: Layout) -> String {
    let mut out = String::new();
    title(&mut out, recording);
    let mut blocks = 0;
    for block in BLOCKS {
        let Some(total) = total_of(recording, &block) else { continue };
        blocks += 1;
        out.push('\n');
        let _ = writeln!(out, "{}\n{}", block.title, COLUMNS);
        let line = Line { recording, layout };
        out.push_str(&line.row(&total, "*TOTAL*", "", false));
        for row in rows(recording, &block, layout) {
            let indent = if row.indented { "  " } else { "" };
            out.push_str(&line.row(&row.figures, &row.name, indent, true));
        }
        if let Some(note) = block.note {
            let _ = writeln!(out, "{note}");
        }
    }
    if blocks == 0 {
        out.push_str(if recording.processes.is_empty() {
            "\nno pthread locks seen\n"
        } else {
            "\nnothing was acquired in this time\n"
        });
    }
    if !layout.interim {
        let _ = writeln!(out, "\n{}\n{}", cost_line(recording), unseen_line(recording));
    }
    out
}

const COLUMNS: &str =
    "  UTIL  CON    MEAN(  MAX )   MEAN(  MAX )(% CPU)     TOTAL NOWAIT SPIN RJECT  NAME";

struct Block {
    title: &'static str,
    rwlocks: bool,
    shared: bool,
    note: Option<&'static str>,
}

const BLOCKS: [Block; 3] = [
    Block {
        title: "MUTEXES AND SPINLOCKS HOLD        WAIT",
        rwlocks: false,
        shared: false,
        note: None,
    },
    Block {
        title: "RWLOCK READS      HOLD            WAIT",
        rwlocks: true,
        shared: true,
        note: Some(
            "(RDRS and BUSY PERIOD left out: they would need a counter that all readers share. UTIL is \
             the mean number\n of readers inside, so it may exceed 100%.)",
        ),
    },
    Block {
        title: "RWLOCK WRITES     HOLD            WAIT (ALL)",
        rwlocks: true,
        shared: false,
        note: None,
    },
];

impl Block {
    /// The figures that belong here; a converted mutex that is taken shared counts as a read.
    fn figures<'a>(&self, kind: Kind, exclusive: &'a Figures, shared: &'a Figures) -> &'a Figures {
        const NONE: &Figures = &Figures::NONE;
        match (self.shared, self.rwlocks == (kind == Kind::Rwlock)) {
            (true, _) => shared,
            (false, true) => exclusive,
            (false, false) => NONE,
        }
    }

    fn of_class<'a>(&self, class: &'a Class) -> &'a Figures {
        self.figures(class.kind, &class.exclusive, &class.shared)
    }

    fn of_site<'a>(&self, kind: Kind, site: &'a Site) -> &'a Figures {
        self.figures(kind, &site.exclusive, &site.shared)
    }
}

fn total_of(recording: &Recording, block: &Block) -> Option<Figures> {
    let total = sum_of(recording.classes.iter().map(|class| block.of_class(class)));
    (!total.is_empty()).then_some(total)
}

struct Row {
    name: String,
    figures: Figures,
    indented: bool,
}

fn rows(recording: &Recording, block: &Block, layout: Layout) -> Vec<Row> {
    let row = |name, figures: &Figures| Row { name, figures: figures.clone(), indented: false };
    match layout.by {
        By::Class => {
            let classes: Vec<(&Class, Row)> = recording
                .classes
                .iter()
                .map(|class| (class, row(class.name.clone(), block.of_class(class))))
                .collect();
            let mut all = Vec::new();
            for (class, class_row) in sorted(classes, layout.sort, |(_, row)| row) {
                all.push(class_row);
                let site = |site: &Site| Row {
                    name: site_name(site),
                    figures: block.of_site(class.kind, site).clone(),
                    indented: true,
                };
                let sites = class.sites.iter().map(site).collect();
                all.extend(sorted(sites, layout.sort, |row| row));
            }
            all
        }
        By::Site => {
            let mut sites: Vec<Row> = Vec::new();
            for (class, site) in
                recording.classes.iter().flat_map(|c| c.sites.iter().map(move |s| (c, s)))
            {
                let (name, figures) = (site_name(site), block.of_site(class.kind, site));
                match sites.iter_mut().find(|row| row.name == name) {
                    Some(same) => same.figures.add(figures),
                    None => sites.push(row(name, figures)),
                }
            }
            sorted(sites, layout.sort, |row| row)
        }
        By::Lock => {
            let several = recording.processes.len() > 1;
            let locks = recording.locks.iter().map(|lock| {
                let pid = if several { format!(" of {}", lock.pid) } else { String::new() };
                let name = format!("{} {:#x}{pid}", lock.class, lock.address);
                row(name, block.figures(lock.kind, &lock.exclusive, &lock.shared))
            });
            sorted(locks.collect(), layout.sort, |row| row)
        }
    }
}

/// Without those that counted nothing, by cost, equal ones by name.
fn sorted<T>(mut rows: Vec<T>, sort: Sort, row: impl Fn(&T) -> &Row) -> Vec<T> {
    rows.retain(|entry| !row(entry).figures.is_empty());
    rows.sort_by(|a, b| {
        let (a, b) = (row(a), row(b));
        cost(&b.figures, sort).cmp(&cost(&a.figures, sort)).then_with(|| a.name.cmp(&b.name))
    });
    rows
}

/// What rows are ordered by; where the first is equal (nobody waited) the others decide.
pub(crate) fn cost(figures: &Figures, sort: Sort) -> [u64; 3] {
    let (wait, hold, count) = (figures.wait_ns, figures.hold_ns, figures.total());
    match sort {
        Sort::Wait => [wait, hold, count],
        Sort::Hold => [hold, wait, count],
        Sort::Count => [count, wait, hold],
    }
}

/// `function+0x30 file:line`, the file without its directory.
fn site_name(site: &Site) -> String {
    let mut name = site.name.clone();
    if let Some(file) = &site.file {
        let _ = write!(name, " {}", file.rsplit('/').next().unwrap_or(file));
        if let Some(line) = site.line {
            let _ = write!(name, ":{line}");
        }
    }
    name
}

struct Line<'a> {
    recording: &'a Recording,
    layout: Layout,
}

impl Line<'_> {
    fn row(&self, figures: &Figures, name: &str, indent: &str, with_util: bool) -> String {
        let elapsed = self.recording.environment.elapsed_ns as f64;
        let total = figures.total();
        let of_total = |count: u64| percent(share(count as f64, total as f64));
        let util = if with_util && elapsed > 0.0 && figures.held > 0 {
            percent(figures.hold_ns as f64 / elapsed)
        } else {
            String::new()
        };
        let hold = if figures.held > 0 {
            format!("{:>7}({:>6})", time(figures.hold_mean_ns()), time(figures.hold_max_ns as f64))
        } else {
            " ".repeat(15)
        };
        let wait = if figures.wait_ns > 0 {
            let available = elapsed * f64::from(self.recording.environment.cpus);
            let cpu = if available > 0.0 {
                format!("({:>5})", percent(figures.wait_ns as f64 / available))
            } else {
                " ".repeat(7)
            };
            let (mean, max) = (time(figures.wait_mean_ns()), time(figures.wait_max_ns as f64));
            format!("{mean:>7}({max:>6}){cpu}")
        } else {
            format!("    0us{}", " ".repeat(15))
        };
        let missed = figures.contended.saturating_add(figures.rejected);
        let nowait = total.saturating_sub(missed);
        let name = match self.layout.width {
            Some(width) => {
                let room = width.saturating_sub(BEFORE_NAME).max(NAME_AT_LEAST);
                cut(name, room.saturating_sub(indent.len()))
            }
            None => name.to_owned(),
        };
        format!(
            "{util:>6}{:>6}{hold}{wait}{total:>10}{:>6}{:>6}{:>6}  {indent}{name}\n",
            of_total(missed),
            of_total(nowait),
            of_total(figures.contended),
            of_total(figures.rejected),
        )
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn title(out: &mut String, recording: &Recording) {
    let environment = &recording.environment;
    let threads: u64 = recording.processes.iter().map(|process| u64::from(process.threads)).sum();
    let plural = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mut command = environment.command.join(" ");
    if command.chars().count() > 60 {
        command = command.chars().take(59).chain(['\u{2026}']).collect();
    }
    // A process that is killed need not have noted how long it ran.
    let length = match environment.elapsed_ns {
        0 => "length not known".to_owned(),
        ns => duration(ns as f64),
    };
    let _ = write!(out, "{command}: {length}");
    if environment.cpus > 0 {
        let _ = write!(out, " on {}", plural(environment.cpus.into(), "CPU", "CPUs"));
    }
    let processes = recording.processes.len() as u64;
    let _ = writeln!(
        out,
        ", {}, {} that took locks",
        plural(processes, "process", "processes"),
        plural(threads, "thread", "threads")
    );
}

/// What the observation cost.
pub(crate) fn cost_line(recording: &Recording) -> String {
    let pairs = recording.total().total();
    if pairs == 0 {
        return "observing: no pairs".to_owned();
    }
    let Some(cost) = recording.cost else {
        return format!("observing: {pairs} pairs; what one costs was not measured");
    };
    let ns = cost.pair_ns * pairs as f64;
    let mut line = format!("observing: {pairs} pairs x {:.1} ns = {}", cost.pair_ns, duration(ns));
    if let Some(cpu) = recording.environment.cpu_ns.filter(|&cpu| cpu > 0) {
        let _ = write!(
            line,
            ", {} of the CPU time used ({})",
            percent(ns / cpu as f64),
            duration(cpu as f64)
        );
    }
    line
}

/// What could not be seen.
pub(crate) fn unseen_line(recording: &Recording) -> String {
    let mut parts: Vec<String> = recording.unseen.clone();
    let kept: Vec<String> =
        recording.kept().map(|(reason, locks)| format!("{locks} {}", reason.words())).collect();
    if !kept.is_empty() {
        parts.push(format!("locks left alone: {}", kept.join(", ")));
    }
    for (reason, words) in DROPPED_WORDS {
        let count = recording.dropped(reason);
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    format!("not seen: {}", parts.join("; "))
}

/// What was dropped, in words behind its count.
const DROPPED_WORDS: [(Dropped, &str); 5] = [
    (Dropped::Places, "places without room in the tables, counted as (others)"),
    (Dropped::Rows, "acquisitions without a row, counted as (others)"),
    (Dropped::Histograms, "times missing in p50 and p99"),
    (Dropped::Locks, "acquisitions of locks without a row of their own"),
    (Dropped::Sections, "sections whose end was not seen"),
];

#[cfg(test)]
#[path = "stat_tests.rs"]
mod tests;
