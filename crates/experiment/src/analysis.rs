//! From runs to an outcome: comparisons within rounds, verdicts and warnings.

use std::collections::BTreeMap;
use std::time::Duration;

use relatch_stats::paired::{self, Paired};
use relatch_stats::summary::{self, Summary};
use relatch_stats::verdict::{self, Better, Verdict};
use relatch_stats::{diagnose, multiple};

use crate::arm::Role;
use crate::outcome::{
    ArmOutcome, ArmWaits, Ended, MetricInfo, MetricOutcome, Outcome, RunRecord, SCHEMA, Versus,
    Warning,
};
use crate::session::ArmState;
use crate::settings::Experiment;

/// The headline comparisons whose widths decide whether there are enough rounds: those of the plans
/// that still run, or of the control where there is no plan.
pub(crate) fn headlines(experiment: &Experiment, states: &[ArmState]) -> Vec<Paired> {
    let role = match experiment.arms.iter().any(|arm| arm.role == Role::Plan) {
        true => Role::Plan,
        false => Role::Control,
    };
    let Some(same) = place_of(experiment, Role::Same) else { return Vec::new() };
    (experiment.arms.iter().zip(states))
        .filter(|(arm, state)| arm.role == role && state.failure.is_none())
        .filter_map(|(_, state)| {
            compare(&state.runs, &states[same].runs, 0, usize::MAX, experiment.level)
        })
        .collect()
}

/// The outcome of an experiment that had `rounds` complete rounds.
pub(crate) fn outcome(
    experiment: &Experiment,
    states: Vec<ArmState>,
    rounds: usize,
    ended: Ended,
    started: Duration,
    elapsed: Duration,
) -> Outcome {
    let mut results: Vec<Vec<MetricOutcome>> = states.iter().map(|_| Vec::new()).collect();
    for metric in 0..experiment.metrics.len() {
        for (arm, result) in compare_arms(experiment, &states, metric, rounds) {
            results[arm].push(result);
        }
    }
    let warnings = warnings(experiment, &states, &results, rounds);
    let arms = (experiment.arms.iter().zip(states).zip(results))
        .map(|((arm, state), results)| {
            let median = |of: fn(&RunRecord) -> f64| {
                let values: Vec<f64> = state.runs.iter().map(of).collect();
                (!values.is_empty()).then(|| summary::median(&values))
            };
            ArmOutcome {
                name: arm.name.clone(),
                role: arm.role,
                conversions: arm.conversions.clone(),
                share: arm.share.clone(),
                results,
                cpu_s: median(|run| run.user_s + run.sys_s),
                maxrss_kib: median(|run| run.maxrss_kib as f64),
                waits: waits(&state.runs),
                failure: state.failure,
                runs: state.runs,
            }
        })
        .collect();
    Outcome {
        schema: SCHEMA,
        command: experiment.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
        seed: experiment.seed,
        started_unix_s: started.as_secs(),
        elapsed_s: elapsed.as_secs_f64(),
        ended,
        rounds,
        level: experiment.level,
        equivalence: experiment.equivalence,
        metrics: (experiment.metrics.iter())
            .map(|metric| MetricInfo {
                name: metric.name().to_owned(),
                unit: metric.unit(),
                better: match metric.better() {
                    Better::Lower => "lower",
                    Better::Higher => "higher",
                },
            })
            .collect(),
        arms,
        warnings,
    }
}

/// One metric of every arm that ran well at least once, by the arm's place.
fn compare_arms(
    experiment: &Experiment,
    states: &[ArmState],
    metric: usize,
    rounds: usize,
) -> Vec<(usize, MetricOutcome)> {
    let same = place_of(experiment, Role::Same);
    let paired: Vec<Option<Paired>> = (states.iter().enumerate())
        .map(|(arm, state)| {
            let same = same.filter(|&same| same != arm)?;
            compare(&state.runs, &states[same].runs, metric, rounds, experiment.level)
        })
        .collect();
    let plans: Vec<usize> = (0..states.len())
        .filter(|&arm| experiment.arms[arm].role == Role::Plan && paired[arm].is_some())
        .collect();
    let p_values: Vec<f64> = plans.iter().filter_map(|&arm| paired[arm].map(|x| x.p)).collect();
    let adjusted: BTreeMap<usize, f64> = plans.into_iter().zip(multiple::holm(&p_values)).collect();
    let control = place_of(experiment, Role::Control).and_then(|control| paired[control]);
    let better = experiment.metrics[metric].better();

    (states.iter().enumerate())
        .filter_map(|(arm, state)| {
            let values: Vec<f64> = state.runs.iter().map(|run| run.values[metric]).collect();
            let versus_same = paired[arm].map(|paired| {
                let p_adjusted = adjusted.get(&arm).copied().unwrap_or(paired.p);
                // The control is not held against itself.
                let control =
                    control.as_ref().filter(|_| experiment.arms[arm].role != Role::Control);
                let word =
                    verdict::judge(&paired, p_adjusted, control, better, experiment.equivalence);
                Versus {
                    n: paired.n,
                    ratio: paired.ratio,
                    low: paired.low,
                    high: paired.high,
                    p: paired.p,
                    p_adjusted,
                    verdict: word.word().to_owned(),
                }
            });
            Some((arm, MetricOutcome { summary: Summary::of(&values)?, versus_same }))
        })
        .collect()
}

