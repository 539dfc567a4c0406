//! The state of reading a C++ name, and the steps that all parts of its grammar share.

use super::Unsupported;
use super::output::Output;

pub(crate) type Done = Result<(), Unsupported>;

/// Levels of the grammar within each other; bounds the use of the stack.
const DEEPEST: u32 = 32;
/// Parts read, those read again counted again; bounds the time, which substitutions of
/// substitutions would else let grow without limit.
const MOST_STEPS: u32 = 20_000;
const MOST_SUBSTITUTIONS: usize = 128;

/// What a substitution stands for.
#[derive(Clone, Copy)]
pub(crate) enum Stands {
    /// A type.
    Type,
    /// The first parts of a qualified name.
    Prefix,
}

/// A stretch of the input that is referred to again.
#[derive(Clone, Copy)]
pub(crate) struct Substitution {
    start: u16,
    /// The end, with the top bit set for a prefix.
    end: u16,
}

const PREFIX: u16 = 1 << 15;

/// The last part of a qualified name, which constructors repeat.
#[derive(Clone, Copy)]
pub(crate) enum Last {
    None,
    /// The part that begins there.
    At(usize),
    /// That of an abbreviation.
    Known(&'static [u8]),
}

/// Where reading stands, and what has been defined so far.
pub(crate) struct Parser<'a, 'p, 'o> {
    text: &'a [u8],
    pub(crate) at: usize,
    pub(crate) output: &'p mut Output<'o>,
    /// Prints nothing while this is not 0.
    pub(crate) silent: u32,
    /// Defines no substitutions while this is not 0.
    pub(crate) again: u32,
    depth: u32,
    steps: u32,
    substitutions: [Substitution; MOST_SUBSTITUTIONS],
    defined: usize,
    /// The last part of the name that was read last.
    pub(crate) last: Last,
    /// Whether the type being printed goes on behind the name (functions and arrays).
    pub(crate) two_halves: bool,
}

impl<'a, 'p, 'o> Parser<'a, 'p, 'o> {
    pub(crate) fn new(text: &'a [u8], output: &'p mut Output<'o>) -> Result<Self, Unsupported> {
        if text.len() >= usize::from(PREFIX) {
            return Err(Unsupported);
        }
        Ok(Parser {
            text,
            at: 0,
            output,
            silent: 0,
            again: 0,
            depth: 0,
            steps: 0,
            substitutions: [Substitution { start: 0, end: 0 }; MOST_SUBSTITUTIONS],
            defined: 0,
            last: Last::None,
            two_halves: false,
        })
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// The next byte; 0 behind the end.
    pub(crate) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// 0 behind the end.
    pub(crate) fn peek_at(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes past this byte if it comes next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte && self.at < self.text.len();
        self.at += usize::from(there);
        there
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Done {
        if self.eat(byte) { Ok(()) } else { Err(Unsupported) }
    }

    pub(crate) fn print(&mut self, text: &[u8]) -> Done {
        if self.silent > 0 { Ok(()) } else { self.output.push(text) }
    }

    pub(crate) fn print_number(&mut self, number: u64) -> Done {
        if self.silent > 0 { Ok(()) } else { self.output.push_number(number) }
    }

    /// One level deeper in the grammar.
    pub(crate) fn enter(&mut self) -> Done {
        self.depth += 1;
        self.steps += 1;
        #[cfg(test)]
        super::tests::note_stack();
        if self.depth > DEEPEST || self.steps > MOST_STEPS { Err(Unsupported) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reads a part without printing it.
    pub(crate) fn silently(&mut self, part: fn(&mut Self) -> Done) -> Done {
        self.silent += 1;
        part(self)?;
        self.silent -= 1;
        Ok(())
    }

    /// What was read since `start` is the next substitution.
    pub(crate) fn define(&mut self, start: usize, stands: Stands) {
        if self.again > 0 {
            return;
        }
        if let Some(slot) = self.substitutions.get_mut(self.defined) {
            let mark = if matches!(stands, Stands::Prefix) { PREFIX } else { 0 };
            *slot = Substitution { start: start as u16, end: self.at as u16 | mark };
        }
        self.defined += 1;
    }

    pub(crate) fn number(&mut self) -> Result<usize, Unsupported> {
        let start = self.at;
        let mut number = 0usize;
        while self.peek().is_ascii_digit() {
            let digit = usize::from(self.peek() - b'0');
            number =
                number.checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or(Unsupported)?;
            self.at += 1;
        }
        if self.at == start { Err(Unsupported) } else { Ok(number) }
    }

    /// The number of `_`, `0_`, `1_`, ...
    pub(crate) fn sequence(&mut self) -> Result<usize, Unsupported> {
        if self.eat(b'_') {
            return Ok(0);
        }
        let mut number = 0usize;
        loop {
            let digit = match self.peek() {
                c @ b'0'..=b'9' => c - b'0',
                c @ b'A'..=b'Z' => c - b'A' + 10,
                _ => return Err(Unsupported),
            };
            self.at += 1;
            number = (number * 36 + usize::from(digit)).min(1 << 20);
            if self.eat(b'_') {
                return Ok(number + 1);
            }
        }
    }

    /// Reads `S` and, if a number follows, what it refers to.
    pub(crate) fn numbered_substitution(&mut self) -> Result<Option<Substitution>, Unsupported> {
        self.expect(b'S')?;
        if !matches!(self.peek(), b'_' | b'0'..=b'9' | b'A'..=b'Z') {
            return Ok(None);
        }
        let number = self.sequence()?;
        if number >= self.defined {
            return Err(Unsupported);
        }
        self.substitutions.get(number).copied().map(Some).ok_or(Unsupported)
    }
}

impl Substitution {
    /// Where a prefix ends, if it is one.
    pub(crate) fn prefix_end(self) -> Option<usize> {
        (self.end & PREFIX != 0).then_some(usize::from(self.end & !PREFIX))
    }

    pub(crate) fn start(self) -> usize {
        usize::from(self.start)
    }

    /// Where the type begins that it stands for.
    pub(crate) fn type_start(self) -> Option<usize> {
        (self.end & PREFIX == 0).then_some(usize::from(self.start))
    }
}
