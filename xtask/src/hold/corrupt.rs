//! Damaged recordings: one line on standard error and exit code 2, never a panic.
//!
//! A finished recording has a checksum, so every change is noticed. In a live one a changed counter is
//! just another number: it may be printed, but not break anything.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::bench::{Bench, Setup, capture, capture_within};
use crate::figures::Figures;

const MUTATIONS: usize = 200;
const LIMIT: Duration = Duration::from_secs(30);

/// Loads files that are cut, changed in some bytes, zeroed in part, or something else.
///
/// # Errors
/// When there is no recording to begin with.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    bench.compile("counts-O2", "counts.c", &["-O2"])?;
    let finished = bench.path("whole.relatch");
    let finished_name = finished.to_string_lossy();
    let output = capture(&mut bench.relatch(&["stat", "-o", &finished_name, "--", "./counts-O2"]))?;
    let whole = std::fs::read(&finished).map_err(|error| {
        format!("no recording ({error}): {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let recordings = bench.directory()?;
    let program = bench.path("counts-O2");
    capture(&mut bench.interposed(&Setup::record(), program.as_os_str(), recordings.path()))?;
    // Most of a live recording is a hole behind what was written; it is cut off here and put back later.
    let mut live = live_in(recordings.path())?;
    let length = live.len() as u64;
    live.truncate(live.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));

    let mut random = Random(20_240_229);
    many(bench, figures, "finished, cut", None, || random.cut(&whole))?;
    many(bench, figures, "finished, changed", None, || random.changed(&whole))?;
    many(bench, figures, "live, cut", None, || random.cut(&live))?;
    many(bench, figures, "live, changed", Some(length), || random.changed(&live))?;
    many(bench, figures, "live, zeroed in part", Some(length), || random.zeroed(&live))?;
    many(bench, figures, "random bytes", None, || random.bytes(4096))?;
    let foreign: [&[u8]; 5] =
        [b"", b"relatchR", b"relatch", b"\x7fELF\x02\x01\x01", b"{\"schema\": \"relatch.stat/1\"}"];
    let mut next = foreign.iter();
    some(bench, figures, "foreign", None, foreign.len(), || {
        next.next().unwrap_or(&foreign[0]).to_vec()
    })
}

fn live_in(directory: &Path) -> Result<Vec<u8>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let path = paths.find(|path| path.extension().is_some_and(|extension| extension == "live"));
    let path = path.ok_or("no live recording was left")?;
    std::fs::read(path).map_err(|error| error.to_string())
}

fn many(
    bench: &Bench,
    figures: &mut Figures,
    what: &str,
    length: Option<u64>,
    damaged: impl FnMut() -> Vec<u8>,
) -> Result<(), String> {
    some(bench, figures, what, length, MUTATIONS, damaged)
}

/// Loads so many files; all are to be refused. Those that are given a live recording's whole `length`
/// again may also be printed.
fn some(
    bench: &Bench,
    figures: &mut Figures,
    what: &str,
    length: Option<u64>,
    count: usize,
    mut damaged: impl FnMut() -> Vec<u8>,
) -> Result<(), String> {
    let path = bench.path("damaged");
    let refused = length.is_none();
    let (mut right, mut printed) = (0, 0);
    let mut first_wrong = None;
    for _ in 0..count {
        let bytes = damaged();
        write(&path, &bytes, length).map_err(|error| error.to_string())?;
        let load = &mut bench.relatch(&["stat", "--format", "json", "--load", "damaged"]);
        let ended = capture_within(load, LIMIT);
        match ended {
            Ok(output) if is_refused(&output) => right += 1,
            Ok(output) if !refused && output.status.success() && output.stderr.is_empty() => {
                right += 1;
                printed += 1;
            }
            Ok(output) => first_wrong = first_wrong.or(Some(describe(&output))),
            Err(error) => first_wrong = first_wrong.or(Some(error)),
        }
    }
    let bound =
        if refused { "all refused in one line" } else { "all refused in one line, or printed" };
    let figure = match refused {
        true => format!("{right} of {count}"),
        false => format!("{right} of {count} ({printed} printed)"),
    };
    figures.told(format!("recordings {what}"), figure, bound, right == count);
    if let Some(wrong) = first_wrong {
        figures.note(format!("the first that was not: {wrong}"));
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8], length: Option<u64>) -> std::io::Result<()> {
    std::fs::write(path, bytes)?;
    match length {
        Some(length) => std::fs::OpenOptions::new().write(true).open(path)?.set_len(length),
        None => Ok(()),
    }
}

fn is_refused(output: &Output) -> bool {
    let told = String::from_utf8_lossy(&output.stderr);
    output.status.code() == Some(2)
        && output.stdout.is_empty()
        && told.lines().count() == 1
        && told.starts_with("relatch: ")
}

fn describe(output: &Output) -> String {
    let signal =
        output.status.signal().map_or_else(String::new, |signal| format!(", signal {signal}"));
    let told = String::from_utf8_lossy(&output.stderr);
    format!("code {:?}{signal}: {}", output.status.code(), told.trim_end())
}

/// The same mutations each time (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }

    /// Half of the changes fall into the first kilobyte, where headers are.
    fn place(&mut self, length: usize) -> usize {
        if self.below(2) == 0 { self.below(length.min(1024)) } else { self.below(length) }
    }

    fn cut(&mut self, whole: &[u8]) -> Vec<u8> {
        whole[..self.place(whole.len())].to_vec()
    }

    fn changed(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.place(bytes.len());
            bytes[at] ^= 1 << self.below(8);
            if self.below(2) == 0 {
                let end = bytes.len().min(at + 8);
                let value = [u64::MAX, 1 << 63, 0xffff_ffff, self.next()][self.below(4)];
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
        }
        if bytes == whole {
            bytes[0] ^= 1;
        }
        bytes
    }

    fn zeroed(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        let from = self.place(bytes.len());
        let end = bytes.len().min(from + 1 + self.below(4096));
        bytes[from..end].fill(0);
        bytes
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most);
        (0..length).map(|_| self.next() as u8).collect()
    }
}
