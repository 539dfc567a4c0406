//! The variants that an experiment compares.

use relatch_plan::Plan;
use relatch_plan::env::Mode;
use serde::{Deserialize, Serialize};

use crate::interpose::Interposition;

/// What an arm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The program without interposition; its difference to `same` is what interposition costs.
    Bare,
    /// Interposed, left as it is: what all others are compared to.
    Same,
    /// The same once more, `same again`: how far two equal arms lie apart (the A/A control).
    Control,
    /// Observed as by `relatch stat`; its difference to `same` is what observation costs.
    Recorded,
    /// Converted by a plan.
    Plan,
}

/// One variant of the program.
#[derive(Clone, Debug)]
pub struct Arm {
    /// What tables call it.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Variables that make it different.
    pub env: Vec<(String, String)>,
    /// Its conversions, as text.
    pub conversions: Vec<String>,
    /// The sites that take its converted locks shared, as [`relatch_plan::Shares`] reads them.
    pub share: Vec<String>,
}

impl Arm {
    /// An arm that is no plan.
    pub fn new(name: &str, role: Role, env: Vec<(String, String)>) -> Self {
        Self { name: name.to_owned(), role, env, conversions: Vec::new(), share: Vec::new() }
    }

    /// Whether its processes write recordings.
    pub fn writes_recordings(&self) -> bool {
        matches!(self.role, Role::Recorded | Role::Plan)
    }
}

/// The arms of `relatch try`: `bare`, `same`, `same again`, if asked `recorded`, and one per plan.
///
/// Plans of equal names (the same conversion with other shares) are numbered.
pub fn arms(interposition: &Interposition, plans: &[Plan], recorded: bool) -> Vec<Arm> {
    let same = interposition.environment(Mode::Same, None);
    let mut arms = vec![
        Arm::new("bare", Role::Bare, Vec::new()),
        Arm::new("same", Role::Same, same.clone()),
        Arm::new("same again", Role::Control, same),
    ];
    if recorded {
        let env = interposition.environment(Mode::Record, None);
        arms.push(Arm::new("recorded", Role::Recorded, env));
    }
    for plan in plans {
        let mut name = plan.name.clone();
        let mut number = 2;
        while arms.iter().any(|arm| arm.name == name) {
            name = format!("{} ({number})", plan.name);
            number += 1;
        }
        arms.push(Arm {
            name,
            role: Role::Plan,
            env: interposition.environment(Mode::Convert, Some(plan)),
            conversions: plan.conversions.iter().map(ToString::to_string).collect(),
            share: plan.share.clone(),
        });
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_name_stay_apart() {
        let plan = Plan::from_arg("mutex=rwsem").unwrap();
        let shared = plan.clone().with_share(&["get"]).unwrap();
        let interposition = Interposition::new("/x/librelatch.so".into());
        let arms = arms(&interposition, &[plan, shared], true);
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let expected = ["bare", "same", "same again", "recorded", "mutex=rwsem", "mutex=rwsem (2)"];
        assert_eq!(names, expected);
        assert!(arms[0].env.is_empty());
        assert_eq!(arms[1].env, arms[2].env);
        assert_eq!(arms[5].share, ["get"]);
    }
}
