//! `cargo xtask hold counts` as a test.

#[test]
fn counts_are_exact() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::counts::check);
}
