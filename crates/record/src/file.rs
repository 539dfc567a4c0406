//! The finished recording: one file with every name resolved, so that it can be read on another machine.
//!
//! ```text
//! 0   8  magic "relatchR"
//! 8   4  version
//! 12  4  CRC-32 (IEEE) of the content
//! 16  8  length of the content
//! 24     content: the `Recording` as JSON
//! ```
//! Integers are little endian. JSON, so that a recording can be looked into with what is at hand
//! (`tail -c +25 x.relatch | jq`).

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::clock;
use crate::layout::CLOCK_TSC;
use crate::raw::Raw;
use crate::reader::{self, Error, Why};
use crate::recording::{Lock, Recording};
use crate::resolve::{self, Names};

/// First bytes of a finished recording.
pub const MAGIC: [u8; 8] = *b"relatchR";
/// Version of the file and of its content.
pub const VERSION: u32 = 1;
const HEADER: usize = 24;

/// How far the wall clock may have been set between the run and its reading.
const CLOCK_STEP_NS: u64 = 2_000_000_000;

/// Writes the recording: a reader finds the whole of it at `path`, or what was there before.
///
/// # Errors
/// As of the file system.
pub fn save(recording: &Recording, path: &Path) -> std::io::Result<()> {
    let content = serde_json::to_vec(recording)?;
    let mut bytes = Vec::with_capacity(HEADER + content.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(&content).to_le_bytes());
    bytes.extend((content.len() as u64).to_le_bytes());
    bytes.extend(content);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Reads what `stat` can print again: finished recordings, live ones, or directories of live ones. They
/// are merged.
///
/// # Errors
/// [`Error`], one line, for the first that is no recording.
pub fn load(paths: &[PathBuf], names: &mut dyn Names) -> Result<Recording, Error> {
    let mut all = Recording::default();
    for path in paths {
        all.absorb(load_one(path, names)?);
    }
    Ok(all)
}

fn load_one(path: &Path, names: &mut dyn Names) -> Result<Recording, Error> {
    let unreadable = |error| Error::new(path, Why::Unreadable(error));
    if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        let (processes, mut errors) = live_in(path);
        if processes.is_empty() {
            errors.push(Error::new(path, Why::Foreign));
            return Err(errors.swap_remove(0));
        }
        return Ok(of_processes(&processes, names));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Error::new(path, Why::Foreign));
    }
    let mut start = [0; MAGIC.len()];
    match file.read_exact(&mut start) {
        Ok(()) if start == MAGIC => read_finished(file).map_err(|why| Error::new(path, why)),
        Ok(()) if !reader::is_live(&start) && start != [0; 8] => {
            Err(Error::new(path, Why::Foreign))
        }
        // The reader of live ones also finds the words for files that are empty or too short.
        _ => Ok(of_processes(&[reader::open_live(path)?], names)),
    }
}

/// Reads behind the magic.
fn read_finished(mut file: File) -> Result<Recording, Why> {
    let mut header = [0; HEADER - MAGIC.len()];
    file.read_exact(&mut header).map_err(|_| Why::Truncated)?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    if word(0) != VERSION {
        return Err(Why::Version(word(0)));
    }
    let length = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(Why::Unreadable)?;
    if (content.len() as u64) < length {
        return Err(Why::Truncated);
    }
    if content.len() as u64 > length {
        return Err(Why::Corrupt("something follows its end"));
    }
    if crc32fast::hash(&content) != word(4) {
        return Err(Why::Corrupt("its checksum differs"));
    }
    let recording: Recording =
        serde_json::from_slice(&content).map_err(|_| Why::Corrupt("its content is none"))?;
    if !is_sound(&recording) {
        return Err(Why::Corrupt("a histogram that is none"));
    }
    Ok(recording)
}

fn is_sound(recording: &Recording) -> bool {
    let classes = recording.classes.iter().flat_map(|class| {
        let sites = class.sites.iter().flat_map(|site| [&site.exclusive, &site.shared]);
        sites.chain([&class.exclusive, &class.shared])
    });
    let locks =
        recording.locks.iter().flat_map(|Lock { exclusive, shared, .. }| [exclusive, shared]);
    classes.chain(locks).all(|figures| figures.is_sound())
}

/// Every live recording in a directory, and why others could not be read. Those into which nothing was
/// written yet are left out.
pub fn live_in(directory: &Path) -> (Vec<Raw>, Vec<Error>) {
    let (mut processes, mut errors) = (Vec::new(), Vec::new());
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return (processes, vec![Error::new(directory, Why::Unreadable(error))]),
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "live"));
    paths.sort();
    for path in paths {
        match reader::open_live(&path) {
            Ok(raw) => processes.push(raw),
            Err(error) if matches!(error.why(), Why::Empty) => {}
            Err(error) => errors.push(error),
        }
    }
    (processes, errors)
}

/// The recording of the processes of one run.
pub fn of_processes(processes: &[Raw], names: &mut dyn Names) -> Recording {
    let here = processes.first().is_some_and(ran_here);
    let now = here.then(|| clock::pair(CLOCK_TSC)).filter(|_| clock::kind() == CLOCK_TSC);
    let mut recording = resolve::recording(processes, now, names);
    if here {
        let cpus = std::thread::available_parallelism();
        recording.environment.cpus = cpus.map_or(0, |cpus| cpus.get() as u32);
    }
    recording
}

/// Whether the process ran on this machine, since it was started: both clocks then tell the same time
/// between its start and now.
fn ran_here(raw: &Raw) -> bool {
    let wall = clock::epoch_ns().checked_sub(raw.start_epoch_ns);
    let monotonic = clock::monotonic_ns().checked_sub(raw.start.1);
    wall.zip(monotonic).is_some_and(|(wall, ns)| wall.abs_diff(ns) < CLOCK_STEP_NS)
}
