//! Return addresses, each looked at once: is the function that it lies in a wrapper or a site?
//!
//! # Wrappers
//! A function is a wrapper when it *returns while the lock that it took is still held*:
//! `port::Mutex::Lock`, the constructor of `std::lock_guard`, `RWLock::lock_reader`, `cache_lock(c)`.
//! What holds the lock then is the function above, and that is where a reader looks for the section. It
//! covers a function that passes its own argument on, and also those that reach the lock through a
//! pointer or a table, which the argument alone would not show.
//!
//! That is seen at the first release: if the frame that acquired is no longer on the stack, its function
//! is a wrapper. Until then the return address is *undecided*, and a section remembers the frames above
//! it. A long function is a site at once ([`WRAPPER_BYTES`]): one that drops a lock of its caller and
//! takes it again before it returns looks like a wrapper, but is not short.
//!
//! A place never changes once decided, so a site's name does not depend on what else a run did.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};

use crate::guard::Guarded;
use crate::unwind::{self, Up};
use crate::{names, settings};

/// A longer function is no wrapper.
const WRAPPER_BYTES: usize = 1024;
/// How many frames above a lock call are looked at.
pub const FRAMES: usize = 8;
/// Room for return addresses.
const PLACES: usize = 8192;
/// How many entries are looked at for one.
const PROBES: usize = 64;

/// [`Place::state`]: not yet decided.
pub const UNDECIDED: u8 = 0;
/// [`Place::state`]: acquires for itself.
pub const SITE: u8 = 1;
/// [`Place::state`]: acquires for its caller.
pub const WRAPPER: u8 = 2;

/// Where a hook was called from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Caller {
    /// The stack pointer at the hook's entry: where the return address lies.
    pub stack: usize,
    /// The caller's frame pointer.
    pub frame_pointer: usize,
}

/// A return address and what is known about it.
#[repr(align(64))]
pub struct Place {
    /// The return address; 0: an empty entry. Written last.
    address: AtomicUsize,
    state: AtomicU8,
    /// Whether the call before it passes the caller's own argument on: 0 not looked at, 1 no, 2 yes.
    pub passes: AtomicU8,
    /// Bit 0: the step below is known; bit 1: it starts from the frame pointer; bit 2: the caller's
    /// frame pointer was saved.
    up_kind: AtomicU8,
    offset: AtomicU32,
    frame_pointer_at: AtomicU32,
    /// First address of the function, and its length.
    start: AtomicUsize,
    length: AtomicU32,
    /// The recording's index of this site, plus one.
    pub site: AtomicU32,
    /// Per kind: the index, plus one, of the class whose origin is this place.
    pub class: [AtomicU32; 4],
    /// Per kind: what the plan decides by this place's name, a code of `convert`; 0: not looked at.
    pub conversion: [AtomicU8; 4],
    /// Whether it takes mutexes shared, per conversion: see `convert::share`.
    pub shares: AtomicU32,
}

impl Place {
    const fn empty() -> Place {
        Place {
            address: AtomicUsize::new(0),
            state: AtomicU8::new(SITE),
            passes: AtomicU8::new(0),
            up_kind: AtomicU8::new(0),
            offset: AtomicU32::new(0),
            frame_pointer_at: AtomicU32::new(0),
            start: AtomicUsize::new(0),
            length: AtomicU32::new(0),
            site: AtomicU32::new(0),
            class: [const { AtomicU32::new(0) }; 4],
            conversion: [const { AtomicU8::new(0) }; 4],
            shares: AtomicU32::new(0),
        }
    }

    /// The return address; 0 for the place of all that found no room.
    pub fn address(&self) -> usize {
        self.address.load(Relaxed)
    }

    /// First address and length of its function, where known.
    pub fn function(&self) -> Option<(usize, usize)> {
        let length = self.length.load(Relaxed) as usize;
        (length != 0).then(|| (self.start.load(Relaxed), length))
    }

    /// [`UNDECIDED`], [`SITE`] or [`WRAPPER`].
    #[inline(always)]
    pub fn state(&self) -> u8 {
        // Relaxed: what the state leads to was published with the address.
        self.state.load(Relaxed)
    }

    /// Decides an undecided place; the first decision stays.
    fn decide(&self, state: u8) {
        let _ = self.state.compare_exchange(UNDECIDED, state, Relaxed, Relaxed);
    }

