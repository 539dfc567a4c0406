//! What the command asked for, read once from the environment.
//!
//! The values are copied: programs overwrite their environment (`setproctitle`), or clear it.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};

use relatch_plan::env::{self, Mode};
use relatch_plan::{Conversions, Shares, any_line_matches, glob};
use relatch_record::sys;

/// The environment's share of the settings.
struct Settings {
    mode: Option<Mode>,
    by_lock: bool,
    directory: &'static str,
    plan: &'static str,
    share: &'static str,
    wrappers: &'static str,
}

struct Once(UnsafeCell<Settings>);
// SAFETY: written once by `read`, before any hook looks.
unsafe impl Sync for Once {}

static SETTINGS: Once = Once(UnsafeCell::new(Settings {
    mode: None,
    by_lock: false,
    directory: "",
    plan: "",
    share: "",
    wrappers: "",
}));

fn settings() -> &'static Settings {
    // SAFETY: written once, before any hook looks.
    unsafe { &*SETTINGS.0.get() }
}

/// Reads the environment. Called once, before any hook is directed to us.
pub fn read() {
    let wanted = variable(env::ONLY).is_none_or(|only| {
        let mut path = [0; 1024];
        let length = sys::read_link(c"/proc/self/exe", &mut path);
        core::str::from_utf8(&path[..length]).is_ok_and(|path| glob::matches_path(only, path))
    });
    let mode = variable(env::MODE).and_then(Mode::from_name).filter(|_| wanted);
    let read = Settings {
        mode,
        by_lock: variable(env::BY_LOCK) == Some("1"),
        directory: copy(variable(env::DIR)),
        plan: copy(variable(env::PLAN)),
        share: copy(variable(env::SHARE)),
        wrappers: copy(variable(env::WRAPPERS)),
    };
    // SAFETY: no hook looks yet.
    unsafe { SETTINGS.0.get().write(read) };
}

/// What to do in this process; none: leave everything alone.
pub fn mode() -> Option<Mode> {
    settings().mode
}

/// Whether rows per lock are kept.
pub fn by_lock() -> bool {
    settings().by_lock
}

/// Where the live recording goes.
pub fn directory() -> &'static str {
    settings().directory
}

/// The plan's conversions.
pub fn conversions() -> Conversions<'static> {
    Conversions::new(settings().plan)
}

/// Whether sites were named that take converted mutexes shared.
#[inline(always)]
pub fn has_shares() -> bool {
    !settings().share.is_empty()
}

/// The sites that take converted mutexes shared.
pub fn shares() -> Shares<'static> {
    Shares::new(settings().share)
}

/// Whether functions were named as wrappers.
pub fn has_wrappers() -> bool {
    !settings().wrappers.is_empty()
}

/// Whether a function was named as a wrapper.
pub fn is_wrapper(name: &str) -> bool {
    any_line_matches(settings().wrappers, name)
}

/// A variable's text; none where it is missing or no UTF-8.
fn variable(name: &str) -> Option<&'static str> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: before main nobody else writes the environment: a null-terminated list of C strings, or
    // null while libc is not initialised yet.
    unsafe {
        if environ.is_null() {
            return variable_of_the_kernel(name);
        }
        let mut entry = environ;
        while !entry.read().is_null() {
            if let Some(value) = value_of(name, CStr::from_ptr(entry.read()).to_bytes()) {
                return Some(value);
            }
            entry = entry.add(1);
        }
    }
    None
}

fn value_of(name: &str, entry: &'static [u8]) -> Option<&'static str> {
    let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    core::str::from_utf8(value).ok()
}

/// The same from what the kernel started the process with: a function in `.preinit_array` may lock, and
/// runs before libc has its environment.
#[cold]
fn variable_of_the_kernel(name: &str) -> Option<&'static str> {
    const MOST: usize = 1 << 20;
    let page = sys::map_private(MOST)?;
    // SAFETY: the mapping is ours and stays.
    let bytes = unsafe { core::slice::from_raw_parts_mut(page, MOST) };
    let fd = sys::open(c"/proc/self/environ", libc::O_RDONLY | libc::O_CLOEXEC, 0).ok()?;
    let mut length = 0;
    while let Ok(read @ 1..) = sys::read(fd, &mut bytes[length..], length) {
        length += read;
    }
    sys::close(fd);
    let bytes: &'static [u8] = bytes;
    bytes[..length].split(|&byte| byte == 0).find_map(|entry| value_of(name, entry))
}

/// Copies a text to pages of our own.
fn copy(text: Option<&str>) -> &'static str {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return "" };
    let Some(page) = sys::map_private(text.len()) else { return "" };
    // SAFETY: the mapping has room for the text, and stays.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), page, text.len());
        core::str::from_utf8_unchecked(core::slice::from_raw_parts(page, text.len()))
    }
}
