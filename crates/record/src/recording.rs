//! A recording as it is read: every name resolved, every time in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::layout::{DROPPED, Dropped, KEPT, Kept};
use crate::times::Times;

/// What an observed run left behind, of all its processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// What was run, where and when.
    pub environment: Environment,
    /// Whether sections were recorded, or the waits of converted locks alone.
    pub mode: Mode,
    /// Whether [`locks`](Self::locks) were kept.
    pub by_lock: bool,
    /// The processes that wrote it, by start.
    pub processes: Vec<Process>,
    /// What was left out, indexed by [`Dropped`].
    pub dropped: [u64; DROPPED],
    /// Locks that stayed glibc's in a converted run, indexed by [`Kept`].
    pub kept: [u64; KEPT],
    /// Locks that were converted.
    pub converted: u64,
    /// Every class that has figures.
    pub classes: Vec<Class>,
    /// Every lock that has figures of its own.
    pub locks: Vec<Lock>,
    /// What observing cost, where it was measured.
    pub cost: Option<Cost>,
    /// What could not be seen, one sentence each.
    pub unseen: Vec<String>,
}

/// What was run, where and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Operating system and version.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// How many of them could be used; 0 where that is not known.
    pub cpus: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Nanoseconds since 1970 at the start.
    pub start_epoch_ns: u64,
    /// How long was observed, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time that the observed processes used in this time, in nanoseconds, where it is known.
    pub cpu_ns: Option<u64>,
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Sections with their sites.
    #[default]
    Observed,
    /// The waits of converted locks.
    Converted,
}

/// One process of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// The executable.
    pub exe: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Nanoseconds since 1970 at its start.
    pub start_epoch_ns: u64,
    /// From its start to the last time that it noted, in nanoseconds.
    pub ran_ns: u64,
    /// Whether it ended by itself; else it was killed, called `_exit` or exec, or still runs.
    pub ended: bool,
    /// Threads that acquired a lock.
    pub threads: u32,
}

/// What observing cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What it adds to an uncontended acquire and release, in nanoseconds, measured on this machine.
    pub pair_ns: f64,
}

/// Kinds of lock, as the program declared them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `pthread_mutex_t`.
    Mutex,
    /// `pthread_rwlock_t`.
    Rwlock,
    /// `pthread_spinlock_t`.
    Spin,
}

impl Kind {
    /// The word for it in plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::Rwlock => "rwlock",
            Kind::Spin => "spin",
        }
    }
}

/// Where a class comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// What found no room in the table of classes.
    Others,
    /// The place of the init call.
    Init,
    /// The symbol of a static lock.
    Static,
    /// The first acquiring site.
    Site,
}

/// The locks of one origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// `function+0x30` of the init call or of the first site, or `symbol+0x0` of a static lock.
    pub name: String,
    /// What its locks are.
    pub kind: Kind,
    /// What the name names.
    pub origin: Origin,
    /// How many locks were seen of it.
    pub locks: u64,
    /// All exclusive acquisitions.
    pub exclusive: Figures,
    /// All shared acquisitions.
    pub shared: Figures,
    /// Where they were made.
    pub sites: Vec<Site>,
}

/// A place that acquires locks of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// `function+0x30`.
    pub name: String,
    /// The function alone; empty where the name is not known.
    pub function: String,
    /// Source file, where it is known.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// The file that the code was mapped from; empty where it is not known.
    pub module: String,
    /// Its exclusive acquisitions.
    pub exclusive: Figures,
    /// Its shared acquisitions.
    pub shared: Figures,
}

/// One lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// Name of its class.
    pub class: String,
    /// What it is.
    pub kind: Kind,
    /// The process that it is in.
    pub pid: u32,
    /// Where it is there.
    pub address: u64,
    /// Its exclusive acquisitions.
    pub exclusive: Figures,
    /// Its shared acquisitions.
    pub shared: Figures,
}

