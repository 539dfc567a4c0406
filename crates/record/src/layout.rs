//! The live recording: what one observed process writes, byte for byte.
//!
//! A live recording is a file mapped shared, so what was recorded survives `SIGKILL`, and a reader
//! may look at any time. All integers are little endian as the machine has them; a reader on another
//! byte order refuses the file by its magic.
//!
//! ```text
//! 0          Header      what was run, where, when; how many of each below; what was dropped
//! MODULES    Module[]    files mapped into the process
//! SITES      Site[]      entry 0 is "(others)": what did not fit
//! CLASSES    Class[]     entry 0 is "(others)"; carries shared totals for what has no row
//! KINDS      u8[]        what each page below is: FREE, ROWS or HISTOGRAM
//! PAGES      4 KiB each  ROWS: 32 rows of one thread; HISTOGRAM: 512 counters of u64
//! ```
//!
//! # Rules
//! 1. A row has one writer at a time, a thread; it counts with plain loads and stores. Only the totals
//!    inside [`Class`] are shared and counted with read-modify-write.
//! 2. An acquisition is counted when it is made, its hold and its wait when its section ends. A killed
//!    process therefore shows every acquisition, and lacks the times of the sections it was in.
//! 3. A table entry is filled before the count that covers it is raised (Release; readers Acquire).
//! 4. Everything that is read from a file is checked by the reader against its bounds.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// First bytes of a live recording.
pub const MAGIC: [u8; 8] = *b"relatchL";
/// Version of this layout; a reader takes its own version only.
pub const VERSION: u32 = 1;

/// Room for modules.
pub const MODULES: usize = 512;
/// Room for sites, entry 0 included.
pub const SITES: usize = 8192;
/// Room for classes, entry 0 included.
pub const CLASSES: usize = 4096;
/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Room for pages: 128 MiB of rows and histograms.
pub const PAGES: usize = 32768;
/// Rows on a page.
pub const ROWS: usize = PAGE / size_of::<Row>();

/// Offset of the module table.
pub const MODULES_AT: usize = PAGE;
/// Offset of the site table.
pub const SITES_AT: usize = MODULES_AT + MODULES * size_of::<Module>();
/// Offset of the class table.
pub const CLASSES_AT: usize = SITES_AT + SITES * size_of::<Site>();
/// Offset of the page kinds.
pub const KINDS_AT: usize = CLASSES_AT + CLASSES * size_of::<Class>();
/// Offset of the first page.
pub const PAGES_AT: usize = (KINDS_AT + PAGES).next_multiple_of(PAGE);
/// Bytes of address space that a live recording may come to need.
pub const RESERVE: usize = PAGES_AT + PAGES * PAGE;

/// The page is not in use.
pub const FREE: u8 = 0;
/// The page holds [`ROWS`] rows.
pub const ROW_PAGE: u8 = 1;
/// The page holds the counters of one histogram.
pub const HISTOGRAM_PAGE: u8 = 2;

/// How the ticks of a recording count time.
pub const CLOCK_TSC: u32 = 1;
/// Ticks are nanoseconds of `CLOCK_MONOTONIC`.
pub const CLOCK_MONOTONIC: u32 = 2;

/// [`Header::state`]: the process runs, or was killed.
pub const RUNNING: u32 = 0;
/// [`Header::state`]: the process called `exit`, or returned from `main`.
pub const EXITED: u32 = 1;

/// Why a lock stays glibc's in a converted run; index into [`Header::kept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kept {
    /// No conversion selects it.
    NotSelected,
    /// Recursive mutex.
    Recursive,
    /// Error-checking mutex.
    ErrorCheck,
    /// Robust mutex.
    Robust,
    /// Priority-inheriting or priority-protected mutex.
    Priority,
    /// Shared between processes.
    ProcessShared,
    /// An rwlock kind that asks for another preference.
    Preference,
    /// A spinlock that was never initialised through the library.
    NotInitialised,
    /// A condition variable or a waiter that cannot follow the conversion.
    Condition,
}

