//! `relatch compare`, by its command line.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn compare(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_relatch"))
        .arg("compare")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // It may have refused its arguments and gone before it reads.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

fn printed(args: &[&str], input: &str) -> String {
    let output = compare(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(args: &[&str], input: &str) -> String {
    let output = compare(args, input);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a file is written");
    path.to_str().expect("a path of plain letters").to_string()
}

const NAME_CACHE: [&str; 4] = [
    "--summary",
    "rwlock=6,2798.0617,43.324817,2710.31,2821.35,2816.75",
    "--summary",
    "rmlock=5,2495.756,5.0494782,2488.25,2500.25,2498.04",
];

#[test]
fn the_published_name_cache_comparison() {
    let text = printed(&NAME_CACHE, "");
    let block = "\
x rwlock
+ rmlock
    N           Min           Max        Median           Avg        Stddev
x   6       2710.31       2821.35       2816.75     2798.0617     43.324817
+   5       2488.25       2500.25       2498.04      2495.756     5.0494782
Difference at 95.0% confidence
\t-302.306 +/- 44.4709
\t-10.8041% +/- 1.58935%
\t(Student's t, pooled s = 32.4674)
";
    assert!(text.starts_with(block), "{text}");
    // By the exact t the last digits are others; and what a summary cannot tell is said.
    assert!(text.contains("-302.306 +/- 44.474 pooled"), "{text}");
    assert!(text.contains("need the values, not their summary"), "{text}");
    assert!(text.contains("unequal sizes (6 and 5)"), "{text}");
}

#[test]
fn files_have_block_plot_ranks_and_notes() {
    let dir = tempfile::tempdir().expect("a directory");
    let cold = file(&dir, "cold", "# seconds\n13.1\n10.2\n10.0\n10.1\n9.9\n10.0\n10.1\n");
    let new = file(&dir, "new", "9.0\n9.1\n8.9\n9.05\n9.2\n8.95\n9.15\n");
    let text = printed(&[&cold, &new], "");
    for part in [
        "Difference at 95.0% confidence",
        "ratio of means",
        "ratio of medians",
        "Mann-Whitney",
        "P(",
        "first run: +30.3%",
        "0 mild, 1 severe",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert_eq!(text, printed(&[&cold, &new], ""), "the same input prints the same");
}

#[test]
fn a_column_of_standard_input_against_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = file(&dir, "base", "a,1\nb,2\nc,3\n");
    let text = printed(&["-C", "2", "-d", ",", "-A", &base, "-"], "a,4\nb,5\nc,6\n");
    assert!(text.contains("+ <stdin>"), "{text}");
    assert!(
        text.contains(
            "+   3             4             6             5             5             1"
        )
    );
}

#[test]
fn json_has_a_schema_and_every_figure() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = file(&dir, "base", "5\n6\n7\n8\n");
    let test = file(&dir, "test", "1\n2\n3\n4.5\n");
    let text = printed(&["--format", "json", "-c", "90", &base, &test], "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("json");
    assert_eq!(json["schema"], "relatch.compare/1");
    assert_eq!(json["level"], 90.0);
    assert_eq!(json["datasets"][1]["median"], 2.5);
    let compared = &json["comparisons"][0];
    assert_eq!(compared["ministat"]["proven"], true);
    assert_eq!(compared["samples"]["below"], 1.0);
    assert_eq!(compared["samples"]["mann_whitney"]["exact"], true);
    let p = compared["samples"]["mann_whitney"]["p"].as_f64().expect("a number");
    assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
    let means = &compared["samples"]["means"];
    assert!(means["low"].as_f64() < means["ratio"].as_f64());
    // Of summaries there are no samples, and no made-up ones.
    let mut args = NAME_CACHE.to_vec();
    args.extend(["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&printed(&args, "")).expect("json");
    assert!(json["comparisons"][0]["samples"].is_null());
}

#[test]
fn csv_has_a_line_per_comparison() {
    let dir = tempfile::tempdir().expect("a directory");
    let names = ["a", "b, and c", "d"];
    let files: Vec<String> = names.iter().map(|name| file(&dir, name, "1\n2\n4\n")).collect();
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--format", "csv"]);
    let text = printed(&args, "");
    assert_eq!(text.lines().count(), 3);
    assert!(text.starts_with("test,reference,level,difference,"), "{text}");
    assert!(text.lines().nth(1).expect("a line").starts_with('"'), "{text}");
}

#[test]
fn bad_input_is_one_line_and_code_2() {
    let cases: [(&[&str], &str, &str); 7] = [
        (&["-"], "1\n2\nthree\n", "line 3: not a number"),
        (&["-"], "1\n2\n", "at least 3"),
        (&["-C", "9", "-"], "1\n2\n3\n", "0 numbers in column 9"),
        (&["/nonexistent/file"], "", "/nonexistent/file: No such file"),
        (&["-", "-"], "1\n2\n3\n", "only once"),
        (&["--summary", "6,1"], "", "expected [NAME=]N,MEAN,SD"),
        (&["a", "b", "c", "d", "e", "f", "g", "h"], "", "at most 7"),
    ];
    for (args, input, part) in cases {
        let error = refused(args, input);
        assert!(error.contains(part), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    }
    assert!(refused(&["-c", "97", "-"], "1\n2\n3\n").contains("80, 90, 95, 98, 99, 99.5"));
    assert!(refused(&["-w", "1", "-"], "1\n2\n3\n").contains("width"));
}
