//! What addresses are called, as the reader of a recording calls them: by the same symbol table and the
//! same demangling.
//!
//! Looked up once per place or lock class, and only where a selector or a named wrapper asks for it. The
//! file is mapped from where it was loaded; names are built in a buffer of our own.

use relatch_record::elf::Elf;
use relatch_record::label::{self, LABEL};
use relatch_record::sys;

use crate::guard::Guarded;
use crate::unwind::{self, Object};

/// Files kept mapped.
const FILES: usize = 64;

#[derive(Clone, Copy)]
struct File {
    /// Where the module is mapped; 0: an unused entry.
    module: usize,
    bytes: &'static [u8],
}

struct Names {
    files: [File; FILES],
    next: usize,
    buffer: [u8; LABEL],
}

static NAMES: Guarded<Names> = Guarded::new(Names {
    files: [File { module: 0, bytes: &[] }; FILES],
    next: 0,
    buffer: [0; LABEL],
});

/// Calls `ask` with what a return address is called: `function+0x30`.
pub fn with_place<T>(address: usize, ask: impl FnOnce(&str) -> T) -> Option<T> {
    with_label(address, label::code, ask)
}

/// Calls `ask` with what a static lock is called: `symbol+0x8`.
pub fn with_static<T>(address: usize, ask: impl FnOnce(&str) -> T) -> Option<T> {
    with_label(address, label::data, ask)
}

/// How a label is made of an address in a file.
type Label = for<'o> fn(Option<&Elf<'_>>, &str, u64, &'o mut [u8]) -> &'o str;

fn with_label<T>(address: usize, label: Label, ask: impl FnOnce(&str) -> T) -> Option<T> {
    let object = unwind::object_at(address)?;
    let mut names = NAMES.lock();
    let mut executable = [0; 512];
    let (base, path) = object.base_and_path();
    let path = if path.is_empty() {
        let length = sys::read_link(c"/proc/self/exe", &mut executable);
        &executable[..length]
    } else {
        path
    };
    let elf = names.bytes_of(&object).and_then(Elf::new);
    let path = core::str::from_utf8(path).unwrap_or("");
    let address = address.wrapping_sub(base) as u64;
    Some(ask(label(elf.as_ref(), path, address, &mut names.buffer)))
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
        let mapped =
            size.and_then(|size| sys::map(size, libc::PROT_READ, libc::MAP_PRIVATE, fd).ok());
        sys::close(fd);
        // SAFETY: the mapping has that many bytes and is never removed. A file that is overwritten in
        // place while it runs would change under us, and under the program.
        let bytes = unsafe { core::slice::from_raw_parts(mapped?, size?) };
        self.files[self.next % FILES] = File { module, bytes };
        self.next += 1;
        Some(bytes)
    }
}

/// In the child of a fork.
pub fn in_child() {
    // SAFETY: this child has one thread.
    unsafe { NAMES.force_free() };
    // The file that was being mapped may be half entered.
    NAMES.lock().files = [File { module: 0, bytes: &[] }; FILES];
}
