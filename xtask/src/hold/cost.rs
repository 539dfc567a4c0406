//! What interposing and observing add to an uncontended acquire and release, in a process of two threads.

use relatch_stats::summary;

use crate::bench::{Bench, Setup, capture};
use crate::figures::Figures;

const ROUNDS: usize = 25;
/// Nanoseconds that `stat` may add, and `same`.
const BOUNDS: [f64; 2] = [40.0, 2.0];

/// Interleaved runs, pinned to one processor.
///
/// # Errors
/// When the program does not compile or run.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    bench.compile("pair", "pair.c", &["-O2"])?;
    let cpu = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1).to_string();
    let setups = [Setup::bare(), Setup::record(), Setup::same()];
    for kind in ["mutex", "read", "write", "spin"] {
        let mut runs = setups.each_ref().map(|_| Vec::new());
        for round in 0..ROUNDS {
            // Another one first in each round: what one leaves behind is not always for the same next.
            for place in 0..setups.len() {
                let arm = (round + place) % setups.len();
                runs[arm].push(pair_ns(bench, &setups[arm], kind, &cpu)?);
            }
        }
        for (setup, runs) in setups.iter().zip(&runs) {
            figures.note(format!("{kind}, {}: {}", setup.name(), spread(runs)));
        }
        let bare = summary::median(&runs[0]);
        for (arm, bound) in BOUNDS.iter().enumerate() {
            let added = summary::median(&runs[arm + 1]) - bare;
            let what = format!("{kind}: {} adds to a pair", setups[arm + 1].name());
            figures.at_most(what, added, *bound, "ns");
        }
    }
    Ok(())
}

fn pair_ns(bench: &Bench, setup: &Setup, kind: &str, cpu: &str) -> Result<f64, String> {
    let recordings = bench.directory()?;
    let mut program = bench.interposed(setup, bench.path("pair").as_os_str(), recordings.path());
    let output = capture(program.args([kind, cpu]))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("pair says {text:?}"))
}

fn spread(runs: &[f64]) -> String {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let (median, n) = (summary::median(runs), runs.len());
    format!(
        "median {median:.2} ns, quartiles {:.2} to {:.2}, range {:.2} to {:.2}, n = {n}",
        at(0.25),
        at(0.75),
        at(0.0),
        at(1.0)
    )
}
