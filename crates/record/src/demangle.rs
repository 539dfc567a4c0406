//! Names as programmers write them: `_ZN4port5Mutex4LockEv` is `port::Mutex::Lock`.
//!
//! What comes out is the qualified name of the function or variable, without parameter list,
//! return type or the qualifiers behind it, as `relatch stat` prints it and selectors match it.
//! Otherwise it is what `c++filt -p` prints, except for enclosing functions and lambdas, which go
//! without parameters as well (`f::{lambda#1}`), and `std::string`, which is never spelled out but
//! before its constructors. Nothing is allocated, depth and time are bounded. A name that is not
//! understood in full comes out as it went in: never a wrong name. So does the name of a C
//! function.
//!
//! Sources: Itanium C++ ABI, chapter 5.1; Rust's symbol mangling, legacy and v0 (RFC 2603); how
//! things are spelled: libiberty.

mod builtin;
mod expression;
mod itanium;
mod operator;
mod output;
mod parser;
mod rust;
mod rust_v0;
#[cfg(test)]
mod tests;
mod types;

use output::Output;

/// Room in which any name fits that is worth printing. All who demangle use the same, so that a
/// name that is longer comes out the same everywhere: as it went in, cut at this length.
pub const ROOM: usize = 1024;

/// Why a name stays as it is: it is damaged, uses what is not supported, nests too deep or does not
/// fit into the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported;

/// Writes the qualified name for a symbol's name into `out` and returns it; see the module's text
/// for what is left as it is. What does not fit is cut; bytes that are no UTF-8 become `?`.
///
/// `out` had best be [`ROOM`] bytes long.
pub fn demangle<'o>(mangled: &[u8], out: &'o mut [u8]) -> &'o str {
    let mangled = without_version(mangled);
    let plain = without_clone_suffixes(mangled);
    let mut output = Output::new(out);
    if names_a_program_entity(plain, &mut output).is_err() {
        output.clear();
        let raw = if is_mangled(plain) { mangled } else { plain };
        output.push_cut(raw);
    }
    let length = output.finish();
    // `finish` leaves nothing else.
    core::str::from_utf8(&out[..length]).unwrap_or("")
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

fn names_a_program_entity(name: &[u8], output: &mut Output<'_>) -> Result<(), Unsupported> {
    if let Some(rest) = name.strip_prefix(b"_R") {
        return rust_v0::path(rest, output);
    }
    let Some(rest) = name.strip_prefix(b"_Z") else {
        output.push_cut(name);
        return Ok(());
    };
    if rust::is_legacy(rest) {
        return rust::legacy_path(rest, output);
    }
    itanium::name(rest, output)
}

/// `name` of `name@VERSION` and `name@@VERSION`.
fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// What compilers put behind the name of a copy or a part of a function, by their words.
const CLONES: [&[u8]; 10] = [
    b"constprop",
    b"part",
    b"isra",
    b"cold",
    b"lto_priv",
    b"llvm",
    b"clone",
    b"localalias",
    b"warm",
    b"hot",
];

/// `name` of `name.constprop.0.cold` and the like.
fn without_clone_suffixes(name: &[u8]) -> &[u8] {
    let mut name = name;
    while let Some(at) = name.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0) {
        let (front, last) = (&name[..at], &name[at + 1..]);
        if CLONES.contains(&last) {
            name = front;
            continue;
        }
        // A number belongs to the word before it.
        let is_number = !last.is_empty() && last.iter().all(u8::is_ascii_digit);
        let word_at = front.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0);
        match word_at {
            Some(word_at) if is_number && CLONES.contains(&&front[word_at + 1..]) => {
                name = &front[..word_at];
            }
            _ => break,
        }
    }
    name
}
