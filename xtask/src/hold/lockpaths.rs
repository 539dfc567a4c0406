//! Lock paths do not allocate, do not print, and work wherever a program may lock: before constructors, in
//! an allocator, in a cancelled thread.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use crate::bench::{Bench, Setup, capture_within};
use crate::figures::Figures;
use crate::observed::Observed;

const LIMIT: Duration = Duration::from_secs(15);
/// Where distributions put it.
const JEMALLOC: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
    "/usr/lib64/libjemalloc.so.2",
    "/usr/lib/libjemalloc.so.2",
];

/// Runs the programs in every mode and with every algorithm, each under four allocators.
///
/// # Errors
/// When a program does not compile or run bare.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let shared = ["-O1", "-shared", "-fPIC"];
    let no_allocation =
        bench.compile("noalloc.so", "noalloc.c", &[&shared[..], &["-lgcc_s"]].concat())?;
    let locking = bench.compile("lockingmalloc.so", "lockingmalloc.c", &shared)?;
    bench.compile("libearly.so", "early.c", &shared)?;
    for program in ["everything", "cancel"] {
        bench.compile(program, &format!("{program}.c"), &["-O1"])?;
    }
    let early = ["-O1", "libearly.so", "-Wl,-rpath,$ORIGIN"];
    bench.compile("before", "before.c", &early)?;
    bench.compile("early", "before.c", &[&early[..], &["-DCONSTRUCTORS"]].concat())?;
    control(bench, figures, &no_allocation)?;

    let mut allocators: Vec<(&str, Vec<PathBuf>)> = vec![
        ("", Vec::new()),
        ("allocating nothing", vec![no_allocation]),
        ("a malloc that locks", vec![locking]),
    ];
    match JEMALLOC.iter().map(PathBuf::from).find(|path| path.exists()) {
        Some(jemalloc) => allocators.push(("jemalloc", vec![jemalloc])),
        None => figures.note("jemalloc is not installed (libjemalloc2): not tried"),
    }
    for program in ["everything", "before", "early", "cancel"] {
        let bare = run(bench, &Setup::bare(), program)?;
        if !bare.status.success() {
            return Err(format!("{program} fails by itself: {}", told(&bare)));
        }
        for (allocator, libraries) in &allocators {
            let libraries: Vec<&Path> = libraries.iter().map(PathBuf::as_path).collect();
            for setup in setups() {
                let setup = setup.with(&libraries);
                let what = match *allocator {
                    "" => format!("{program}, {}: as without", setup.name()),
                    allocator => format!("{program}, {}, {allocator}", setup.name()),
                };
                let (figure, pass) = match run(bench, &setup, program) {
                    Ok(output) => (told(&output), is_same(&output, &bare)),
                    Err(error) => (error, false),
                };
                figures.told(what, figure, "same output and status", pass);
            }
        }
    }
    early_counts(bench, figures, "before")?;
    early_counts(bench, figures, "early")
}

fn setups() -> Vec<Setup> {
    vec![
        Setup::same(),
        Setup::record(),
        Setup::convert(&["mutex=ttas", "rwlock=qrwlock", "spin=ttas"]),
        Setup::convert(&["mutex=mutex", "rwlock=rwsem", "spin=mutex"]),
        Setup::convert(&["mutex=qrwlock"]),
        Setup::convert(&["mutex=rwsem"]),
    ]
}

/// The library that watches allocations must notice one.
fn control(bench: &Bench, figures: &mut Figures, watching: &Path) -> Result<(), String> {
    let flags = ["-O1", "-shared", "-fPIC", "-ldl"];
    let allocates = bench.compile("control/librelatch.so", "allocates.c", &flags)?;
    let output = run(bench, &Setup::bare().with(&[&allocates, watching]), "everything")?;
    let noticed = String::from_utf8_lossy(&output.stderr).contains("a lock path allocates");
    figures.told("control: a lock path that allocates", told(&output), "is noticed", noticed);
    Ok(())
}

/// What was locked before main and after it is counted.
fn early_counts(bench: &Bench, figures: &mut Figures, program: &str) -> Result<(), String> {
    let observed = Observed::run(bench, &[], &[&format!("./{program}")])?;
    let counts = observed.counts();
    let count = |function: &str, mode: &str| {
        counts.get(&(function.to_owned(), mode.to_owned())).map_or(0, |count| count.0)
    };
    for (function, mode, expected) in [
        ("lock_first", "exclusive", 550),
        ("lock_early", "exclusive", 1001),
        ("lock_early", "shared", 1001),
    ] {
        let what = format!("{program}: {function}, counted ({mode})");
        figures.told(what, count(function, mode), expected, count(function, mode) == expected);
    }
    Ok(())
}

fn run(bench: &Bench, setup: &Setup, program: &str) -> Result<Output, String> {
    let recordings = bench.directory()?;
    let program = bench.path(program);
    capture_within(&mut bench.interposed(setup, program.as_os_str(), recordings.path()), LIMIT)
}

fn is_same(output: &Output, bare: &Output) -> bool {
    (output.status, &output.stdout, &output.stderr) == (bare.status, &bare.stdout, &bare.stderr)
}

fn told(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match (output.status.success(), words.len() < 60) {
        (true, true) => words,
        _ => format!("{} ({})", words.chars().take(120).collect::<String>(), output.status),
    }
}
