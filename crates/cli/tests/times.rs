//! `cargo xtask hold times` as a test.

#[test]
#[ignore = "a measurement: on a busy machine it may miss its bound"]
fn times_are_true() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::times::check);
}
