//! `cargo xtask hold times` as a test.

#[test]
fn times_are_true() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::times::check);
}
