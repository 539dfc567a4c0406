//! One step up the stack: from a return address to its function's frame, by the rows of `.eh_frame`.
//!
//! Programs are built without frame pointers, so the frame above a return address is found as an
//! exception would: the function's FDE holds a small program whose rows say, for each instruction, how
//! far the canonical frame address (CFA, the caller's stack pointer before the call) lies from a
//! register. A row is computed once per return address and kept by the caller; rows that need more than
//! the stack or frame pointer plus an offset are not followed.
//!
//! Source: DWARF 5 section 6.4, LSB Core `.eh_frame_hdr`; `_dl_find_object` is glibc's (2.35).

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

/// The frame of a function at one return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// First address of the function.
    pub start: usize,
    /// Behind its last address.
    pub end: usize,
    /// How to find the frame above; none where the row needs more than an offset.
    pub up: Option<Up>,
}

/// How to find the frame above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up {
    /// The CFA is this far above the stack pointer, or above the frame pointer.
    pub offset: i32,
    /// Which of both.
    pub from_frame_pointer: bool,
    /// Where the caller's frame pointer was saved, from the CFA; none: still in its register.
    pub frame_pointer_at: Option<i32>,
}

impl Up {
    /// Where the return address of the function lies that a return address at `return_at` is in, and
    /// the frame pointer of the frame above.
    #[inline(always)]
    pub fn step(self, return_at: usize, frame_pointer: usize) -> Option<(usize, usize)> {
        // After the return the stack pointer is just above the return address.
        let from = if self.from_frame_pointer { frame_pointer } else { return_at + 8 };
        let cfa = from.wrapping_add_signed(self.offset as isize);
        // The stack grows down: a frame above lies higher, and not far for functions that lock.
        if cfa <= return_at || cfa - return_at > 1 << 20 || cfa & 7 != 0 {
            return None;
        }
        let frame_pointer = match self.frame_pointer_at {
            // SAFETY: a slot of this thread's live stack, by the function's own unwind row.
            Some(at) => unsafe { (cfa.wrapping_add_signed(at as isize) as *const usize).read() },
            None => frame_pointer,
        };
        Some((cfa - 8, frame_pointer))
    }
}

/// glibc's `struct dl_find_object`.
#[repr(C)]
pub struct Object {
    flags: u64,
    /// First mapped address.
    pub start: *const u8,
    /// Behind the last mapped address.
    pub end: *const u8,
    /// The dynamic linker's entry.
    pub link_map: *const LinkMap,
    eh_frame_header: *const u8,
    reserved: [u64; 7],
}

/// The public part of glibc's `struct link_map`.
#[repr(C)]
pub struct LinkMap {
    /// Difference between addresses in memory and in the file.
    pub base: usize,
    /// Path; empty for the executable.
    pub name: *const libc::c_char,
}

impl Object {
    /// What was added to the file's addresses, and the path: empty for the executable.
    pub fn base_and_path(&self) -> (usize, &[u8]) {
        // SAFETY: the dynamic linker's entry lives as long as the file is mapped, and this one holds an
        // address that is in use.
        unsafe {
            let map = &*self.link_map;
            let path = if map.name.is_null() { &[] } else { CStr::from_ptr(map.name).to_bytes() };
            (map.base, path)
        }
    }
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds `_dl_find_object`. Without it (glibc before 2.35) no frame above a call is seen.
pub fn resolve() {
    // SAFETY: a C string that lives forever.
    FIND_OBJECT
        .store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Relaxed);
}

/// The mapped file that holds an address.
pub fn object_at(address: usize) -> Option<Object> {
    let find = FIND_OBJECT.load(Relaxed);
    if find.is_null() {
        return None;
    }
    let mut object = core::mem::MaybeUninit::<Object>::zeroed();
    // SAFETY: `find` is `_dl_find_object`; it takes no lock, and fills the structure when it returns 0.
    unsafe {
        let find: FindObject = core::mem::transmute(find);
        (find(address as *mut c_void, object.as_mut_ptr()) == 0).then(|| object.assume_init())
    }
}

/// The row at a return address.
pub fn row_at(return_address: usize) -> Option<Row> {
    let object = object_at(return_address)?;
    // The call's own row: a return address may lie behind the function's end.
    let pc = return_address - 1;
    let fde = find_fde(object.eh_frame_header, pc)?;
    let entry = read_fde(fde)?;
    if !(entry.start..entry.end).contains(&pc) {
        return None;
    }
    Some(Row { start: entry.start, end: entry.end, up: run(&entry, pc) })
}

/// Reads unaligned values of memory that holds well-formed tables, as the unwinder does.
#[derive(Clone, Copy)]
struct Cursor {
    at: *const u8,
}

impl Cursor {
    fn byte(&mut self) -> u8 {
        // SAFETY: the tables are mapped by the loader and end where their lengths say.
        let value = unsafe { self.at.read() };
        self.at = self.at.wrapping_add(1);
        value
    }

