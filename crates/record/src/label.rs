//! The text by which `relatch stat` calls a place, put together without memory from the heap: what a
//! selector is held against within the observed program.

use core::fmt::{self, Write};

use crate::demangle::{ROOM, demangle};
use crate::elf::Elf;

/// Room for any label.
pub const LABEL: usize = ROOM + 20;

/// The label of the code before a return address: `function+0x30`, or `file+0x1234` with the address
/// in the file if no function is known there.
///
/// `path` is the file's, of which the last part is used; `return_address` is one of the file, see
/// [`crate::elf`]. `out` had best be [`LABEL`] bytes long, a label that does not fit is cut.
pub fn code<'o>(
    elf: Option<&Elf<'_>>,
    path: &str,
    return_address: u64,
    out: &'o mut [u8],
) -> &'o str {
    let call = return_address.checked_sub(1);
    let symbol = elf.zip(call).and_then(|(elf, call)| elf.function_at(call));
    label(symbol.map(|symbol| (symbol.name, symbol.start)), path, return_address, out)
}

/// The label of a variable: `symbol+0x10`, or as for code.
pub fn data<'o>(elf: Option<&Elf<'_>>, path: &str, address: u64, out: &'o mut [u8]) -> &'o str {
    let symbol = elf.and_then(|elf| elf.object_at(address));
    label(symbol.map(|symbol| (symbol.name, symbol.start)), path, address, out)
}

fn label<'o>(symbol: Option<(&[u8], u64)>, path: &str, address: u64, out: &'o mut [u8]) -> &'o str {
    let mut end = End { out: &mut *out, length: 0 };
    // What does not fit is cut.
    let _ = match symbol {
        Some((name, start)) => {
            let room = end.out.len().min(ROOM);
            end.length = demangle(name, &mut end.out[..room]).len();
            write!(end, "+{:#x}", address - start)
        }
        None => {
            let file = path.rsplit('/').next().filter(|file| !file.is_empty());
            write!(end, "{}+{address:#x}", file.unwrap_or("[vdso]"))
        }
    };
    let length = end.length;
    core::str::from_utf8(&out[..length]).unwrap_or("")
}

/// Writes behind the first `length` bytes, whole characters as far as there is room.
struct End<'o> {
    out: &'o mut [u8],
    length: usize,
}

impl fmt::Write for End<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.out[self.length..];
        let fits = text.floor_char_boundary(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_symbol_the_file_is_named() {
        let mut out = [0; LABEL];
        assert_eq!(code(None, "/usr/lib/libx.so.1", 0x1234, &mut out), "libx.so.1+0x1234");
        assert_eq!(data(None, "", 0x10, &mut out), "[vdso]+0x10");
    }

    #[test]
    fn little_room() {
        assert_eq!(code(None, "/bin/größe", 0x1234, &mut [0; 3]), "gr");
        assert_eq!(code(None, "/bin/x", 0x1234, &mut [0; 4]), "x+0x");
        assert_eq!(label(Some((b"_ZN1a1bEv", 16)), "", 0x30, &mut [0; LABEL]), "a::b+0x20");
        assert_eq!(label(Some((b"_ZN1a1bEv", 16)), "", 0x30, &mut []), "");
    }
}
