//! Which function or variable of an ELF file an address belongs to.
//!
//! Works on the bytes of the file (mapped read-only, say), allocates nothing and trusts nothing in
//! them: whatever a damaged file claims, a lookup ends with an answer or without one. Only what
//! x86-64 and other little-endian 64-bit machines use is understood.
//!
//! Addresses are those of the file, before it is moved to where it runs ("vaddr" in `readelf`): in
//! a running process, subtract the load bias (`dlpi_addr` of `dl_iterate_phdr`).
//!
//! Source: System V gABI, chapters 4 and 5.

const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;

const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const SHN_UNDEF: u16 = 0;

/// An ELF file, of which the header has been looked at.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    data: &'a [u8],
    symbols: &'a [u8],
    names: &'a [u8],
}

/// A function or variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The name as it stands in the file, mangled.
    pub name: &'a [u8],
    /// The address of its first byte.
    pub start: u64,
    /// Bytes that belong to it. For a symbol that states no size: up to the next one of its
    /// section, or to the section's end.
    pub size: u64,
}

/// One entry of the symbol table.
#[derive(Clone, Copy)]
struct Entry {
    name: u32,
    binding: u8,
    kind: u8,
    section: u16,
    start: u64,
    size: u64,
}

impl Entry {
    fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| offset < self.size)
    }
}

impl<'a> Elf<'a> {
    /// Looks at the header and finds the symbol table: `.symtab`, which has local functions as
    /// well, else `.dynsym`. `None` if this is no 64-bit little-endian ELF file; a file without any
    /// symbol table is one.
    pub fn new(data: &'a [u8]) -> Option<Elf<'a>> {
        // Magic number, 64 bit, little endian.
        if data.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
            return None;
        }
        let mut elf = Elf { data, symbols: &[], names: &[] };
        let table = elf.sections().find(|section| section.kind == SHT_SYMTAB);
        let table = table.or_else(|| elf.sections().find(|section| section.kind == SHT_DYNSYM));
        if let Some(table) = table {
            let symbols = elf.section_bytes(&table);
            let names = elf.sections().nth(table.link as usize).map(|s| elf.section_bytes(&s));
            elf.symbols = symbols.unwrap_or(&[]);
            elf.names = names.flatten().unwrap_or(&[]);
        }
        Some(elf)
    }

