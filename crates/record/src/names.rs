//! Names for the addresses of a recording, from the files that were mapped.
//!
//! Functions and variables come through [`crate::elf`] and [`crate::demangle`] alone, as within the
//! observed program, so that a selector decides there on the very text that `relatch stat` prints.
//! Debug information adds the line in the source, where there is any.

use std::collections::HashMap;
use std::fs::File;

use addr2line::Loader;
use memmap2::Mmap;

use crate::demangle::{ROOM, demangle};
use crate::elf::Elf;
use crate::resolve::{CodeName, Names};

/// Looks names up in files, each of which is opened once.
///
/// A file that is gone, cannot be read or is no ELF file gives no names.
#[derive(Default)]
pub struct Namer {
    modules: HashMap<String, Option<Module>>,
}

struct Module {
    bytes: Mmap,
    /// Opened for the first line that is asked for.
    lines: Option<Option<Loader>>,
    path: String,
    codes: HashMap<u64, Option<CodeName>>,
}

impl Namer {
    /// A namer that has opened nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The build-id of a file, by which to tell whether it is still the one that was mapped.
    pub fn build_id(&mut self, path: &str) -> Option<Vec<u8>> {
        Elf::new(&self.module(path)?.bytes)?.build_id().map(<[u8]>::to_vec)
    }

    fn module(&mut self, path: &str) -> Option<&mut Module> {
        if !self.modules.contains_key(path) {
            self.modules.insert(path.to_owned(), Module::open(path));
        }
        self.modules.get_mut(path)?.as_mut()
    }
}

impl Names for Namer {
    fn code(&mut self, path: &str, address: u64) -> Option<CodeName> {
        let module = self.module(path)?;
        if let Some(known) = module.codes.get(&address) {
            return known.clone();
        }
        let name = module.code(address);
        module.codes.insert(address, name.clone());
        name
    }

    fn data(&mut self, path: &str, address: u64) -> Option<(String, u64)> {
        let module = self.module(path)?;
        let symbol = Elf::new(&module.bytes)?.object_at(address)?;
        let name = demangle(symbol.name, &mut [0; ROOM]).to_owned();
        Some((name, address - symbol.start))
    }
}

impl Module {
    fn open(path: &str) -> Option<Module> {
        let file = File::open(path).ok()?;
        // Neither a device nor a pipe can be mapped, and opening is all that may be done to them.
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        // SAFETY: the bytes are only read, and `Elf` expects any content. That nobody shortens a
        // library or program while it is in use is what its own loading relies on, too.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        Elf::new(&bytes)?;
        Some(Module { bytes, lines: None, path: path.to_owned(), codes: HashMap::new() })
    }

    /// The address is the one to which a call returns, the call thus lies before it.
    fn code(&mut self, address: u64) -> Option<CodeName> {
        let call = address.checked_sub(1)?;
        let symbol = Elf::new(&self.bytes)?.function_at(call)?;
        let function = demangle(symbol.name, &mut [0; ROOM]).to_owned();
        let offset = address - symbol.start;
        let (file, line) = self.line(call);
        Some(CodeName { function, offset, file, line })
    }

    /// The line within the function that the symbol names, thus not within one that was inlined into
    /// it: where the guard is declared, not where the standard library locks.
    fn line(&mut self, call: u64) -> (Option<String>, Option<u32>) {
        let path = &self.path;
        let lines = self.lines.get_or_insert_with(|| Loader::new(path).ok());
        let Some(mut frames) = lines.as_ref().and_then(|lines| lines.find_frames(call).ok()) else {
            return (None, None);
        };
        let mut outermost = (None, None);
        while let Ok(Some(frame)) = frames.next() {
            if let Some(location) = frame.location {
                outermost = (location.file.map(str::to_owned), location.line);
            }
        }
        outermost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::own_address;
    use crate::label;

    #[inline(never)]
    fn a_function(n: u32) -> u32 {
        std::hint::black_box(n) + 1
    }

    static A_VARIABLE: [u64; 4] = [1, 2, 3, 4];

    #[test]
    fn own_executable() {
        let (mut namer, path) = (Namer::new(), "/proc/self/exe");
        let address = own_address(a_function as fn(u32) -> u32 as usize) + 5;
        let name = namer.code(path, address).unwrap();
        assert!(name.function.ends_with("names::tests::a_function"), "{name:?}");
        assert_eq!(name.offset, 5);
        // An optimised build has no lines.
        if cfg!(debug_assertions) {
            assert!(name.file.as_ref().unwrap().ends_with("names.rs"), "{name:?}");
            let begins =
                include_str!("names.rs").lines().position(|line| line.contains("fn a_function"));
            let begins = u32::try_from(begins.unwrap() + 1).unwrap();
            assert!((begins..begins + 3).contains(&name.line.unwrap()), "{name:?}, {begins}");
        }
        // Asked again, the answer is the same, and the observed program gives it too.
        assert_eq!(namer.code(path, address), Some(name.clone()));
        let bytes = std::fs::read(path).unwrap();
        let elf = Elf::new(&bytes);
        let text = format!("{}+0x5", name.function);
        assert_eq!(label::code(elf.as_ref(), path, address, &mut [0; label::LABEL]), text);

        let address = own_address(std::hint::black_box(&A_VARIABLE).as_ptr().addr()) + 8;
        let (symbol, offset) = namer.data(path, address).unwrap();
        assert!(symbol.ends_with("names::tests::A_VARIABLE") && offset == 8, "{symbol}+{offset}");
        let text = format!("{symbol}+0x8");
        assert_eq!(label::data(elf.as_ref(), path, address, &mut [0; label::LABEL]), text);
    }

    #[test]
    fn files_without_names() {
        let mut namer = Namer::new();
        for path in ["", "/nowhere", "/dev/zero", "/", "/proc/self/cmdline"] {
            assert_eq!(namer.code(path, 0x1000), None, "{path}");
            assert_eq!(namer.data(path, 0x1000), None, "{path}");
            assert_eq!(namer.build_id(path), None, "{path}");
        }
        assert_eq!(namer.code("/proc/self/exe", 0), None);
        assert_eq!(namer.code("/proc/self/exe", u64::MAX), None);
    }
}
