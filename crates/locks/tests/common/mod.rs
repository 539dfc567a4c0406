//! What the tests of all platforms share: operations, locks as their subjects, data to protect.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod busted;
pub mod checked;
pub mod twin;

use relatch::platform::{Clock, Deadline};
use relatch::{RawMutex, RawRwLock};

/// One thread's dealings with a lock, from acquiring to having released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Lock,
    TryLock,
    LockUntil,
    /// Once more after the release, if that needs no waiting.
    LockAgain,
    /// Once more after the release, waiting.
    LockTwice,
    Read,
    TryRead,
    ReadUntil,
    ReadRecursive,
    TryReadRecursive,
    ReadThenRecursive,
    ReadAgain,
    ReadTwice,
    Write,
    TryWrite,
    WriteUntil,
    WriteAgain,
    WriteTwice,
    Downgrade,
}

pub const MUTEX_OPS: &[Op] = &[Op::Lock, Op::TryLock, Op::LockUntil, Op::LockAgain, Op::LockTwice];
pub const RW_OPS: &[Op] = &[
    Op::Read,
    Op::TryRead,
    Op::ReadUntil,
    Op::ReadRecursive,
    Op::TryReadRecursive,
    Op::ReadThenRecursive,
    Op::ReadAgain,
    Op::ReadTwice,
    Op::Write,
    Op::TryWrite,
    Op::WriteUntil,
    Op::WriteAgain,
    Op::WriteTwice,
    Op::Downgrade,
];

/// Data that notices when it is used without its lock.
pub trait Data {
    /// Reads; others may read too.
    fn look(&self);
    /// Writes; nobody else may do anything.
    fn change(&self);
}

/// A lock that can be put through its operations.
pub trait Subject: Send + Sync + 'static {
    const NAME: &'static str;
    const OPS: &'static [Op];
    fn new() -> Self;
    /// Performs `op` and says how often it changed the data.
    fn perform(&self, op: Op, data: &impl Data, deadline: Deadline) -> u32;
    /// Whether nobody holds it and anybody could.
    fn is_at_rest(&self) -> bool;
}

/// A lock of one mode as a subject.
pub struct OneMode<L>(pub L);
/// A lock of two modes as a subject.
pub struct TwoModes<L>(pub L);

impl<L: RawMutex + 'static> Subject for OneMode<L> {
    const NAME: &'static str = L::NAME;
    const OPS: &'static [Op] = MUTEX_OPS;

    fn new() -> Self {
        OneMode(L::new())
    }

    fn perform(&self, op: Op, data: &impl Data, deadline: Deadline) -> u32 {
        let held = match op {
            Op::Lock | Op::LockTwice | Op::LockAgain => {
                self.0.lock();
                true
            }
            Op::TryLock => self.0.try_lock(),
            Op::LockUntil => self.0.lock_until(deadline),
            other => panic!("{other:?} needs a lock of two modes"),
        };
        if !held {
            return 0;
        }
        data.change();
        // SAFETY: acquired above.
        unsafe { self.0.unlock() };
        1 + match op {
            Op::LockTwice => self.perform(Op::Lock, data, deadline),
            Op::LockAgain => self.perform(Op::TryLock, data, deadline),
            _ => 0,
        }
    }

    fn is_at_rest(&self) -> bool {
        let free = !self.0.is_locked() && self.0.try_lock();
        if free {
            // SAFETY: acquired above.
            unsafe { self.0.unlock() };
        }
        free && !self.0.is_locked()
    }
}

impl<L: RawRwLock + 'static> Subject for TwoModes<L> {
    const NAME: &'static str = L::NAME;
    const OPS: &'static [Op] = RW_OPS;

    fn new() -> Self {
        TwoModes(L::new())
    }

    fn perform(&self, op: Op, data: &impl Data, deadline: Deadline) -> u32 {
        let lock = &self.0;
        let shared = match op {
            Op::Read | Op::ReadAgain | Op::ReadTwice | Op::ReadThenRecursive => {
                lock.read();
                true
            }
            Op::TryRead => lock.try_read(),
            Op::ReadUntil => lock.read_until(deadline),
            Op::ReadRecursive => {
                lock.read_recursive();
                true
            }
            Op::TryReadRecursive => lock.try_read_recursive(),
            _ => false,
        };
        if shared {
            data.look();
            if op == Op::ReadThenRecursive {
                lock.read_recursive();
                data.look();
                // SAFETY: acquired above.
                unsafe { lock.read_unlock() };
            }
            // SAFETY: acquired above.
            unsafe { lock.read_unlock() };
            return match op {
                Op::ReadTwice => self.perform(Op::Read, data, deadline),
                Op::ReadAgain => self.perform(Op::TryRead, data, deadline),
                _ => 0,
            };
        }
        let exclusive = match op {
            Op::Write | Op::WriteAgain | Op::WriteTwice | Op::Downgrade => {
                lock.write();
                true
            }
            Op::TryWrite => lock.try_write(),
            Op::WriteUntil => lock.write_until(deadline),
            _ => false,
        };
        if !exclusive {
            return 0;
        }
        data.change();
        if op == Op::Downgrade {
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            data.look();
            // SAFETY: shared since the downgrade.
            unsafe { lock.read_unlock() };
            return 1;
        }
        // SAFETY: acquired above.
        unsafe { lock.write_unlock() };
        1 + match op {
            Op::WriteTwice => self.perform(Op::Write, data, deadline),
            Op::WriteAgain => self.perform(Op::TryWrite, data, deadline),
            _ => 0,
        }
    }

    fn is_at_rest(&self) -> bool {
        let free = !self.0.is_locked() && self.0.try_write();
        if free {
            // SAFETY: acquired above.
            unsafe { self.0.write_unlock() };
        }
        let shared = free && self.0.try_read();
        if shared {
            // SAFETY: acquired above.
            unsafe { self.0.read_unlock() };
        }
        shared && !self.0.is_locked() && !self.0.is_write_locked()
    }
}

/// A deadline that has passed on any clock of any platform.
pub const PAST: Deadline = Deadline { clock: Clock::Monotonic, ns: 0 };

/// Random numbers for tests: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Runs `check`, which must panic, and gives the panic's message.
pub fn must_fail(what: &str, check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(check).expect_err(what);
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("?").to_string(),
    }
}