    /// The function that contains the address (give a return address minus one: it may be the first
    /// byte behind a function whose last instruction is a call).
    ///
    /// Of several that contain it, the one that starts last is meant, the innermost. Of names for
    /// the same start the order is that of `perf`: a symbol that is not weak, then a global one,
    /// then fewer leading underscores, then whichever the file has first. A symbol without a size is
    /// taken if nothing else begins between it and the address.
    pub fn function_at(&self, address: u64) -> Option<Symbol<'a>> {
        let is_function = |kind| matches!(kind, STT_FUNC | STT_GNU_IFUNC);
        let mut best: Option<Entry> = None;
        // The last start at or before the address, whether or not that symbol reaches it.
        let mut nearest: Option<Entry> = None;
        for entry in self.entries().filter(|e| is_function(e.kind) && e.start <= address) {
            if nearest.is_none_or(|other| self.precedes(&entry, &other)) {
                nearest = Some(entry);
            }
            if entry.contains(address) && best.is_none_or(|other| self.precedes(&entry, &other)) {
                best = Some(entry);
            }
        }
        if let Some(entry) = best {
            return self.symbol(&entry, entry.size);
        }
        let entry = nearest.filter(|entry| entry.size == 0)?;
        let section = self.sections().nth(usize::from(entry.section))?;
        let mut end = section.address.checked_add(section.size)?;
        if address < section.address || address >= end {
            return None;
        }
        for next in self.entries().filter(|e| is_function(e.kind) && e.start > address) {
            end = end.min(next.start);
        }
        self.symbol(&entry, end - entry.start)
    }

    /// The variable that contains the address, `.bss` included; thread-local ones have no address
    /// and are left out. The order of names is that of [`Elf::function_at`].
    pub fn object_at(&self, address: u64) -> Option<Symbol<'a>> {
        let mut best: Option<Entry> = None;
        for entry in self.entries() {
            if entry.kind == STT_OBJECT
                && (entry.contains(address) || (entry.size == 0 && entry.start == address))
                && best.is_none_or(|other| self.precedes(&entry, &other))
            {
                best = Some(entry);
            }
        }
        let entry = best?;
        self.symbol(&entry, entry.size)
    }

    /// The build-id: the bytes of the GNU note, mostly 20.
    pub fn build_id(&self) -> Option<&'a [u8]> {
        self.segments().filter(|segment| segment.kind == PT_NOTE).find_map(|segment| {
            let mut notes = bytes(self.data, segment.offset, segment.file_size)?;
            loop {
                let (name_size, content_size) = (u32_at(notes, 0)?, u32_at(notes, 4)?);
                let kind = u32_at(notes, 8)?;
                let name = bytes(notes, 12, u64::from(name_size))?;
                let content_at = 12 + aligned(name_size);
                let content = bytes(notes, content_at, u64::from(content_size))?;
                if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
                    return Some(content);
                }
                let next = content_at + aligned(content_size);
                notes = notes.get(usize::try_from(next).ok()?..)?;
            }
        })
    }

    /// The address of a byte of the file, by the segment that loads it; for a place known by its
    /// mapping (`/proc/PID/maps`) instead of by the load bias.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments().filter(|segment| segment.kind == PT_LOAD).find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.file_size).then(|| segment.address.checked_add(within))?
        })
    }

    /// Whether `a` rather than `b` names what lies behind both starts.
    fn precedes(&self, a: &Entry, b: &Entry) -> bool {
        let rank = |entry: &Entry| {
            // An entry that does not say how far it reaches yields to one that does.
            (entry.start, entry.size != 0, entry.binding != STB_WEAK, entry.binding == STB_GLOBAL)
        };
        let underscores =
            |entry: &Entry| self.name(entry).iter().take_while(|&&byte| byte == b'_').count();
        match rank(a).cmp(&rank(b)) {
            core::cmp::Ordering::Equal => underscores(a) < underscores(b),
            order => order.is_gt(),
        }
    }

    fn symbol(&self, entry: &Entry, size: u64) -> Option<Symbol<'a>> {
        let name = self.name(entry);
        (!name.is_empty()).then_some(Symbol { name, start: entry.start, size })
    }

    fn name(&self, entry: &Entry) -> &'a [u8] {
        let from = self.names.get(entry.name as usize..).unwrap_or(&[]);
        let length = from.iter().position(|&byte| byte == 0).unwrap_or(0);
        &from[..length]
    }

    /// Every defined symbol.
    fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.symbols.chunks_exact(SYMBOL).filter_map(|raw| {
            let entry = Entry {
                name: u32_at(raw, 0)?,
                binding: raw[4] >> 4,
                kind: raw[4] & 15,
                section: u16_at(raw, 6)?,
                start: u64_at(raw, 8)?,
                size: u64_at(raw, 16)?,
            };
            (entry.section != SHN_UNDEF).then_some(entry)
        })
    }

    fn sections(&self) -> impl Iterator<Item = Section> + use<'a> {
        let data = self.data;
        let offset = u64_at(data, 40).unwrap_or(0);
        let size = u16_at(data, 58);
        let header = move |number: usize| -> Option<Section> {
            let at = offset.checked_add((number as u64).checked_mul(SECTION_HEADER as u64)?)?;
            Section::read(bytes(data, at, SECTION_HEADER as u64)?)
        };
        let known = offset != 0 && size == Some(SECTION_HEADER as u16);
        let count = match u16_at(data, 60) {
            // More than fit into the header's field: the first section's size says how many.
            Some(0) => header(0).map_or(0, |first| usize::try_from(first.size).unwrap_or(0)),
            count => usize::from(count.unwrap_or(0)),
        };
        (0..if known { count } else { 0 }).map_while(header)
    }

    fn section_bytes(&self, section: &Section) -> Option<&'a [u8]> {
        bytes(self.data, section.offset, section.size)
    }

    fn segments(&self) -> impl Iterator<Item = Segment> + use<'a> {
        let data = self.data;
        let offset = u64_at(data, 32).unwrap_or(0);
        let known = u16_at(data, 54) == Some(PROGRAM_HEADER as u16);
        let count = if known { u16_at(data, 56).unwrap_or(0) } else { 0 };
        (0..u64::from(count)).map_while(move |number| {
            let at = offset.checked_add(number * PROGRAM_HEADER as u64)?;
            Segment::read(bytes(data, at, PROGRAM_HEADER as u64)?)
        })
    }
}

