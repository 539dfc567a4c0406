//! Reads a live recording, of a process that ended, was killed or still runs.
//!
//! Nothing in the file is trusted: every count and index is checked against the
//! [`layout`](crate::layout)'s bounds and the file's size. Memory is bounded by the file: a page of
//! counters is taken once, and a row adds at most one entry.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::histogram::BUCKETS;
use crate::layout::*;
use crate::raw::{Counts, Key, Place, Raw, RawClass, RawModule};

/// Why a file is no recording that can be read.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    why: Why,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum Why {
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// It is something else.
    Foreign,
    /// It was written by another version.
    Version(u32),
    /// It ends too early.
    Truncated,
    /// It contradicts itself: what does.
    Corrupt(&'static str),
    /// Nothing was written into it yet.
    Empty,
}

impl Error {
    pub(crate) fn new(path: &Path, why: Why) -> Error {
        Error { path: path.to_path_buf(), why }
    }

    /// What is wrong with the file.
    pub fn why(&self) -> &Why {
        &self.why
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `{:?}` of a path escapes line ends, so this stays one line.
        write!(f, "{:?}: ", self.path)?;
        match &self.why {
            Why::Unreadable(error) => write!(f, "{error}"),
            Why::Foreign => f.write_str("not a recording of relatch"),
            Why::Version(version) => {
                write!(f, "a recording of version {version}, which this relatch does not read")
            }
            Why::Truncated => f.write_str("a truncated recording: its end is missing"),
            Why::Corrupt(what) => write!(f, "a corrupted recording: {what}"),
            Why::Empty => f.write_str("holds no recording yet"),
        }
    }
}

impl std::error::Error for Error {}

/// Reads the live recording at `path`.
///
/// # Errors
/// [`Error`], one line, if it is none, is damaged, or cannot be read.
pub fn open_live(path: &Path) -> Result<Raw, Error> {
    let unreadable = |error| Error::new(path, Why::Unreadable(error));
    let file = File::open(path).map_err(unreadable)?;
    // A pipe or a terminal would be waited for; a directory is no file.
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Error::new(path, Why::Foreign));
    }
    Source { file }.read().map_err(|why| Error::new(path, why))
}