/// Compares two arms over the complete rounds in which both ran well.
fn compare(
    test: &[RunRecord],
    reference: &[RunRecord],
    metric: usize,
    rounds: usize,
    level: f64,
) -> Option<Paired> {
    let by_round: BTreeMap<usize, f64> =
        reference.iter().map(|run| (run.round, run.values[metric])).collect();
    let (test, reference): (Vec<f64>, Vec<f64>) = (test.iter())
        .filter(|run| run.round <= rounds)
        .filter_map(|run| Some((run.values[metric], *by_round.get(&run.round)?)))
        .unzip();
    paired::compare(&test, &reference, level)
}

fn place_of(experiment: &Experiment, role: Role) -> Option<usize> {
    experiment.arms.iter().position(|arm| arm.role == role)
}

/// Waits over the runs of an arm; `None` where no run left a recording.
fn waits(runs: &[RunRecord]) -> Option<ArmWaits> {
    let waits: Vec<_> = runs.iter().filter_map(|run| run.waits.as_ref()).collect();
    if waits.is_empty() {
        return None;
    }
    let median = |values: Vec<u64>| {
        let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
        (!values.is_empty()).then(|| summary::median(&values))
    };
    let shared: Vec<_> = waits.iter().filter_map(|waits| waits.shared).collect();
    let exclusive: Vec<_> = waits.iter().filter_map(|waits| waits.exclusive).collect();
    let mut kept = BTreeMap::new();
    for (reason, &count) in waits.iter().flat_map(|waits| &waits.kept) {
        let most = kept.entry(reason.clone()).or_insert(0);
        *most = count.max(*most);
    }
    Some(ArmWaits {
        shared_p99_ns: median(shared.iter().map(|side| side.p99_ns).collect()),
        shared_max_ns: shared.iter().map(|side| side.max_ns).max(),
        exclusive_p99_ns: median(exclusive.iter().map(|side| side.p99_ns).collect()),
        exclusive_max_ns: exclusive.iter().map(|side| side.max_ns).max(),
        converted: median(waits.iter().map(|waits| waits.converted).collect()).unwrap_or(0.0),
        kept,
    })
}

fn warnings(
    experiment: &Experiment,
    states: &[ArmState],
    results: &[Vec<MetricOutcome>],
    rounds: usize,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |arm: Option<usize>, text: String| {
        let arm = arm.map(|arm| experiment.arms[arm].name.clone());
        warnings.push(Warning { arm, text });
    };
    let failed = |role| place_of(experiment, role).filter(|&arm| states[arm].failure.is_some());
    if let Some(arm) = failed(Role::Bare) {
        warn(Some(arm), "the command itself fails, without any library of relatch's".into());
    }
    if let Some(arm) = failed(Role::Same) {
        warn(Some(arm), "the reference failed, so later rounds compare nothing".into());
    }
    let enough = paired::rounds_for_ranks(experiment.level);
    if rounds < enough {
        warn(
            None,
            format!("{rounds} complete rounds are few; {enough} are the least for a fair interval"),
        );
    }
    for (arm, result) in results.iter().enumerate() {
        if experiment.arms[arm].role == Role::Control
            && let Some(versus) = result.first().and_then(|result| result.versus_same.as_ref())
            && [Verdict::Faster, Verdict::Slower].map(Verdict::word).contains(&&*versus.verdict)
        {
            let text = "two equal arms differ by more than chance: this machine is not quiet enough, \
                        and no verdict goes below what it shows here";
            warn(Some(arm), text.into());
        }
    }
    for (number, metric) in experiment.metrics.iter().enumerate() {
        let values = states.iter().flat_map(|state| &state.runs).map(|run| run.values[number]);
        if values.into_iter().any(|value| value <= 0.0) {
            let name = metric.name();
            warn(
                None,
                format!("{name}: a value is not above 0, so that there are no ratios for it"),
            );
        }
    }
    for (arm, state) in states.iter().enumerate() {
        let series: Vec<f64> = state.runs.iter().map(|run| run.values[0]).collect();
        for warning in diagnose::warnings(&series) {
            warn(Some(arm), warning.to_string());
        }
        if experiment.arms[arm].role == Role::Plan
            && waits(&state.runs).is_some_and(|waits| waits.converted == 0.0)
        {
            warn(Some(arm), "no lock was converted: no selector matched one that was used".into());
        }
        if state.left_behind > 0 {
            let runs = state.left_behind;
            warn(
                Some(arm),
                format!("processes outlived the command in {runs} runs and were ended"),
            );
        }
    }
    // Weighted by time: what was stolen from a long run matters more.
    let runs = || states.iter().flat_map(|state| &state.runs);
    let time: f64 = runs().filter(|run| run.stolen.is_some()).map(|run| run.time_s).sum();
    let stolen: f64 = runs().filter_map(|run| Some(run.stolen? * run.time_s)).sum();
    if time > 0.0
        && let Some(warning) = diagnose::stolen(stolen / time)
    {
        warn(None, warning.to_string());
    }
    warnings
}
