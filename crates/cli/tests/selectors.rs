//! `cargo xtask hold selectors` as a test.

#[test]
fn sites_of_real_programs_have_names() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::selectors::check);
}
