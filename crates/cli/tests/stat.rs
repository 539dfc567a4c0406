//! `relatch stat` from outside, on a program whose locks are counted.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

mod signals;
use signals::as_at_a_terminal;

/// Four threads; each takes a static mutex 1000 times in `outer` and each of two others 500 times in
/// `inner`, reads an rwlock 300 times and writes it 20 times. Ends as it is told.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pair[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_rwlock_t table;
static volatile long count;
#define APART __attribute__((noinline, noclone))
APART void outer(void) { pthread_mutex_lock(&first); count++; pthread_mutex_unlock(&first); }
APART void inner(int i) { pthread_mutex_lock(&pair[i]); count++; pthread_mutex_unlock(&pair[i]); }
APART void look(void) { pthread_rwlock_rdlock(&table); count++; pthread_rwlock_unlock(&table); }
APART void change(void) { pthread_rwlock_wrlock(&table); count++; pthread_rwlock_unlock(&table); }
APART void make(void) { pthread_rwlock_init(&table, 0); }
static void *work(void *unused) {
    for (int i = 0; i < 1000; i++) outer();
    for (int i = 0; i < 1000; i++) inner(i % 2);
    for (int i = 0; i < 300; i++) look();
    for (int i = 0; i < 20; i++) change();
    return unused;
}
int main(int argc, char **argv) {
    const char *end = argc > 1 ? argv[1] : "";
    pthread_t threads[4];
    make();
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    puts("worked");
    fflush(stdout);
    if (!strcmp(end, "kill")) raise(SIGKILL);
    if (!strcmp(end, "_exit")) _exit(7);
    if (!strcmp(end, "wait")) for (;;) { outer(); usleep(1000); }
    if (!strcmp(end, "ignore")) { signal(SIGINT, SIG_IGN); puts("deaf"); fflush(stdout); for (;;) pause(); }
    if (!strcmp(end, "exec")) { execl(argv[0], argv[0], "again", (char *)0); }
    return 3;
}
"#;

/// A directory with the program in it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("program.c"), PROGRAM).unwrap();
        let place = Place { dir };
        assert!(place.compile("program", &[]), "the C compiler made no program");
        place
    }

    fn compile(&self, name: &str, flags: &[&str]) -> bool {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-pthread"]).args(flags).arg("-o").arg(self.path(name));
        let ended = cc.arg(self.path("program.c")).stderr(Stdio::null()).status().unwrap();
        ended.success()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn relatch(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relatch"));
        command.arg("stat").args(args).current_dir(self.dir.path());
        command.env("RELATCH_LIBRARY", concat!(env!("OUT_DIR"), "/librelatch.so"));
        as_at_a_terminal(&mut command);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.relatch(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[&["--format", "json"], args].concat());
        let last = text(&output.stdout).lines().last().unwrap_or_default().to_owned();
        serde_json::from_str(&last).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }

    fn start(&self, args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut command = self.relatch(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (child, out)
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn class<'a>(json: &'a Value, name: &str) -> &'a Value {
    let mut all = json["classes"].as_array().unwrap().iter();
    all.find(|class| class["name"] == name).unwrap_or_else(|| panic!("no class {name}: {json}"))
}

fn sites<'a>(json: &'a Value, function: &str) -> Vec<&'a Value> {
    let classes = json["classes"].as_array().unwrap().iter();
    let sites = classes.flat_map(|class| class["sites"].as_array().unwrap());
    sites.filter(|site| site["function"] == function).collect()
}

fn acquisitions(json: &Value, function: &str, mode: &str) -> u64 {
    let sites = sites(json, function);
    sites.iter().map(|site| site[mode]["acquisitions"].as_u64().unwrap()).sum()
}

/// The counts of one run of the program, `times` over.
fn assert_counts(json: &Value, times: u64) {
    assert_eq!(acquisitions(json, "outer", "exclusive"), 4000 * times, "{json}");
    assert_eq!(acquisitions(json, "inner", "exclusive"), 4000 * times);
    assert_eq!(acquisitions(json, "look", "shared"), 1200 * times);
    assert_eq!(acquisitions(json, "change", "exclusive"), 80 * times);
}

