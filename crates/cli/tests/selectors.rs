//! `cargo xtask hold selectors` as a test.

#[test]
#[ignore = "needs db_bench and kccachetest; .ci/run installs them and runs the check"]
fn sites_of_real_programs_have_names() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::selectors::check);
}
