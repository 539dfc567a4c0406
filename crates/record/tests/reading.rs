//! A live recording as the writer makes it, read again; and what becomes of damaged ones.

use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use rand::{Rng, RngExt, SeedableRng};
use relatch_record::file;
use relatch_record::layout::*;
use relatch_record::reader::{self, Why};
use relatch_record::recording::{Kind, Mode, Origin, Recording};
use relatch_record::resolve::{CodeName, Names};
use relatch_record::writer::{Writer, count_ticks};

const BASE: u64 = 0x7f00_0000_0000;

/// Calls code by its address and knows one static lock; the file `stripped.so` has no names.
struct TestNames;

impl Names for TestNames {
    fn code(&mut self, path: &str, address: u64) -> Option<CodeName> {
        (path != "/lib/stripped.so").then(|| CodeName {
            function: format!("f{}", address >> 12),
            offset: address & 0xfff,
            file: Some("f.cc".into()),
            line: Some(7),
        })
    }

    fn data(&mut self, _path: &str, address: u64) -> Option<(String, u64)> {
        (address >= 0x9000).then(|| ("the_lock".into(), address - 0x9000))
    }
}

/// What a row of the sample counts.
#[derive(Clone, Copy)]
struct Sample {
    class: u32,
    site: u32,
    lock: u64,
    mode: u8,
    kind: u8,
    acquisitions: u64,
    waits: &'static [u64],
    holds: &'static [u64],
}

const PLAIN: Sample = Sample {
    class: 1,
    site: 1,
    lock: 0,
    mode: EXCLUSIVE,
    kind: KIND_MUTEX,
    acquisitions: 3,
    waits: &[500],
    holds: &[100, 100, 4000],
};

fn write_rows(writer: &Writer, rows: &[Sample]) {
    let page = writer.new_page(ROW_PAGE).unwrap();
    for (at, sample) in rows.iter().enumerate() {
        let row = writer.row(page, at);
        row.site.store(sample.site, Relaxed);
        row.lock.store(sample.lock, Relaxed);
        row.mode.store(sample.mode.into(), Relaxed);
        row.kind.store(sample.kind, Relaxed);
        row.acquisitions.store(sample.acquisitions, Relaxed);
        row.contended.store(sample.waits.len() as u64, Relaxed);
        row.rejected.store(2, Relaxed);
        for &ticks in sample.waits {
            count_ticks(writer, &row.wait_page, ticks, 1);
        }
        row.wait.store(sample.waits.iter().sum(), Relaxed);
        row.wait_max.store(sample.waits.iter().copied().max().unwrap_or(0), Relaxed);
        row.held.store(sample.holds.len() as u64, Relaxed);
        for &ticks in sample.holds {
            count_ticks(writer, &row.hold_page, ticks, 1);
        }
        row.hold.store(sample.holds.iter().sum(), Relaxed);
        row.hold_max.store(sample.holds.iter().copied().max().unwrap_or(0), Relaxed);
        row.class.store(sample.class + 1, Relaxed);
    }
}

/// A recording with two modules, two classes and a few rows of two threads. The clock is in nanoseconds,
/// so that figures come out as written.
fn sample(directory: &Path) -> PathBuf {
    let before: Vec<PathBuf> = files(directory);
    let writer = Writer::create(directory.as_os_str().as_bytes(), 1, false).unwrap();
    writer.add_module(BASE, BASE, BASE + 0x10000, b"/bin/program").unwrap();
    writer.add_module(BASE * 2, BASE * 2, BASE * 2 + 0x10000, b"/lib/stripped.so").unwrap();
    assert_eq!(writer.add_site(BASE + 0x1030, 0), 1);
    assert_eq!(writer.add_site(BASE * 2 + 0x44, 1), 2);
    assert_eq!(writer.add_class(BASE + 0x9008, 0, ORIGIN_STATIC, KIND_MUTEX), 1);
    assert_eq!(writer.add_class(BASE + 0x2010, 0, ORIGIN_INIT, KIND_RWLOCK), 2);
    writer.class(1).locks.store(1, Relaxed);
    writer.class(2).locks.store(5, Relaxed);
    writer.class(2).totals[1].acquisitions.store(10, Relaxed);
    writer.class(2).totals[1].hold.store(1000, Relaxed);
    let reader = Sample { class: 2, site: 2, mode: SHARED, kind: KIND_RWLOCK, ..PLAIN };
    let writer_row = Sample { waits: &[], mode: EXCLUSIVE, ..reader };
    write_rows(&writer, &[PLAIN, reader, writer_row]);
    // A second thread at the first site, and a row that counted nothing.
    write_rows(&writer, &[Sample { waits: &[9000], ..PLAIN }]);
    let path = files(directory).into_iter().find(|path| !before.contains(path)).unwrap();
    let raw = OpenOptions::new().write(true).open(&path).unwrap();
    let at = std::mem::offset_of!(Header, clock) as u64;
    raw.write_all_at(&CLOCK_MONOTONIC.to_le_bytes(), at).unwrap();
    writer.note_time();
    path
}

