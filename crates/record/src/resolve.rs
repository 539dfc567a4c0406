//! What the processes of a run wrote, as one recording: names for addresses, nanoseconds for ticks, and
//! all that has one name together.

use std::collections::{BTreeMap, HashMap};

use crate::layout::{
    CLOCK_MONOTONIC, KIND_MUTEX, KIND_RWLOCK, KIND_SPIN, ORIGIN_INIT, ORIGIN_OTHERS, ORIGIN_SITE,
    ORIGIN_STATIC,
};
use crate::raw::{Counts, Place, Raw, RawClass};
use crate::recording::{
    Class, Environment, Figures, Kind, Lock, Mode, Origin, Process, Recording, Site,
};
use crate::times::Times;

/// Gives addresses in a file their names. Addresses are those of the file, not of a process.
pub trait Names {
    /// The code in front of a return address.
    fn code(&mut self, path: &str, address: u64) -> Option<CodeName>;
    /// The data at an address: symbol and offset in it.
    fn data(&mut self, path: &str, address: u64) -> Option<(String, u64)>;
}

/// What code is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// The function.
    pub function: String,
    /// Offset of the address in it.
    pub offset: u64,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}

/// What stands for the places that found no room in the tables.
pub const OTHERS: &str = "(others)";

/// The recording of processes that were observed on one machine. `now` is the moment in ticks and
/// `CLOCK_MONOTONIC` nanoseconds if this is that machine, since the same start.
pub fn recording(processes: &[Raw], now: Option<(u64, u64)>, names: &mut dyn Names) -> Recording {
    let mut recording = Recording::default();
    let mut builder = Builder::default();
    for raw in processes {
        recording.by_lock |= raw.by_lock;
        if raw.mode == 2 {
            recording.mode = Mode::Converted;
        }
        for (sum, more) in recording.dropped.iter_mut().zip(raw.dropped) {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in recording.kept.iter_mut().zip(raw.kept) {
            *sum = sum.saturating_add(more);
        }
        recording.converted = recording.converted.saturating_add(raw.converted);
        recording.processes.push(process_of(raw));
        builder.add(raw, ns_per_tick(processes, raw.clock, now), names);
    }
    recording.processes.sort_by_key(|process| (process.start_epoch_ns, process.pid));
    let mut by_start: Vec<&Raw> = processes.iter().collect();
    by_start.sort_by_key(|raw| (raw.start_ns(), raw.pid));
    if let Some(first) = by_start.first() {
        let end = processes.iter().map(Raw::last_ns).max().unwrap_or(0);
        recording.environment = Environment {
            kernel: kernel_of(&first.kernel),
            cpu: first.cpu.clone(),
            cpus: 0,
            command: first.command.clone(),
            start_epoch_ns: first.start_epoch_ns,
            elapsed_ns: end - first.start_ns(),
            cpu_ns: None,
        };
    }
    builder.finish(&mut recording);
    recording
}

impl Raw {
    fn start_ns(&self) -> u64 {
        self.start.1
    }

    fn last_ns(&self) -> u64 {
        self.last.1.max(self.start.1)
    }
}

/// Name and release out of `/proc/version`, which goes on with who built it.
fn kernel_of(version: &str) -> String {
    version.replacen(" version ", " ", 1).split(" (").next().unwrap_or(version).to_owned()
}

fn process_of(raw: &Raw) -> Process {
    Process {
        pid: raw.pid,
        parent: raw.parent,
        exe: raw.exe.clone(),
        command: raw.command.clone(),
        start_epoch_ns: raw.start_epoch_ns,
        ran_ns: raw.last_ns() - raw.start_ns(),
        ended: raw.ended,
        threads: raw.threads,
    }
}

/// Length of a tick in nanoseconds, from the two moments that lie furthest apart: processes on one
/// machine share the clock, and each noted its start and its last time.
fn ns_per_tick(processes: &[Raw], clock: u32, now: Option<(u64, u64)>) -> f64 {
    if clock == CLOCK_MONOTONIC {
        return 1.0;
    }
    let same = processes.iter().filter(|raw| raw.clock == clock);
    let moments = same.flat_map(|raw| [raw.start, raw.last]).chain(now);
    let moments: Vec<(u64, u64)> = moments.filter(|&(ticks, ns)| ticks > 0 && ns > 0).collect();
    let first = moments.iter().min_by_key(|&&(_, ns)| ns);
    let last = moments.iter().max_by_key(|&&(_, ns)| ns);
    if let (Some(first), Some(last)) = (first, last) {
        let ticks = last.0.saturating_sub(first.0) as f64;
        let ns = (last.1 - first.1) as f64;
        // Between 0.1 and 100 GHz; else the moments are no moments.
        if ns > 0.0 && (0.1..100.0).contains(&(ticks / ns)) {
            return ns / ticks;
        }
    }
    1.0
}

/// Collects classes, sites and locks by name.
#[derive(Default)]
struct Builder {
    classes: BTreeMap<(Kind, String), ClassInWork>,
    locks: BTreeMap<(u32, u64, Kind, String), [Figures; 2]>,
}

struct ClassInWork {
    origin: Origin,
    locks: u64,
    totals: [Figures; 2],
    sites: BTreeMap<String, Site>,
}

impl Builder {
    fn add(&mut self, raw: &Raw, ns_per_tick: f64, names: &mut dyn Names) {
        let class_names: Vec<String> =
            raw.classes.iter().map(|class| class_name(raw, class, names)).collect();
        let mut sites: HashMap<usize, Site> = HashMap::new();
        for (class, name) in raw.classes.iter().zip(&class_names) {
            let totals = class.totals.each_ref().map(|counts| figures_of(counts, ns_per_tick));
            let counted = totals.iter().any(|figures| !figures.is_empty());
            if class.locks == 0 && !counted {
                continue;
            }
            // The first entry has no kind, only its rows have: what had neither class nor row of its own
            // is most likely a mutex.
            let kind = kind_of(class.kind).unwrap_or(Kind::Mutex);
            let entry = self.class(kind, name, class.origin);
            entry.locks = entry.locks.saturating_add(class.locks);
            if counted {
                entry.count(&others(), &totals);
            }
        }
        for (key, counts) in &raw.rows {
            let Some(kind) = kind_of(key.kind) else { continue };
            let mut figures = [Figures::default(), Figures::default()];
            figures[usize::from(key.mode)] = figures_of(counts, ns_per_tick);
            let name = &class_names[key.class];
            if key.lock != 0 {
                let lock = (raw.pid, key.lock, kind, name.clone());
                let sum = self.locks.entry(lock).or_default();
                sum.iter_mut().zip(&figures).for_each(|(sum, more)| sum.add(more));
                continue;
            }
            let site = sites.entry(key.site).or_insert_with(|| site_of(raw, key.site, names));
            self.class(kind, name, raw.classes[key.class].origin).count(site, &figures);
        }
    }

    fn class(&mut self, kind: Kind, name: &str, origin: u32) -> &mut ClassInWork {
        self.classes.entry((kind, name.to_owned())).or_insert_with(|| ClassInWork {
            origin: origin_of(origin),
            locks: 0,
            totals: Default::default(),
            sites: BTreeMap::new(),
        })
    }

    fn finish(self, recording: &mut Recording) {
        for ((kind, name), class) in self.classes {
            let [exclusive, shared] = class.totals;
            if exclusive.is_empty() && shared.is_empty() {
                continue;
            }
            recording.classes.push(Class {
                name,
                kind,
                origin: class.origin,
                locks: class.locks,
                exclusive,
                shared,
                sites: class.sites.into_values().collect(),
            });
        }
        for ((pid, address, kind, class), [exclusive, shared]) in self.locks {
            recording.locks.push(Lock { class, kind, pid, address, exclusive, shared });
        }
    }
}

impl ClassInWork {
    fn count(&mut self, site: &Site, figures: &[Figures; 2]) {
        let entry = self.sites.entry(site.name.clone()).or_insert_with(|| site.clone());
        self.totals.iter_mut().zip(figures).for_each(|(sum, more)| sum.add(more));
        entry.exclusive.add(&figures[0]);
        entry.shared.add(&figures[1]);
    }
}

fn kind_of(kind: u8) -> Option<Kind> {
    match kind {
        KIND_MUTEX => Some(Kind::Mutex),
        KIND_RWLOCK => Some(Kind::Rwlock),
        KIND_SPIN => Some(Kind::Spin),
        _ => None,
    }
}

fn origin_of(origin: u32) -> Origin {
    match origin {
        ORIGIN_INIT => Origin::Init,
        ORIGIN_STATIC => Origin::Static,
        ORIGIN_SITE => Origin::Site,
        _ => Origin::Others,
    }
}

fn class_name(raw: &Raw, class: &RawClass, names: &mut dyn Names) -> String {
    match class.origin {
        ORIGIN_OTHERS => OTHERS.to_owned(),
        ORIGIN_STATIC => {
            let named = in_module(raw, class.place)
                .and_then(|(path, address)| names.data(path, address))
                .map(|(symbol, offset)| format!("{symbol}+{offset:#x}"));
            named.unwrap_or_else(|| unnamed(raw, class.place))
        }
        _ => code_name(raw, class.place, names)
            .map_or_else(|| unnamed(raw, class.place), |name| full_name(&name)),
    }
}

fn site_of(raw: &Raw, index: usize, names: &mut dyn Names) -> Site {
    if index == 0 {
        return others();
    }
    let place = raw.sites[index];
    let name = code_name(raw, place, names);
    let module = in_module(raw, place).map_or("", |(path, _)| path).to_owned();
    let (exclusive, shared) = Default::default();
    match name {
        None => {
            let (name, function) = (unnamed(raw, place), String::new());
            Site { name, function, file: None, line: None, module, exclusive, shared }
        }
        Some(found) => Site {
            name: full_name(&found),
            function: found.function,
            file: found.file,
            line: found.line,
            module,
            exclusive,
            shared,
        },
    }
}

fn others() -> Site {
    Site {
        name: OTHERS.to_owned(),
        function: String::new(),
        file: None,
        line: None,
        module: String::new(),
        exclusive: Figures::default(),
        shared: Figures::default(),
    }
}

fn code_name(raw: &Raw, place: Place, names: &mut dyn Names) -> Option<CodeName> {
    let (path, address) = in_module(raw, place)?;
    names.code(path, address)
}

/// The file and the address in it.
fn in_module(raw: &Raw, place: Place) -> Option<(&str, u64)> {
    let module = raw.modules.get(place.module?)?;
    Some((&module.path, place.address.wrapping_sub(module.base)))
}

fn full_name(name: &CodeName) -> String {
    format!("{}+{:#x}", name.function, name.offset)
}

fn unnamed(raw: &Raw, place: Place) -> String {
    match in_module(raw, place) {
        None => format!("{:#x}", place.address),
        Some((path, address)) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            format!("{}+{address:#x}", if file.is_empty() { "[vdso]" } else { file })
        }
    }
}

fn figures_of(counts: &Counts, ns_per_tick: f64) -> Figures {
    let ns = |ticks: u64| (ticks as f64 * ns_per_tick).round() as u64;
    Figures {
        acquisitions: counts.acquisitions,
        contended: counts.contended,
        rejected: counts.rejected,
        wait_ns: ns(counts.wait),
        wait_max_ns: ns(counts.wait_max),
        held: counts.held,
        hold_ns: ns(counts.hold),
        hold_max_ns: ns(counts.hold_max),
        wait: Times::new(ns_per_tick, &counts.waits),
        hold: Times::new(ns_per_tick, &counts.holds),
    }
}
