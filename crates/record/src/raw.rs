//! What is in a live recording, as one process wrote it: addresses and ticks.

use std::collections::BTreeMap;

use crate::layout::{DROPPED, KEPT};

/// What one process wrote.
#[derive(Clone, Debug)]
pub struct Raw {
    /// 1: observed, 2: converted.
    pub mode: u32,
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Whether it ended by `exit` or by returning from `main`.
    pub ended: bool,
    /// [`CLOCK_TSC`](crate::layout::CLOCK_TSC) or [`CLOCK_MONOTONIC`](crate::layout::CLOCK_MONOTONIC).
    pub clock: u32,
    /// The start in ticks and in nanoseconds of `CLOCK_MONOTONIC`.
    pub start: (u64, u64),
    /// The same when the time was last noted.
    pub last: (u64, u64),
    /// Nanoseconds since 1970 at the start.
    pub start_epoch_ns: u64,
    /// Threads that acquired a lock.
    pub threads: u32,
    /// Whether locks have rows of their own.
    pub by_lock: bool,
    /// Indexed by [`Dropped`](crate::layout::Dropped).
    pub dropped: [u64; DROPPED],
    /// Indexed by [`Kept`](crate::layout::Kept).
    pub kept: [u64; KEPT],
    /// Locks that were converted.
    pub converted: u64,
    /// The executable.
    pub exe: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Operating system and version.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// Files mapped into the process.
    pub modules: Vec<RawModule>,
    /// Places that acquire; the first stands for those that found no room.
    pub sites: Vec<Place>,
    /// Classes; the first stands for those that found no room.
    pub classes: Vec<RawClass>,
    /// What was counted, all threads together, by what it is about.
    pub rows: BTreeMap<Key, Counts>,
}

/// A file mapped into the process.
#[derive(Clone, Debug)]
pub struct RawModule {
    /// What is added to an address in the file to get one in the process.
    pub base: u64,
    /// Its path; empty for the vDSO.
    pub path: String,
}

/// An address, with the module that it lies in.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address in the process.
    pub address: u64,
    /// Index into [`Raw::modules`].
    pub module: Option<usize>,
}

/// An entry of the table of classes.
#[derive(Clone, Debug)]
pub struct RawClass {
    /// Where it comes from.
    pub place: Place,
    /// `ORIGIN_*`.
    pub origin: u32,
    /// `KIND_*`; 0 for the first entry.
    pub kind: u8,
    /// Locks seen of it.
    pub locks: u64,
    /// What has no row, by mode.
    pub totals: [Counts; 2],
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Index into [`Raw::classes`].
    pub class: usize,
    /// Index into [`Raw::sites`].
    pub site: usize,
    /// The lock's address, or 0: all locks of the class.
    pub lock: u64,
    /// [`EXCLUSIVE`](crate::layout::EXCLUSIVE) or [`SHARED`](crate::layout::SHARED).
    pub mode: u8,
    /// `KIND_*`.
    pub kind: u8,
}

/// Counts and times of a row; times in ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Acquisitions, contended ones included.
    pub acquisitions: u64,
    /// Acquisitions that waited.
    pub contended: u64,
    /// Tries that gave up.
    pub rejected: u64,
    /// Ticks waited.
    pub wait: u64,
    /// Longest wait.
    pub wait_max: u64,
    /// Sections that ended.
    pub held: u64,
    /// Ticks held.
    pub hold: u64,
    /// Longest section.
    pub hold_max: u64,
    /// Bucket and count of every wait, buckets ascending.
    pub waits: Vec<(u16, u64)>,
    /// The same of every section.
    pub holds: Vec<(u16, u64)>,
}

impl Counts {
    /// Counts `other` too.
    pub fn add(&mut self, other: &Counts) {
        for (sum, more) in [
            (&mut self.acquisitions, other.acquisitions),
            (&mut self.contended, other.contended),
            (&mut self.rejected, other.rejected),
            (&mut self.wait, other.wait),
            (&mut self.held, other.held),
            (&mut self.hold, other.hold),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.wait_max = self.wait_max.max(other.wait_max);
        self.hold_max = self.hold_max.max(other.hold_max);
        for (sum, more) in [(&mut self.waits, &other.waits), (&mut self.holds, &other.holds)] {
            if sum.is_empty() {
                sum.clone_from(more);
                continue;
            }
            for &(bucket, count) in more {
                match sum.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
                    Ok(at) => sum[at].1 = sum[at].1.saturating_add(count),
                    Err(at) => sum.insert(at, (bucket, count)),
                }
            }
        }
    }
}
