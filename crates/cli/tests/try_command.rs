//! `relatch try` and `relatch env` from outside.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

mod signals;
use signals::as_at_a_terminal;

/// The command, with a directory of its own for its library and temporary files.
fn relatch(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relatch"));
    command.args(args).env("XDG_CACHE_HOME", dir).env("TMPDIR", dir);
    as_at_a_terminal(&mut command);
    command
}

fn run(args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    relatch(dir.path(), args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(args: &[&str]) -> (Value, Option<i32>) {
    let output = run(&[&["try", "--format", "json"], args].concat());
    let shown = serde_json::from_slice(&output.stdout);
    (shown.unwrap_or_else(|_| panic!("{}", text(&output.stderr))), output.status.code())
}

#[test]
fn interposed_arms_of_a_shell_script_run_with_the_library() {
    let script = "echo preloads ${LD_PRELOAD:+1} of ${RELATCH_MODE:-0}";
    let (shown, code) = json(&[
        "-n",
        "2",
        "-c",
        "mutex=ttas",
        "--recorded",
        "--metric",
        r"re:preloads (1?)",
        "--higher",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(code, Some(1), "bare has no number, so it fails");
    let failed = |arm: &Value| !arm["failure"].is_null();
    let arms = shown["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bare", "same", "same again", "recorded", "mutex=ttas"]);
    let failures: Vec<bool> = arms.iter().map(failed).collect();
    assert_eq!(failures, [true, false, false, false, false]);
    assert_eq!(arms[0]["failure"]["output"], "preloads of 0");
    assert_eq!(shown["schema"], "relatch.try/1");
}

#[test]
fn shares_belong_to_the_conversion_before_them() {
    let (shown, code) = json(&[
        "-n",
        "1",
        "-c",
        "mutex=rwsem",
        "--share",
        "a",
        "--share=b",
        "-c",
        "spin=ttas",
        "-c",
        "rwlock=qrwlock",
        "--share",
        "c",
        "--",
        "true",
    ]);
    assert_eq!(code, Some(0));
    let shares: Vec<&Value> =
        shown["arms"].as_array().unwrap()[3..].iter().map(|arm| &arm["share"]).collect();
    assert_eq!(
        format!("{shares:?}").replace("String", ""),
        r#"[Array [("a"), ("b")], Array [], Array [("c")]]"#
    );
}

#[test]
fn a_table_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved.json");
    let script = "[ \"$RELATCH_MODE\" != convert ] || { echo so sorry >&2; exit 7; }";
    let args = [
        "try",
        "-n",
        "3",
        "--seed",
        "5",
        "-c",
        "mutex=ttas",
        "-o",
        saved.to_str().unwrap(),
        "--",
        "bash",
        "-c",
        script,
    ];
    let output = relatch(dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    for part in [
        "3 rounds of 4 arms in ",
        "(seed 5)",
        "time (s, lower is better)",
        "MEDIAN",
        "95% INTERVAL",
        "VERDICT",
        "same again",
        "(control)",
        "reference",
        "PEAK MiB",
        "interposition itself: same over bare",
        "failed in round 1",
        "mutex=ttas failed in round 1 and was not run again: the command ended with exit code 7",
        "  | so sorry",
    ] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    assert!(text(&output.stderr).contains("round 3 of 3 complete"));
    let saved: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    assert_eq!(saved["rounds"], 3);
    assert_eq!(saved["arms"][1]["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn csv_has_a_line_per_arm_and_metric() {
    let args = [
        "try", "-n", "2", "--metric", "time", "--metric", "maxrss", "--format", "csv", "--", "true",
    ];
    let output = run(&args);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 3);
    let fields = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == fields), "{lines:?}");
    assert!(lines[4].starts_with("maxrss,KiB,lower,bare,bare,2,"), "{}", lines[4]);
}

/// Starts it, and waits until it has said that a round is complete.
fn started(
    dir: &Path,
    args: &[&str],
    until: &str,
) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = relatch(dir, args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(until) {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended before {until:?}");
    }
    (child, stderr)
}

fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
}

#[test]
fn after_ctrl_c_it_prints_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["try", "-n", "100000", "--", "sleep", "0.03"];
    let (mut child, mut stderr) = started(dir.path(), &args, "round 2 ");
    interrupt(&child);
    let (mut table, mut rest) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut table).unwrap();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(table.contains("interrupted") && table.contains("same again"), "{table}");
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!(
        "trap '' TERM; if [ -e {0} ]; then echo $$ > {0}.2; while :; do sleep 0.1; done; fi; echo > {0}",
        pid_file.display()
    );
    let mut command = relatch(dir.path(), &["try", "-n", "3", "--", "sh", "-c", &script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let second = dir.path().join("pid.2");
    let stuck = wait_for(|| std::fs::read_to_string(&second).ok()?.trim().parse::<u32>().ok());
    interrupt(&child);
    // Not merged into one: the first must have arrived.
    std::thread::sleep(std::time::Duration::from_millis(50));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for(|| has_ended(stuck).then_some(()));
}

/// Waits until there is an answer; two minutes without one are a failure rather than a hang.
fn wait_for<T>(mut answer: impl FnMut() -> Option<T>) -> T {
    for _ in 0..24_000 {
        if let Some(answer) = answer() {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("waited in vain");
}

/// Whether a process has ended; whether somebody has reaped it does not matter.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn killed_it_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    // The grandchild is not reached by a signal at the parent's death.
    let script =
        format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", pid_file.display());
    let mut command = relatch(dir.path(), &["try", "--", "sh", "-c", &script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeper = wait_for(|| std::fs::read_to_string(&pid_file).ok()?.trim().parse::<u32>().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(|| has_ended(sleeper).then_some(()));
    wait_for(|| {
        let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        (!names.into_iter().any(|name| name.to_string_lossy().starts_with("relatch-try-")))
            .then_some(())
    });
}

#[test]
fn bad_input_is_one_line_and_code_2() {
    for (args, says) in [
        (&["try", "-c", "mutex=nothing", "--", "true"][..], "unknown algorithm `nothing`"),
        (&["try", "-c", "@/nowhere.toml", "--", "true"], "/nowhere.toml: "),
        (&["try", "--metric", "speed", "--", "true"], "unknown metric"),
        (&["try", "--metric", "re:(x)", "--", "true"], "--higher or --lower"),
        (&["try", "--higher", "--", "true"], "re: metrics"),
        (&["try", "-o", "/nowhere/x", "--", "true"], "/nowhere/x: "),
        (&["try", "--", "/nowhere/program"], "cannot run /nowhere/program"),
        (&["env", "--mode", "convert"], "needs a conversion"),
        (&["env", "--mode", "record"], "--recordings"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("relatch: ") && said.lines().count() == 1, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    for args in [
        &["try", "-c", "mutex=ttas"][..],
        &["try", "--share", "x", "-c", "mutex=rwsem", "--", "true"],
        &["try", "-n", "0", "--", "true"],
        &["try", "--cpus", "99999", "--", "true"],
        &["try", "--max-time", "soon", "--", "true"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn what_env_prints_works_with_eval() {
    let dir = tempfile::tempdir().unwrap();
    let env = |args: &[&str]| {
        let output = relatch(dir.path(), &[&["env"], args].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let set = env(&[
        "-c",
        "mutex@*Shard's*=rwsem",
        "--share",
        "get*",
        "-c",
        "spin=ttas",
        "--only",
        "*/db",
    ]);
    let unset = env(&["--unset"]);
    let show = "sh -c 'printf \"%s;\" \"$RELATCH_MODE\" \"$RELATCH_PLAN\" \"$RELATCH_SHARE\" \"$RELATCH_ONLY\"'";
    let script = format!("{set}{show}\necho $LD_PRELOAD\n{unset}{show}\necho ${{LD_PRELOAD-none}}");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let shown = text(&output.stdout);
    let (with, without) = shown.split_once("librelatch.so\n").unwrap();
    assert!(with.starts_with("convert;mutex@*Shard's*=rwsem\nspin=ttas;#0 get*;*/db;/"), "{with}");
    assert_eq!(without, ";;;;none\n");
}
