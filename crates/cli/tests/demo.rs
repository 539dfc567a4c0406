//! `relatch demo` from end to end.

use std::process::Command;

#[test]
fn it_goes_all_the_way_and_leaves_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().join("kept");
    let output = Command::new(env!("CARGO_BIN_EXE_relatch"))
        .args(["demo", "-n", "2", "--keep"])
        .arg(&keep)
        .env("XDG_CACHE_HOME", dir.path().join("cache"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for part in [
        "$ relatch stat -- ./sample",
        "The hottest class is cache_new (mutex)",
        "cache_get+0x",
        "$ relatch try -n 2 --max-time 40 --recorded -c 'mutex@cache_new=ttas'",
        "-c 'mutex@cache_new=qrwlock' --share cache_get -- ./sample",
        "2 rounds of 9 arms",
        "What that says",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("failed"), "{text}");

    // The program checks itself, and says so with its exit code.
    let sample = Command::new(keep.join("sample")).args(["2", "1000"]).output().unwrap();
    assert!(sample.status.success());
    assert!(String::from_utf8_lossy(&sample.stdout).ends_with(" 0 wrong\n"));
    let usage = Command::new(keep.join("sample")).arg("0").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(
        std::fs::read_to_string(keep.join("cache.c")).unwrap().contains("pthread_mutex_t lock")
    );
}

#[test]
fn a_place_that_can_not_be_written_is_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_relatch"))
        .args(["demo", "--keep", "/dev/null/here"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.starts_with("relatch: /dev/null/here: ") && errors.lines().count() == 1,
        "{errors}"
    );
}