fn files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn load(path: &Path) -> Result<Recording, String> {
    file::load(&[path.to_path_buf()], &mut TestNames).map_err(|error| error.to_string())
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let recording = load(&sample(directory.path())).unwrap();
    assert_eq!(recording.mode, Mode::Observed);
    assert_eq!(recording.processes[0].pid, std::process::id());
    let kernel = &recording.environment.kernel;
    assert!(kernel.starts_with("Linux ") && !kernel.contains(['(', '#']), "{kernel}");
    assert!(recording.environment.cpus > 0 && recording.environment.elapsed_ns > 0);
    let [mutex, rwlock] = &recording.classes[..] else { panic!("two classes") };

    assert_eq!((mutex.name.as_str(), mutex.kind), ("the_lock+0x8", Kind::Mutex));
    assert_eq!((mutex.origin, mutex.locks), (Origin::Static, 1));
    let figures = &mutex.exclusive;
    assert_eq!((figures.acquisitions, figures.contended, figures.rejected), (6, 2, 4));
    assert_eq!((figures.wait_ns, figures.wait_max_ns), (9500, 9000));
    assert_eq!((figures.held, figures.hold_ns, figures.hold_max_ns), (6, 8400, 4000));
    assert_eq!((figures.wait.count(), figures.hold.count()), (2, 6));
    assert!(figures.hold_quantile_ns(0.5).abs_diff(100) <= 6);
    assert_eq!(figures.hold_quantile_ns(1.0), 4000);
    let [site] = &mutex.sites[..] else { panic!("one site") };
    assert_eq!((site.name.as_str(), site.function.as_str()), ("f1+0x30", "f1"));
    assert_eq!((site.file.as_deref(), site.line), (Some("f.cc"), Some(7)));
    assert_eq!(site.module, "/bin/program");
    assert_eq!(&site.exclusive, figures);

    assert_eq!((rwlock.name.as_str(), rwlock.origin), ("f2+0x10", Origin::Init));
    assert_eq!((rwlock.exclusive.acquisitions, rwlock.shared.acquisitions), (3, 13));
    let names: Vec<&str> = rwlock.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["(others)", "stripped.so+0x44"]);
    assert_eq!(rwlock.sites[0].shared.hold_ns, 1000);
    assert_eq!(recording.total().acquisitions, 22);
}

#[test]
fn processes_of_a_directory_are_merged_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let first = sample(directory.path());
    sample(directory.path());
    let both = load(directory.path()).unwrap();
    let one = load(&first).unwrap();
    assert_eq!(both.processes.len(), 2);
    assert_eq!(both.classes.len(), one.classes.len());
    for (both, one) in both.classes.iter().zip(&one.classes) {
        assert_eq!(both.sites.len(), one.sites.len());
        assert_eq!(both.exclusive.acquisitions, 2 * one.exclusive.acquisitions);
        assert_eq!(both.exclusive.hold.count(), 2 * one.exclusive.hold.count());
        assert_eq!(both.shared.hold_ns, 2 * one.shared.hold_ns);
    }
    // What happened between reading one and reading both is the other.
    let window = both.since(&one);
    assert_eq!(window.total().acquisitions, one.total().acquisitions);
    assert!(both.since(&both).classes.is_empty());
}

#[test]
fn finished_recordings_come_back_whole_and_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let recording = load(&sample(directory.path())).unwrap();
    let path = directory.path().join("a.relatch");
    file::save(&recording, &path).unwrap();
    assert_eq!(load(&path).unwrap(), recording);
    let twice = file::load(&[path.clone(), path], &mut TestNames).unwrap();
    assert_eq!(twice.total().acquisitions, 2 * recording.total().acquisitions);
    assert_eq!(twice.classes.len(), recording.classes.len());
    // Both cover the same time.
    assert_eq!(twice.environment.elapsed_ns, recording.environment.elapsed_ns);
}

#[test]
fn rows_of_locks_are_no_sites() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path());
    let writer = Writer::create(directory.path().as_os_str().as_bytes(), 1, true).unwrap();
    writer.add_module(BASE, BASE, BASE + 0x10000, b"/bin/program").unwrap();
    writer.add_site(BASE + 0x1030, 0);
    writer.add_class(BASE + 0x9008, 0, ORIGIN_STATIC, KIND_MUTEX);
    write_rows(&writer, &[PLAIN, Sample { lock: 0x1234, ..PLAIN }]);
    let by_lock = files(directory.path()).into_iter().find(|file| *file != path).unwrap();
    let recording = load(&by_lock).unwrap();
    assert!(recording.by_lock);
    assert_eq!(recording.total().acquisitions, 3);
    let [lock] = &recording.locks[..] else { panic!("one lock") };
    assert_eq!((lock.class.as_str(), lock.address), ("the_lock+0x8", 0x1234));
    assert_eq!(lock.exclusive.acquisitions, 3);
}

/// The errors that damage may be told as.
fn is_clear(error: &str) -> bool {
    !error.contains('\n')
        && ["not a recording", "truncated", "corrupted", "of version", "no recording yet"]
            .iter()
            .any(|words| error.contains(words))
}

