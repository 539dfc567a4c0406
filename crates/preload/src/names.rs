//! What addresses are called, as the reader of a recording calls them: by the same symbol table and the
//! same demangling.
//!
//! Looked up once per place or lock class, and only where a selector or a named wrapper asks for it. The
//! file is mapped from where it was loaded; names are built in a buffer of our own.

use relatch_record::demangle::{ROOM, demangle};
use relatch_record::elf::Elf;
use relatch_record::sys;

use crate::guard::Guarded;
use crate::unwind::{self, Object};

/// Files kept mapped.
const FILES: usize = 64;
/// A name and its offset.
const LONGEST: usize = ROOM + 20;

#[derive(Clone, Copy)]
struct File {
    /// Where the module is mapped; 0: an unused entry.
    module: usize,
    bytes: &'static [u8],
}

struct Names {
    files: [File; FILES],
    next: usize,
    buffer: [u8; LONGEST],
}

static NAMES: Guarded<Names> = Guarded::new(Names {
    files: [File { module: 0, bytes: &[] }; FILES],
    next: 0,
    buffer: [0; LONGEST],
});

/// Calls `ask` with the name of the function before a return address, without an offset.
pub fn with_function<T>(address: usize, ask: impl FnOnce(&str) -> T) -> Option<T> {
    let object = unwind::object_at(address)?;
    let mut names = NAMES.lock();
    let bytes = names.bytes_of(&object)?;
    let symbol = Elf::new(bytes)?.function_at((address - object.base_and_path().0) as u64)?;
    Some(ask(demangle(symbol.name, &mut names.buffer[..ROOM])))
}

/// Calls `ask` with `function+0x30` for a return address.
pub fn with_place<T>(address: usize, ask: impl FnOnce(&str) -> T) -> Option<T> {
    let object = unwind::object_at(address)?;
    let mut names = NAMES.lock();
    let bytes = names.bytes_of(&object)?;
    let address = (address - object.base_and_path().0) as u64;
    let symbol = Elf::new(bytes)?.function_at(address)?;
    Some(ask(named(&mut names.buffer, symbol.name, address - symbol.start)))
}

/// Calls `ask` with `symbol+0x8` for a static lock.
pub fn with_static<T>(address: usize, ask: impl FnOnce(&str) -> T) -> Option<T> {
    let object = unwind::object_at(address)?;
    let mut names = NAMES.lock();
    let bytes = names.bytes_of(&object)?;
    let address = (address - object.base_and_path().0) as u64;
    let symbol = Elf::new(bytes)?.object_at(address)?;
    Some(ask(named(&mut names.buffer, symbol.name, address - symbol.start)))
}

/// `name+0xoffset`.
fn named<'a>(buffer: &'a mut [u8], mangled: &[u8], offset: u64) -> &'a str {
    let mut length = demangle(mangled, &mut buffer[..ROOM]).len();
    let mut put = |byte: u8| {
        buffer[length] = byte;
        length += 1;
    };
    b"+0x".iter().for_each(|&byte| put(byte));
    let digits = (64 - offset.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        put(b"0123456789abcdef"[(offset >> (digit * 4)) as usize & 15]);
    }
    core::str::from_utf8(&buffer[..length]).unwrap_or("")
}

impl Names {
    fn bytes_of(&mut self, object: &Object) -> Option<&'static [u8]> {
        let module = object.start as usize;
        if let Some(file) = self.files.iter().find(|file| file.module == module) {
            return Some(file.bytes);
        }
        let (_, path) = object.base_and_path();
        let mut terminated = [0; 1024];
        let path = if path.is_empty() { b"/proc/self/exe" } else { path };
        terminated.get_mut(..path.len())?.copy_from_slice(path);
        let path = core::ffi::CStr::from_bytes_until_nul(&terminated).ok()?;
        let fd = sys::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0).ok()?;
        let size = sys::size_of_file(fd).filter(|&size| size > 0);
        let mapped = size.and_then(|size| sys::map(size, libc::PROT_READ, libc::MAP_PRIVATE, fd).ok());
        sys::close(fd);
        // SAFETY: the mapping has that many bytes and is never removed. A file that is overwritten in
        // place while it runs would change under us, and under the program.
        let bytes = unsafe { core::slice::from_raw_parts(mapped?, size?) };
        self.files[self.next % FILES] = File { module, bytes };
        self.next += 1;
        Some(bytes)
    }
}

/// Holds the lock across a fork.
pub fn before_fork() {
    NAMES.hold();
}

/// Gives it back.
///
/// # Safety
/// After [`before_fork`], on the same thread or its copy.
pub unsafe fn after_fork() {
    // SAFETY: the caller's promise.
    unsafe { NAMES.release() };
}
