//! The text under construction, in the caller's memory.

use super::Unsupported;

/// Text that grows in a buffer of fixed size.
pub(crate) struct Output<'o> {
    room: &'o mut [u8],
    length: usize,
}

impl<'o> Output<'o> {
    pub(crate) fn new(room: &'o mut [u8]) -> Self {
        Output { room, length: 0 }
    }

    /// Puts all of it at the end, or nothing.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<(), Unsupported> {
        let end = self.length + text.len();
        self.room.get_mut(self.length..end).ok_or(Unsupported)?.copy_from_slice(text);
        self.length = end;
        Ok(())
    }

    /// Puts as much of it at the end as there is room for.
    pub(crate) fn push_cut(&mut self, text: &[u8]) {
        let fits = text.len().min(self.room.len() - self.length);
        self.room[self.length..self.length + fits].copy_from_slice(&text[..fits]);
        self.length += fits;
    }

    pub(crate) fn push_number(&mut self, mut number: u64) -> Result<(), Unsupported> {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.push(&digits[at..]);
            }
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Takes back everything behind the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn last(&self) -> Option<u8> {
        self.room[..self.length].last().copied()
    }

    /// Makes the text UTF-8: drops a character that was cut at the end, and puts `?` for every other
    /// byte that is none. Returns the length of the text.
    pub(crate) fn finish(self) -> usize {
        let mut from = 0;
        loop {
            let Err(error) = core::str::from_utf8(&self.room[from..self.length]) else {
                return self.length;
            };
            from += error.valid_up_to();
            match error.error_len() {
                None => return from,
                Some(bad) => self.room[from..from + bad].fill(b'?'),
            }
        }
    }
}
