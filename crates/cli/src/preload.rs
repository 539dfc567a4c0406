//! What this file carries: the preload library, built by `build.rs`.

use std::path::PathBuf;

use relatch_experiment::interpose;

static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librelatch.so"));

/// Unpacks the library; its path.
pub fn unpack() -> Result<PathBuf, String> {
    interpose::unpack(LIBRARY).map_err(|error| error.to_string())
}