/// How many reasons [`Kept`] has.
pub const KEPT: usize = 9;

impl Kept {
    /// Every reason, in the order of [`Header::kept`].
    pub const ALL: [Kept; KEPT] = [
        Kept::NotSelected,
        Kept::Recursive,
        Kept::ErrorCheck,
        Kept::Robust,
        Kept::Priority,
        Kept::ProcessShared,
        Kept::Preference,
        Kept::NotInitialised,
        Kept::Condition,
    ];

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Kept::NotSelected => "not selected",
            Kept::Recursive => "recursive",
            Kept::ErrorCheck => "error-checking",
            Kept::Robust => "robust",
            Kept::Priority => "priority protocol",
            Kept::ProcessShared => "process-shared",
            Kept::Preference => "writer preference asked for",
            Kept::NotInitialised => "never initialised",
            Kept::Condition => "condition variable",
        }
    }
}

/// What the observation had to leave out; index into [`Header::dropped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Dropped {
    /// Places that found no room in the module, site or class table: counted as "(others)".
    Places,
    /// Acquisitions that found no row: counted in their class's totals.
    Rows,
    /// Times that found no histogram: their sum and maximum are kept.
    Histograms,
    /// Acquisitions whose lock found no row of its own (`--by lock`).
    Locks,
    /// Sections whose end was not seen by the thread that began them: no hold time.
    Sections,
}

/// How many reasons [`Dropped`] has.
pub const DROPPED: usize = 5;

/// What was run, where and when.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// 1: observed (`stat`), 2: converted (`try`): rows hold waits only.
    pub mode: u32,
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// [`RUNNING`] or [`EXITED`].
    pub state: AtomicU32,
    /// [`CLOCK_TSC`] or [`CLOCK_MONOTONIC`].
    pub clock: u32,
    /// Ticks at the start.
    pub start_ticks: u64,
    /// `CLOCK_MONOTONIC` nanoseconds at the same moment.
    pub start_ns: u64,
    /// Nanoseconds since 1970 at the same moment.
    pub start_epoch_ns: u64,
    /// Ticks when the time was last noted.
    pub last_ticks: AtomicU64,
    /// `CLOCK_MONOTONIC` nanoseconds at the same moment; written last.
    pub last_ns: AtomicU64,
    /// Bytes of the file that are backed by memory or disk.
    pub backed: AtomicU64,
    /// Entries of the module table.
    pub modules: AtomicU32,
    /// Entries of the site table.
    pub sites: AtomicU32,
    /// Entries of the class table.
    pub classes: AtomicU32,
    /// Pages handed out.
    pub pages: AtomicU32,
    /// Threads that acquired a lock.
    pub threads: AtomicU32,
    /// 1 when rows per lock are kept.
    pub by_lock: u32,
    /// 1 when no more pages could be had.
    pub full: AtomicU32,
    /// Indexed by [`Dropped`].
    pub dropped: [AtomicU64; DROPPED],
    /// Indexed by [`Kept`]: locks.
    pub kept: [AtomicU64; KEPT],
    /// Locks that were converted.
    pub converted: AtomicU64,
    /// The executable, zero padded.
    pub exe: [u8; 512],
    /// The command line, arguments separated by zero bytes, zero padded.
    pub command: [u8; 1024],
    /// The first bytes of `/proc/version`, zero padded.
    pub kernel: [u8; 192],
    /// The processor's brand string, zero padded.
    pub cpu: [u8; 64],
}

/// A file mapped into the process.
#[repr(C)]
pub struct Module {
    /// What is added to an address in the file to get one in the process.
    pub base: u64,
    /// First mapped address.
    pub start: u64,
    /// Behind the last mapped address.
    pub end: u64,
    /// Its path, zero padded; empty for the vDSO.
    pub path: [u8; 232],
}