/// Whether a file begins as a live recording does.
pub(crate) fn is_live(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

struct Source {
    file: File,
}

impl Source {
    fn read(&self) -> Result<Raw, Why> {
        let header = self.header()?;
        let pages = header.u32(offset_of!(Header, pages));
        let kinds = self.kinds(pages)?;
        let mut rows = Vec::new();
        for (page, &kind) in kinds.iter().enumerate() {
            if kind == ROW_PAGE {
                let bytes = self.page(page)?;
                rows.extend(bytes.0.chunks_exact(size_of::<Row>()).filter_map(row_of));
            }
        }
        // What the rows refer to was written before them. A running process has more of it by now, so
        // the counts are taken again.
        let header = self.header()?;
        let kinds = self.kinds(header.u32(offset_of!(Header, pages)))?;
        let mut raw = self.tables(&header)?;
        let mut taken = HashSet::new();
        for row in rows {
            let mut counts = row.counts;
            let key = row.key;
            if key.class >= raw.classes.len() || key.site >= raw.sites.len() {
                return Err(Why::Corrupt("a row of a place that does not exist"));
            }
            if key.mode > SHARED || !(KIND_MUTEX..=KIND_SPIN).contains(&key.kind) {
                return Err(Why::Corrupt("a row of an unknown kind"));
            }
            for (number, buckets) in
                [(row.wait_page, &mut counts.waits), (row.hold_page, &mut counts.holds)]
            {
                let Some(page) = (number as usize).checked_sub(1) else { continue };
                if kinds.get(page) != Some(&HISTOGRAM_PAGE) || !taken.insert(page) {
                    return Err(Why::Corrupt("a histogram that is none"));
                }
                *buckets = buckets_of(&self.page(page)?);
            }
            raw.rows.entry(key).or_default().add(&counts);
        }
        Ok(raw)
    }

    fn header(&self) -> Result<Bytes, Why> {
        let header = self.bytes(0, size_of::<Header>())?;
        if header.0.iter().all(|&byte| byte == 0) {
            return Err(Why::Empty);
        }
        if !is_live(&header.0) {
            return Err(Why::Foreign);
        }
        let version = header.u32(offset_of!(Header, version));
        if version != VERSION {
            return Err(Why::Version(version));
        }
        for (at, room, what) in [
            (offset_of!(Header, modules), MODULES, "more modules than there is room for"),
            (offset_of!(Header, sites), SITES, "more sites than there is room for"),
            (offset_of!(Header, classes), CLASSES, "more classes than there is room for"),
            (offset_of!(Header, pages), PAGES, "more pages than there is room for"),
        ] {
            if header.u32(at) as usize > room {
                return Err(Why::Corrupt(what));
            }
        }
        if !(1..=2).contains(&header.u32(offset_of!(Header, mode))) {
            return Err(Why::Corrupt("an unknown mode"));
        }
        if !(CLOCK_TSC..=CLOCK_MONOTONIC).contains(&header.u32(offset_of!(Header, clock))) {
            return Err(Why::Corrupt("an unknown clock"));
        }
        if header.u32(offset_of!(Header, state)) > EXITED {
            return Err(Why::Corrupt("an unknown state"));
        }
        // The writer gives the file its whole length before all else: a shorter one was cut.
        if self.file.metadata().map_err(Why::Unreadable)?.len() < RESERVE as u64 {
            return Err(Why::Truncated);
        }
        Ok(header)
    }

    fn kinds(&self, pages: u32) -> Result<Vec<u8>, Why> {
        let kinds = self.bytes(KINDS_AT, pages as usize)?.0;
        if kinds.iter().any(|&kind| kind > HISTOGRAM_PAGE) {
            return Err(Why::Corrupt("a page of an unknown kind"));
        }
        // The last page must be there even if it is not in use.
        if let Some(last) = pages.checked_sub(1) {
            self.page(last as usize)?;
        }
        Ok(kinds)
    }

    fn tables(&self, header: &Bytes) -> Result<Raw, Why> {
        let counts = |at| header.u32(at) as usize;
        let modules = counts(offset_of!(Header, modules));
        let moments = |ticks, ns| (header.u64(ticks), header.u64(ns));
        // One more site and class than counted at least: entry 0 needs no writing.
        let sites = counts(offset_of!(Header, sites)).max(1);
        let classes = counts(offset_of!(Header, classes)).max(1);
        let place = |entry: &Bytes, address, module| Place {
            address: entry.u64(address),
            module: Some(entry.u32(module) as usize).filter(|&index| index < modules),
        };
        let modules_bytes = self.bytes(MODULES_AT, modules * size_of::<Module>())?;
        let sites_bytes = self.bytes(SITES_AT, sites * size_of::<Site>())?;
        let classes_bytes = self.bytes(CLASSES_AT, classes * size_of::<Class>())?;
        let classes = classes_bytes.entries::<Class>().enumerate().map(|(index, entry)| {
            let kind = entry.0[offset_of!(Class, kind)];
            let origin = entry.u32(offset_of!(Class, origin));
            if index > 0 && !(KIND_MUTEX..=KIND_SPIN).contains(&kind) || origin > ORIGIN_SITE {
                return Err(Why::Corrupt("a class of an unknown kind"));
            }
            let totals = entry.slice(offset_of!(Class, totals), 2 * size_of::<Totals>());
            let mut totals = totals.entries::<Totals>().map(|totals| totals_of(&totals));
            Ok(RawClass {
                place: place(&entry, offset_of!(Class, address), offset_of!(Class, module)),
                origin,
                kind,
                locks: entry.u64(offset_of!(Class, locks)),
                totals: [totals.next().unwrap_or_default(), totals.next().unwrap_or_default()],
            })
        });
        let text = |at, len| header.slice(at, len).text();
        Ok(Raw {
            mode: header.u32(offset_of!(Header, mode)),
            pid: header.u32(offset_of!(Header, pid)),
            parent: header.u32(offset_of!(Header, parent)),
            ended: header.u32(offset_of!(Header, state)) == EXITED,
            clock: header.u32(offset_of!(Header, clock)),
            start: moments(offset_of!(Header, start_ticks), offset_of!(Header, start_ns)),
            last: moments(offset_of!(Header, last_ticks), offset_of!(Header, last_ns)),
            start_epoch_ns: header.u64(offset_of!(Header, start_epoch_ns)),
            threads: header.u32(offset_of!(Header, threads)),
            by_lock: header.u32(offset_of!(Header, by_lock)) != 0,
            dropped: header.u64s(offset_of!(Header, dropped)),
            kept: header.u64s(offset_of!(Header, kept)),
            converted: header.u64(offset_of!(Header, converted)),
            exe: text(offset_of!(Header, exe), 512),
            command: arguments(&header.slice(offset_of!(Header, command), 1024).0),
            kernel: text(offset_of!(Header, kernel), 192),
            cpu: text(offset_of!(Header, cpu), 64),
            modules: modules_bytes
                .entries::<Module>()
                .map(|entry| RawModule {
                    base: entry.u64(offset_of!(Module, base)),
                    path: entry.slice(offset_of!(Module, path), 232).text(),
                })
                .collect(),
            sites: sites_bytes
                .entries::<Site>()
                .map(|entry| place(&entry, offset_of!(Site, address), offset_of!(Site, module)))
                .collect(),
            classes: classes.collect::<Result<_, _>>()?,
            rows: BTreeMap::new(),
        })
    }

    fn page(&self, page: usize) -> Result<Bytes, Why> {
        self.bytes(PAGES_AT + page * PAGE, PAGE)
    }

    fn bytes(&self, at: usize, len: usize) -> Result<Bytes, Why> {
        let mut bytes = vec![0; len];
        match self.file.read_exact_at(&mut bytes, at as u64) {
            Ok(()) => Ok(Bytes(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                // Too short even for the first bytes that would tell what it is.
                let mut start = [0; MAGIC.len()];
                match self.file.read_exact_at(&mut start, 0) {
                    Ok(()) if is_live(&start) => Err(Why::Truncated),
                    _ if self.file.metadata().is_ok_and(|meta| meta.len() == 0) => Err(Why::Empty),
                    _ => Err(Why::Foreign),
                }
            }
            Err(error) => Err(Why::Unreadable(error)),
        }
    }
}

/// Bytes of the file; what the offsets are is known from the layout, so they lie within.
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn u64s<const N: usize>(&self, at: usize) -> [u64; N] {
        std::array::from_fn(|i| self.u64(at + 8 * i))
    }

    fn slice(&self, at: usize, len: usize) -> Bytes {
        Bytes(self.0[at..at + len].to_vec())
    }

    fn entries<T>(&self) -> impl Iterator<Item = Bytes> {
        self.0.chunks_exact(size_of::<T>()).map(|entry| Bytes(entry.to_vec()))
    }

    /// Up to the first zero. Control characters have no place in a name, and would reach a terminal.
    fn text(&self) -> String {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        printable(&self.0[..len])
    }
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::is_control, " ").trim().to_owned()
}