    /// Where the return address of this place's function lies, and the frame pointer there.
    #[inline(always)]
    fn step(&self, return_at: usize, frame_pointer: usize) -> Option<(usize, usize)> {
        self.up()?.step(return_at, frame_pointer)
    }

    /// The step to the frame above, where it is known.
    #[inline(always)]
    pub fn up(&self) -> Option<Up> {
        let kind = self.up_kind.load(Relaxed);
        (kind & 1 != 0).then(|| Up {
            offset: self.offset.load(Relaxed) as i32,
            from_frame_pointer: kind & 2 != 0,
            frame_pointer_at: (kind & 4 != 0).then(|| self.frame_pointer_at.load(Relaxed) as i32),
        })
    }
}

static TABLE: [Place; PLACES] = [const { Place::empty() }; PLACES];
/// Stands for every return address that found no room; has no address and so no name.
static OTHERS: Place = Place::empty();
static ADDING: Guarded<()> = Guarded::new(());

/// The place of a return address.
#[inline(always)]
pub fn at(address: usize) -> &'static Place {
    let first = hash(address);
    let place = &TABLE[first];
    // Acquire, pairs with the release in `add`: what was filled before the address is seen.
    if place.address.load(Acquire) == address {
        return place;
    }
    probe(address, first)
}

#[inline(always)]
fn hash(address: usize) -> usize {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros())
}

fn probe(address: usize, first: usize) -> &'static Place {
    for i in 1..PROBES {
        let place = &TABLE[(first + i) % PLACES];
        match place.address.load(Acquire) {
            found if found == address => return place,
            0 => return add(address, first),
            _ => {}
        }
    }
    &OTHERS
}

#[cold]
fn add(address: usize, first: usize) -> &'static Place {
    let _adding = ADDING.lock();
    for i in 0..PROBES {
        let place = &TABLE[(first + i) % PLACES];
        match place.address.load(Relaxed) {
            found if found == address => return place,
            0 => {
                fill(place, address);
                // Release, pairs with the loads in `at` and `probe`.
                place.address.store(address, Release);
                return place;
            }
            _ => {}
        }
    }
    &OTHERS
}

fn fill(place: &Place, address: usize) {
    let mut state = SITE;
    if let Some(row) = unwind::row_at(address) {
        place.start.store(row.start, Relaxed);
        place.length.store((row.end - row.start) as u32, Relaxed);
        if let Some(Up { offset, from_frame_pointer, frame_pointer_at }) = row.up {
            let kind =
                1 | u8::from(from_frame_pointer) << 1 | u8::from(frame_pointer_at.is_some()) << 2;
            place.up_kind.store(kind, Relaxed);
            place.offset.store(offset as u32, Relaxed);
            place.frame_pointer_at.store(frame_pointer_at.unwrap_or(0) as u32, Relaxed);
            if row.end - row.start <= WRAPPER_BYTES {
                state = UNDECIDED;
            }
            if settings::has_wrappers()
                && names::with_place(address, settings::is_wrapper) == Some(true)
            {
                state = WRAPPER;
            }
        }
    }
    place.state.store(state, Relaxed);
}

/// Follows wrappers up from a hook's entry. The place is a site, or undecided.
#[inline(always)]
pub fn climb(caller: Caller) -> &'static Place {
    // SAFETY: at a hook's entry the return address lies at the stack pointer.
    let place = at(unsafe { (caller.stack as *const usize).read() });
    if place.state() == WRAPPER { climb_on(place, caller) } else { place }
}

