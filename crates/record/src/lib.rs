//! What is kept of an observed run: the recording, its writer and its reader.
//!
//! Inside the observed program only [`layout`], [`histogram`], [`clock`], [`writer`] and the two that
//! name addresses ([`elf`], [`demangle`]) are used; they need neither std nor an allocator. With the
//! feature `read` (default) comes everything that reads recordings again.
#![cfg_attr(not(feature = "read"), no_std)]

pub mod clock;
pub mod demangle;
#[cfg(feature = "read")]
pub mod diff;
pub mod elf;
#[cfg(feature = "read")]
pub mod figures;
#[cfg(feature = "read")]
pub mod file;
pub mod histogram;
pub mod label;
pub mod layout;
#[cfg(feature = "read")]
pub mod merge;
#[cfg(feature = "read")]
pub mod names;
#[cfg(feature = "read")]
pub mod raw;
#[cfg(feature = "read")]
pub mod reader;
#[cfg(feature = "read")]
pub mod recording;
#[cfg(feature = "read")]
pub mod resolve;
pub mod sys;
#[cfg(feature = "read")]
pub mod times;
pub mod writer;
