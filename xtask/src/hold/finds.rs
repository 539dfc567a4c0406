//! Verdicts that are known on machines of two processors.

use crate::bench::Bench;
use crate::cases;
use crate::figures::Figures;
use crate::trial::Trial;

const ROUNDS: &str = "20";

/// Kyoto Cabinet's rwlock profits from another one; zstd's few locks do not matter.
///
/// # Errors
/// When a case is missing or fails.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let plans = ["rwlock=qrwlock", "rwlock=rwsem"];
    let trial = experiment(bench, "kc_cache", "*/kccachetest", &plans)?;
    let words: Vec<&str> =
        plans.iter().map(|plan| trial.verdict(plan)).collect::<Result<_, _>>()?;
    for (plan, word) in plans.iter().zip(&words) {
        figures.note(format!("kc_cache, {plan}: {word}, {}", trial.ratio(plan)));
    }
    figures.told(
        "kc_cache: verdicts on its rwlock",
        words.join(", "),
        "one is faster",
        words.contains(&"faster"),
    );

    let trial = experiment(bench, "zstd", "*/zstd", &["mutex=mutex"])?;
    let word = trial.verdict("mutex=mutex")?;
    let figure = format!("{word} {}", trial.ratio("mutex=mutex"));
    let bound = "undecided or equivalent";
    figures.told(
        "zstd: verdict on its mutexes",
        figure,
        bound,
        ["undecided", "equivalent"].contains(&word),
    );
    Ok(())
}

fn experiment(bench: &Bench, case: &str, program: &str, plans: &[&str]) -> Result<Trial, String> {
    let script = cases::script(case)?;
    let metric = format!("re:{case} ok ([0-9.]+)");
    let mut args = vec!["-n", ROUNDS, "--only", program, "--higher", "--metric", &metric];
    args.extend(plans.iter().flat_map(|plan| ["-c", plan]));
    Trial::run(bench, &args, &["bash", &script], None)
}
