//! The preload library outside the program: unpacked where any user can read it, and the environment
//! that makes a program load it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use relatch_plan::Plan;
use relatch_plan::env::{self, Mode};
use relatch_record::elf::Elf;

/// What the dynamic linker reads.
pub const LD_PRELOAD: &str = "LD_PRELOAD";
/// The file's name, by which an earlier one in `LD_PRELOAD` is recognised.
pub const FILE: &str = "librelatch.so";
/// Begins the name of every variable of relatch's own.
pub const PREFIX: &str = "RELATCH_";

/// How a program is interposed.
#[derive(Clone, Debug)]
pub struct Interposition {
    /// The unpacked library.
    pub library: PathBuf,
    /// Executables that do not match this glob are left alone.
    pub only: Option<String>,
    /// Globs of further wrappers.
    pub wrappers: Vec<String>,
}

impl Interposition {
    /// With nothing but the library.
    pub fn new(library: PathBuf) -> Self {
        Self { library, only: None, wrappers: Vec::new() }
    }

    /// The variables for a program in this mode; the plan only means something to `convert`.
    ///
    /// A library that the caller's own `LD_PRELOAD` names stays behind ours.
    pub fn environment(&self, mode: Mode, plan: Option<&Plan>) -> Vec<(String, String)> {
        let mut preload = self.library.to_string_lossy().into_owned();
        if let Some(inherited) = inherited_preloads() {
            preload.push(':');
            preload.push_str(&inherited);
        }
        let mut variables =
            vec![(LD_PRELOAD.to_owned(), preload), (env::MODE.to_owned(), mode.name().to_owned())];
        if mode == Mode::Convert
            && let Some(plan) = plan
        {
            variables
                .extend(plan.to_env().into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        if let Some(only) = &self.only {
            variables.push((env::ONLY.to_owned(), only.clone()));
        }
        if !self.wrappers.is_empty() {
            variables.push((env::WRAPPERS.to_owned(), self.wrappers.join("\n")));
        }
        variables
    }
}

/// Takes everything of relatch out of the environment that `command` inherits, so that an arm means
/// the same in a shell where `relatch env` was used.
pub fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(PREFIX.as_bytes()) {
            command.env_remove(name);
        }
    }
    match inherited_preloads() {
        Some(others) => command.env(LD_PRELOAD, others),
        None => command.env_remove(LD_PRELOAD),
    };
}

/// The libraries other than ours that this process's own `LD_PRELOAD` names, if any.
pub(crate) fn inherited_preloads() -> Option<String> {
    without_ours(&std::env::var_os(LD_PRELOAD)?)
}

fn without_ours(preload: &OsStr) -> Option<String> {
    let preload = preload.to_string_lossy();
    let ours = |entry: &&str| !entry.is_empty() && !Path::new(entry).ends_with(FILE);
    let rest: Vec<&str> = preload.split([':', ' ']).filter(ours).collect();
    (!rest.is_empty()).then(|| rest.join(":"))
}

/// Writes the library into a cache directory, unless it is there, and returns its path:
/// `<cache>/<build-id>/librelatch.so`.
///
/// The cache is `$XDG_CACHE_HOME/relatch`, `~/.cache/relatch`, `/var/tmp/relatch-<uid>` or
/// `/tmp/relatch-<uid>`: the first that every user can reach, since the observed program may become
/// another one; that nobody but us and root can change; from which programs may be loaded; and whose
/// path `LD_PRELOAD` can hold.
///
/// # Errors
/// When none of these will do; the error says why for each.
pub fn unpack(library: &[u8]) -> io::Result<PathBuf> {
    // SAFETY: no arguments, never fails.
    let uid = unsafe { libc::geteuid() };
    let absolute = |path: &PathBuf| path.is_absolute();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(absolute);
    let candidates = [
        cache.map(|dir| dir.join("relatch")),
        home.map(|dir| dir.join(".cache/relatch")),
        Some(PathBuf::from(format!("/var/tmp/relatch-{uid}"))),
        Some(PathBuf::from(format!("/tmp/relatch-{uid}"))),
    ];
    unpack_into(library, candidates.into_iter().flatten())
}

fn unpack_into(
    library: &[u8],
    candidates: impl IntoIterator<Item = PathBuf>,
) -> io::Result<PathBuf> {
    let mut refused = Vec::new();
    for directory in candidates {
        match unpack_at(library, &directory) {
            Ok(path) => return Ok(path),
            Err(error) => refused.push(format!("{}: {error}", directory.display())),
        }
    }
    Err(io::Error::other(format!("no place for the preload library ({})", refused.join("; "))))
}

fn unpack_at(library: &[u8], cache: &Path) -> io::Result<PathBuf> {
    // Looked at before anything is made, so that a refused place is left as it was.
    let existing = cache.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    trusted(existing)?;
    let directory = cache.join(name_of(library));
    fs::DirBuilder::new().recursive(true).mode(0o755).create(&directory)?;
    for made in [cache, &directory] {
        if fs::symlink_metadata(made)?.is_symlink() {
            return Err(io::Error::other("is a symbolic link"));
        }
        // The umask may have taken bits away.
        fs::set_permissions(made, fs::Permissions::from_mode(0o755))?;
    }
    let directory = directory.canonicalize()?;
    trusted(&directory)?;
    loadable(&directory)?;
    let path = directory.join(FILE);
    if !is_ours(&path, library)? {
        write_whole(&directory, &path, library)?;
    }
    Ok(path)
}

/// Whether the file is there with this content, ours, readable by all and writable by us alone.
fn is_ours(path: &Path, library: &[u8]) -> io::Result<bool> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // SAFETY: no arguments, never fails.
    let uid = unsafe { libc::geteuid() };
    Ok(meta.is_file()
        && meta.uid() == uid
        && meta.mode() & 0o777 == 0o755
        && meta.len() == library.len() as u64
        && fs::read(path)? == library)
}

