//! What an observation could not see, in sentences.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use relatch_record::raw::Raw;

use super::Observation;

/// What could not be seen of this run, the most important first.
pub(super) fn sentences(
    observation: &Observation,
    processes: &[Raw],
    family: &Family,
) -> Vec<String> {
    let mut all = Vec::new();
    if processes.is_empty() && observation.interposition.only.is_none() {
        all.push(why_nothing(observation.command.first().map_or(OsStr::new(""), |word| word)));
    }
    if let Some(only) = &observation.interposition.only {
        all.push(format!("executables that are not {only}"));
    }
    all.push("locks that are no pthread locks (Go, Rust's std, own atomics)".to_owned());
    let found = family.out_of_reach();
    let here = if found.is_empty() { String::new() } else { format!(" (here: {found})") };
    all.push(format!("static and set-user-ID programs{here}"));
    let unended = processes.iter().filter(|process| !process.ended).count();
    if unended > 0 {
        all.push(format!(
            "sections still open in {unended} process{} that did not end by exit",
            if unended == 1 { "" } else { "es" }
        ));
    }
    all
}

/// The programs of the observed process and its descendants, as far as a look now and then finds them.
pub(super) struct Family {
    programs: BTreeMap<PathBuf, Option<&'static str>>,
    looked: Instant,
}

/// Time between two looks.
const LOOKS: Duration = Duration::from_millis(500);

impl Family {
    pub(super) fn new() -> Family {
        Family { programs: BTreeMap::new(), looked: Instant::now() }
    }

    /// Looks who runs, unless that was done just now.
    pub(super) fn look(&mut self, pid: i32) {
        if self.looked.elapsed() >= LOOKS {
            self.visit(pid);
            self.looked = Instant::now();
        }
    }

    fn visit(&mut self, pid: i32) {
        let mut family = vec![pid];
        let younger = younger_than(pid);
        let mut next = 0;
        while let Some(&parent) = family.get(next) {
            next += 1;
            family.extend(younger.iter().filter(|&&(_, of)| of == parent).map(|&(child, _)| child));
            let Ok(program) = std::fs::read_link(format!("/proc/{parent}/exe")) else { continue };
            // Through /proc it is found in another mount namespace, and after it was replaced.
            let look = || look_at(Path::new(&format!("/proc/{parent}/exe")));
            self.programs.entry(program).or_insert_with(look);
        }
    }

    /// Those that the library is not loaded into.
    fn out_of_reach(&self) -> String {
        let programs = self.programs.iter().filter(|(_, why)| why.is_some());
        let names: Vec<String> = programs.map(|(path, _)| path.display().to_string()).collect();
        names.join(", ")
    }
}

/// Processes with their parents, of those with a higher number than `pid`: descendants are among them
/// until numbers are used again, and the many older ones need no look.
fn younger_than(pid: i32) -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parent_of = |child: i32| {
        // `pid (name) state ppid ...`: the name may hold anything, parentheses too.
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((child, parent))
    };
    numbers.filter(|&child| child > pid).filter_map(parent_of).collect()
}

/// Why no process wrote a recording.
fn why_nothing(program: &OsStr) -> String {
    let why = find(program).and_then(|path| look_at(&path));
    let why = why.unwrap_or("no process took a pthread lock");
    format!("{}: {why}", program.to_string_lossy())
}

/// The file that a shell would run.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Why the library is not loaded into the program, if the file tells.
fn look_at(path: &Path) -> Option<&'static str> {
    let file = File::open(path).ok()?;
    let mode = file.metadata().ok()?.mode();
    if mode & 0o6000 != 0 {
        return Some("it is set-user-ID or set-group-ID, so that LD_PRELOAD does not reach it");
    }
    let mut header = [0; 64];
    (&file).read_exact(&mut header).ok()?;
    if header[..4] != *b"\x7fELF" {
        return None;
    }
    if header[4] != 2 {
        return Some("it is a 32-bit program");
    }
    (!has_interpreter(&file, &header)?)
        .then_some("it is statically linked, so that LD_PRELOAD does not reach it")
}

/// Whether a 64-bit ELF file names a dynamic linker (`PT_INTERP`).
fn has_interpreter(file: &File, header: &[u8; 64]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let at = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = u16::from_le_bytes([header[54], header[55]]);
    let count = u16::from_le_bytes([header[56], header[57]]);
    for i in 0..count {
        let mut kind = [0; 4];
        let entry = at.checked_add(u64::from(i) * u64::from(size))?;
        file.read_exact_at(&mut kind, entry).ok()?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_keeps_the_library_out_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        assert_eq!(look_at(&std::env::current_exe().unwrap()), None);

        let mut elf = vec![0u8; 64 + 56];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 1;
        elf[64] = 1; // PT_LOAD alone
        std::fs::write(&path, &elf).unwrap();
        assert!(look_at(&path).unwrap().contains("statically linked"));
        elf[64] = 3;
        std::fs::write(&path, &elf).unwrap();
        assert_eq!(look_at(&path), None);
        elf[4] = 1;
        std::fs::write(&path, &elf).unwrap();
        assert!(look_at(&path).unwrap().contains("32-bit"));
        // Says that it has a header that is not there.
        elf[4] = 2;
        elf[56] = 9;
        elf[64] = 1;
        std::fs::write(&path, &elf).unwrap();
        assert_eq!(look_at(&path), None);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(look_at(&path).unwrap().contains("set-user-ID"));
    }

    #[test]
    fn descendants_are_found() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 20; :"]).spawn().unwrap();
        let mut family = Family::new();
        let until = Instant::now() + Duration::from_secs(20);
        while !family.programs.keys().any(|program| program.ends_with("sleep")) {
            assert!(Instant::now() < until, "the grandchild was not found");
            family.visit(child.id() as i32);
        }
        assert!(family.out_of_reach().is_empty(), "{}", family.out_of_reach());
        family.programs.insert("/bin/x".into(), Some("static"));
        assert_eq!(family.out_of_reach(), "/bin/x");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find(OsStr::new("sh")).unwrap().ends_with("sh"));
        assert_eq!(find(OsStr::new("./x")), Some(PathBuf::from("./x")));
        assert_eq!(find(OsStr::new("no-such-program-anywhere")), None);
        assert!(why_nothing(OsStr::new("sh")).contains("no process took a pthread lock"));
    }
}