    fn value<T: Copy>(&mut self) -> T {
        // SAFETY: as in `byte`; T is an integer.
        let value = unsafe { self.at.cast::<T>().read_unaligned() };
        self.at = self.at.wrapping_add(size_of::<T>());
        value
    }

    fn unsigned(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let byte = self.byte();
            value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return if byte & 0x40 != 0 && shift < 64 { value | (-1 << shift) } else { value };
            }
        }
    }

    /// A pointer in one of the encodings that x86-64 and aarch64 linkers emit.
    fn pointer(&mut self, encoding: u8) -> Option<usize> {
        let place = self.at as isize;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.value::<i64>() as isize,
            0x03 => self.value::<u32>() as isize,
            0x0b => self.value::<i32>() as isize,
            0x02 => self.value::<u16>() as isize,
            0x0a => self.value::<i16>() as isize,
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value as usize),
            0x10 => Some((place + value) as usize),
            _ => None,
        }
    }
}

/// Searches the sorted table of `.eh_frame_hdr`.
fn find_fde(header: *const u8, pc: usize) -> Option<*const u8> {
    if header.is_null() {
        return None;
    }
    let mut cursor = Cursor { at: header };
    let (version, frame, count, table) =
        (cursor.byte(), cursor.byte(), cursor.byte(), cursor.byte());
    // 0x3b: pairs of i32 from the header's start, what every linker writes.
    if version != 1 || table != 0x3b {
        return None;
    }
    cursor.pointer(frame)?;
    let count = cursor.pointer(count)?;
    let pairs = cursor.at.cast::<[i32; 2]>();
    // SAFETY: the table holds `count` pairs.
    let pair = |i: usize| unsafe { pairs.add(i).read_unaligned() };
    let at = |offset: i32| (header as usize).wrapping_add_signed(offset as isize);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(pair(middle)[0]) <= pc { low = middle + 1 } else { high = middle }
    }
    low.checked_sub(1).map(|found| at(pair(found)[1]) as *const u8)
}

/// What an FDE and its CIE say.
struct Entry {
    start: usize,
    end: usize,
    code_factor: u64,
    data_factor: i64,
    /// The CIE's instructions, then the FDE's.
    programs: [(Cursor, *const u8); 2],
    encoding: u8,
}

fn read_fde(fde: *const u8) -> Option<Entry> {
    let mut cursor = Cursor { at: fde };
    let length = cursor.value::<u32>();
    if length == 0 || length == u32::MAX {
        return None;
    }
    let end = cursor.at.wrapping_add(length as usize);
    let cie_distance = cursor.at;
    let cie = cie_distance.wrapping_sub(cursor.value::<u32>() as usize);

    let mut c = Cursor { at: cie };
    let cie_length = c.value::<u32>();
    let cie_end = c.at.wrapping_add(cie_length as usize);
    if c.value::<u32>() != 0 {
        return None;
    }
    c.byte();
    let augmentation = c.at;
    while c.byte() != 0 {}
    let code_factor = c.unsigned();
    let data_factor = c.signed();
    c.unsigned();
    let mut encoding = 0;
    let mut letters = Cursor { at: augmentation };
    let has_length = letters.byte() == b'z';
    if has_length {
        let data_length = c.unsigned() as usize;
        let data_end = c.at.wrapping_add(data_length);
        loop {
            match letters.byte() {
                b'R' => encoding = c.byte(),
                b'P' => {
                    let personality = c.byte();
                    // The value is not needed; an indirect pointer is as long as a direct one.
                    c.pointer(personality & 0x7f)?;
                }
                b'L' => drop(c.byte()),
                b'S' | b'B' => {}
                _ => break,
            }
        }
        c.at = data_end;
    }

    let start = cursor.pointer(encoding)?;
    let size = cursor.pointer(encoding & 0x0f)?;
    if has_length {
        let skip = cursor.unsigned() as usize;
        cursor.at = cursor.at.wrapping_add(skip);
    }
    Some(Entry {
        start,
        end: start + size,
        code_factor,
        data_factor,
        programs: [(c, cie_end), (cursor, end)],
        encoding,
    })
}

/// The CFA's rule, or none where it is an expression or another register.
#[derive(Clone, Copy)]
struct State {
    register: u64,
    offset: i64,
    /// Where the frame pointer is saved; none: unchanged.
    saved: Option<i64>,
    /// The rule of the frame pointer, or of the return address, is one that is not followed.
    lost: bool,
}

/// DWARF numbers of the registers that rows are followed through.
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: u64 = 6;
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u64 = 7;
#[cfg(target_arch = "x86_64")]
const RETURN_ADDRESS: u64 = 16;
#[cfg(target_arch = "aarch64")]
const RETURN_ADDRESS: u64 = 30;
#[cfg(target_arch = "aarch64")]
const FRAME_POINTER: u64 = 29;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: u64 = 31;

/// No register: an expression.
const EXPRESSION: u64 = u64::MAX;

