//! The end of a program's output, for people who want to know why it failed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Most lines shown of one file, and most bytes.
const LINES: usize = 10;
const BYTES: u64 = 2000;
/// Most bytes that are searched for a metric.
const SEARCHED: u64 = 64 << 20;

/// The last lines of each of `files` that holds any text.
pub(crate) fn of(files: &[&Path]) -> String {
    let tails: Vec<String> = files.iter().filter_map(|file| tail(file)).collect();
    tails.join("\n")
}

fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    (!shown.is_empty()).then(|| shown.join("\n"))
}

/// The whole of a file, at most its first 64 MiB; empty if it cannot be read.
pub(crate) fn whole(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is still worth a search.
        let _ = file.take(SEARCHED).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_of_what_holds_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let long: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let (long, blank) = (file("long", &long), file("blank", "\n\n"));
        let short = file("short", "why\n");
        let shown = of(&[&blank, &short, &long, &dir.path().join("missing")]);
        assert!(shown.starts_with("why\nline 990\n") && shown.ends_with("line 999"), "{shown}");
        assert_eq!(whole(&short), "why\n");
    }
}