#[test]
fn foreign_files_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for (content, words) in [
        (&b""[..], "no recording yet"),
        (b"hello", "not a recording"),
        (b"\x7fELF and so on and on and on", "not a recording"),
        (&[0; 5000], "no recording yet"),
        (b"relatchL", "truncated"),
        (b"relatchR", "truncated"),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = load(&path).unwrap_err();
        assert!(error.contains(words) && is_clear(&error), "{words}: {error}");
    }
    assert!(load(Path::new("/dev/null")).is_err());
    assert!(load(Path::new("/nonexistent")).unwrap_err().contains("No such file"));
    assert!(load(&directory.path().join("empty")).is_err());
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    assert!(load(&directory.path().join("empty")).unwrap_err().contains("not a recording"));
}

#[test]
fn every_truncation_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let live = sample(directory.path());
    let finished = directory.path().join("a.relatch");
    file::save(&load(&live).unwrap(), &finished).unwrap();
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    for path in [&live, &finished] {
        let whole = std::fs::read(path).unwrap();
        let cut = directory.path().join("cut");
        // Behind what was written a live recording is a hole, as good as cut anywhere.
        let written = whole.iter().rposition(|&byte| byte != 0).unwrap_or(0) + 1;
        let random = (0..300).map(|_| rng.random_range(0..written));
        for len in (0..64).chain(random.collect::<Vec<_>>()).chain([whole.len() - 1]) {
            std::fs::write(&cut, &whole[..len]).unwrap();
            let error = load(&cut).expect_err("a truncated file was read");
            assert!(is_clear(&error), "{len}: {error}");
        }
    }
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path());
    let pages = PAGES_AT as u64;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut rng = rand_pcg::Pcg64::seed_from_u64(2);
    let mut told = 0;
    for _ in 0..6000 {
        let mut undo = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            // Mostly where something is: header, the first entries of the tables, the rows.
            let start = [0, 0, MODULES_AT, SITES_AT, CLASSES_AT, KINDS_AT, PAGES_AT, PAGES_AT];
            let start = start[rng.random_range(0..start.len())] as u64;
            let reach = [64, 320, 4096][rng.random_range(0..3)];
            let at = start + rng.random_range(0..reach);
            let value = match rng.random_range(0..3) {
                0 => rng.next_u64(),
                1 => u64::MAX,
                _ => 1 << rng.random_range(0..64),
            };
            undo.push((at, overwrite(&file, at, &value.to_le_bytes()[..rng.random_range(1..9)])));
        }
        match load(&path) {
            Ok(recording) => {
                // Figures stay usable however wrong they are.
                let total = recording.total();
                assert!(total.hold_mean_ns().is_finite() && total.wait_mean_ns() >= 0.0);
            }
            Err(error) => {
                told += 1;
                assert!(is_clear(&error), "{error}");
            }
        }
        for (at, bytes) in undo.into_iter().rev() {
            overwrite(&file, at, &bytes);
        }
    }
    assert!(told > 500, "only {told} were told");
    assert!(load(&path).is_ok() && pages < file.metadata().unwrap().len());
}

#[test]
fn every_flipped_bit_of_a_finished_recording_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let live = sample(directory.path());
    let path = directory.path().join("a.relatch");
    file::save(&load(&live).unwrap(), &path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut rng = rand_pcg::Pcg64::seed_from_u64(3);
    for _ in 0..2000 {
        let mut damaged = whole.clone();
        damaged[rng.random_range(0..whole.len())] ^= 1 << rng.random_range(0..8);
        std::fs::write(&path, &damaged).unwrap();
        let error = load(&path).expect_err("a corrupted file was read");
        assert!(is_clear(&error), "{error}");
    }
}

#[test]
fn content_that_only_looks_right_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.relatch");
    let recording = load(&sample(directory.path())).unwrap();
    let json = serde_json::to_string(&recording).unwrap();
    // A bucket that no histogram has.
    let bad = json.replacen("\"counts\":[[", "\"counts\":[[65535,1],[", 1);
    assert_ne!(bad, json);
    for content in [bad.as_str(), "{}", "[]", "nonsense"] {
        let mut bytes = b"relatchR".to_vec();
        bytes.extend(file::VERSION.to_le_bytes());
        bytes.extend(crc32fast::hash(content.as_bytes()).to_le_bytes());
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        assert!(load(&path).unwrap_err().contains("corrupted"), "{content}");
    }
}

#[test]
fn a_file_of_another_version_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    overwrite(&file, 8, &99u32.to_le_bytes());
    assert!(matches!(reader::open_live(&path).unwrap_err().why(), Why::Version(99)));
}

/// Overwrites bytes, as far as the file reaches; what was there.
fn overwrite(file: &File, at: u64, bytes: &[u8]) -> Vec<u8> {
    let len = file.metadata().unwrap().len();
    let fits = (len.saturating_sub(at) as usize).min(bytes.len());
    let mut old = vec![0; fits];
    file.read_exact_at(&mut old, at).unwrap();
    file.write_all_at(&bytes[..fits], at).unwrap();
    old
}
