//! The writing side of a live recording; see [`layout`](crate::layout) for what is written.
//!
//! Called from inside lock functions of any program: no allocation, no libc call that could be a
//! cancellation point, no panic. What does not fit is dropped and counted.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::layout::*;
use crate::{clock, sys};

/// How much more of the file is backed when the pages run out: 64 pages.
const STEP: usize = 64 * PAGE;

/// A live recording that this process writes.
///
/// It is a pointer to the mapping: copies refer to the same recording.
#[derive(Clone, Copy)]
pub struct Writer {
    base: *mut u8,
}

// SAFETY: what is shared behind the pointer is atomic, or belongs to one thread by the layout's rule 1.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Sync for Writer {}

impl Writer {
    /// Creates `<directory>/<pid>-<n>.live`, with `n` the first free number: a process that calls exec
    /// keeps its pid.
    ///
    /// # Errors
    /// The error number of the call that failed.
    pub fn create(directory: &[u8], mode: u32, by_lock: bool) -> Result<Writer, i32> {
        let writer = Writer::begun(directory, mode, by_lock)?;
        writer.show();
        Ok(writer)
    }

    /// A recording that readers do not take for one yet.
    fn begun(directory: &[u8], mode: u32, by_lock: bool) -> Result<Writer, i32> {
        let fd = create_file(directory)?;
        let base = sys::map(RESERVE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd);
        // The mapping needs no descriptor, and the program may close what it does not know.
        sys::close(fd);
        let writer = Writer { base: base? };
        let header = writer.header_mut();
        header.version = VERSION;
        header.mode = mode;
        header.by_lock = by_lock.into();
        header.backed.store(PAGES_AT as u64, Relaxed);
        header.sites.store(1, Relaxed);
        header.classes.store(1, Relaxed);
        header.clock = clock::kind();
        read_environment(header);
        header.pid = sys::pid();
        header.parent = sys::parent();
        let (ticks, ns) = clock::pair(header.clock);
        header.start_ticks = ticks;
        header.start_ns = ns;
        header.start_epoch_ns = clock::epoch_ns();
        header.last_ticks.store(ticks, Relaxed);
        header.last_ns.store(ns, Release);
        Ok(writer)
    }

    /// From here on readers take the file for a recording.
    fn show(&self) {
        // SAFETY: the mapping begins with the magic; eight aligned bytes.
        let magic = unsafe { &*self.base.cast::<AtomicU64>() };
        // Release, pairs with the reader's look at the magic before all else.
        magic.store(u64::from_ne_bytes(MAGIC), Release);
    }

    /// In the child of a fork: begins a recording of its own, with the tables of the parent's, so that
    /// indexes which the process remembers stay right, and with nothing counted. The parent's mapping is
    /// given up.
    ///
    /// # Errors
    /// The error number; the child must then stop recording.
    ///
    /// # Safety
    /// Nothing of this process refers to the parent's rows and pages any more.
    pub unsafe fn follow_fork(self, directory: &[u8]) -> Result<Writer, i32> {
        let (old, mode, by_lock) = (self.header(), self.header().mode, self.header().by_lock != 0);
        let new = Writer::begun(directory, mode, by_lock)?;
        // The counts first, since the parent goes on: rule 3 of the layout.
        let modules = old.modules.load(Acquire).min(MODULES as u32);
        let sites = old.sites.load(Acquire).min(SITES as u32);
        let classes = old.classes.load(Acquire).min(CLASSES as u32);
        for (at, bytes) in [
            (MODULES_AT, modules as usize * size_of::<Module>()),
            (SITES_AT, sites as usize * size_of::<Site>()),
            (CLASSES_AT, classes as usize * size_of::<Class>()),
        ] {
            // SAFETY: both mappings hold the tables, and whole entries are copied.
            unsafe { core::ptr::copy_nonoverlapping(self.base.add(at), new.base.add(at), bytes) };
        }
        for index in 0..classes {
            let class = new.class(index);
            class.locks.store(0, Relaxed);
            class.totals.iter().for_each(Totals::clear);
        }
        new.header().modules.store(modules, Release);
        new.header().sites.store(sites, Release);
        new.header().classes.store(classes, Release);
        new.show();
        // SAFETY: the caller's promise.
        unsafe { sys::unmap(self.base, RESERVE) };
        Ok(new)
    }

