//! C++ names: one pass over the mangled text, by recursive descent.
//!
//! Substitutions (`S0_`) are kept as the stretch of input that they stand for and read again where
//! they are used; that takes no memory but a table of positions. Text that is passed over but not
//! printed (parameters of an enclosing function) is read *silently*: it still defines
//! substitutions. Text that is read again does not define them anew.

use super::output::Output;
use super::parser::{Done, Last, Parser, Stands};
use super::{Unsupported, operator};

/// Prints the name that stands behind `_Z`.
pub(crate) fn name(text: &[u8], output: &mut Output<'_>) -> Done {
    let mut parser = Parser::new(text, output)?;
    parser.encoding()?;
    // Behind it are the types of the parameters, if anything.
    let of_types = |&c: &u8| c.is_ascii_alphanumeric() || b"_.$".contains(&c) || c >= 0x80;
    if parser.rest().iter().all(of_types) { Ok(()) } else { Err(Unsupported) }
}

impl Parser<'_, '_, '_> {
    /// A function or variable, without the types of its parameters.
    pub(crate) fn encoding(&mut self) -> Done {
        self.enter()?;
        match (self.peek(), self.peek_at(1)) {
            (b'T' | b'G', _) => self.special_name()?,
            _ => self.name()?,
        }
        self.leave();
        Ok(())
    }

    fn special_name(&mut self) -> Done {
        let code = [self.peek(), self.peek_at(1)];
        self.at += 2;
        let (what, of_type): (&[u8], bool) = match &code {
            b"TV" => (b"vtable for ", true),
            b"TT" => (b"VTT for ", true),
            b"TI" => (b"typeinfo for ", true),
            b"TS" => (b"typeinfo name for ", true),
            b"TW" => (b"TLS wrapper function for ", false),
            b"TH" => (b"TLS init function for ", false),
            b"GV" => (b"guard variable for ", false),
            b"Th" => {
                self.at -= 1;
                self.call_offset()?;
                (b"non-virtual thunk to ", false)
            }
            b"Tv" => {
                self.at -= 1;
                self.call_offset()?;
                (b"virtual thunk to ", false)
            }
            b"Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                (b"covariant return thunk to ", false)
            }
            b"GT" => {
                let transactional = self.eat(b't');
                if !transactional {
                    self.expect(b'n')?;
                }
                let text: &[u8] = if transactional { b"transaction" } else { b"non-transaction" };
                self.print(text)?;
                (b" clone for ", false)
            }
            _ => return Err(Unsupported),
        };
        self.print(what)?;
        match (&code, of_type) {
            (_, true) => self.whole_type(),
            (b"Th" | b"Tv" | b"Tc" | b"GT", _) => self.encoding(),
            _ => self.name(),
        }
    }

    fn call_offset(&mut self) -> Done {
        let numbers = match self.peek() {
            b'h' => 1,
            b'v' => 2,
            _ => return Err(Unsupported),
        };
        self.at += 1;
        for _ in 0..numbers {
            self.eat(b'n');
            self.number()?;
            self.expect(b'_')?;
        }
        Ok(())
    }

    /// A name, and with it what it is nested in.
    pub(crate) fn name(&mut self) -> Done {
        self.enter()?;
        match self.peek() {
            b'N' => self.nested_name()?,
            b'Z' => self.local_name()?,
            b'S' if self.peek_at(1) != b't' => {
                self.substitution(false)?;
                if self.peek() != b'I' {
                    return Err(Unsupported);
                }
                self.template_arguments()?;
            }
            _ => {
                let start = self.at;
                if self.peek() == b'S' {
                    self.at += 2;
                    self.print(b"std::")?;
                }
                let last = self.part(Last::None)?;
                if self.peek() == b'I' {
                    self.define(start, Stands::Prefix);
                    self.template_arguments()?;
                }
                self.last = last;
            }
        }
        self.leave();
        Ok(())
    }

    fn nested_name(&mut self) -> Done {
        self.expect(b'N')?;
        // Qualifiers of a member function, which stand behind its parameters.
        while matches!(self.peek(), b'r' | b'V' | b'K') {
            self.at += 1;
        }
        if matches!(self.peek(), b'R' | b'O') {
            self.at += 1;
        }
        self.prefix(None)?;
        self.expect(b'E')
    }

    /// The parts of a qualified name: up to `E`, or up to a position where they are read again.
    fn prefix(&mut self, end: Option<usize>) -> Done {
        let start = self.at;
        let mut last = Last::None;
        let mut any = false;
        // A part becomes a substitution once it turns out that another one follows.
        let mut pending = false;
        loop {
            if end == Some(self.at) || (end.is_none() && self.peek() == b'E') {
                if !any {
                    return Err(Unsupported);
                }
                self.last = last;
                return Ok(());
            }
            if pending {
                self.define(start, Stands::Prefix);
            }
            pending = true;
            match self.peek() {
                b'S' if !any => {
                    pending = false;
                    if self.peek_at(1) == b't' {
                        self.at += 2;
                        self.print(b"std")?;
                    } else {
                        self.substitution(true)?;
                        last = self.last;
                    }
                }
                b'T' if !any => self.template_parameter()?,
                b'D' if matches!(self.peek_at(1), b't' | b'T') => self.whole_decltype()?,
                b'I' if any => self.template_arguments()?,
                b'Z' if !any => {
                    self.local_name()?;
                    last = self.last;
                }
                b'M' if any => {
                    // The initializer of the member before it, in which a lambda stands.
                    self.at += 1;
                    pending = false;
                }
                _ => {
                    if any {
                        self.print(b"::")?;
                    }
                    last = self.part(last)?;
                }
            }
            any = true;
        }
    }

    /// `Z FUNCTION E NAME`: something declared within a function.
    fn local_name(&mut self) -> Done {
        self.enter()?;
        self.expect(b'Z')?;
        self.encoding()?;
        self.silent += 1;
        self.parameters()?;
        self.silent -= 1;
        self.expect(b'E')?;
        match self.peek() {
            b's' => {
                self.at += 1;
                self.print(b"::string literal")?;
                self.discriminator()?;
                self.last = Last::None;
            }
            b'd' => {
                self.at += 1;
                let number = if self.peek() == b'_' { 1 } else { self.number()? as u64 + 2 };
                self.expect(b'_')?;
                self.print(b"::{default arg#")?;
                self.print_number(number)?;
                self.print(b"}::")?;
                self.name()?;
            }
            _ => {
                self.print(b"::")?;
                self.name()?;
                let last = self.last;
                self.discriminator()?;
                self.last = last;
            }
        }
        self.leave();
        Ok(())
    }

    /// The types of parameters, up to `E`.
    pub(crate) fn parameters(&mut self) -> Done {
        while self.peek() != b'E' {
            self.whole_type()?;
        }
        Ok(())
    }

    /// Tells equal names within one function apart; not printed.
    fn discriminator(&mut self) -> Done {
        if self.peek() != b'_' {
            return Ok(());
        }
        self.at += 1;
        if self.eat(b'_') {
            self.number()?;
            return self.expect(b'_');
        }
        if !self.peek().is_ascii_digit() {
            return Err(Unsupported);
        }
        self.at += 1;
        Ok(())
    }

    /// One part of a qualified name. Returns what a constructor behind it is called.
    pub(crate) fn part(&mut self, before: Last) -> Result<Last, Unsupported> {
        let start = self.at;
        let mut last = Last::At(start);
        match self.peek() {
            b'0'..=b'9' => self.source_name()?,
            b'L' => {
                // Visible in one file only.
                self.at += 1;
                self.source_name()?;
                self.discriminator()?;
            }
            b'C' => {
                self.at += 1;
                let inherited = self.eat(b'I');
                if !matches!(self.peek(), b'1'..=b'5') {
                    return Err(Unsupported);
                }
                self.at += 1;
                self.print_last(before)?;
                if inherited {
                    self.silently(Self::whole_type)?;
                }
                last = before;
            }
            b'D' if self.peek_at(1) == b'C' => {
                self.at += 2;
                self.print(b"[")?;
                let mut separator: &[u8] = b"";
                while !self.eat(b'E') {
                    self.print(separator)?;
                    self.source_name()?;
                    separator = b", ";
                }
                self.print(b"]")?;
            }
            b'D' => {
                if !matches!(self.peek_at(1), b'0'..=b'5') {
                    return Err(Unsupported);
                }
                self.at += 2;
                self.print(b"~")?;
                self.print_last(before)?;
                last = before;
            }
            b'U' => self.unnamed()?,
            b'a'..=b'z' => self.operator_name()?,
            _ => return Err(Unsupported),
        }
        while self.eat(b'B') {
            self.print(b"[abi:")?;
            self.source_name()?;
            self.print(b"]")?;
        }
        Ok(last)
    }

    fn print_last(&mut self, last: Last) -> Done {
        match last {
            Last::None => Err(Unsupported),
            Last::Known(name) => self.print(name),
            Last::At(_) if self.silent > 0 => Ok(()),
            Last::At(position) => {
                self.enter()?;
                let back = self.at;
                self.at = position;
                self.again += 1;
                if self.peek().is_ascii_digit() {
                    self.source_name()?;
                } else {
                    self.part(Last::None)?;
                }
                self.again -= 1;
                self.at = back;
                self.leave();
                Ok(())
            }
        }
    }

    pub(crate) fn source_name(&mut self) -> Done {
        let length = self.number()?;
        let end = self.at.checked_add(length).filter(|_| length > 0).ok_or(Unsupported)?;
        let name = self.rest().get(..length).ok_or(Unsupported)?;
        self.at = end;
        let is_anonymous = name.strip_prefix(b"_GLOBAL_").is_some_and(|rest| {
            matches!(rest.first(), Some(b'.' | b'_' | b'$')) && rest.get(1) == Some(&b'N')
        });
        self.print(if is_anonymous { b"(anonymous namespace)" } else { name })
    }

    /// A lambda or a type without a name.
    fn unnamed(&mut self) -> Done {
        let kind = self.peek_at(1);
        self.at += 2;
        match kind {
            b'l' => {
                self.silent += 1;
                self.parameters()?;
                self.silent -= 1;
                self.expect(b'E')?;
                self.print(b"{lambda#")?;
            }
            b't' => self.print(b"{unnamed type#")?,
            _ => return Err(Unsupported),
        }
        let number = if self.peek() == b'_' { 1 } else { self.number()? as u64 + 2 };
        self.expect(b'_')?;
        self.print_number(number)?;
        self.print(b"}")
    }

    fn operator_name(&mut self) -> Done {
        let code = [self.peek(), self.peek_at(1)];
        self.at += 2;
        match &code {
            b"cv" => {
                self.print(b"operator ")?;
                self.whole_type()
            }
            b"li" => {
                self.print(b"operator\"\" ")?;
                self.source_name()
            }
            _ => {
                let (spelling, _) = operator::operator(code).ok_or(Unsupported)?;
                self.print(b"operator")?;
                self.print(spelling)
            }
        }
    }

    /// `IiJdcEE`: `<int, double, char>`.
    pub(crate) fn template_arguments(&mut self) -> Done {
        self.enter()?;
        if !matches!(self.peek(), b'I' | b'J') {
            return Err(Unsupported);
        }
        let last = self.last;
        if self.silent == 0 && self.output.last() == Some(b'<') {
            self.print(b" ")?;
        }
        self.print(b"<")?;
        self.argument_list()?;
        if self.silent == 0 && self.output.last() == Some(b'>') {
            self.print(b" ")?;
        }
        self.print(b">")?;
        self.last = last;
        self.leave();
        Ok(())
    }

    /// Arguments without the brackets; a pack of none leaves no comma.
    fn argument_list(&mut self) -> Done {
        self.enter()?;
        self.at += 1;
        let first = self.output.length();
        while !self.eat(b'E') {
            let before = self.output.length();
            if before > first {
                self.print(b", ")?;
            }
            let begun = self.output.length();
            match self.peek() {
                b'I' | b'J' => self.argument_list()?,
                b'L' => self.literal()?,
                b'X' => {
                    self.at += 1;
                    self.expression()?;
                    self.expect(b'E')?;
                }
                _ => self.whole_type()?,
            }
            if self.output.length() == begun {
                self.output.truncate(before);
            }
        }
        self.leave();
        Ok(())
    }

    /// `S_`, `S0_` or an abbreviation (`St` aside). Before a constructor (`in_prefix`) the abbreviated
    /// template is spelled out.
    pub(crate) fn substitution(&mut self, in_prefix: bool) -> Done {
        if let Some(sub) = self.numbered_substitution()? {
            if self.silent > 0 {
                self.last = Last::None;
                return Ok(());
            }
            self.enter()?;
            let back = self.at;
            self.at = sub.start();
            self.again += 1;
            match sub.prefix_end() {
                Some(end) => self.prefix(Some(end))?,
                None => self.left_half()?,
            }
            self.again -= 1;
            self.at = back;
            self.leave();
            return Ok(());
        }
        let code = self.peek();
        self.at += 1;
        let constructs = in_prefix && matches!(self.peek(), b'C' | b'D');
        let (short, long, last): (&[u8], &[u8], &'static [u8]) = match code {
            b'a' => (b"std::allocator", b"std::allocator", b"allocator"),
            b'b' => (b"std::basic_string", b"std::basic_string", b"basic_string"),
            b's' => (
                b"std::string",
                b"std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                b"basic_string",
            ),
            b'i' => (
                b"std::istream",
                b"std::basic_istream<char, std::char_traits<char> >",
                b"basic_istream",
            ),
            b'o' => (
                b"std::ostream",
                b"std::basic_ostream<char, std::char_traits<char> >",
                b"basic_ostream",
            ),
            b'd' => (
                b"std::iostream",
                b"std::basic_iostream<char, std::char_traits<char> >",
                b"basic_iostream",
            ),
            _ => return Err(Unsupported),
        };
        self.last = Last::Known(last);
        self.print(if constructs { long } else { short })
    }
}
