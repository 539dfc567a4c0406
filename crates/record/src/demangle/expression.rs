//! C++ expressions within names. They occur as template arguments, of which literals and addresses
//! of functions are printed, and in the parameters of templates, where they are only passed over.

use super::Unsupported;
use super::builtin::{Written, builtin};
use super::operator::{Operands, operator};
use super::parser::{Done, Last, Parser};

impl Parser<'_, '_, '_> {
    /// `L TYPE VALUE E`: `true`, `8u`, `(Color)2`.
    pub(crate) fn literal(&mut self) -> Done {
        self.expect(b'L')?;
        if self.peek() == b'_' && self.peek_at(1) == b'Z' {
            self.at += 2;
            return self.external();
        }
        let written = builtin(self.peek()).map(|(_, written)| written);
        match written {
            Some(Written::Bool) if matches!(self.peek_at(1), b'0' | b'1') => {
                self.at += 1;
                self.print(if self.peek() == b'1' { b"true" } else { b"false" })?;
                self.at += 1;
            }
            Some(Written::Suffix(suffix)) => {
                self.at += 1;
                self.digits()?;
                self.print(suffix)?;
            }
            _ => {
                self.print(b"(")?;
                self.whole_type()?;
                self.print(b")")?;
                let is_float = written == Some(Written::Float);
                self.print(if is_float { b"[" } else { b"" })?;
                self.digits()?;
                self.print(if is_float { b"]" } else { b"" })?;
            }
        }
        self.expect(b'E')
    }

    /// A function or variable, behind `_Z`, and the `E` behind it.
    fn external(&mut self) -> Done {
        self.encoding()?;
        self.silently(Self::parameters)?;
        self.expect(b'E')
    }

    fn digits(&mut self) -> Done {
        if self.eat(b'n') {
            self.print(b"-")?;
        }
        while self.peek().is_ascii_digit() || matches!(self.peek(), b'a'..=b'f') {
            let digit = [self.peek()];
            self.print(&digit)?;
            self.at += 1;
        }
        Ok(())
    }

    /// An expression. Not silently, only the address of something and literals are understood.
    pub(crate) fn expression(&mut self) -> Done {
        self.enter()?;
        if self.peek() == b'L' {
            self.literal()?;
        } else if self.silent == 0 {
            if (self.peek(), self.peek_at(1), self.peek_at(2)) != (b'a', b'd', b'L') {
                return Err(Unsupported);
            }
            self.at += 2;
            self.print(b"&")?;
            self.literal()?;
        } else {
            self.pass_over()?;
        }
        self.leave();
        Ok(())
    }

    fn expressions_up_to_end(&mut self) -> Done {
        while !self.eat(b'E') {
            self.expression()?;
        }
        Ok(())
    }

    fn pass_over(&mut self) -> Done {
        let code = [self.peek(), self.peek_at(1)];
        match code[0] {
            b'T' => return self.template_parameter(),
            b'0'..=b'9' => {
                self.source_name()?;
                return self.arguments_if_any();
            }
            _ => {}
        }
        self.at += 2;
        match &code {
            b"fp" | b"fL" => {
                if &code == b"fL" {
                    self.number()?;
                    self.expect(b'p')?;
                }
                if &code == b"fp" && self.eat(b'T') {
                    return Ok(());
                }
                while matches!(self.peek(), b'r' | b'V' | b'K') {
                    self.at += 1;
                }
                if self.peek() != b'_' {
                    self.number()?;
                }
                self.expect(b'_')
            }
            b"cl" | b"il" | b"cp" => self.expressions_up_to_end(),
            b"tl" => {
                self.whole_type()?;
                self.expressions_up_to_end()
            }
            b"cv" => {
                self.whole_type()?;
                if self.eat(b'_') { self.expressions_up_to_end() } else { self.expression() }
            }
            b"sc" | b"dc" | b"cc" | b"rc" => {
                self.whole_type()?;
                self.expression()
            }
            b"st" | b"at" | b"ti" => self.whole_type(),
            b"sz" | b"az" | b"te" | b"nx" | b"tw" | b"sp" | b"sZ" => self.expression(),
            b"tr" => Ok(()),
            b"dt" | b"pt" => {
                self.expression()?;
                self.expression()
            }
            b"on" => {
                self.part(Last::None)?;
                self.arguments_if_any()
            }
            b"sr" => {
                self.whole_type()?;
                self.part(Last::None)?;
                self.arguments_if_any()
            }
            b"nw" | b"na" => {
                while !self.eat(b'_') {
                    self.expression()?;
                }
                self.whole_type()?;
                if self.eat(b'E') {
                    return Ok(());
                }
                if &[self.peek(), self.peek_at(1)] != b"pi" {
                    return Err(Unsupported);
                }
                self.at += 2;
                self.expressions_up_to_end()
            }
            b"gs" => self.expression(),
            b"fl" | b"fr" | b"fR" => {
                self.at += 2;
                self.expression()?;
                if &code == b"fR" { self.expression() } else { Ok(()) }
            }
            _ => {
                let (_, operands) = operator(code).ok_or(Unsupported)?;
                let count = match operands {
                    Operands::One => {
                        // `pp_` and `mm_` stand before their operand.
                        self.eat(b'_');
                        1
                    }
                    Operands::Two => 2,
                    Operands::Three => 3,
                    Operands::Special => return Err(Unsupported),
                };
                for _ in 0..count {
                    self.expression()?;
                }
                Ok(())
            }
        }
    }

    fn arguments_if_any(&mut self) -> Done {
        if self.peek() == b'I' { self.template_arguments() } else { Ok(()) }
    }
}
