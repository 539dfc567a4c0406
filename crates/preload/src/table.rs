//! A number by the address of a lock, for locks that have no room for it themselves.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize};

/// How many entries are looked at for an address.
const PROBES: usize = 64;

/// Room for `N` addresses, a power of two.
pub struct Table<const N: usize> {
    entries: [Entry; N],
}

/// An address, for good, and its number.
pub struct Entry {
    lock: AtomicUsize,
    /// The number; 0: none.
    pub number: AtomicU32,
}

impl<const N: usize> Table<N> {
    /// No addresses.
    pub const fn new() -> Self {
        Self {
            entries: [const { Entry { lock: AtomicUsize::new(0), number: AtomicU32::new(0) } }; N],
        }
    }

    fn candidates(&self, lock: usize) -> impl Iterator<Item = &Entry> {
        let first = (lock >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - N.trailing_zeros());
        (0..PROBES).map(move |i| &self.entries[(first + i) % N])
    }

    /// The entry of an address.
    #[inline]
    pub fn find(&self, lock: usize) -> Option<&Entry> {
        for entry in self.candidates(lock) {
            match entry.lock.load(Relaxed) {
                0 => return None,
                found if found == lock => return Some(entry),
                _ => {}
            }
        }
        None
    }

    /// Finds or makes the entry of an address; none when 64 others are in the way.
    pub fn enter(&self, lock: usize) -> Option<&Entry> {
        self.candidates(lock).find(|entry| {
            // Relaxed: an entry's number says by itself whether it is filled.
            match entry.lock.compare_exchange(0, lock, Relaxed, Relaxed) {
                Ok(_) => true,
                Err(found) => found == lock,
            }
        })
    }
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_their_numbers() {
        static TABLE: Table<256> = Table::new();
        for lock in (8..200).step_by(8) {
            TABLE.enter(lock).unwrap().number.store(lock as u32, Relaxed);
        }
        for lock in (8..200).step_by(8) {
            assert_eq!(TABLE.find(lock).unwrap().number.load(Relaxed), lock as u32);
        }
        assert!(TABLE.find(0x1000).is_none());
    }

    #[test]
    fn a_full_table_has_no_entry_more() {
        static TABLE: Table<64> = Table::new();
        let entered = (1..=100).filter(|lock| TABLE.enter(lock * 4).is_some()).count();
        assert_eq!(entered, 64);
    }
}