#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

impl Section {
    fn read(raw: &[u8]) -> Option<Section> {
        Some(Section {
            kind: u32_at(raw, 4)?,
            address: u64_at(raw, 16)?,
            offset: u64_at(raw, 24)?,
            size: u64_at(raw, 32)?,
            link: u32_at(raw, 40)?,
        })
    }
}

#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    file_size: u64,
}

impl Segment {
    fn read(raw: &[u8]) -> Option<Segment> {
        Some(Segment {
            kind: u32_at(raw, 0)?,
            offset: u64_at(raw, 8)?,
            address: u64_at(raw, 16)?,
            file_size: u64_at(raw, 32)?,
        })
    }
}

/// The parts of a note are padded to four bytes.
fn aligned(size: u32) -> u64 {
    u64::from(size).next_multiple_of(4)
}

fn bytes(data: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    data.get(start..)?.get(..usize::try_from(size).ok()?)
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Section 1 is the symbol table, 2 its names, 3 the code at 0x1000..0x2000.
    fn file(symbols: &[(&str, u8, u8, u64, u64)]) -> Vec<u8> {
        let mut names = vec![0];
        let mut table = vec![0; SYMBOL];
        for &(name, binding, kind, start, size) in symbols {
            table.extend((names.len() as u32).to_le_bytes());
            table.extend([binding << 4 | kind, 0, 3, 0]);
            table.extend(start.to_le_bytes());
            table.extend(size.to_le_bytes());
            names.extend(name.bytes().chain([0]));
        }
        let note = [&[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &[7, 8, 9, 0]].concat();
        let mut data = vec![0; 64];
        data[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        let segments = data.len();
        let note_at = (segments + 2 * PROGRAM_HEADER) as u64;
        for (kind, offset, address, size) in
            [(PT_NOTE, note_at, 0, note.len() as u64), (PT_LOAD, 0x40, 0x1040, 0x80)]
        {
            data.extend([kind.to_le_bytes(), [0; 4]].concat());
            data.extend([offset, address, 0, size, size, 0].map(u64::to_le_bytes).concat());
        }
        data.extend(note);
        let (table_at, names_at) = (data.len(), data.len() + table.len());
        let parts = [
            (0u32, 0, 0, 0, 0u32),
            (SHT_SYMTAB, 0, table_at, table.len(), 2),
            (3, 0, names_at, names.len(), 0),
            (1, 0x1000, 0, 0x1000, 0),
        ];
        data.extend(table.into_iter().chain(names));
        let sections = data.len();
        for (kind, address, offset, size, link) in parts {
            let at = data.len();
            data.resize(at + SECTION_HEADER, 0);
            data[at + 4..at + 8].copy_from_slice(&kind.to_le_bytes());
            data[at + 16..at + 24].copy_from_slice(&(address as u64).to_le_bytes());
            data[at + 24..at + 32].copy_from_slice(&(offset as u64).to_le_bytes());
            data[at + 32..at + 40].copy_from_slice(&(size as u64).to_le_bytes());
            data[at + 40..at + 44].copy_from_slice(&link.to_le_bytes());
        }
        data[32..40].copy_from_slice(&(segments as u64).to_le_bytes());
        data[40..48].copy_from_slice(&(sections as u64).to_le_bytes());
        data[54..64].copy_from_slice(&[56, 0, 2, 0, 64, 0, 4, 0, 0, 0]);
        data
    }

    const SYMBOLS: &[(&str, u8, u8, u64, u64)] = &[
        ("outer", 0, STT_FUNC, 0x1000, 0x100),
        ("inner", 0, STT_FUNC, 0x1040, 0x10),
        ("__alias", STB_GLOBAL, STT_FUNC, 0x1100, 0x20),
        ("weak", STB_WEAK, STT_FUNC, 0x1100, 0x20),
        ("local", 0, STT_FUNC, 0x1100, 0x20),
        ("alias", STB_GLOBAL, STT_FUNC, 0x1100, 0x20),
        ("handwritten", STB_GLOBAL, STT_FUNC, 0x1200, 0),
        ("after", STB_GLOBAL, STT_GNU_IFUNC, 0x1300, 0x10),
        ("last", STB_GLOBAL, STT_FUNC, 0x1f00, 0),
        ("table", STB_GLOBAL, STT_OBJECT, 0x3000, 0x100),
        ("lock", 0, STT_OBJECT, 0x3010, 40),
        ("thread_local", 0, 6, 0x3010, 40),
    ];

    #[test]
    fn functions() {
        let data = file(SYMBOLS);
        let elf = Elf::new(&data).unwrap();
        let name = |address| elf.function_at(address).map(|s| std::str::from_utf8(s.name).unwrap());
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x1000), Some("outer"));
        assert_eq!(name(0x1040), Some("inner"));
        assert_eq!(name(0x1050), Some("outer"));
        assert_eq!(name(0x10ff), Some("outer"));
        assert_eq!(name(0x1100), Some("alias"));
        assert_eq!(name(0x1120), None, "between two sized functions");
        assert_eq!(
            elf.function_at(0x12ff),
            Some(Symbol { name: b"handwritten", start: 0x1200, size: 0x100 })
        );
        assert_eq!(name(0x1300), Some("after"));
        assert_eq!(name(0x1310), None);
        assert_eq!(elf.function_at(0x1fff).unwrap().size, 0x100);
        assert_eq!(name(0x2000), None, "behind the section");
        assert_eq!(name(u64::MAX), None);
    }

    #[test]
    fn objects() {
        let data = file(SYMBOLS);
        let elf = Elf::new(&data).unwrap();
        assert_eq!(elf.object_at(0x3018).unwrap().name, b"lock");
        assert_eq!(elf.object_at(0x3040).unwrap().name, b"table");
        assert_eq!(elf.object_at(0x3100), None);
        assert_eq!(elf.object_at(0x1000), None);
    }

    #[test]
    fn build_id_and_offsets() {
        let data = file(&[]);
        let elf = Elf::new(&data).unwrap();
        assert_eq!(elf.build_id(), Some(&[7, 8, 9][..]));
        assert_eq!(elf.address_of_offset(0x50), Some(0x1050));
        assert_eq!(elf.address_of_offset(0xc0), None);
        assert_eq!(elf.function_at(0x1000), None);
    }

    #[test]
    fn what_is_no_elf_file() {
        assert!(Elf::new(b"").is_none());
        assert!(Elf::new(b"#!/bin/sh\n").is_none());
        assert!(Elf::new(b"\x7fELF\x01\x01").is_none(), "32 bit");
        assert!(Elf::new(b"\x7fELF\x02\x01").unwrap().function_at(0).is_none());
    }

    fn ask_everything(data: &[u8]) {
        if let Some(elf) = Elf::new(data) {
            for address in [0, 0x1000, 0x1050, 0x12ff, 0x1fff, 0x3018, u64::MAX] {
                elf.function_at(address);
                elf.object_at(address);
                elf.address_of_offset(address);
            }
            elf.build_id();
        }
    }

    #[test]
    fn damaged_files_do_no_harm() {
        let good = file(SYMBOLS);
        for length in 0..good.len() {
            ask_everything(&good[..length]);
        }
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                ask_everything(&bad);
                // Whole fields with large values, so that sums overflow.
                for byte in bad.iter_mut().skip(at).take(8) {
                    *byte = value;
                }
                ask_everything(&bad);
            }
        }
    }

    /// The address in the test's own file of something at an address in memory.
    pub(crate) fn own_address(address: usize) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let within = |line: &str| {
            let mut parts = line.split_whitespace();
            let (from, to) = parts.next()?.split_once('-')?;
            let hex = |text| usize::from_str_radix(text, 16).unwrap();
            let offset = hex(parts.nth(1)?);
            let found = (hex(from)..hex(to)).contains(&address);
            found.then(|| (address - hex(from) + offset) as u64)
        };
        let offset = maps.lines().find_map(within).unwrap();
        let data = std::fs::read("/proc/self/exe").unwrap();
        Elf::new(&data).unwrap().address_of_offset(offset).unwrap()
    }

    #[test]
    fn own_executable() {
        #[inline(never)]
        fn here() -> usize {
            std::hint::black_box(here as fn() -> usize as usize)
        }
        let data = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::new(&data).unwrap();
        let address = own_address(here());
        let symbol = elf.function_at(address + 1).unwrap();
        assert_eq!(symbol.start, address);
        let name = std::str::from_utf8(symbol.name).unwrap();
        assert!(name.contains("own_executable") && name.contains("here"), "{name}");
    }
}
