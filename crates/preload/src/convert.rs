//! Convert mode.
pub fn direct() {}
