//! The library inside the observed program.
//!
//! `hooks.S` is what the program's calls are bound to; it jumps through [`slots`]. [`life`] begins and
//! ends, [`settings`] says what was asked for, [`session`] is the recording. [`observe`] holds the hooks
//! that observe, [`convert`] those that replace locks. Between them: [`places`] (return addresses:
//! wrapper or site), [`unwind`] (frames above), [`passing`] (init wrappers), [`class`] (which locks
//! belong together), [`section`] (from acquire to release; [`usual`]: the short way), [`thread`] (rows and sections of one thread).
//!
//! # Rules
//! 1. Nothing is allocated on a lock path, and no function of libc is called that may allocate, print,
//!    set `errno` or be a cancellation point, but the one that the program itself called.
//! 2. A hook may be the first code of this library that runs.
//! 3. glibc's words of a lock stay valid and free as long as the lock is converted.

// `_1` to `_3` are argument registers that a hooked function does not use.
#![allow(clippy::just_underscores_and_digits)]
// Nobody reads these pages without the source beside them.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64")))]
compile_error!("the preload library is written for x86-64 Linux with glibc");

pub mod arena;
pub mod class;
pub mod convert;
pub mod guard;
pub mod kind;
pub mod life;
pub mod memory;
pub mod names;
pub mod observe;
pub mod passing;
pub mod places;
pub mod refused;
pub mod section;
pub mod session;
pub mod settings;
pub mod slots;
pub mod table;
pub mod thread;
pub mod tls;
pub mod unwind;
pub mod usual;
