//! Experiments on real, small commands. The arms differ by an environment variable instead of a
//! preload library.

use std::time::Duration;

use relatch_experiment::outcome::{Ended, Outcome};
use relatch_experiment::{Arm, Event, Experiment, Metric, Role};
use relatch_stats::verdict::Better;

fn arm(name: &str, role: Role, value: &str) -> Arm {
    Arm::new(name, role, vec![("VALUE".into(), value.into())])
}

/// `bare`, `same`, `same again` and plans; each has its own `VALUE`.
fn experiment(script: &str, values: [&str; 3], plans: &[&str]) -> Experiment {
    let mut arms = vec![
        arm("bare", Role::Bare, values[0]),
        arm("same", Role::Same, values[1]),
        arm("same again", Role::Control, values[2]),
    ];
    for (number, value) in plans.iter().enumerate() {
        arms.push(arm(&format!("plan {number}"), Role::Plan, value));
    }
    let command = ["sh", "-c", script].map(Into::into).into();
    Experiment { seed: 11, rounds: Some(6), ..Experiment::new(command, arms) }
}

fn run(experiment: &Experiment) -> Outcome {
    experiment.run(&mut |_| {}).unwrap()
}

fn output_metric(better: Better) -> Vec<Metric> {
    vec![Metric::parse(r"re:^speed (\S+)", Some(better)).unwrap()]
}

#[test]
fn every_round_runs_every_arm_once() {
    let experiment = experiment("true", ["", "", ""], &["", ""]);
    let mut names = Vec::new();
    let mut last = (0, 0);
    let outcome = experiment
        .run(&mut |event| match event {
            Event::Run { round, arm, done, total, .. } => {
                names.push((round, arm.to_owned()));
                last = (done, total);
            }
            Event::Failed { arm, failure } => panic!("{arm}: {failure:?}"),
            _ => {}
        })
        .unwrap();
    assert_eq!((outcome.rounds, outcome.ended), (6, Ended::Rounds));
    assert_eq!(names[0], (0, "bare".to_owned()), "one run to warm up");
    assert_eq!(names.len(), 1 + 6 * 5);
    assert_eq!(last, (30, 31));
    let orders: Vec<Vec<&str>> = names[1..]
        .chunks(5)
        .map(|round| round.iter().map(|(_, arm)| arm.as_str()).collect())
        .collect();
    for (number, order) in orders.iter().enumerate() {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["bare", "plan 0", "plan 1", "same", "same again"], "round {number}");
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "all rounds have one order");
    for (arm, outcome) in outcome.arms.iter().enumerate() {
        let rounds: Vec<usize> = outcome.runs.iter().map(|run| run.round).collect();
        assert_eq!(rounds, [1, 2, 3, 4, 5, 6]);
        for run in &outcome.runs {
            assert_eq!(orders[run.round - 1][run.place - 1], experiment.arms[arm].name);
        }
    }
}

#[test]
fn the_order_follows_from_the_seed() {
    let places = |seed| {
        let experiment = Experiment { seed, ..experiment("true", ["", "", ""], &[""]) };
        let outcome = run(&experiment);
        let places = outcome.arms.into_iter().flat_map(|arm| arm.runs).map(|run| run.place);
        places.collect::<Vec<_>>()
    };
    assert_eq!(places(5), places(5));
    assert_ne!(places(5), places(6));
}

#[test]
fn numbers_of_the_output_are_judged_in_their_direction() {
    // Noise that differs from run to run, the same for all arms on average.
    let script = "echo speed $(( VALUE + $(od -An -N1 -tu1 /dev/urandom) ))";
    let mut experiment = experiment(script, ["100000"; 3], &["120000", "80000"]);
    experiment.metrics = output_metric(Better::Higher);
    experiment.rounds = Some(10);
    let outcome = run(&experiment);
    let versus =
        |arm: usize| outcome.arms[arm].results[0].versus_same.as_ref().expect("it was compared");
    assert_eq!(versus(3).verdict, "faster");
    assert_eq!(versus(4).verdict, "slower");
    assert_eq!(versus(0).verdict, "equivalent");
    assert!((versus(3).ratio - 1.2).abs() < 0.01 && versus(3).low > 1.19 && versus(3).high < 1.21);
    assert!(versus(3).p_adjusted >= versus(3).p);
    assert!(outcome.arms[1].results[0].versus_same.is_none(), "the reference has no ratio");

    experiment.metrics = output_metric(Better::Lower);
    let verdicts: Vec<_> = run(&experiment).arms[3..].iter().map(word).collect();
    assert_eq!(verdicts, ["slower", "faster"]);
}

fn word(arm: &relatch_experiment::outcome::ArmOutcome) -> String {
    arm.results[0].versus_same.as_ref().unwrap().verdict.clone()
}

