//! Samples in, verdict out: the statistics of relatch.
//!
//! Two designs of experiment are known here. In *rounds* ([`paired`]) every arm runs once per round,
//! so that what drifts from round to round cancels in the ratio of two arms; [`verdict`] turns such
//! ratios into words and never says more than the control allows. *Files of numbers* ([`ministat`],
//! [`unpaired`]) come as they are, and what their order and size may have done is noted beside them.
//!
//! Nothing here reads or writes a file, and nothing depends on a clock or on a random seed that the
//! caller did not give.

pub mod bootstrap;
pub mod diagnose;
pub mod honesty;
pub mod ministat;
pub mod multiple;
pub mod notes;
pub mod number;
pub mod paired;
pub mod quantile;
pub mod rank;
pub mod stopping;
pub mod summary;
pub mod unpaired;
pub mod verdict;
