//! Builds what the `relatch` file carries: the preload library and the demo's sample program.
//!
//! The preload library is a static library linked by the C compiler, since its hooks are assembler and
//! one of its symbols needs a version: a Rust cdylib can have neither.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli").to_path_buf();
    for path in
        ["crates/preload", "crates/locks/src", "crates/record/src", "crates/plan/src", "Cargo.lock"]
    {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    println!("cargo::rerun-if-changed=sample");
    println!("cargo::rerun-if-env-changed=CC");

    let archive = build_archive(&root, &out);
    let preload = root.join("crates/preload/src");
    let library = out.join("librelatch.so");
    run(compiler()
        .args(["-shared", "-static-libgcc", "-o"])
        .arg(&library)
        .arg(preload.join("hooks.S"))
        .arg(preload.join("cancel.c"))
        .args(["-O2", "-fPIC", "-fvisibility=hidden"])
        .arg(archive)
        .arg(format!("-Wl,--version-script={}", preload.join("hooks.map").display()))
        // What is not a hook stays inside; lazy binding would call the dynamic linker from a lock path.
        .args([
            "-Wl,--exclude-libs,ALL",
            "-Wl,--gc-sections",
            "-Wl,-z,now",
            "-Wl,-z,relro",
            "-Wl,--build-id",
        ])
        .args([
            "-Wl,--strip-debug",
            "-Wl,-soname,librelatch.so",
            "-Wl,-z,defs",
            "-lgcc_eh",
            "-lc",
        ]));

    run(compiler()
        .args(["-O1", "-g", "-fno-inline", "-pthread", "-o"])
        .arg(out.join("sample"))
        .arg("sample/cache.c"));
}

/// The preload crate as a static library, by a cargo of its own: it has another profile, and cargo has
/// no stable way to depend on a library as a file.
fn build_archive(root: &Path, out: &Path) -> PathBuf {
    let target = out.join("preload");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo
        .current_dir(root)
        .args(["rustc", "--quiet", "-p", "relatch-preload", "--lib", "--crate-type", "staticlib"])
        .args(["--profile", "preload", "--target-dir"])
        .arg(&target);
    // What was asked of the outer build (clippy, flags, coverage) is not meant for the library.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let outer = name.starts_with("CARGO_CFG_") || name.starts_with("CARGO_FEATURE_");
        let flags =
            ["RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"];
        if outer || flags.contains(&&*name) {
            cargo.env_remove(&*name);
        }
    }
    run(&mut cargo);
    target.join("preload/librelatch_preload.a")
}

fn compiler() -> Command {
    Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