    /// The header.
    #[inline]
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a Header, page-aligned, and lives as long as the process.
        unsafe { &*self.base.cast::<Header>() }
    }

    #[allow(clippy::mut_from_ref)]
    fn header_mut(&self) -> &mut Header {
        // SAFETY: as in `header`; called only while no other thread knows this recording.
        unsafe { &mut *self.base.cast::<Header>() }
    }

    /// Notes the time, so that the length of a killed run is known.
    pub fn note_time(&self) {
        let header = self.header();
        let (ticks, ns) = clock::pair(header.clock);
        header.last_ticks.store(ticks, Relaxed);
        // Rule 3 of the layout: pairs with the reader's load, which takes the time first.
        header.last_ns.store(ns, Release);
    }

    /// Notes the time unless that was done a moment ago; `now` is in ticks. Called from rare paths.
    pub fn note_time_now_and_then(&self, now: u64) {
        // About 100 ms, whatever the ticks are.
        if now.saturating_sub(self.header().last_ticks.load(Relaxed)) > 1 << 28 {
            self.note_time();
        }
    }

    /// Marks the recording as ended.
    pub fn end(&self) {
        self.note_time();
        self.header().state.store(EXITED, Release);
    }

    /// Counts something that was left out.
    #[cold]
    pub fn dropped(&self, what: Dropped) {
        self.header().dropped[what as usize].fetch_add(1, Relaxed);
    }

    /// Adds a module; its index. The caller serialises calls.
    pub fn add_module(&self, base: u64, start: u64, end: u64, path: &[u8]) -> Option<u32> {
        let index = self.header().modules.load(Relaxed);
        if index as usize == MODULES {
            self.dropped(Dropped::Places);
            return None;
        }
        let module = self.module_ptr(index);
        let mut padded = [0; 232];
        let len = path.len().min(padded.len() - 1);
        padded[..len].copy_from_slice(&path[..len]);
        // SAFETY: the entry lies within the table, and readers look at it only once the count covers it.
        unsafe { module.write(Module { base, start, end, path: padded }) };
        self.header().modules.store(index + 1, Release);
        Some(index)
    }

    /// The module table so far.
    pub fn modules(&self) -> &[Module] {
        let count = (self.header().modules.load(Acquire) as usize).min(MODULES);
        // SAFETY: `count` entries were filled before the count was raised.
        unsafe { core::slice::from_raw_parts(self.module_ptr(0), count) }
    }

    fn module_ptr(&self, index: u32) -> *mut Module {
        // SAFETY: the table lies within the mapping and `index` below MODULES.
        unsafe { self.base.add(MODULES_AT).cast::<Module>().add(index as usize) }
    }

    /// Adds a site; its index, 0 when there is no room. The caller serialises calls.
    pub fn add_site(&self, address: u64, module: u32) -> u32 {
        let index = self.header().sites.load(Relaxed);
        if index as usize == SITES {
            self.dropped(Dropped::Places);
            return 0;
        }
        // SAFETY: within the table; not read before the count covers it.
        unsafe {
            let at = self.base.add(SITES_AT).cast::<Site>().add(index as usize);
            at.write(Site { address, module, flags: 0 });
        }
        self.header().sites.store(index + 1, Release);
        index
    }

    /// Adds a class; its index, 0 when there is no room. The caller serialises calls.
    pub fn add_class(&self, address: u64, module: u32, origin: u32, kind: u8) -> u32 {
        let index = self.header().classes.load(Relaxed);
        if index as usize == CLASSES {
            self.dropped(Dropped::Places);
            return 0;
        }
        // SAFETY: within the table; not read before the count covers it. Its totals are zero: the file
        // was made of zeros, and an index is given out once.
        unsafe {
            let at = self.class_ptr(index);
            (&raw mut (*at).address).write(address);
            (&raw mut (*at).module).write(module);
            (&raw mut (*at).origin).write(origin);
            (&raw mut (*at).kind).write(kind);
        }
        self.header().classes.store(index + 1, Release);
        index
    }

    /// A class; index 0 and whatever [`add_class`](Self::add_class) gave.
    #[inline]
    pub fn class(&self, index: u32) -> &Class {
        // SAFETY: `index` is below CLASSES, so the entry lies within the mapping.
        unsafe { &*self.class_ptr(index.min(CLASSES as u32 - 1)) }
    }

    fn class_ptr(&self, index: u32) -> *mut Class {
        // SAFETY: the table lies within the mapping.
        unsafe { self.base.add(CLASSES_AT).cast::<Class>().add(index as usize) }
    }

    fn kind_of(&self, page: u32) -> &AtomicU8 {
        // SAFETY: `page` is below PAGES, so its kind lies within the mapping.
        unsafe { &*self.base.add(KINDS_AT + page as usize).cast::<AtomicU8>() }
    }

    /// A row of a page of rows.
    #[inline]
    pub fn row(&self, page: u32, row: usize) -> &Row {
        debug_assert!(row < ROWS);
        // SAFETY: pages that were given out are backed and aligned; a Row is atomics alone.
        unsafe { &*self.page_ptr(page).cast::<Row>().add(row) }
    }

    /// The counters of a histogram's page.
    #[inline]
    pub fn histogram(&self, page: u32) -> &[AtomicU64; crate::histogram::BUCKETS] {
        // SAFETY: pages that were given out are backed, aligned and as large as the array.
        unsafe { &*self.page_ptr(page).cast() }
    }

    /// The address of the first page.
    pub fn first_page(&self) -> usize {
        self.page_ptr(0) as usize
    }

    fn page_ptr(&self, page: u32) -> *mut u8 {
        // SAFETY: `page` is below PAGES.
        unsafe { self.base.add(PAGES_AT + page as usize * PAGE) }
    }

    /// Gives out a zeroed page of `kind`, or none when the room or the disk is full. Any thread may call.
    #[cold]
    pub fn new_page(&self, kind: u8) -> Option<u32> {
        let header = self.header();
        loop {
            let page = header.pages.load(Relaxed);
            let end = PAGES_AT + (page as usize + 1) * PAGE;
            let backed = header.backed.load(Acquire) as usize;
            if end > backed {
                if backed == RESERVE || header.full.load(Relaxed) != 0 {
                    return None;
                }
                let more = (backed + STEP).min(RESERVE);
                // SAFETY: within the mapping. Two threads may back the same bytes: the second call
                // finds nothing to do.
                if unsafe { sys::populate(self.base.add(backed), more - backed) }.is_err() {
                    header.full.store(1, Relaxed);
                    return None;
                }
                let _ =
                    header.backed.compare_exchange(backed as u64, more as u64, Release, Relaxed);
                continue;
            }
            // Relaxed: the page's content is zero already, and its kind is what readers go by.
            if header.pages.compare_exchange_weak(page, page + 1, Relaxed, Relaxed).is_ok() {
                self.kind_of(page).store(kind, Release);
                self.note_time_now_and_then(clock::ticks(header.clock));
                return Some(page);
            }
        }
    }
}

