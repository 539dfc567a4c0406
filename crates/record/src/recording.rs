//! A recording as it is read: every name resolved, every time in nanoseconds.

use serde::{Deserialize, Serialize};

pub use crate::figures::{Figures, sum_of};
use crate::layout::{DROPPED, Dropped, KEPT, Kept};

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

impl Class {
    /// Both modes together.
    pub fn figures(&self) -> Figures {
        sum_of([&self.exclusive, &self.shared])
    }
}

impl Recording {
    /// All classes and both modes together.
    pub fn total(&self) -> Figures {
        sum_of([&self.total_exclusive(), &self.total_shared()])
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
