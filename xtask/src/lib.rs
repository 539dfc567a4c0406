//! What has to hold of relatch as a whole, seen from outside: through the command, on programs.
//!
//! `cargo xtask` runs it; what is quick and does not depend on the machine runs as tests of the command
//! too.
#![warn(missing_docs)]

pub mod bench;
pub mod cases;
pub mod figures;
pub mod hold;
pub mod observed;
pub mod trial;