fn climb_on(mut place: &'static Place, caller: Caller) -> &'static Place {
    let (mut return_at, mut frame_pointer) = (caller.stack, caller.frame_pointer);
    for _ in 1..FRAMES {
        let Some(above) = place.step(return_at, frame_pointer) else { break };
        (return_at, frame_pointer) = above;
        // SAFETY: where the unwind row says that the return address lies.
        place = at(unsafe { (return_at as *const usize).read() });
        if place.state() != WRAPPER {
            break;
        }
    }
    place
}

/// A frame between a lock call and its site.
#[derive(Clone, Copy)]
struct Link {
    /// None only in zeroed memory.
    place: Option<&'static Place>,
    /// Where the function's own return address lies, and what it is.
    return_at: usize,
    return_address: usize,
}

/// The frames above an undecided acquisition, innermost first.
#[derive(Clone, Copy)]
pub struct Chain {
    links: [Link; FRAMES],
    length: usize,
}

impl Chain {
    /// No frames.
    pub const EMPTY: Chain =
        Chain { links: [Link { place: None, return_at: 0, return_address: 0 }; FRAMES], length: 0 };

    /// Whether there is nothing to decide.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Forgets the frames.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Collects the frames above a hook's entry, up to the first that is a site already.
    #[cold]
    pub fn collect(caller: Caller) -> Chain {
        let mut chain = Chain::EMPTY;
        let (mut return_at, mut frame_pointer) = (caller.stack, caller.frame_pointer);
        while chain.length < FRAMES {
            // SAFETY: a return address, by the hook's contract or by the unwind row below it.
            let place = at(unsafe { (return_at as *const usize).read() });
            let above =
                if place.state() == SITE { None } else { place.step(return_at, frame_pointer) };
            let Some(above) = above else {
                chain.links[chain.length] =
                    Link { place: Some(place), return_at: usize::MAX, return_address: 0 };
                chain.length += 1;
                break;
            };
            // SAFETY: as above, one frame higher.
            let return_address = unsafe { (above.0 as *const usize).read() };
            chain.links[chain.length] =
                Link { place: Some(place), return_at: above.0, return_address };
            chain.length += 1;
            (return_at, frame_pointer) = above;
        }
        chain
    }

    /// Whether both lead through the same places.
    pub fn is_as(&self, other: &Chain) -> bool {
        let addresses = |link: &Link| link.place.map(|place| place.address());
        let (mine, others) = (&self.links[..self.length], &other.links[..other.length]);
        mine.len() == others.len()
            && mine.iter().zip(others).all(|(one, other)| addresses(one) == addresses(other))
    }

    /// The site, if every place below it has been decided.
    pub fn decided(&self) -> Option<&'static Place> {
        let links = &self.links[..self.length];
        let (last, below) = links.split_last()?;
        let mut below = below.iter().filter_map(|link| link.place);
        match below.find(|place| place.state() != WRAPPER) {
            Some(place) => (place.state() == SITE).then_some(place),
            None => last.place.filter(|place| place.state() != UNDECIDED),
        }
    }

    /// At the section's end, called from a hook entered with `stack`: the first frame that is still
    /// there is the site; those below it are wrappers.
    #[cold]
    pub fn decide(&self, stack: usize) -> &'static Place {
        let links = &self.links[..self.length];
        for (index, link) in links.iter().enumerate() {
            let place = link.place.unwrap_or(&OTHERS);
            let last = index + 1 == links.len();
            if place.state() == WRAPPER && !last {
                continue;
            }
            if last || place.state() == SITE || link.still_there(stack) {
                if !last {
                    place.decide(SITE);
                }
                return place;
            }
            place.decide(WRAPPER);
            if place.state() != WRAPPER {
                return place;
            }
        }
        &OTHERS
    }
}

impl Link {
    /// Whether the function has not returned since: its return address lies where it lay, above the
    /// stack pointer, or at it where the function's last call, the release, became a jump.
    fn still_there(&self, stack: usize) -> bool {
        // SAFETY: above the stack pointer, below where this thread's stack was when it acquired.
        stack <= self.return_at
            && unsafe { (self.return_at as *const usize).read() } == self.return_address
    }
}

/// Follows functions that pass their own argument on, up from an init call: where a class begins.
pub fn origin(caller: Caller) -> &'static Place {
    let (mut return_at, mut frame_pointer) = (caller.stack, caller.frame_pointer);
    // SAFETY: at a hook's entry the return address lies at the stack pointer.
    let mut place = at(unsafe { (return_at as *const usize).read() });
    for _ in 1..FRAMES {
        if !crate::passing::passes_its_argument(place) {
            break;
        }
        let Some(above) = place.step(return_at, frame_pointer) else { break };
        (return_at, frame_pointer) = above;
        // SAFETY: where the unwind row says that the return address lies.
        place = at(unsafe { (return_at as *const usize).read() });
    }
    place
}

/// In the child of a fork.
pub fn in_child() {
    // SAFETY: this child has one thread.
    unsafe { ADDING.force_free() };
}
