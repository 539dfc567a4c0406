//! Counts are exact per site, whatever takes the lock and however the program ends.

use crate::bench::Bench;
use crate::figures::Figures;
use crate::observed::{Observed, counts_told};

/// How the program ends, and what it becomes.
const ENDS: [&[&str]; 7] = [
    &["return"],
    &["exit"],
    &["_exit"],
    &["kill"],
    &["exec", "./guards-O2"],
    &["fork-first"],
    &["fork-amid"],
];

/// Runs the C program with every end and the C++ program, both unoptimised and optimised.
///
/// # Errors
/// When a program does not compile or run.
pub fn check(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let cpp = bench.has_cpp();
    for optimised in ["-O0", "-O2"] {
        let counts = format!("counts{optimised}");
        let guards = format!("guards{optimised}");
        bench.compile(&counts, "counts.c", &[optimised])?;
        if cpp {
            bench.compile(&guards, "guards.cpp", &[optimised])?;
            compare(bench, figures, &guards, &[])?;
        }
        if optimised == "-O2" {
            for end in ENDS.iter().filter(|end| cpp || end[0] != "exec") {
                compare(bench, figures, &counts, end)?;
            }
        } else {
            compare(bench, figures, &counts, &["return"])?;
        }
    }
    if !cpp {
        figures.note("there is no C++ compiler (c++): guards.cpp, and exec of it, not tried");
    }
    Ok(())
}

fn compare(
    bench: &Bench,
    figures: &mut Figures,
    program: &str,
    args: &[&str],
) -> Result<(), String> {
    let path = format!("./{program}");
    let observed = Observed::run(bench, &[], &[&[&*path], args].concat())?;
    let (told, counted) = (counts_told(&observed.output), observed.counts());
    let wrong: Vec<_> = told
        .keys()
        .chain(counted.keys().filter(|key| !told.contains_key(*key)))
        .filter(|key| told.get(*key) != counted.get(*key))
        .collect();
    let what = format!("{program} {}: functions counted exactly", args.join(" "));
    let exact = told.len() - wrong.iter().filter(|key| told.contains_key(**key)).count();
    let total: u64 = told.values().map(|count| count.0 + count.1).sum();
    let figure = format!("{exact} of {} ({total})", told.len());
    figures.told(what, figure, "all, and no others", wrong.is_empty() && told.len() > 10);
    for key in wrong {
        let words = |count: Option<&(u64, u64)>| {
            count.map_or("nothing".into(), |count| format!("{} and {} rejected", count.0, count.1))
        };
        let (told, counted) = (words(told.get(key)), words(counted.get(key)));
        figures.note(format!("{} ({}): did {told}, counted {counted}", key.0, key.1));
    }
    Ok(())
}
