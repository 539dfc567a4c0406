//! Does a function pass its own argument on to the call before a return address?
//!
//! Asked for init calls alone: an initialiser always returns with its work done, so whether it is a
//! wrapper can not be seen from when it returns. `port::Mutex::Mutex(this)` hands `this` to
//! `pthread_mutex_init`; `RWLock::RWLock()` and `CRYPTO_THREAD_lock_new()` hand on memory that they
//! allocated for the lock alone. In both the class begins above.
//!
//! The function is read once from its first instruction to the call, in the order of addresses, with
//! what each register and stack slot is known to hold. Where the order of addresses is not the order of
//! execution something may be unknown; then the function is no wrapper.

use core::sync::atomic::Ordering::Relaxed;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use crate::places::Place;

/// A longer way from the first instruction to the call is not followed.
const BYTES: usize = 4096;
/// Memory of this size has room for a lock alone: an rwlock is 56 bytes.
const LOCK_BYTES: u64 = 64;
/// Stack slots remembered.
const SLOTS: usize = 32;

/// Whether the call before `place` is given its function's own argument, unchanged, or fresh memory that
/// only has room for a lock.
pub fn passes_its_argument(place: &Place) -> bool {
    match place.passes.load(Relaxed) {
        0 => {
            let passes = look(place);
            // Relaxed: two threads that look find the same.
            place.passes.store(1 + u8::from(passes), Relaxed);
            passes
        }
        known => known == 2,
    }
}

/// Makes the decoder build its tables, which it does once: a fork amid that would leave the child waiting
/// for a thread that it does not have.
pub fn warm_up() {
    argument_of_last_call(&[0x90]);
}

#[cold]
fn look(place: &Place) -> bool {
    let Some((start, length)) = place.function() else { return false };
    let end = place.address();
    if end <= start || end > start + length || end - start > BYTES {
        return false;
    }
    // SAFETY: the bytes of a function that is on this thread's stack are mapped.
    let code = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
    matches!(argument_of_last_call(code), Value::Argument(0) | Value::Fresh)
}

/// What a register or a stack slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Unknown,
    /// An argument of the function plus so many bytes.
    Argument(i64),
    /// The frame: bytes from the stack pointer at entry.
    Frame(i64),
    Constant(u64),
    /// What a call returned that was asked for no more bytes than a lock has.
    Fresh,
}

#[derive(Clone, Copy)]
struct State {
    registers: [Value; 16],
    slots: [(i64, Value); SLOTS],
    used: usize,
}

const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
const NOT_KEPT: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// The first argument at the call that ends `code`.
fn argument_of_last_call(code: &[u8]) -> Value {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut information = InstructionInfoFactory::new();
    let mut instruction = Instruction::default();
    let mut state = State::at_entry();
    // After a return or a jump the code goes on as it was before the epilogue, about: at the last call.
    let mut at_last_call = state;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.code() == Code::INVALID {
            return Value::Unknown;
        }
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                if instruction.next_ip() == code.len() as u64 {
                    return state.get(Register::RDI);
                }
                state.call();
                at_last_call = state;
            }
            FlowControl::Return
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch => {
                state = at_last_call;
            }
            FlowControl::ConditionalBranch => {}
            _ => state.execute(&instruction, &mut information),
        }
    }
    Value::Unknown
}

impl State {
    fn at_entry() -> State {
        let mut state =
            State { registers: [Value::Unknown; 16], slots: [(0, Value::Unknown); SLOTS], used: 0 };
        for register in ARGUMENTS {
            state.set(register, Value::Argument(0));
        }
        state.set(Register::RSP, Value::Frame(0));
        state
    }

    fn get(&self, register: Register) -> Value {
        if register.is_gpr() { self.registers[register.number()] } else { Value::Unknown }
    }

    fn set(&mut self, register: Register, value: Value) {
        if register.is_gpr() {
            self.registers[register.number()] = value;
        }
    }

    fn load(&self, at: Option<i64>) -> Value {
        let slots = &self.slots[..self.used];
        at.and_then(|at| slots.iter().find(|slot| slot.0 == at))
            .map_or(Value::Unknown, |slot| slot.1)
    }

    fn store(&mut self, at: Option<i64>, value: Value) {
        let Some(at) = at else { return };
        if let Some(slot) = self.slots[..self.used].iter_mut().find(|slot| slot.0 == at) {
            slot.1 = value;
        } else if self.used < SLOTS {
            self.slots[self.used] = (at, value);
            self.used += 1;
        }
    }

    /// The frame's slot that a memory operand names.
    fn slot_of(&self, instruction: &Instruction) -> Option<i64> {
        match self.address_of(instruction) {
            Value::Frame(at) => Some(at),
            _ => None,
        }
    }

    /// The value of a memory operand's address.
    fn address_of(&self, instruction: &Instruction) -> Value {
        if instruction.memory_index() != Register::None {
            return Value::Unknown;
        }
        self.get(instruction.memory_base()).plus(instruction.memory_displacement64() as i64)
    }

