//! The preload library that this file carries.

use std::path::PathBuf;

use relatch_experiment::interpose;

/// Names another library to unpack, for work on the library itself.
const OTHER: &str = "RELATCH_LIBRARY";

/// Unpacks the library; its path.
pub fn unpack() -> Result<PathBuf, String> {
    let path = std::env::var_os(OTHER).ok_or("the preload library is not available yet")?;
    let library = std::fs::read(&path)
        .map_err(|error| format!("{}: {error}", PathBuf::from(&path).display()))?;
    interpose::unpack(&library).map_err(|error| error.to_string())
}
