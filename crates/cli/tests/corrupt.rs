//! `cargo xtask hold corrupt` as a test.

#[test]
fn damaged_recordings_are_refused_in_one_line() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::corrupt::check);
}
