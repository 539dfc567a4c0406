//! Times are true: held against what the program measures itself, since it may be preempted.

use std::collections::BTreeMap;

use crate::bench::{Bench, Setup, capture};
use crate::figures::Figures;
use crate::observed::{Observed, number};

/// Threads that run at once in the program, besides main, which waits.
const THREADS: u64 = 2;

/// Holds and waits observed, and waits of converted locks.
///
/// # Errors
/// When the program does not compile or run.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    bench.compile("times", "times.c", &["-O2"])?;
    let observed = Observed::run(bench, &[], &["./times"])?;
    let truth = told(&observed.output);
    for function in ["burn_1us", "burn_10us", "burn_100us"] {
        let p50 = observed.field_of(function, "exclusive", "hold_p50_ns")?;
        figures.within(
            format!("{function}: hold p50"),
            p50,
            truth_of(&truth, function)?,
            5.0,
            "ns",
        );
    }
    let p50 = observed.field_of("wait_1ms", "exclusive", "wait_p50_ns")?;
    figures.within("wait_1ms: wait p50, observed", p50, truth_of(&truth, "wait_1ms")?, 5.0, "ns");

    let elapsed = number(&observed.json["environment"]["elapsed_ns"]);
    let held = number(&observed.json["total"]["hold_ns"]);
    let share = held as f64 / (elapsed * THREADS) as f64;
    figures.at_most("sum of holds over elapsed x threads", share, 1.0, "");
    for class in observed.classes() {
        let share = number(&class["exclusive"]["hold_ns"]) as f64 / elapsed as f64;
        figures.at_most(format!("{}: holds over elapsed", class["name"]), share, 1.0, "");
    }
    let slept = truth_of(&truth, "sleep_in_cond")?;
    let held: u64 = (observed.sites())
        .filter(|site| site["function"] == "sleep_in_cond")
        .map(|site| number(&site["exclusive"]["hold_ns"]))
        .sum();
    figures.at_most(
        "hold of who slept in cond_wait, of the sleep",
        100.0 * held as f64 / slept,
        5.0,
        "%",
    );

    for algorithm in ["ttas", "mutex", "qrwlock", "rwsem"] {
        let recordings = bench.directory()?;
        let conversion = format!("mutex@contended*={algorithm}");
        let setup = Setup::convert(&[&conversion]);
        let mut program =
            bench.interposed(&setup, bench.path("times").as_os_str(), recordings.path());
        let output = capture(&mut program)?;
        let truth = told(&String::from_utf8_lossy(&output.stdout));
        let converted = Observed::load(bench, recordings.path())?;
        let p50 = number(&converted.json["total"]["wait_p50_ns"]) as f64;
        let what = format!("wait_1ms: wait p50, converted to {algorithm}");
        figures.within(what, p50, truth_of(&truth, "wait_1ms")?, 5.0, "ns");
    }
    Ok(())
}

/// Lines "FUNCTION WHAT NANOSECONDS".
fn told(output: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (function, ns) = (words.next()?, words.nth(1)?);
        Some((function.to_owned(), ns.parse().ok()?))
    };
    output.lines().filter_map(line).collect()
}

fn truth_of(truth: &BTreeMap<String, f64>, function: &str) -> Result<f64, String> {
    truth.get(function).copied().ok_or_else(|| format!("the program says nothing of {function}"))
}
