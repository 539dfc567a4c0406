//! Tables for the terminal, json and csv.

pub mod compare;
pub mod dotplot;
pub mod prose;
pub mod stat;
pub mod stat_diff;
pub mod stat_json;
pub mod trial;
pub mod units;