/// What was counted and timed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Acquisitions, contended ones included.
    pub acquisitions: u64,
    /// Acquisitions that found the lock taken and waited.
    pub contended: u64,
    /// Tries that gave up.
    pub rejected: u64,
    /// Nanoseconds waited.
    pub wait_ns: u64,
    /// Longest wait in nanoseconds.
    pub wait_max_ns: u64,
    /// Sections that ended.
    pub held: u64,
    /// Nanoseconds held.
    pub hold_ns: u64,
    /// Longest section in nanoseconds.
    pub hold_max_ns: u64,
    /// Every wait.
    pub wait: Times,
    /// Every section.
    pub hold: Times,
}

impl Figures {
    /// Nothing counted.
    pub const NONE: Figures = Figures {
        acquisitions: 0,
        contended: 0,
        rejected: 0,
        wait_ns: 0,
        wait_max_ns: 0,
        held: 0,
        hold_ns: 0,
        hold_max_ns: 0,
        wait: Times::NONE,
        hold: Times::NONE,
    };

    /// Acquisitions and the tries that gave up.
    pub fn total(&self) -> u64 {
        self.acquisitions.saturating_add(self.rejected)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.total() == 0 && self.wait_ns == 0 && self.held == 0
    }

    /// How many waits were timed: those of timed tries that gave up are among them.
    pub fn waits(&self) -> u64 {
        self.contended.max(self.wait.count())
    }

    /// Mean wait of those that waited, in nanoseconds.
    pub fn wait_mean_ns(&self) -> f64 {
        ratio(self.wait_ns, self.waits())
    }

    /// Mean length of a section in nanoseconds.
    pub fn hold_mean_ns(&self) -> f64 {
        ratio(self.hold_ns, self.held)
    }

    /// The wait that the share `q` of the waits stays below, in nanoseconds; 0 without any.
    pub fn wait_quantile_ns(&self, q: f64) -> u64 {
        quantile(&self.wait, q, self.wait_max_ns)
    }

    /// The wait that the share `q` of all acquisitions stays below, in nanoseconds: those that found the
    /// lock free waited 0.
    pub fn wait_quantile_of_all_ns(&self, q: f64) -> u64 {
        let waits = self.waits() as f64;
        let all = waits.max(self.acquisitions as f64);
        let rank = q * all - (all - waits);
        if rank <= 0.0 { 0 } else { self.wait_quantile_ns(rank / waits) }
    }

    /// The length that the share `q` of the sections stays below, in nanoseconds; 0 without any.
    pub fn hold_quantile_ns(&self, q: f64) -> u64 {
        quantile(&self.hold, q, self.hold_max_ns)
    }

    /// Counts `other` too.
    pub fn add(&mut self, other: &Figures) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.acquisitions, other.acquisitions);
        sum(&mut self.contended, other.contended);
        sum(&mut self.rejected, other.rejected);
        sum(&mut self.wait_ns, other.wait_ns);
        self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
        sum(&mut self.held, other.held);
        sum(&mut self.hold_ns, other.hold_ns);
        self.hold_max_ns = self.hold_max_ns.max(other.hold_max_ns);
        self.wait.add(&other.wait);
        self.hold.add(&other.hold);
    }

    /// What was counted since `earlier`, which are the same figures as they were before. A maximum that
    /// did not rise since is the end of the highest bucket that counted: at most 1/16 too long.
    pub fn since(&self, earlier: &Figures) -> Figures {
        let wait = self.wait.since(&earlier.wait);
        let hold = self.hold.since(&earlier.hold);
        let wait_ns = self.wait_ns.saturating_sub(earlier.wait_ns);
        let hold_ns = self.hold_ns.saturating_sub(earlier.hold_ns);
        Figures {
            acquisitions: self.acquisitions.saturating_sub(earlier.acquisitions),
            contended: self.contended.saturating_sub(earlier.contended),
            rejected: self.rejected.saturating_sub(earlier.rejected),
            wait_max_ns: maximum_since(self.wait_max_ns, earlier.wait_max_ns, wait_ns, &wait),
            wait_ns,
            held: self.held.saturating_sub(earlier.held),
            hold_max_ns: maximum_since(self.hold_max_ns, earlier.hold_max_ns, hold_ns, &hold),
            hold_ns,
            wait,
            hold,
        }
    }

    /// Whether the histograms can be calculated with.
    pub(crate) fn is_sound(&self) -> bool {
        self.wait.is_sound() && self.hold.is_sound()
    }
}

fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

fn quantile(times: &Times, q: f64, max_ns: u64) -> u64 {
    times.quantile_ns(q).map_or(0, |ns| (ns.round() as u64).min(max_ns))
}

fn maximum_since(now: u64, before: u64, sum: u64, times: &Times) -> u64 {
    if now > before {
        return now;
    }
    // Without a histogram (they had run out) the sum bounds it too.
    times.bound_ns().map_or(sum, |bound| bound as u64).min(now).min(sum)
}

impl Class {
    /// Both modes together.
    pub fn figures(&self) -> Figures {
        both(&self.exclusive, &self.shared)
    }
}

impl Recording {
    /// All classes and both modes together.
    pub fn total(&self) -> Figures {
        let mut total = both(&self.total_exclusive(), &Figures::default());
        total.add(&self.total_shared());
        total
    }

    /// Every exclusive acquisition.
    pub fn total_exclusive(&self) -> Figures {
        sum_of(self.classes.iter().map(|class| &class.exclusive))
    }

    /// Every shared acquisition.
    pub fn total_shared(&self) -> Figures {
        sum_of(self.classes.iter().map(|class| &class.shared))
    }

    /// What was left out for `reason`.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize]
    }

    /// Locks that stayed glibc's, by reason, where there were any.
    pub fn kept(&self) -> impl Iterator<Item = (Kept, u64)> {
        Kept::ALL.into_iter().zip(self.kept).filter(|&(_, locks)| locks > 0)
    }
}

/// The sum of figures.
pub fn sum_of<'a>(all: impl IntoIterator<Item = &'a Figures>) -> Figures {
    let mut sum = Figures::default();
    for figures in all {
        sum.add(figures);
    }
    sum
}

fn both(exclusive: &Figures, shared: &Figures) -> Figures {
    sum_of([exclusive, shared])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_own_maximum() {
        let times = |counts: &[(u16, u64)]| Times::new(1.0, counts);
        // Bucket 15 is 15 ns, bucket 100 is 640 to 671 ns.
        let before = Figures {
            hold_ns: 671,
            hold_max_ns: 671,
            held: 1,
            hold: times(&[(100, 1)]),
            ..Figures::default()
        };
        let mut after = before.clone();
        after.add(&Figures {
            hold_ns: 30,
            hold_max_ns: 15,
            held: 2,
            hold: times(&[(15, 2)]),
            ..Figures::default()
        });
        let window = after.since(&before);
        assert_eq!((window.held, window.hold_ns, window.hold_max_ns), (2, 30, 16));
        assert_eq!(window.hold_quantile_ns(1.0), 16);
        assert!(before.since(&before).is_empty());
    }

    #[test]
    fn acquisitions_that_found_it_free_waited_nothing() {
        let figures = Figures {
            acquisitions: 100,
            contended: 10,
            wait_max_ns: 700,
            // 640 to 672 ns.
            wait: Times::new(1.0, &[(100, 10)]),
            ..Figures::default()
        };
        assert_eq!(figures.wait_quantile_of_all_ns(0.9), 0);
        assert_eq!(figures.wait_quantile_of_all_ns(0.95), 656);
        assert_eq!(figures.wait_quantile_ns(0.5), 656);
    }

    #[test]
    fn means_without_counts_are_zero() {
        let none = Figures::default();
        assert_eq!((none.wait_mean_ns(), none.hold_mean_ns()), (0.0, 0.0));
        assert_eq!((none.wait_quantile_ns(0.5), none.hold_quantile_ns(0.99)), (0, 0));
    }
}