/// Arguments are ended by a zero byte each, and followed by zeros.
fn arguments(bytes: &[u8]) -> Vec<String> {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if len == 0 {
        return Vec::new();
    }
    bytes[..len].split(|&byte| byte == 0).map(printable).collect()
}

struct RawRow {
    key: Key,
    wait_page: u32,
    hold_page: u32,
    counts: Counts,
}

/// The row, unless it is not in use or has counted nothing.
fn row_of(bytes: &[u8]) -> Option<RawRow> {
    let row = Bytes(bytes.to_vec());
    let class = row.u32(offset_of!(Row, class)).checked_sub(1)?;
    let count = |at| row.u64(at);
    let acquisitions = count(offset_of!(Row, acquisitions));
    let counts = Counts {
        acquisitions,
        // A running process may have counted one but not yet the other.
        contended: count(offset_of!(Row, contended)).min(acquisitions),
        rejected: count(offset_of!(Row, rejected)),
        wait: count(offset_of!(Row, wait)),
        wait_max: count(offset_of!(Row, wait_max)),
        held: count(offset_of!(Row, held)),
        hold: count(offset_of!(Row, hold)),
        hold_max: count(offset_of!(Row, hold_max)),
        ..Counts::default()
    };
    let key = Key {
        class: class as usize,
        site: row.u32(offset_of!(Row, site)) as usize,
        lock: row.u64(offset_of!(Row, lock)),
        mode: u8::try_from(row.u32(offset_of!(Row, mode))).unwrap_or(u8::MAX),
        kind: bytes[offset_of!(Row, kind)],
    };
    let unused = counts == Counts::default();
    (!unused).then(|| RawRow {
        key,
        wait_page: row.u32(offset_of!(Row, wait_page)),
        hold_page: row.u32(offset_of!(Row, hold_page)),
        counts,
    })
}

fn totals_of(totals: &Bytes) -> Counts {
    let acquisitions = totals.u64(offset_of!(Totals, acquisitions));
    let hold = totals.u64(offset_of!(Totals, hold));
    Counts {
        acquisitions,
        contended: totals.u64(offset_of!(Totals, contended)).min(acquisitions),
        rejected: totals.u64(offset_of!(Totals, rejected)),
        wait: totals.u64(offset_of!(Totals, wait)),
        // Not counted there: every acquisition has a section, but for the last ones of a killed run.
        held: if hold > 0 { acquisitions } else { 0 },
        hold,
        ..Counts::default()
    }
}

fn buckets_of(page: &Bytes) -> Vec<(u16, u64)> {
    // A count taken back before its addition was seen wraps.
    let counted = |&(_, count): &(u16, u64)| count > 0 && count < 1 << 63;
    (0..BUCKETS).map(|bucket| (bucket as u16, page.u64(bucket * 8))).filter(counted).collect()
}
