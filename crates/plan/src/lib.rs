//! Selectors, conversions and plans: which lock becomes which algorithm.
//!
//! A *conversion* is written `KIND[@SELECTOR]=ALGORITHM`: locks of that kind, whose class or site
//! bears a name that the selector (a [`glob`]) matches, become locks of that algorithm. A *plan* is
//! a set of them. The core of this crate needs neither `std` nor memory from the heap, since it
//! decides inside the observed program, within a lock call; plan files and everything that
//! owns its text are behind the feature `std`.

#![cfg_attr(not(feature = "std"), no_std)]

mod algorithm;
mod conversion;
mod deciding;
pub mod env;
#[cfg(feature = "std")]
mod file;
pub mod glob;
#[cfg(feature = "std")]
mod plan;

pub use algorithm::{Algorithm, Kind};
pub use conversion::{Conversion, ParseError};
pub use deciding::{Conversions, Shares, any_line_matches};
#[cfg(feature = "std")]
pub use plan::{Plan, PlanError};