impl Totals {
    fn clear(&self) {
        for counter in [&self.acquisitions, &self.contended, &self.rejected, &self.wait, &self.hold]
        {
            counter.store(0, Relaxed);
        }
    }
}

/// Adds to a counter that one thread writes: no read-modify-write needed.
#[inline(always)]
pub fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Raises a maximum that one thread writes.
#[inline(always)]
pub fn raise(maximum: &AtomicU64, value: u64) {
    if value > maximum.load(Relaxed) {
        maximum.store(value, Relaxed);
    }
}

/// Adds `times` (which may be -1, wrapping) to the bucket of `ticks` in the histogram whose page number,
/// plus one, is in `page`; takes a page on first use.
#[inline]
pub fn count_ticks(writer: &Writer, page: &AtomicU32, ticks: u64, times: u64) {
    let mut number = page.load(Relaxed);
    if number == 0 {
        let Some(new) = writer.new_page(HISTOGRAM_PAGE) else {
            return writer.dropped(Dropped::Histograms);
        };
        number = new + 1;
        page.store(number, Release);
    }
    add(&writer.histogram(number - 1)[crate::histogram::bucket_of(ticks)], times);
}

/// Opens a new file of zeros for a recording, its tables backed.
fn create_file(directory: &[u8]) -> Result<i32, i32> {
    let mut path = [0u8; 1024];
    if directory.is_empty() || directory.len() + 32 > path.len() {
        return Err(libc::ENOENT);
    }
    // Beyond its limit on file sizes the program would get a signal.
    if sys::file_size_limit() < RESERVE as u64 {
        return Err(libc::EFBIG);
    }
    path[..directory.len()].copy_from_slice(directory);
    for n in 0..100_000 {
        let mut at = directory.len();
        for part in [
            &b"/"[..],
            decimal(sys::pid(), &mut [0; 10]),
            b"-",
            decimal(n, &mut [0; 10]),
            b".live\0",
        ] {
            path[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let path = core::ffi::CStr::from_bytes_until_nul(&path).map_err(|_| libc::EINVAL)?;
        // 0644: whoever started the run may read it, though the program became another user.
        match sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, 0o644)
        {
            Err(libc::EEXIST) => {}
            Err(error) => return Err(error),
            Ok(fd) => {
                // Its whole length at once, in holes; the tables are backed now, pages when needed.
                let sized =
                    sys::truncate(fd, RESERVE).and_then(|()| sys::allocate(fd, 0, PAGES_AT));
                return match sized {
                    Ok(()) => Ok(fd),
                    Err(error) => {
                        sys::close(fd);
                        sys::remove(path);
                        Err(error)
                    }
                };
            }
        }
    }
    Err(libc::EEXIST)
}

fn decimal(mut number: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

fn read_environment(header: &mut Header) {
    let exe = header.exe.len() - 1;
    sys::read_link(c"/proc/self/exe", &mut header.exe[..exe]);
    if let Ok(fd) = sys::open(c"/proc/self/cmdline", libc::O_RDONLY | libc::O_CLOEXEC, 0) {
        let room = header.command.len() - 1;
        let _ = sys::read(fd, &mut header.command[..room], 0);
        sys::close(fd);
    }
    if let Ok(fd) = sys::open(c"/proc/version", libc::O_RDONLY | libc::O_CLOEXEC, 0) {
        let room = header.kernel.len() - 1;
        let _ = sys::read(fd, &mut header.kernel[..room], 0);
        sys::close(fd);
    }
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        // The brand string lies in three leaves of 16 bytes.
        if __cpuid(0x8000_0000).eax >= 0x8000_0004 {
            for leaf in 0..3 {
                let r = __cpuid(0x8000_0002 + leaf);
                for (i, word) in [r.eax, r.ebx, r.ecx, r.edx].into_iter().enumerate() {
                    let at = leaf as usize * 16 + i * 4;
                    header.cpu[at..at + 4].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_page_is_backed_before_it_is_given_out() {
        let directory = std::env::temp_dir().join(format!("relatch-writer-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let writer = Writer::create(directory.as_os_str().as_bytes(), 1, false).unwrap();
        let mut pages = Vec::new();
        for _ in 0..200 {
            let page = writer.new_page(HISTOGRAM_PAGE).unwrap();
            writer.histogram(page)[511].store(1, Relaxed);
            pages.push(page);
        }
        pages.dedup();
        assert_eq!(pages.len(), 200);
        assert!(writer.header().backed.load(Relaxed) as usize >= PAGES_AT + 200 * PAGE);
        assert_eq!(writer.add_class(7, 0, ORIGIN_INIT, KIND_MUTEX), 1);
        assert_eq!(writer.class(1).address, 7);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn counts_can_be_moved_from_one_histogram_to_another() {
        let directory =
            std::env::temp_dir().join(format!("relatch-writer-m-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let writer = Writer::create(directory.as_os_str().as_bytes(), 1, false).unwrap();
        let page = AtomicU32::new(0);
        count_ticks(&writer, &page, 1000, 1);
        count_ticks(&writer, &page, 1000, 1);
        count_ticks(&writer, &page, 1000, 1u64.wrapping_neg());
        let buckets = writer.histogram(page.load(Relaxed) - 1);
        assert_eq!(buckets[crate::histogram::bucket_of(1000)].load(Relaxed), 1);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