/// A place that acquires.
#[repr(C)]
pub struct Site {
    /// Return address of the acquiring call.
    pub address: u64,
    /// Index of its module, or `u32::MAX`.
    pub module: u32,
    /// Reserved, zero.
    pub flags: u32,
}

/// What [`Class::origin`] says.
pub const ORIGIN_OTHERS: u32 = 0;
/// The place of the init call; `address` is a return address.
pub const ORIGIN_INIT: u32 = 1;
/// A static lock; `address` is the lock's.
pub const ORIGIN_STATIC: u32 = 2;
/// The first acquiring site; `address` is a return address.
pub const ORIGIN_SITE: u32 = 3;

/// What kind of lock it is, as the program declared it.
pub const KIND_MUTEX: u8 = 1;
/// `pthread_rwlock_t`.
pub const KIND_RWLOCK: u8 = 2;
/// `pthread_spinlock_t`.
pub const KIND_SPIN: u8 = 3;

/// Exclusive acquisitions.
pub const EXCLUSIVE: u8 = 0;
/// Shared acquisitions.
pub const SHARED: u8 = 1;

/// Shared counters: what found no row of its own.
#[repr(C)]
pub struct Totals {
    /// Acquisitions.
    pub acquisitions: AtomicU64,
    /// Those of them that found the lock taken.
    pub contended: AtomicU64,
    /// Tries that found the lock taken.
    pub rejected: AtomicU64,
    /// Ticks waited.
    pub wait: AtomicU64,
    /// Ticks held.
    pub hold: AtomicU64,
}

/// The locks of one origin.
#[repr(C)]
pub struct Class {
    /// Where it comes from.
    pub address: u64,
    /// Index of the address's module, or `u32::MAX`.
    pub module: u32,
    /// `ORIGIN_*`.
    pub origin: u32,
    /// `KIND_*`.
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 7],
    /// Per mode: what has no row.
    pub totals: [Totals; 2],
    /// Locks seen of this class (initialised, or first acquired).
    pub locks: AtomicU64,
}

/// What one thread did at one site with the locks of one class, in one mode; or, where `lock` is not
/// zero, with one lock. Only its thread writes it: plain loads and stores.
#[repr(C, align(128))]
pub struct Row {
    /// Index of the class, plus one; zero: the row is not in use. Written last.
    pub class: AtomicU32,
    /// Index of the site.
    pub site: AtomicU32,
    /// The lock's address, or zero: a site's row.
    pub lock: AtomicU64,
    /// [`EXCLUSIVE`] or [`SHARED`].
    pub mode: AtomicU32,
    /// Page of the histogram of holds, plus one; zero: none yet.
    pub hold_page: AtomicU32,
    /// Page of the histogram of waits, plus one; zero: none yet.
    pub wait_page: AtomicU32,
    /// `KIND_*`.
    pub kind: AtomicU8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Acquisitions, contended ones included.
    pub acquisitions: AtomicU64,
    /// The writer's own notes on this row; they share the line that every acquisition writes.
    pub notes: [AtomicU64; 2],
    /// Sections that ended, as far as they were measured: a short one that was drawn at random counts
    /// for all those that it stands for.
    pub held: AtomicU64,
    /// Acquisitions that found the lock taken and waited.
    pub contended: AtomicU64,
    /// Tries that gave up: try-forms that found it taken, timed forms that ran out.
    pub rejected: AtomicU64,
    /// Ticks waited.
    pub wait: AtomicU64,
    /// Longest wait in ticks.
    pub wait_max: AtomicU64,
    /// Ticks held, of the sections in `held`.
    pub hold: AtomicU64,
    /// Longest measured hold in ticks.
    pub hold_max: AtomicU64,
    /// Zero.
    pub spare: u64,
}

const _: () = {
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<Module>() == 256);
    assert!(size_of::<Row>() == 128);
    assert!(SITES_AT.is_multiple_of(PAGE) && CLASSES_AT.is_multiple_of(PAGE));
};