    fn call(&mut self) {
        let bytes = match (self.get(Register::RDI), self.get(Register::RSI)) {
            (Value::Constant(count @ 1..=2), Value::Constant(size)) => count.saturating_mul(size),
            (Value::Constant(size), _) => size,
            _ => u64::MAX,
        };
        for register in NOT_KEPT {
            self.set(register, Value::Unknown);
        }
        // 24: smaller memory has no room for a lock, so the call was not an allocation of one.
        if (24..=LOCK_BYTES).contains(&bytes) {
            self.set(Register::RAX, Value::Fresh);
        }
    }

    fn execute(&mut self, instruction: &Instruction, information: &mut InstructionInfoFactory) {
        let destination = instruction.op0_register();
        let (to, from) = (instruction.op0_kind(), instruction.op1_kind());
        let wide = destination.is_gpr64();
        match instruction.mnemonic() {
            Mnemonic::Push => {
                self.move_stack(-8);
                let value =
                    if to == OpKind::Register { self.get(destination) } else { Value::Unknown };
                self.store(self.top(), value);
            }
            Mnemonic::Pop if to == OpKind::Register => {
                let value = self.load(self.top());
                self.set(destination, value);
                self.move_stack(8);
            }
            Mnemonic::Mov if to == OpKind::Register => {
                let value = match from {
                    OpKind::Register if wide => self.get(instruction.op1_register()),
                    OpKind::Memory if wide => self.load(self.slot_of(instruction)),
                    OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
                        Value::Constant(instruction.immediate(1))
                    }
                    _ => Value::Unknown,
                };
                self.set(destination, value);
            }
            Mnemonic::Mov if to == OpKind::Memory => {
                let value = if from == OpKind::Register && instruction.op1_register().is_gpr64() {
                    self.get(instruction.op1_register())
                } else {
                    Value::Unknown
                };
                self.store(self.slot_of(instruction), value);
            }
            Mnemonic::Lea if wide => self.set(destination, self.address_of(instruction)),
            Mnemonic::Xor
                if to == OpKind::Register
                    && from == OpKind::Register
                    && destination == instruction.op1_register() =>
            {
                self.set(destination, Value::Constant(0));
            }
            Mnemonic::Add | Mnemonic::Sub
                if wide && from != OpKind::Register && from != OpKind::Memory =>
            {
                let bytes = instruction.immediate(1) as i64;
                let bytes = if instruction.mnemonic() == Mnemonic::Add { bytes } else { -bytes };
                self.set(destination, self.get(destination).plus(bytes));
            }
            _ => {
                for used in information.info(instruction).used_registers() {
                    if matches!(
                        used.access(),
                        OpAccess::Write
                            | OpAccess::CondWrite
                            | OpAccess::ReadWrite
                            | OpAccess::ReadCondWrite
                    ) {
                        self.set(used.register().full_register(), Value::Unknown);
                    }
                }
            }
        }
    }

    fn top(&self) -> Option<i64> {
        match self.get(Register::RSP) {
            Value::Frame(at) => Some(at),
            _ => None,
        }
    }

    fn move_stack(&mut self, bytes: i64) {
        self.set(Register::RSP, self.get(Register::RSP).plus(bytes));
    }
}

impl Value {
    fn plus(self, bytes: i64) -> Value {
        match self {
            Value::Argument(at) => Value::Argument(at.wrapping_add(bytes)),
            Value::Frame(at) => Value::Frame(at.wrapping_add(bytes)),
            _ => Value::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push rbx; mov rbx, rdi; xor esi, esi; mov rdi, rbx; call
    const PASSES: [u8; 14] =
        [0x53, 0x48, 0x89, 0xfb, 0x31, 0xf6, 0x48, 0x89, 0xdf, 0xe8, 0, 0, 0, 0];
    /// add rdi, 0x28; call
    const PASSES_A_MEMBER: [u8; 9] = [0x48, 0x83, 0xc7, 0x28, 0xe8, 0, 0, 0, 0];
    /// mov edi, 0x38; call; mov rdi, rax; xor esi, esi; call
    const ALLOCATES: [u8; 20] =
        [0xbf, 0x38, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xc7, 0x31, 0xf6, 0xe8, 0, 0, 0, 0];
    /// push rbp; mov rbp, rsp; sub rsp, 16; mov [rbp-8], rdi; mov rax, [rbp-8]; mov rdi, rax; call
    const UNOPTIMISED: [u8; 24] = [
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0x8b, 0x45,
        0xf8, 0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0,
    ];

    #[test]
    fn an_argument_is_followed_through_registers_and_the_stack() {
        assert_eq!(argument_of_last_call(&PASSES), Value::Argument(0));
        assert_eq!(argument_of_last_call(&UNOPTIMISED), Value::Argument(0));
    }

    #[test]
    fn a_member_is_not_the_argument() {
        assert_eq!(argument_of_last_call(&PASSES_A_MEMBER), Value::Argument(0x28));
    }

    #[test]
    fn memory_for_a_lock_alone_counts_as_the_lock() {
        assert_eq!(argument_of_last_call(&ALLOCATES), Value::Fresh);
        let mut larger = ALLOCATES;
        larger[1] = 0x80;
        assert_eq!(argument_of_last_call(&larger), Value::Unknown);
    }

    #[test]
    fn garbage_is_no_wrapper() {
        assert_eq!(argument_of_last_call(&[0x06, 0xff, 0xff]), Value::Unknown);
    }
}
