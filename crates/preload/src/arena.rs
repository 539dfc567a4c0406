//! The library's allocator: pages of its own, never the program's `malloc`.
//!
//! Only the instruction decoder's tables come from here, once. Nothing is given back.

use core::alloc::{GlobalAlloc, Layout};

use relatch_record::sys;

use crate::guard::Guarded;

const CHUNK: usize = 1 << 20;

struct Arena {
    next: usize,
    end: usize,
}

/// Allocates from chunks of anonymous memory.
pub struct OwnPages(Guarded<Arena>);

impl OwnPages {
    /// Empty; the first allocation maps a chunk.
    pub const fn new() -> Self {
        Self(Guarded::new(Arena { next: 0, end: 0 }))
    }
}

impl Default for OwnPages {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: each block lies in a fresh part of an anonymous mapping, aligned as asked, and is given out once.
unsafe impl GlobalAlloc for OwnPages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut arena = self.0.lock();
        let mut at = arena.next.next_multiple_of(layout.align());
        if at + layout.size() > arena.end {
            let size = layout.size().next_multiple_of(CHUNK);
            let Some(chunk) = sys::map_private(size) else { return core::ptr::null_mut() };
            // `next` before `end`: a fork in between leaves an arena that is full, not one that lies.
            at = chunk as usize;
            arena.next = at;
            arena.end = at + size;
        }
        arena.next = at + layout.size();
        at as *mut u8
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[cfg(not(test))]
#[global_allocator]
static OWN_PAGES: OwnPages = OwnPages::new();