/// Runs the CIE's and the FDE's instructions up to `pc`.
fn run(entry: &Entry, pc: usize) -> Option<Up> {
    let mut state = State { register: EXPRESSION, offset: 0, saved: None, lost: false };
    let mut initial = state;
    let mut remembered = [state; 8];
    let mut depth = 0;
    let mut location = entry.start;
    for (index, &(mut cursor, end)) in entry.programs.iter().enumerate() {
        while cursor.at < end {
            let opcode = cursor.byte();
            let low = u64::from(opcode & 0x3f);
            let mut advance = 0;
            match opcode >> 6 {
                1 => advance = low,
                2 => {
                    let offset = cursor.unsigned() as i64 * entry.data_factor;
                    state.save(low, Some(offset));
                }
                3 => state.restore(low, &initial),
                _ => match opcode {
                    0x00 => {}
                    0x01 => location = cursor.pointer(entry.encoding)?,
                    0x02 => advance = u64::from(cursor.byte()),
                    0x03 => advance = u64::from(cursor.value::<u16>()),
                    0x04 => advance = u64::from(cursor.value::<u32>()),
                    // offset_extended, val_offset
                    0x05 => {
                        let register = cursor.unsigned();
                        let offset = cursor.unsigned() as i64 * entry.data_factor;
                        state.save(register, Some(offset));
                    }
                    0x06 => {
                        let register = cursor.unsigned();
                        state.restore(register, &initial);
                    }
                    // undefined
                    0x07 => {
                        let register = cursor.unsigned();
                        state.lose(register);
                    }
                    // same_value
                    0x08 => {
                        let register = cursor.unsigned();
                        state.save(register, None);
                    }
                    // register
                    0x09 => {
                        let register = cursor.unsigned();
                        cursor.unsigned();
                        state.lose(register);
                    }
                    0x0a => {
                        *remembered.get_mut(depth)? = state;
                        depth += 1;
                    }
                    0x0b => {
                        depth = depth.checked_sub(1)?;
                        state = remembered[depth];
                    }
                    0x0c => {
                        state.register = cursor.unsigned();
                        state.offset = cursor.unsigned() as i64;
                    }
                    0x0d => state.register = cursor.unsigned(),
                    0x0e => state.offset = cursor.unsigned() as i64,
                    // def_cfa_expression: only the procedure linkage table has it.
                    0x0f => {
                        let length = cursor.unsigned() as usize;
                        cursor.at = cursor.at.wrapping_add(length);
                        state.register = EXPRESSION;
                    }
                    // expression, val_expression
                    0x10 | 0x16 => {
                        let register = cursor.unsigned();
                        let length = cursor.unsigned() as usize;
                        cursor.at = cursor.at.wrapping_add(length);
                        state.lose(register);
                    }
                    0x11 => {
                        let register = cursor.unsigned();
                        let offset = cursor.signed() * entry.data_factor;
                        state.save(register, Some(offset));
                    }
                    0x12 => {
                        state.register = cursor.unsigned();
                        state.offset = cursor.signed() * entry.data_factor;
                    }
                    0x13 => state.offset = cursor.signed() * entry.data_factor,
                    0x14 | 0x15 => {
                        let register = cursor.unsigned();
                        cursor.unsigned();
                        state.lose(register);
                    }
                    // GNU_args_size
                    0x2e => drop(cursor.unsigned()),
                    _ => return None,
                },
            }
            if advance != 0 {
                location += (advance * entry.code_factor) as usize;
            }
            if location > pc {
                return state.up();
            }
        }
        if index == 0 {
            initial = state;
        }
    }
    state.up()
}

impl State {
    fn save(&mut self, register: u64, at: Option<i64>) {
        if register == FRAME_POINTER {
            (self.saved, self.lost) = (at, false);
        }
    }

    fn restore(&mut self, register: u64, initial: &State) {
        if register == FRAME_POINTER {
            (self.saved, self.lost) = (initial.saved, initial.lost);
        }
    }

    fn lose(&mut self, register: u64) {
        // The outermost frame says that its return address is undefined.
        if register == FRAME_POINTER || register == RETURN_ADDRESS {
            self.lost = true;
        }
    }

    fn up(&self) -> Option<Up> {
        let known = matches!(self.register, STACK_POINTER | FRAME_POINTER) && !self.lost;
        known.then_some(Up {
            offset: self.offset as i32,
            from_frame_pointer: self.register == FRAME_POINTER,
            frame_pointer_at: self.saved.map(|at| at as i32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both names of one frame: what the hardware pushed, and what the tables say.
    #[inline(never)]
    fn frame_above(depth: u32) -> (usize, usize) {
        if depth > 0 {
            let found = frame_above(depth - 1);
            std::hint::black_box(&found);
            return found;
        }
        (0, std::hint::black_box(frame_above as *const () as usize))
    }

    #[test]
    fn the_tables_know_this_function() {
        resolve();
        frame_above(3);
        let pc = frame_above as *const () as usize + 8;
        let row = row_at(pc).expect("test binaries carry .eh_frame");
        assert!(row.start <= pc && pc < row.end);
        assert!(row.up.is_some());
    }

    #[test]
    fn an_address_outside_any_file_has_no_row() {
        resolve();
        assert_eq!(row_at(0x10), None);
    }
}
