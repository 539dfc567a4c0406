//! A plan that owns its text: from the command line or a file, to the environment.

use std::fmt;
use std::path::Path;

use crate::conversion::Conversion;
use crate::{env, file};

/// A set of conversions under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What tables call it: the conversion's text, or a plan file's own name.
    pub name: String,
    /// The first that selects a lock decides what becomes of it.
    pub conversions: Vec<Conversion<String>>,
    /// Who takes the converted locks shared, in the form of [`crate::Shares`]: each a glob over
    /// sites, or `#N GLOB` for the locks of conversion `N` alone.
    pub share: Vec<String>,
}

/// Why an argument or a file is no plan: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub(crate) String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl From<PlanError> for String {
    fn from(error: PlanError) -> String {
        error.0
    }
}

impl Plan {
    /// Reads one argument of `-c`: `KIND[@SELECTOR]=ALGORITHM`, or `@FILE` for a plan file.
    ///
    /// # Errors
    /// One line that says which part is wrong, and in which line of which file.
    pub fn from_arg(arg: &str) -> Result<Plan, PlanError> {
        if let Some(path) = arg.strip_prefix('@') {
            return Plan::from_file(Path::new(path));
        }
        let conversion = Conversion::parse(arg).map_err(|error| PlanError(error.to_string()))?;
        Ok(Plan {
            name: arg.to_owned(),
            conversions: vec![conversion.to_owned()],
            share: Vec::new(),
        })
    }

    /// Reads all arguments of `-c` into one plan, in their order.
    ///
    /// # Errors
    /// As [`Plan::from_arg`]; and if there is no argument.
    pub fn parse_args<S: AsRef<str>>(args: &[S]) -> Result<Plan, PlanError> {
        let mut plans = args.iter().map(|arg| Plan::from_arg(arg.as_ref()));
        let mut all = plans.next().ok_or_else(|| PlanError("no conversion given".into()))??;
        for plan in plans {
            all.append(plan?);
        }
        Ok(all)
    }

