//! What `stat` costs real programs, by `relatch try --recorded` on their case scripts.

use crate::bench::Bench;
use crate::cases;
use crate::figures::Figures;
use crate::trial::Trial;

const ROUNDS: &str = "20";
const MOST_PERCENT: f64 = 5.0;

/// Recorded against bare on three programs, by the operations per second that their cases print.
///
/// # Errors
/// When a case is missing or fails.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    for (case, program) in
        [("kc_cache", "*/kccachetest"), ("rocksdb", "*/db_bench"), ("memcached", "*/memcached")]
    {
        let script = cases::script(case)?;
        let metric = format!("re:{case} ok ([0-9.]+)");
        let args = [
            "-n",
            ROUNDS,
            "--recorded",
            "--only",
            program,
            "--higher",
            "--metric",
            &metric,
            "--metric",
            "cpu",
        ];
        let trial = Trial::run(bench, &args, &["bash", &script], None)?;
        let paired = trial.compare("recorded", "bare", 0)?;
        let lost = |ratio: f64| 100.0 * (1.0 / ratio - 1.0);
        figures.at_most(
            format!("{case}: recorded takes longer than bare"),
            lost(paired.ratio),
            MOST_PERCENT,
            "%",
        );
        figures.note(format!(
            "95 % interval {:.2} to {:.2} %, {} rounds",
            lost(paired.high),
            lost(paired.low),
            paired.n
        ));
        let cpu = trial.compare("recorded", "bare", 1)?;
        figures.note(format!("CPU time of all its processes: {:+.2} %", 100.0 * (cpu.ratio - 1.0)));
    }
    Ok(())
}
