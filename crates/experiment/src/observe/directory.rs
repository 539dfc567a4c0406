//! The directory in which the processes of a run write.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Error;

/// A directory for live recordings. Where its place was given it stays until [`remove`](Self::remove),
/// so that nothing is lost if this command is killed; else it goes with this value.
pub struct LiveDirectory {
    path: PathBuf,
    temporary: bool,
}

impl LiveDirectory {
    /// At `place`, or in memory where there is room for shared memory, else where temporary files go.
    pub(crate) fn create(place: Option<&Path>) -> Result<LiveDirectory, Error> {
        let (path, temporary) = match place {
            Some(place) => {
                if is_occupied(place) {
                    return Err(Error::Occupied(place.to_path_buf()));
                }
                let made = fs::create_dir_all(place);
                made.map_err(|error| Error::Directory(place.to_path_buf(), error))?;
                // The program may run in another directory.
                let path = place.canonicalize();
                (path.map_err(|error| Error::Directory(place.to_path_buf(), error))?, false)
            }
            None => {
                let memory = Path::new("/dev/shm");
                let made = temporary_in(memory).or_else(|_| temporary_in(&std::env::temp_dir()));
                (made.map_err(|error| Error::Directory(std::env::temp_dir(), error))?, true)
            }
        };
        // The program may become another user before it takes its first lock.
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o1777));
        Ok(LiveDirectory { path, temporary })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with what is in it. Processes that still run go on writing into files without a name.
    pub fn remove(&self) {
        // Whatever can not be removed stays; the figures are elsewhere by now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for LiveDirectory {
    fn drop(&mut self) {
        if self.temporary {
            self.remove();
        }
    }
}

fn is_occupied(place: &Path) -> bool {
    fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some())
}

fn temporary_in(parent: &Path) -> io::Result<PathBuf> {
    Ok(tempfile::Builder::new().prefix("relatch-").tempdir_in(parent)?.keep())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_one_is_open_to_all_and_goes_by_itself() {
        let directory = LiveDirectory::create(None).unwrap();
        let path = directory.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o1777);
        fs::write(path.join("1-0.live"), "x").unwrap();
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn a_given_one_stays_until_told_and_is_not_taken_over() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("a.relatch.live");
        let directory = LiveDirectory::create(Some(&place)).unwrap();
        fs::write(place.join("1-0.live"), "x").unwrap();
        drop(directory);
        assert!(matches!(LiveDirectory::create(Some(&place)), Err(Error::Occupied(_))));
        fs::remove_file(place.join("1-0.live")).unwrap();
        LiveDirectory::create(Some(&place)).unwrap().remove();
        assert!(!place.exists());
    }
}
