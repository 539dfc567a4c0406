//! What the locks of a program made its threads wait, from the recordings of a run.

use std::collections::BTreeMap;
use std::path::Path;

use relatch_record::file;
use relatch_record::recording::Figures;
use relatch_record::resolve::{CodeName, Names};
use serde::{Deserialize, Serialize};

/// The waits of one mode over all recorded locks of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Acquisitions that had to wait.
    pub count: u64,
    /// 99 % of these waited at most this long, nanoseconds.
    pub p99_ns: u64,
    /// Longest wait, nanoseconds.
    pub max_ns: u64,
}

/// The recordings of one run, of all its processes: in a converted run of the converted locks, in a
/// recorded run of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Acquisitions in shared mode; `None` if none waited.
    pub shared: Option<Side>,
    /// Acquisitions in exclusive mode; `None` if none waited.
    pub exclusive: Option<Side>,
    /// Locks that were converted.
    pub converted: u64,
    /// Locks that stayed as they are in a converted run, by reason.
    pub kept: BTreeMap<String, u64>,
}

/// Reads the live recordings (`*.live`) that the processes of one run left in `dir`.
///
/// `None` when there is none, or none that can be read.
pub fn waits_of(dir: &Path) -> Option<Waits> {
    let (processes, _unreadable) = file::live_in(dir);
    if processes.is_empty() {
        return None;
    }
    let recording = file::of_processes(&processes, &mut NoNames);
    Some(Waits {
        shared: side(&recording.total_shared()),
        exclusive: side(&recording.total_exclusive()),
        converted: recording.converted,
        kept: recording.kept().map(|(why, locks)| (why.words().to_owned(), locks)).collect(),
    })
}

fn side(figures: &Figures) -> Option<Side> {
    (figures.waits() > 0).then(|| Side {
        count: figures.waits(),
        p99_ns: figures.wait_quantile_ns(0.99),
        max_ns: figures.wait_max_ns,
    })
}

/// Sums need no names, which cost a look at every library's symbols.
struct NoNames;

impl Names for NoNames {
    fn code(&mut self, _path: &str, _address: u64) -> Option<CodeName> {
        None
    }

    fn data(&mut self, _path: &str, _address: u64) -> Option<(String, u64)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relatch_record::layout::{KIND_RWLOCK, Kept, ORIGIN_SITE, ROW_PAGE, SHARED};
    use relatch_record::writer::{Writer, add, count_ticks, raise};
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn sums_of_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(waits_of(dir.path()), None);
        let writer = Writer::create(dir.path().as_os_str().as_bytes(), 2, false).unwrap();
        add(&writer.header().converted, 3);
        add(&writer.header().kept[Kept::Recursive as usize], 2);
        writer.add_class(0x1000, u32::MAX, ORIGIN_SITE, KIND_RWLOCK);
        writer.add_site(0x1000, u32::MAX);
        let page = writer.new_page(ROW_PAGE).unwrap();
        let row = writer.row(page, 0);
        row.kind.store(KIND_RWLOCK, Relaxed);
        row.mode.store(SHARED.into(), Relaxed);
        for ticks in 1..=1000 {
            add(&row.acquisitions, 2);
            add(&row.contended, 1);
            add(&row.wait, ticks * 1000);
            raise(&row.wait_max, ticks * 1000);
            count_ticks(&writer, &row.wait_page, ticks * 1000, 1);
        }
        row.class.store(1, Relaxed);
        writer.note_time();

        let waits = waits_of(dir.path()).unwrap();
        assert_eq!((waits.converted, waits.exclusive), (3, None));
        assert_eq!(waits.kept, BTreeMap::from([("recursive".to_owned(), 2)]));
        let shared = waits.shared.unwrap();
        assert_eq!(shared.count, 1000);
        // A tick's length is whatever this machine has; their ratio is known, to a bucket's width.
        let ratio = shared.p99_ns as f64 / shared.max_ns as f64;
        assert!((ratio / 0.99 - 1.0).abs() < 1.0 / 16.0, "{shared:?}");
    }
}
