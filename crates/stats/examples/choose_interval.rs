//! Why the interval of paired rounds is the signed-rank one: coverage and mean width of three methods
//! on simulated experiments of 10 rounds whose truth is known.
//!
//! `cargo run --release -p relatch-stats --example choose_interval`

use relatch_stats::honesty::{Family, Noise};
use relatch_stats::{paired, summary};

const TRIALS: usize = 20_000;
const ROUNDS: usize = 10;
const LEVEL: f64 = 0.95;

fn main() {
    println!("coverage in percent and mean width of the log-ratio, {TRIALS} experiments");
    println!("{:28}{:>16}{:>16}{:>16}", "noise", "signed rank", "Student's t", "bootstrap t");
    for family in Family::ALL {
        let mut noise = Noise::seeded(42);
        let mut tallies = [(0usize, 0.0f64); 3];
        for _ in 0..TRIALS {
            let arms = family.rounds(&mut noise, ROUNDS, &[1.0, 1.05, 0.9]);
            let logs: Vec<f64> =
                arms[1].iter().zip(&arms[0]).map(|(t, r)| (t / r / 1.05).ln()).collect();
            let ranks = paired::signed_rank(&logs, LEVEL);
            let student = paired::student(&logs, LEVEL);
            let ends = [
                (ranks.low, ranks.high),
                (student.low, student.high),
                bootstrap_t(&logs, &mut noise),
            ];
            for (tally, (low, high)) in tallies.iter_mut().zip(ends) {
                tally.0 += usize::from(low <= 0.0 && 0.0 <= high);
                tally.1 += high - low;
            }
        }
        print!("{:28}", family.name());
        for (held, width) in tallies {
            let trials = TRIALS as f64;
            print!("{:>9.1} {:.4}", 100.0 * held as f64 / trials, width / trials);
        }
        println!();
    }
}

/// The mean, less the quantiles of resampled t statistics times the standard error.
fn bootstrap_t(values: &[f64], noise: &mut Noise) -> (f64, f64) {
    const RESAMPLES: usize = 400;
    let n = values.len() as f64;
    let (mean, error) = (summary::mean(values), summary::sd(values) / n.sqrt());
    let mut ts: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let drawn: Vec<f64> =
                values.iter().map(|_| values[((1.0 - noise.uniform()) * n) as usize]).collect();
            let error = summary::sd(&drawn) / n.sqrt();
            (error > 0.0).then(|| (summary::mean(&drawn) - mean) / error)
        })
        .collect();
    ts.sort_by(f64::total_cmp);
    let at = |part: f64| ts[(part * (ts.len() - 1) as f64).round() as usize];
    (mean - at(0.5 + LEVEL / 2.0) * error, mean - at(0.5 - LEVEL / 2.0) * error)
}
