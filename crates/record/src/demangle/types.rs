//! C++ types, which are written around a name: `void (*)(int)` has a half before it and a half
//! behind it. The left half is printed on the way, the right half, if there is one, by reading the
//! type again.

use super::Unsupported;
use super::builtin::builtin;
use super::parser::{Done, Last, Parser, Stands};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Left,
    Right,
}

/// What a pointer to it needs brackets for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Function,
    Array,
}

impl Parser<'_, '_, '_> {
    /// A type, both halves.
    pub(crate) fn whole_type(&mut self) -> Done {
        let start = self.at;
        let outer = core::mem::replace(&mut self.two_halves, false);
        self.half(Half::Left)?;
        let inner = core::mem::replace(&mut self.two_halves, outer);
        if inner && self.silent == 0 {
            let end = self.at;
            self.read_again(start, |parser| parser.half(Half::Right))?;
            self.at = end;
        }
        Ok(())
    }

    /// The left half of a type, which is all of a class.
    pub(crate) fn left_half(&mut self) -> Done {
        self.half(Half::Left)
    }

    fn read_again(&mut self, start: usize, part: fn(&mut Self) -> Done) -> Done {
        self.at = start;
        self.again += 1;
        part(self)?;
        self.again -= 1;
        Ok(())
    }

    /// What belongs into the left half only.
    fn print_left(&mut self, half: Half, text: &[u8]) -> Done {
        if half == Half::Left { self.print(text) } else { Ok(()) }
    }

    /// Reads a part that is printed in the left half only.
    fn left_only(&mut self, half: Half, part: fn(&mut Self) -> Done) -> Done {
        match half {
            Half::Left => part(self),
            Half::Right => self.silently(part),
        }
    }

    fn half(&mut self, half: Half) -> Done {
        self.enter()?;
        let start = self.at;
        let byte = self.peek();
        let mut becomes_substitution = true;
        match byte {
            b'r' | b'V' | b'K' => self.qualified(half)?,
            b'P' => self.pointer(half, b"*")?,
            b'R' => self.pointer(half, b"&")?,
            b'O' => self.pointer(half, b"&&")?,
            b'F' => self.function(half)?,
            b'A' => self.array(half)?,
            b'M' => self.member_pointer(half)?,
            b'S' if self.peek_at(1) != b't' => becomes_substitution = self.substituted(half)?,
            b'0'..=b'9' | b'N' | b'Z' | b'S' => self.left_only(half, Self::name)?,
            b'T' => {
                self.template_parameter()?;
                if self.peek() == b'I' {
                    self.define(start, Stands::Prefix);
                    self.left_only(half, Self::template_arguments)?;
                }
            }
            b'C' | b'G' => {
                self.at += 1;
                self.half(half)?;
                self.print_left(half, if byte == b'C' { b" _Complex" } else { b" _Imaginary" })?;
            }
            b'u' => {
                self.at += 1;
                self.left_only(half, Self::source_name)?;
            }
            b'U' => return Err(Unsupported),
            b'D' => becomes_substitution = self.d_type(half)?,
            _ => {
                let (name, _) = builtin(byte).ok_or(Unsupported)?;
                self.at += 1;
                self.print_left(half, name)?;
                becomes_substitution = false;
            }
        }
        if becomes_substitution {
            self.define(start, Stands::Type);
        }
        self.leave();
        Ok(())
    }

    /// Qualifiers, all of which make one substitution with the type behind them.
    fn qualified(&mut self, half: Half) -> Done {
        let qualifiers = self.at;
        while matches!(self.peek(), b'r' | b'V' | b'K') {
            self.at += 1;
        }
        let unqualified = self.at;
        let shape = self.shape(unqualified);
        if self.peek() == b'F' {
            // The qualifiers of a member function are part of its type.
            self.function(half)?;
        } else {
            self.half(half)?;
        }
        // Those of a function stand behind its parameters, others behind the name of the type.
        if (shape == Shape::Function) == (half == Half::Right) {
            let end = self.at;
            for at in (qualifiers..unqualified).rev() {
                self.at = at;
                match self.peek() {
                    b'r' => self.print(b" __restrict")?,
                    b'V' => self.print(b" volatile")?,
                    _ => self.print(b" const")?,
                }
            }
            self.at = end;
        }
        Ok(())
    }

    fn pointer(&mut self, half: Half, sign: &[u8]) -> Done {
        self.at += 1;
        let shape = self.shape(self.at);
        if half == Half::Right && shape != Shape::Plain {
            self.print(b")")?;
        }
        self.half(half)?;
        if half == Half::Left {
            self.open(shape)?;
            self.print(sign)?;
        }
        Ok(())
    }

    fn open(&mut self, shape: Shape) -> Done {
        match shape {
            Shape::Plain => Ok(()),
            Shape::Function => self.print(b"("),
            Shape::Array => self.print(b" ("),
        }
    }

    fn function(&mut self, half: Half) -> Done {
        self.enter()?;
        self.expect(b'F')?;
        self.eat(b'Y');
        let result = self.at;
        match half {
            Half::Left => {
                self.two_halves = false;
                self.half(Half::Left)?;
                if !self.two_halves {
                    self.print(b" ")?;
                }
                self.two_halves = true;
                self.silent += 1;
                self.function_parameters()?;
                self.silent -= 1;
            }
            Half::Right => {
                self.silently(|parser| parser.half(Half::Left))?;
                self.print(b"(")?;
                self.function_parameters()?;
                let end = self.at;
                self.at = result;
                self.half(Half::Right)?;
                self.at = end;
            }
        }
        self.leave();
        Ok(())
    }

    /// Up to and with the `E` of a function type, and the bracket behind it.
    fn function_parameters(&mut self) -> Done {
        let begun = self.output.length();
        if self.peek() == b'v' && matches!(self.peek_at(1), b'E' | b'R' | b'O') {
            self.at += 1;
        }
        loop {
            match (self.peek(), self.peek_at(1)) {
                (b'E', _) => {
                    self.at += 1;
                    return self.print(b")");
                }
                (sign @ (b'R' | b'O'), b'E') => {
                    self.at += 2;
                    return self.print(if sign == b'R' { b") &" } else { b") &&" });
                }
                _ => {
                    if self.output.length() > begun {
                        self.print(b", ")?;
                    }
                    self.whole_type()?;
                }
            }
        }
    }

    fn array(&mut self, half: Half) -> Done {
        self.at += 1;
        let size = self.at;
        let has_number = self.peek().is_ascii_digit();
        if has_number {
            self.number()?;
        } else if self.peek() != b'_' {
            self.silently(Self::expression)?;
            // A size that depends on a parameter is not spelled out.
            if self.silent == 0 {
                return Err(Unsupported);
            }
        }
        self.expect(b'_')?;
        if half == Half::Right {
            let element = self.at;
            if self.silent == 0 && self.output.last() != Some(b']') {
                self.print(b" ")?;
            }
            self.print(b"[")?;
            self.at = size;
            while self.peek().is_ascii_digit() {
                let digit = [self.peek()];
                self.print(&digit)?;
                self.at += 1;
            }
            self.print(b"]")?;
            self.at = element;
        }
        self.half(half)?;
        self.two_halves = true;
        Ok(())
    }

    fn member_pointer(&mut self, half: Half) -> Done {
        self.at += 1;
        let class = self.at;
        self.silently(Self::whole_type)?;
        let shape = self.shape(self.at);
        if half == Half::Right && shape != Shape::Plain {
            self.print(b")")?;
        }
        self.half(half)?;
        if half == Half::Left {
            match shape {
                Shape::Plain => self.print(b" ")?,
                _ => self.open(shape)?,
            }
            if self.silent == 0 {
                let end = self.at;
                self.read_again(class, Self::whole_type)?;
                self.at = end;
            }
            self.print(b"::*")?;
        }
        Ok(())
    }

    /// `S_` and the like as a type. Returns whether it becomes another substitution, since template
    /// arguments follow.
    fn substituted(&mut self, half: Half) -> Result<bool, Unsupported> {
        let start = self.at;
        match self.numbered_substitution()? {
            Some(sub) => {
                if let Some(type_start) = sub.type_start().filter(|_| self.silent == 0) {
                    let back = self.at;
                    self.again += 1;
                    self.at = type_start;
                    self.half(half)?;
                    self.again -= 1;
                    self.at = back;
                } else if half == Half::Left {
                    self.at = start;
                    self.substitution(false)?;
                }
            }
            None => {
                self.at = start;
                self.left_only(half, |parser| parser.substitution(false))?;
            }
        }
        if self.peek() != b'I' {
            return Ok(false);
        }
        self.left_only(half, Self::template_arguments)?;
        Ok(true)
    }

    /// `T_`, a parameter of an enclosing template: its argument is not looked up.
    pub(crate) fn template_parameter(&mut self) -> Done {
        if self.silent == 0 {
            return Err(Unsupported);
        }
        self.expect(b'T')?;
        if self.eat(b'L') {
            self.number()?;
            self.expect(b'_')?;
        }
        self.sequence()?;
        self.last = Last::None;
        Ok(())
    }

    pub(crate) fn whole_decltype(&mut self) -> Done {
        if self.silent == 0 {
            return Err(Unsupported);
        }
        self.at += 2;
        self.expression()?;
        self.expect(b'E')
    }

    /// The types whose code begins with `D`. Returns whether it becomes a substitution.
    fn d_type(&mut self, half: Half) -> Result<bool, Unsupported> {
        let code = self.peek_at(1);
        let name: &[u8] = match code {
            b't' | b'T' => {
                self.whole_decltype()?;
                return Ok(true);
            }
            b'p' => {
                // An expansion of what is no pack: only within a template's own text.
                if self.silent == 0 {
                    return Err(Unsupported);
                }
                self.at += 2;
                self.half(half)?;
                return Ok(true);
            }
            b'o' => {
                self.at += 2;
                self.function(half)?;
                if half == Half::Right {
                    self.print(b" noexcept")?;
                }
                return Ok(true);
            }
            b'v' => {
                self.at += 2;
                let size = self.number()?;
                self.expect(b'_')?;
                self.half(half)?;
                if half == Half::Left {
                    self.print(b" __vector(")?;
                    self.print_number(size as u64)?;
                    self.print(b")")?;
                }
                return Ok(true);
            }
            b'F' => {
                self.at += 2;
                let bits = self.number()?;
                let suffix = self.peek();
                if !(matches!(suffix, b'_' | b'x') || (suffix == b'b' && bits == 16)) {
                    return Err(Unsupported);
                }
                self.at += 1;
                if half == Half::Left && suffix == b'b' {
                    self.print(b"std::bfloat16_t")?;
                } else if half == Half::Left {
                    self.print(b"_Float")?;
                    self.print_number(bits as u64)?;
                    self.print(if suffix == b'x' { b"x" } else { b"" })?;
                }
                return Ok(false);
            }
            b'a' => b"auto",
            b'c' => b"decltype(auto)",
            b'd' => b"decimal64",
            b'e' => b"decimal128",
            b'f' => b"decimal32",
            b'h' => b"half",
            b'i' => b"char32_t",
            b'n' => b"decltype(nullptr)",
            b's' => b"char16_t",
            b'u' => b"char8_t",
            _ => return Err(Unsupported),
        };
        self.at += 2;
        self.print_left(half, name)?;
        Ok(false)
    }

    /// The shape of the type that begins there, substitutions followed.
    fn shape(&mut self, start: usize) -> Shape {
        let back = self.at;
        self.at = start;
        let mut shape = Shape::Plain;
        // Each substitution refers to an earlier one; the bound is for damaged names.
        for _ in 0..64 {
            match (self.peek(), self.peek_at(1)) {
                (b'r' | b'V' | b'K', _) => self.at += 1,
                (b'D', b'o') => self.at += 2,
                (b'F', _) => shape = Shape::Function,
                (b'A', _) => shape = Shape::Array,
                (b'S', _) => {
                    let sub = self.numbered_substitution().ok().flatten();
                    match sub.and_then(|sub| sub.type_start()) {
                        // A template's name, if arguments follow, and thus a class.
                        Some(type_start) if self.peek() != b'I' => self.at = type_start,
                        _ => break,
                    }
                }
                _ => break,
            }
            if shape != Shape::Plain {
                break;
            }
        }
        self.at = back;
        shape
    }
}