fn wait_for_line(out: &mut impl BufRead, line: &str) {
    let mut read = String::new();
    while read.trim_end() != line {
        read.clear();
        assert!(out.read_line(&mut read).unwrap() > 0, "the program ended before {line:?}");
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a child of this test that was not waited for yet.
    unsafe { libc::kill(child.id() as i32, signal) };
}

#[test]
fn counts_are_exact_however_the_program_ends() {
    let place = Place::new();
    for (end, times) in [("return", 1), ("_exit", 1), ("kill", 1), ("exec", 2)] {
        let json = place.json(&["--", "./program", end]);
        assert_counts(&json, times);
        assert_eq!(json["schema"], "relatch.stat/1");
        assert_eq!(json["total"]["rejected"], 0);
    }
    let json = place.json(&["--", "./program"]);
    assert_eq!(class(&json, "first+0x0")["exclusive"]["acquisitions"], 4000);
    assert_eq!(class(&json, "pair+0x28")["exclusive"]["acquisitions"], 2000);
    let rwlock =
        json["classes"].as_array().unwrap().iter().find(|c| c["kind"] == "rwlock").unwrap();
    assert!(rwlock["name"].as_str().unwrap().starts_with("make+0x"), "{rwlock}");
    assert_eq!((&rwlock["locks"], &rwlock["origin"]), (&1.into(), &"init".into()));
    let site = sites(&json, "outer")[0];
    assert!(site["file"].as_str().unwrap().ends_with("program.c") && site["line"].is_u64());
    // No more held than there was time for.
    let elapsed = json["environment"]["elapsed_ns"].as_u64().unwrap();
    assert!(json["total"]["hold_ns"].as_u64().unwrap() <= 4 * elapsed);
}

#[test]
fn the_program_keeps_its_output_and_its_exit_code() {
    let place = Place::new();
    let output = place.run(&["--", "./program"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("worked\n", Some(3)));
    let table = text(&output.stderr);
    assert!(table.contains("\nMUTEXES AND SPINLOCKS") && table.contains("\nRWLOCK WRITES"));
    assert!(table.contains("  *TOTAL*\n") && table.contains("  first+0x0\n"), "{table}");
    assert!(table.contains("\nobserving: ") && table.contains("\nnot seen: "), "{table}");
    assert_eq!(place.run(&["--", "./program", "kill"]).status.code(), Some(137));
    assert_eq!(place.run(&["--", "./no-such-program"]).status.code(), Some(127));
    assert_eq!(place.run(&[]).status.code(), Some(2));
}

#[test]
fn recordings_are_saved_loaded_and_compared() {
    let place = Place::new();
    let saved = place.json(&["-o", "a.relatch", "--", "./program"]);
    assert!(!place.path("a.relatch.live").exists());
    let loaded = place.json(&["--load", "a.relatch"]);
    assert_eq!(loaded, saved);
    assert_counts(&place.json(&["--load", "a.relatch", "a.relatch"]), 2);
    let csv = place.run(&["--load", "a.relatch", "--format", "csv"]);
    let rows = text(&csv.stdout).lines().filter(|line| line.contains(",outer,")).count();
    assert_eq!(rows, 1);
    let diff = place.run(&["--diff", "a.relatch", "a.relatch"]);
    let line = text(&diff.stdout).lines().find(|line| line.contains("first+0x0 (mutex")).unwrap();
    assert!(line.contains(" 1.00 "), "{line}");
    // A reader that goes away early is no error.
    let (child, out) = place.start(&["--load", "a.relatch"]);
    drop(out);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn locks_can_be_told_apart() {
    let place = Place::new();
    let json = place.json(&["--by", "lock", "--", "./program"]);
    let locks = json["locks"].as_array().unwrap();
    let of = |class: &str| locks.iter().find(|lock| lock["class"] == class).unwrap();
    assert_eq!(of("first+0x0")["exclusive"]["acquisitions"], 4000);
    assert_eq!(of("pair+0x0")["exclusive"]["acquisitions"], 2000);
    assert_counts(&json, 1);
}

#[test]
fn other_executables_can_be_left_out() {
    let place = Place::new();
    assert!(
        place.json(&["--only", "other*", "--", "./program"])["classes"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_counts(&place.json(&["--only", "prog*", "--", "./program"]), 1);
}

#[test]
fn a_signal_that_only_we_got_is_passed_on_and_the_table_printed() {
    let place = Place::new();
    let (child, mut out) = place.start(&["--", "./program", "wait"]);
    wait_for_line(&mut out, "worked");
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("  first+0x0\n"), "{}", text(&output.stderr));
}

#[test]
fn the_second_request_kills() {
    let place = Place::new();
    let (mut child, mut out) = place.start(&["--", "./program", "ignore"]);
    wait_for_line(&mut out, "deaf");
    signal(&child, libc::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "the program ignores the first");
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(137));
    assert!(text(&output.stderr).contains("  first+0x0\n"), "{}", text(&output.stderr));
}

#[test]
fn nothing_is_lost_when_the_command_itself_is_killed() {
    let place = Place::new();
    let (mut child, mut out) = place.start(&["-o", "a.relatch", "--", "./program", "wait"]);
    wait_for_line(&mut out, "worked");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    let json = place.json(&["--load", "a.relatch.live"]);
    assert!(acquisitions(&json, "outer", "exclusive") >= 4000);
    assert_eq!(acquisitions(&json, "look", "shared"), 1200);
    // What it left is not overwritten.
    let output = place.run(&["-o", "a.relatch", "--", "./program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--load a.relatch.live"));
    let pid = json["processes"][0]["pid"].as_i64().unwrap();
    // SAFETY: the program that this test started; it loops until it is told to end.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

#[test]
fn windows_and_intervals_are_differences() {
    let place = Place::new();
    let started = Instant::now();
    let (child, mut out) = place.start(&[
        "--delay",
        "300ms",
        "--duration",
        "600ms",
        "-I",
        "200ms",
        "--format",
        "json",
        "--",
        "./program",
        "wait",
    ]);
    wait_for_line(&mut out, "worked");
    let mut lines = Vec::new();
    let mut interrupted = false;
    loop {
        let mut line = String::new();
        if out.read_line(&mut line).unwrap() == 0 {
            break;
        }
        lines.push(serde_json::from_str::<Value>(&line).unwrap());
        if lines.len() == 2 && !interrupted {
            // The window must have closed before the program ends.
            std::thread::sleep(Duration::from_secs(2));
            signal(&child, libc::SIGTERM);
            interrupted = true;
        }
    }
    child.wait_with_output().unwrap();
    let window = lines.pop().unwrap();
    assert!(lines.len() >= 2, "{} intervals", lines.len());
    let count = |json: &Value| acquisitions(json, "outer", "exclusive");
    let elapsed = |json: &Value| json["environment"]["elapsed_ns"].as_u64().unwrap();
    assert!(count(&window) > 0 && elapsed(&window) >= 600_000_000);
    assert!(u128::from(elapsed(&window)) < started.elapsed().as_nanos() - 300_000_000);
    // The threads had ended before; what they did belongs to no interval unless it is the first.
    assert!(lines[1..].iter().all(|line| acquisitions(line, "look", "shared") == 0));
    assert!(lines.iter().map(count).sum::<u64>() <= count(&window) + 1);
}

#[test]
fn what_keeps_the_library_out_is_told() {
    let place = Place::new();
    if !place.compile("static", &["-static"]) {
        eprintln!("no static libc here: not tested");
        return;
    }
    let output = place.run(&["--", "./static"]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(told.contains("no pthread locks seen") && told.contains("statically linked"), "{told}");
    let output = place.run(&["--", "sh", "-c", "./static wait & sleep 1; kill $!"]);
    let told = text(&output.stderr);
    assert!(told.contains("set-user-ID programs (here: ") && told.contains("/static)"), "{told}");
    assert!(text(&place.run(&["--", "true"]).stderr).contains("no process took a pthread lock"));
}

fn one_line_and_exit_code_2(output: &Output) {
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.lines().count() == 1 && told.starts_with("relatch: "), "{told}");
    assert!(output.stdout.is_empty());
}

#[test]
fn damaged_files_get_one_line() {
    let place = Place::new();
    place.json(&["-o", "a.relatch", "--", "./program"]);
    let whole = std::fs::read(place.path("a.relatch")).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut newer = whole.clone();
    newer[8] = 99;
    let bad: [(&str, &[u8]); 6] = [
        ("cut", &whole[..whole.len() - 1]),
        ("short", &whole[..10]),
        ("flipped", &flipped),
        ("newer", &newer),
        ("empty", b""),
        ("foreign", b"\x7fELF or something else"),
    ];
    for (name, bytes) in bad {
        std::fs::write(place.path(name), bytes).unwrap();
        one_line_and_exit_code_2(&place.run(&["--load", name]));
        one_line_and_exit_code_2(&place.run(&["--diff", "a.relatch", name]));
    }
    for name in ["missing", "/dev/null", ".", "/proc/self/mem"] {
        one_line_and_exit_code_2(&place.run(&["--load", name]));
    }
    assert!(Path::new(&place.path("a.relatch")).exists());
}
