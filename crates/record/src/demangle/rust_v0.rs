//! Rust names in their newer form, `_R...`. Trait objects, function pointers, names with letters
//! beyond ASCII and constants other than numbers are not supported.
//!
//! Source: RFC 2603.

use super::Unsupported;
use super::output::Output;

type Done = Result<(), Unsupported>;

const DEEPEST: u32 = 40;
/// Bounds the time, which references back would else let grow without limit.
const MOST_STEPS: u32 = 20_000;

struct Parser<'a, 'p, 'o> {
    text: &'a [u8],
    at: usize,
    output: &'p mut Output<'o>,
    silent: bool,
    depth: u32,
    steps: u32,
}

/// Prints the path behind `_R`.
pub(crate) fn path(text: &[u8], output: &mut Output<'_>) -> Done {
    let mut parser = Parser { text, at: 0, output, silent: false, depth: 0, steps: 0 };
    parser.path(true)?;
    if parser.at < text.len() {
        // The crate that instantiated it.
        parser.silent = true;
        parser.path(false)?;
    }
    if parser.at == text.len() { Ok(()) } else { Err(Unsupported) }
}

impl Parser<'_, '_, '_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte && self.at < self.text.len();
        self.at += usize::from(there);
        there
    }

    fn print(&mut self, text: &[u8]) -> Done {
        if self.silent { Ok(()) } else { self.output.push(text) }
    }

    fn enter(&mut self) -> Done {
        self.depth += 1;
        self.steps += 1;
        #[cfg(test)]
        super::tests::note_stack();
        if self.depth > DEEPEST || self.steps > MOST_STEPS { Err(Unsupported) } else { Ok(()) }
    }

    /// In a value's path, generic arguments stand behind another `::`.
    fn path(&mut self, of_value: bool) -> Done {
        self.enter()?;
        match self.next() {
            b'C' => {
                self.disambiguator()?;
                self.identifier()?;
            }
            b'M' => {
                self.implementation()?;
                self.print(b"<")?;
                self.ty()?;
                self.print(b">")?;
            }
            code @ (b'X' | b'Y') => {
                if code == b'X' {
                    self.implementation()?;
                }
                self.print(b"<")?;
                self.ty()?;
                self.print(b" as ")?;
                self.path(false)?;
                self.print(b">")?;
            }
            b'N' => self.nested(of_value)?,
            b'I' => {
                self.path(of_value)?;
                self.print(if of_value { b"::<" } else { b"<" })?;
                self.list(Self::generic_argument)?;
                self.print(b">")?;
            }
            b'B' => {
                let back = self.back_reference()?;
                if !self.silent {
                    let here = core::mem::replace(&mut self.at, back);
                    self.path(of_value)?;
                    self.at = here;
                }
            }
            _ => return Err(Unsupported),
        }
        self.depth -= 1;
        Ok(())
    }

    fn nested(&mut self, of_value: bool) -> Done {
        let space = self.next();
        self.path(of_value)?;
        let number = self.disambiguator()?;
        match space {
            b'a'..=b'z' => {
                if self.peek() != b'0' {
                    self.print(b"::")?;
                }
                self.identifier()
            }
            b'A'..=b'Z' => {
                match space {
                    b'C' => self.print(b"::{closure")?,
                    b'S' => self.print(b"::{shim")?,
                    _ => {
                        self.print(b"::{")?;
                        self.print(&[space])?;
                    }
                }
                if self.peek() != b'0' {
                    self.print(b":")?;
                }
                self.identifier()?;
                self.print(b"#")?;
                if !self.silent {
                    self.output.push_number(number)?;
                }
                self.print(b"}")
            }
            _ => Err(Unsupported),
        }
    }

    /// Where an `impl` stands; what it is for says more.
    fn implementation(&mut self) -> Done {
        self.disambiguator()?;
        let before = core::mem::replace(&mut self.silent, true);
        self.path(false)?;
        self.silent = before;
        Ok(())
    }

    /// Up to `E`, with commas.
    fn list(&mut self, part: fn(&mut Self) -> Done) -> Done {
        let mut separator: &[u8] = b"";
        while !self.eat(b'E') {
            self.print(separator)?;
            part(self)?;
            separator = b", ";
        }
        Ok(())
    }

    fn generic_argument(&mut self) -> Done {
        match self.peek() {
            b'L' => {
                self.at += 1;
                if self.base_62()? != 0 {
                    return Err(Unsupported);
                }
                self.print(b"'_")
            }
            b'K' => {
                self.at += 1;
                self.constant()
            }
            _ => self.ty(),
        }
    }

    fn ty(&mut self) -> Done {
        self.enter()?;
        let code = self.peek();
        if let Some(name) = basic(code) {
            self.at += 1;
            self.print(name)?;
        } else if matches!(code, b'C' | b'M' | b'X' | b'Y' | b'N' | b'I') {
            self.path(false)?;
        } else {
            self.at += 1;
            match code {
                b'A' => {
                    self.print(b"[")?;
                    self.ty()?;
                    self.print(b"; ")?;
                    self.constant()?;
                    self.print(b"]")?;
                }
                b'S' => {
                    self.print(b"[")?;
                    self.ty()?;
                    self.print(b"]")?;
                }
                b'T' => {
                    self.print(b"(")?;
                    let start = self.at;
                    self.list(Self::ty)?;
                    let one = self.silent || self.is_single(start)?;
                    self.print(if one { b",)" } else { b")" })?;
                }
                b'R' | b'Q' => {
                    if self.eat(b'L') && self.base_62()? != 0 {
                        return Err(Unsupported);
                    }
                    self.print(if code == b'R' { b"&" } else { b"&mut " })?;
                    self.ty()?;
                }
                b'P' | b'O' => {
                    self.print(if code == b'P' { b"*const " } else { b"*mut " })?;
                    self.ty()?;
                }
                b'B' => {
                    let back = self.back_reference()?;
                    if !self.silent {
                        let here = core::mem::replace(&mut self.at, back);
                        self.ty()?;
                        self.at = here;
                    }
                }
                _ => return Err(Unsupported),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Whether the list of types that begins there has exactly one.
    fn is_single(&mut self, start: usize) -> Result<bool, Unsupported> {
        let end = core::mem::replace(&mut self.at, start);
        self.silent = true;
        let single = self.peek() != b'E' && self.ty().is_ok() && self.peek() == b'E';
        self.silent = false;
        self.at = end;
        Ok(single)
    }

    /// The value of a constant: a number, `true` or `false`, or `_`.
    fn constant(&mut self) -> Done {
        let kind = self.next();
        if kind == b'p' {
            return self.print(b"_");
        }
        if kind == b'B' {
            let back = self.back_reference()?;
            if self.silent {
                return Ok(());
            }
            self.enter()?;
            let here = core::mem::replace(&mut self.at, back);
            self.constant()?;
            self.at = here;
            self.depth -= 1;
            return Ok(());
        }
        let signed = matches!(kind, b'a' | b's' | b'l' | b'x' | b'n' | b'i');
        let unsigned = matches!(kind, b'h' | b't' | b'm' | b'y' | b'o' | b'j');
        if !(signed || unsigned || kind == b'b') {
            return Err(Unsupported);
        }
        if signed && self.eat(b'n') {
            self.print(b"-")?;
        }
        let mut value = 0u64;
        while !self.eat(b'_') {
            let digit = char::from(self.next()).to_digit(16).ok_or(Unsupported)?;
            value = value.checked_mul(16).ok_or(Unsupported)? + u64::from(digit);
        }
        match (kind, value) {
            (b'b', 0) => self.print(b"false"),
            (b'b', 1) => self.print(b"true"),
            (b'b', _) => Err(Unsupported),
            _ if self.silent => Ok(()),
            _ => self.output.push_number(value),
        }
    }

    fn disambiguator(&mut self) -> Result<u64, Unsupported> {
        if self.eat(b's') { self.base_62()?.checked_add(1).ok_or(Unsupported) } else { Ok(0) }
    }

    fn identifier(&mut self) -> Done {
        let mut length = 0usize;
        let start = self.at;
        while self.peek().is_ascii_digit() {
            // A leading zero is all of the number.
            if length == 0 && self.at > start {
                break;
            }
            let digit = usize::from(self.next() - b'0');
            length = length.checked_mul(10).ok_or(Unsupported)?.saturating_add(digit);
        }
        if self.at == start {
            return Err(Unsupported);
        }
        self.eat(b'_');
        let end = self.at.checked_add(length).ok_or(Unsupported)?;
        let name = self.text.get(self.at..end).ok_or(Unsupported)?;
        self.at = end;
        self.print(name)
    }

    /// A position before this one.
    fn back_reference(&mut self) -> Result<usize, Unsupported> {
        let here = self.at - 1;
        let target = usize::try_from(self.base_62()?).map_err(|_| Unsupported)?;
        if target < here { Ok(target) } else { Err(Unsupported) }
    }

    fn base_62(&mut self) -> Result<u64, Unsupported> {
        if self.eat(b'_') {
            return Ok(0);
        }
        let mut number = 0u64;
        loop {
            let digit = match self.next() {
                b'_' => return number.checked_add(1).ok_or(Unsupported),
                c @ b'0'..=b'9' => c - b'0',
                c @ b'a'..=b'z' => c - b'a' + 10,
                c @ b'A'..=b'Z' => c - b'A' + 36,
                _ => return Err(Unsupported),
            };
            let more = number.checked_mul(62).and_then(|n| n.checked_add(u64::from(digit)));
            number = more.ok_or(Unsupported)?;
        }
    }
}

fn basic(code: u8) -> Option<&'static [u8]> {
    Some(match code {
        b'a' => b"i8",
        b'b' => b"bool",
        b'c' => b"char",
        b'd' => b"f64",
        b'e' => b"str",
        b'f' => b"f32",
        b'h' => b"u8",
        b'i' => b"isize",
        b'j' => b"usize",
        b'l' => b"i32",
        b'm' => b"u32",
        b'n' => b"i128",
        b'o' => b"u128",
        b'p' => b"_",
        b's' => b"i16",
        b't' => b"u16",
        b'u' => b"()",
        b'v' => b"...",
        b'x' => b"i64",
        b'y' => b"u64",
        b'z' => b"!",
        _ => return None,
    })
}