/// Writes the file so that no other process ever sees a part of it: a program that runs has the old
/// one mapped, and another relatch may be writing the same.
fn write_whole(directory: &Path, path: &Path, library: &[u8]) -> io::Result<()> {
    let temporary = directory.join(format!(".{FILE}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o755)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&temporary)?;
        file.write_all(library)?;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
        drop(file);
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Whether every user can reach `directory`, and only root and we can put something else in its
/// place.
fn trusted(directory: &Path) -> io::Result<()> {
    // SAFETY: no arguments, never fails.
    let uid = unsafe { libc::geteuid() };
    for dir in directory.canonicalize()?.ancestors() {
        let meta = fs::metadata(dir)?;
        let refuse = |why: &str| Err(io::Error::other(format!("{} {why}", dir.display())));
        if !meta.is_dir() {
            return refuse("is no directory");
        }
        if meta.mode() & 0o001 == 0 {
            return refuse("is closed to other users");
        }
        if meta.uid() != 0 && meta.uid() != uid {
            return refuse("belongs to another user");
        }
        // In a sticky directory (/tmp) others can add entries, but not replace ours.
        if meta.mode() & 0o022 != 0 && meta.mode() & libc::S_ISVTX == 0 {
            return refuse("can be written by other users");
        }
    }
    Ok(())
}

/// Whether the dynamic linker can map a library from there and `LD_PRELOAD` can name it.
fn loadable(directory: &Path) -> io::Result<()> {
    let path = directory.as_os_str().as_bytes();
    // These separate entries of LD_PRELOAD or are expanded in it.
    if path.iter().any(|byte| b": \t\n$".contains(byte)) || directory.to_str().is_none() {
        return Err(io::Error::other("LD_PRELOAD cannot hold this path"));
    }
    let path = std::ffi::CString::new(path)?;
    // SAFETY: a valid path and an out-pointer; all-zero is a valid value of the latter.
    let flags = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut stat) != 0 {
            return Err(io::Error::last_os_error());
        }
        stat.f_flag
    };
    if flags & libc::ST_NOEXEC != 0 {
        return Err(io::Error::other("is mounted noexec"));
    }
    Ok(())
}

/// A name for this content: the library's build-id, or, for what is no library, 64-bit FNV-1a. Only a
/// name: a file found under it is compared byte by byte.
fn name_of(library: &[u8]) -> OsString {
    if let Some(id) = Elf::new(library).and_then(|elf| elf.build_id()) {
        return id.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
    }
    let hash = library.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory that fulfils all conditions even where the default for temporary files does not.
    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    #[test]
    fn unpacked_once_and_repaired_when_changed() {
        let dir = place();
        let cache = dir.path().join("a/relatch");
        let path = unpack_into(b"library", [cache.clone()]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert!(path.starts_with(&cache) && path.ends_with(FILE));
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(unpack_into(b"library", [cache.clone()]).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "written again without need");

        fs::write(&path, b"planted").unwrap();
        assert_eq!(unpack_into(b"library", [cache.clone()]).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_ne!(unpack_into(b"another", [cache]).unwrap(), path);
    }

    #[test]
    fn closed_or_foreign_places_are_passed_over() {
        let dir = place();
        let closed = dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let good = dir.path().join("good");
        let places = [closed.join("relatch"), open.join("relatch"), good.clone()];
        let path = unpack_into(b"library", places).unwrap();
        assert!(path.starts_with(&good));
        assert!(!closed.join("relatch").exists() && !open.join("relatch").exists());

        let error = unpack_into(b"library", [closed.join("x"), open]).unwrap_err().to_string();
        assert!(error.contains("closed to other users"), "{error}");
        assert!(error.contains("can be written by other users"), "{error}");
    }

    #[test]
    fn links_and_paths_that_the_linker_would_split_are_refused() {
        let dir = place();
        fs::create_dir(dir.path().join("target")).unwrap();
        symlink(dir.path().join("target"), dir.path().join("link")).unwrap();
        let error = unpack_into(b"x", [dir.path().join("link")]).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        let error = unpack_into(b"x", [dir.path().join("a b")]).unwrap_err().to_string();
        assert!(error.contains("cannot hold this path"), "{error}");
    }

    #[test]
    fn the_environment_says_what_to_do() {
        let mut interposition = Interposition::new("/x/librelatch.so".into());
        interposition.only = Some("*/server".into());
        let plan = Plan::from_arg("mutex=rwsem").unwrap().with_share(&["get"]).unwrap();
        let of = |mode, name: &str| {
            let variables = interposition.environment(mode, Some(&plan));
            variables.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
        };
        assert!(of(Mode::Convert, LD_PRELOAD).unwrap().starts_with("/x/librelatch.so"));
        assert_eq!(of(Mode::Convert, env::PLAN).unwrap(), "mutex=rwsem");
        assert_eq!(of(Mode::Convert, env::SHARE).unwrap(), "get");
        assert_eq!(of(Mode::Same, env::PLAN), None);
        assert_eq!(of(Mode::Same, env::ONLY).unwrap(), "*/server");
    }

    #[test]
    fn only_ours_is_taken_out_of_the_preloads() {
        let rest = |text: &str| without_ours(OsStr::new(text));
        assert_eq!(rest("/a/librelatch.so:/b/libjemalloc.so.2").unwrap(), "/b/libjemalloc.so.2");
        assert_eq!(rest("libx.so /a/librelatch.so liby.so").unwrap(), "libx.so:liby.so");
        assert_eq!(rest("/a/librelatch.so"), None);
        assert_eq!(rest(""), None);
    }
}