    /// Reads a plan file.
    ///
    /// ```toml
    /// name = "shard lookups side by side"   # optional, else the file's name
    /// share = ["*::Lookup"]                 # optional: holds for every conversion
    ///
    /// [[conversion]]
    /// kind = "mutex"
    /// select = "*LRUCacheShard*"            # optional, else every lock of the kind
    /// algorithm = "rwsem"
    /// share = ["*LRUCacheShard::Release"]   # optional: holds for this conversion
    /// ```
    ///
    /// # Errors
    /// One line with the file and, where it is about one, the number of the line.
    pub fn from_file(path: &Path) -> Result<Plan, PlanError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| PlanError(format!("{}: {error}", path.display())))?;
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        file::parse(&text, &stem).map_err(|error| PlanError(format!("{}{error}", path.display())))
    }

    /// The plan as the text of a plan file.
    pub fn to_toml(&self) -> String {
        file::render(self)
    }

    /// Puts the conversions of another plan behind those of this one.
    pub fn append(&mut self, other: Plan) {
        let before = self.conversions.len();
        // What holds for all conversions of a plan must not reach those of the other.
        let mut share = numbered(&self.share, 0, before);
        share.extend(numbered(&other.share, before, other.conversions.len()));
        self.share = share;
        self.conversions.extend(other.conversions);
        self.name = format!("{} {}", self.name, other.name);
    }

    /// Adds sites that take every converted lock shared.
    ///
    /// # Errors
    /// If no conversion leads to a lock with a shared mode, or a glob is empty or has several lines.
    pub fn with_share<S: AsRef<str>>(mut self, globs: &[S]) -> Result<Plan, PlanError> {
        for pattern in globs {
            self.share.push(share_line(None, pattern.as_ref()).map_err(PlanError)?);
        }
        if !globs.is_empty() && !self.has_shared_mode() {
            return Err(PlanError(format!(
                "no lock of `{}` has a shared mode; sites can share a qrwlock or rwsem",
                self.name
            )));
        }
        Ok(self)
    }

    /// Whether any conversion leads to a lock with a shared mode.
    pub fn has_shared_mode(&self) -> bool {
        self.conversions.iter().any(|conversion| conversion.algorithm.has_shared_mode())
    }

    /// The variables that carry this plan to the preload library: [`env::PLAN`] and, if any site
    /// shares, [`env::SHARE`].
    pub fn to_env(&self) -> Vec<(&'static str, String)> {
        let lines: Vec<String> = self.conversions.iter().map(Conversion::to_string).collect();
        let mut variables = vec![(env::PLAN, lines.join("\n"))];
        if !self.share.is_empty() {
            variables.push((env::SHARE, self.share.join("\n")));
        }
        variables
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl Conversion<&str> {
    /// The same conversion with its own text.
    pub fn to_owned(&self) -> Conversion<String> {
        Conversion {
            kind: self.kind,
            selector: self.selector.map(str::to_owned),
            algorithm: self.algorithm,
        }
    }
}

/// One line of [`crate::Shares`].
pub(crate) fn share_line(position: Option<usize>, pattern: &str) -> Result<String, String> {
    if pattern.is_empty() || pattern.contains('\n') {
        return Err(format!("a site to share is a glob in one line, not {pattern:?}"));
    }
    let escape = if pattern.starts_with('#') { "\\" } else { "" };
    Ok(match position {
        Some(position) => format!("#{position} {pattern}"),
        None => format!("{escape}{pattern}"),
    })
}

/// Position, if it holds for one conversion only, and glob of a line of [`crate::Shares`].
pub(crate) fn split_share_line(line: &str) -> (Option<usize>, &str) {
    crate::deciding::split_position(line)
}

/// The lines with a position each, for conversions that now begin at `first`.
fn numbered(share: &[String], first: usize, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in share {
        match split_share_line(line) {
            (Some(position), pattern) => lines.push(format!("#{} {pattern}", first + position)),
            (None, pattern) => {
                lines.extend((first..first + count).map(|at| format!("#{at} {pattern}")))
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Conversions, Kind, Shares};

    #[test]
    fn one_argument() {
        let plan = Plan::from_arg("mutex@*Shard*=ttas").unwrap();
        assert_eq!(plan.to_string(), "mutex@*Shard*=ttas");
        assert_eq!(plan.to_env(), [(env::PLAN, "mutex@*Shard*=ttas".to_owned())]);
        assert!(Plan::from_arg("mutex").unwrap_err().to_string().contains("has no `=`"));
        let missing = Plan::from_arg("@/nowhere/x.toml").unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/x.toml: "), "{missing}");
    }

    #[test]
    fn several_arguments_keep_their_order_and_their_shares() {
        let mut first = Plan::from_arg("mutex@a=rwsem").unwrap().with_share(&["get*"]).unwrap();
        first.append(Plan::from_arg("rwlock=qrwlock").unwrap().with_share(&["put*"]).unwrap());
        let variables = first.to_env();
        assert_eq!(variables[0].1, "mutex@a=rwsem\nrwlock=qrwlock");
        let shares = Shares::new(&variables[1].1);
        assert!(shares.shares(0, &["get_it"]) && !shares.shares(1, &["get_it"]));
        assert!(shares.shares(1, &["put_it"]) && !shares.shares(0, &["put_it"]));
        let merged = Plan::parse_args(&["mutex@a=rwsem", "rwlock=qrwlock"]).unwrap();
        assert_eq!(merged.conversions, first.conversions);
        assert_eq!(Plan::parse_args::<&str>(&[]).unwrap_err().to_string(), "no conversion given");
    }

    #[test]
    fn the_environment_decides_like_the_plan() {
        let plan = Plan::parse_args(&["mutex@*Shard*=ttas", "spin=mutex"]).unwrap();
        let variables = plan.to_env();
        let conversions = Conversions::new(&variables[0].1);
        assert_eq!(conversions.check(), Ok(()));
        assert_eq!(conversions.first_match(Kind::Spin, &[]), Some((1, Algorithm::Mutex)));
    }

    #[test]
    fn sharing_needs_a_shared_mode() {
        let plan = Plan::from_arg("mutex=ttas").unwrap();
        let message = plan.clone().with_share(&["f"]).unwrap_err().to_string();
        assert_eq!(
            message,
            "no lock of `mutex=ttas` has a shared mode; sites can share a qrwlock or rwsem"
        );
        assert!(plan.with_share::<&str>(&[]).is_ok());
        assert!(Plan::from_arg("mutex=rwsem").unwrap().with_share(&[""]).is_err());
    }

    #[test]
    fn a_glob_that_begins_with_a_number_sign_is_no_position() {
        let plan = Plan::from_arg("mutex=rwsem").unwrap().with_share(&["#3 f"]).unwrap();
        assert!(Shares::new(&plan.share.join("\n")).shares(0, &["#3 f"]));
    }
}
