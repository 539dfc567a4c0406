//! `cargo xtask hold lockpaths` as a test.

#[test]
fn lock_paths_neither_allocate_nor_print() {
    xtask::hold::must(env!("CARGO_BIN_EXE_relatch"), xtask::hold::lockpaths::check);
}
