//! The environment of an interposed program as lines for a shell (`relatch env`).

use std::fmt::Write;
use std::path::Path;

use relatch_plan::Plan;
use relatch_plan::env::{self, Mode};

use crate::interpose::{self, Interposition, LD_PRELOAD};

/// The mode that is meant: the one asked for, else `convert` with a plan and `same` without.
///
/// # Errors
/// When mode and plan do not go together.
pub fn mode_for(asked: Option<Mode>, plan: Option<&Plan>) -> Result<Mode, String> {
    match (asked, plan) {
        (None, Some(_)) => Ok(Mode::Convert),
        (None, None) => Ok(Mode::Same),
        (Some(Mode::Convert), None) => Err("mode convert needs a conversion (-c)".into()),
        (Some(mode @ (Mode::Same | Mode::Record)), Some(_)) => {
            Err(format!("mode {mode} converts nothing; leave out -c or the mode"))
        }
        (Some(mode), _) => Ok(mode),
    }
}

/// Commands for a POSIX shell that make the programs it starts run interposed. What an earlier use set
/// and this one does not is unset. Recordings go to the directory, which is created.
///
/// # Errors
/// When there is no directory in mode `record`, or it cannot be created.
pub fn export_lines(
    interposition: &Interposition,
    mode: Mode,
    plan: Option<&Plan>,
    recordings: Option<&Path>,
) -> Result<String, String> {
    let mut variables = interposition.environment(mode, plan);
    if let Some(directory) = recordings {
        // The programs may run elsewhere.
        let whole = std::fs::create_dir_all(directory)
            .and_then(|()| directory.canonicalize())
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        variables.push((env::DIR.to_owned(), whole.to_string_lossy().into_owned()));
    } else if mode == Mode::Record {
        return Err("mode record needs a directory for the recordings (--recordings)".into());
    }
    let set = |name: &&str| !variables.iter().any(|(other, _)| other == name);
    let stale: Vec<&str> = env::ALL.into_iter().filter(set).collect();
    let mut lines = String::new();
    if !stale.is_empty() {
        let _ = writeln!(lines, "unset {}", stale.join(" "));
    }
    for (name, value) in &variables {
        let _ = writeln!(lines, "export {name}={}", quoted(value));
    }
    Ok(lines)
}

/// Commands that take [`export_lines`] back.
pub fn unset_lines() -> String {
    let names = env::ALL.join(" ");
    match interpose::inherited_preloads() {
        Some(others) => format!("unset {names}\nexport {LD_PRELOAD}={}\n", quoted(&others)),
        None => format!("unset {names} {LD_PRELOAD}\n"),
    }
}

/// As one word for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_set() {
        let mut interposition = Interposition::new("/x/librelatch.so".into());
        interposition.wrappers = vec!["a'b $HOME `x` \\".into(), "*::lock".into()];
        let plan = Plan::parse_args(&["mutex@f'(int)*=ttas", "spin=mutex"]).unwrap();
        let lines = export_lines(&interposition, Mode::Convert, Some(&plan), None).unwrap();
        let print = "printf '%s|' \"$RELATCH_PLAN\" \"$RELATCH_WRAPPERS\" \"${RELATCH_DIR-none}\"";
        // LD_PRELOAD names a library that does not exist: take it back before anything is started.
        let script = format!("RELATCH_DIR=stale\n{lines}\nunset LD_PRELOAD\n{print}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "mutex@f'(int)*=ttas\nspin=mutex|a'b $HOME `x` \\\n*::lock|none|"
        );
        assert!(lines.contains("export LD_PRELOAD='/x/librelatch.so"), "{lines}");
    }

    #[test]
    fn modes_and_what_they_need() {
        let plan = Plan::from_arg("mutex=ttas").unwrap();
        assert_eq!(mode_for(None, Some(&plan)), Ok(Mode::Convert));
        assert_eq!(mode_for(None, None), Ok(Mode::Same));
        assert_eq!(mode_for(Some(Mode::Record), None), Ok(Mode::Record));
        assert!(mode_for(Some(Mode::Convert), None).is_err());
        assert!(mode_for(Some(Mode::Same), Some(&plan)).is_err());

        let interposition = Interposition::new("/x/librelatch.so".into());
        assert!(export_lines(&interposition, Mode::Record, None, None).is_err());
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("recordings");
        let lines = export_lines(&interposition, Mode::Record, None, Some(&inner)).unwrap();
        assert!(inner.is_dir() && lines.contains("RELATCH_DIR='/"), "{lines}");
    }
}