#[test]
fn a_failing_arm_is_its_result_and_the_others_go_on() {
    let script = r#"echo out; echo "because of $VALUE" >&2; exit $VALUE"#;
    let outcome = run(&experiment(script, ["0", "0", "0"], &["3", "0"]));
    let failed = outcome.arms[3].failure.as_ref().unwrap();
    assert_eq!(failed.round, 1);
    assert_eq!(failed.what, "the command ended with exit code 3");
    assert_eq!(failed.output, "out\nbecause of 3");
    assert!(outcome.arms[3].runs.is_empty() && outcome.arms[3].results.is_empty());
    assert_eq!(outcome.arms[4].runs.len(), 6);
    assert!(outcome.arms[4].failure.is_none());
}

#[test]
fn a_command_that_fails_by_itself_is_called_so() {
    let outcome = run(&experiment("kill -ABRT $$", [""; 3], &[""]));
    assert_eq!(outcome.ended, Ended::Failure);
    let bare = outcome.arms[0].failure.as_ref().unwrap();
    assert_eq!((bare.round, bare.what.as_str()), (0, "the command was ended by SIGABRT"));
    assert!(outcome.warnings.iter().any(|warning| warning.text.contains("command itself fails")));
    assert!(outcome.arms.iter().all(|arm| arm.failure.is_some()));
}

#[test]
fn a_hanging_arm_is_ended() {
    let script = "[ -z \"$VALUE\" ] || sleep $VALUE";
    let mut experiment = experiment(script, [""; 3], &["100"]);
    experiment.timeout = Some(Duration::from_secs(2));
    experiment.rounds = Some(2);
    let outcome = run(&experiment);
    assert!(outcome.arms[3].failure.as_ref().unwrap().what.contains("without an end"));
    assert_eq!(outcome.arms[1].runs.len(), 2);
}

#[test]
fn check_sees_the_output_and_prepare_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let mut experiment = experiment("echo value is $VALUE", ["good"; 3], &["bad"]);
    experiment.prepare = Some(format!("echo x >> {}", count.display()));
    experiment.check = Some(format!(
        r#"grep -q good "$RELATCH_OUTPUT" || {{ echo wrong answer; exit 1; }}; test -s {}"#,
        count.display()
    ));
    let outcome = run(&experiment);
    let failure = outcome.arms[3].failure.as_ref().unwrap();
    assert_eq!(failure.what, "--check ended with exit code 1");
    assert_eq!(failure.output, "value is bad\nwrong answer");
    // One to warm up, three arms in six rounds, and the one that failed.
    let prepared = std::fs::read_to_string(&count).unwrap().lines().count();
    assert_eq!(prepared, 1 + 3 * 6 + 1);
}

#[test]
fn a_metric_that_is_not_there_fails_the_arm() {
    let mut experiment = experiment("echo \"$VALUE\"", ["speed 1"; 3], &["no number"]);
    experiment.metrics = output_metric(Better::Higher);
    let outcome = run(&experiment);
    let failure = outcome.arms[3].failure.as_ref().unwrap();
    assert!(failure.what.contains("matches nothing"), "{failure:?}");
    assert_eq!(failure.output, "no number");
}

#[test]
fn it_stops_when_its_time_is_over() {
    let mut experiment = experiment("sleep 0.01", [""; 3], &[]);
    experiment.rounds = Some(100_000);
    experiment.max_time = Some(Duration::from_secs(1));
    let outcome = run(&experiment);
    assert_eq!(outcome.ended, Ended::Time);
    assert!(outcome.rounds >= 1 && outcome.rounds < 100);
    let all = outcome.arms.iter().flat_map(|arm| &arm.runs).count();
    assert!(all >= 3 * outcome.rounds && all <= 3 * outcome.rounds + 2);
}

#[test]
fn it_stops_when_the_interval_is_narrow() {
    let script = "echo speed $(( VALUE + $(od -An -N1 -tu1 /dev/urandom) ))";
    let mut experiment = experiment(script, ["100000"; 3], &["120000"]);
    experiment.metrics = output_metric(Better::Higher);
    experiment.rounds = None;
    experiment.until_ci = Some(1.0);
    let outcome = run(&experiment);
    assert_eq!((outcome.ended, outcome.rounds), (Ended::Interval, 10));
}

#[test]
fn what_cannot_be_started_is_an_error_of_the_experiment() {
    let arms = vec![arm("bare", Role::Bare, "")];
    let experiment = Experiment::new(vec!["/nonexistent/program".into()], arms);
    let error = experiment.run(&mut |_| {}).unwrap_err();
    assert!(error.starts_with("cannot run /nonexistent/program: "), "{error}");
}

#[test]
fn the_environment_of_an_arm_differs_in_its_size_alone() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = dir.path().join("sizes");
    let script = format!("env | sort | grep -v ^_= >> {0}; env | wc -c >> {0}.n", sizes.display());
    let mut experiment = experiment(&script, [""; 3], &[]);
    experiment.warmup = 0;
    run(&experiment);
    let lines = std::fs::read_to_string(format!("{}.n", sizes.display())).unwrap();
    let mut sizes: Vec<&str> = lines.lines().collect();
    assert_eq!(sizes.len(), 18);
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 10, "the padding hardly varies: {sizes:?}");
}
