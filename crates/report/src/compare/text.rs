//! A comparison for people and for spreadsheets.

use std::fmt::Write;

use relatch_stats::number::general;
use relatch_stats::unpaired::{Ratio, Samples, effect_word, p_text};

use super::{Compared, Comparison};

pub(super) fn table(comparison: &Comparison) -> String {
    let mut text = comparison.block.clone();
    let several = comparison.comparisons.len() > 1;
    for compared in &comparison.comparisons {
        let _ = writeln!(
            text,
            "\n{} against {}, by exact quantiles ({}%)",
            compared.test, compared.reference, comparison.level
        );
        for (what, figures) in rows(compared, several) {
            let _ = writeln!(text, "  {what:<17} {figures}");
        }
    }
    if !comparison.notes.is_empty() {
        text.push_str("\nNotes\n");
        for note in &comparison.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    text
}

fn rows(compared: &Compared, several: bool) -> Vec<(&'static str, String)> {
    let exact = &compared.exact;
    let six = |x: f64| general(x, 6);
    let mut rows = vec![
        (
            "difference",
            format!(
                "{} +/- {} pooled, +/- {} Welch ({})",
                six(exact.pooled.difference),
                six(exact.pooled.plus_minus),
                six(exact.welch_plus_minus),
                p_text(exact.welch_p)
            ),
        ),
        (
            "in percent",
            format!(
                "{}% +/- {}%",
                six(exact.pooled.percent),
                six(exact.pooled.percent_plus_minus.abs())
            ),
        ),
    ];
    if let Some(samples) = &compared.samples {
        rows.extend(sample_rows(compared, samples, several));
    }
    rows
}

fn sample_rows(
    compared: &Compared,
    samples: &Samples,
    several: bool,
) -> Vec<(&'static str, String)> {
    let ratio = |ratio: Option<Ratio>| match ratio {
        Some(Ratio { ratio, low, high }) => format!("{ratio:.4} [{low:.4}, {high:.4}] bootstrap"),
        None => "none: not all values are positive".into(),
    };
    let test = &samples.mann_whitney;
    let how = if test.exact { "exact" } else { "normal approximation" };
    let holm = match compared.mann_whitney_p_holm {
        Some(p) if several => format!("; {} by Holm over all comparisons", p_text(p)),
        _ => String::new(),
    };
    let below = samples.below;
    vec![
        ("ratio of means", ratio(samples.means)),
        ("ratio of medians", ratio(samples.medians)),
        ("Mann-Whitney", format!("U = {}, {} ({how}){holm}", test.u, p_text(test.p))),
        (
            "effect size",
            format!(
                "P({} < {}) = {below:.3} ({})",
                compared.test,
                compared.reference,
                effect_word(below)
            ),
        ),
    ]
}

pub(super) fn csv(comparison: &Comparison) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = [
        "test",
        "reference",
        "level",
        "difference",
        "ministat_plus_minus",
        "ministat_proven",
        "exact_plus_minus",
        "welch_plus_minus",
        "welch_p",
        "ratio_of_means",
        "ratio_of_means_low",
        "ratio_of_means_high",
        "ratio_of_medians",
        "ratio_of_medians_low",
        "ratio_of_medians_high",
        "mann_whitney_u",
        "mann_whitney_p",
        "mann_whitney_p_holm",
        "p_below",
    ];
    let failed = |error: csv::Error| error.to_string();
    writer.write_record(header).map_err(failed)?;
    for compared in &comparison.comparisons {
        let samples = compared.samples;
        let some = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let ratio = |ratio: Option<Ratio>| {
            let parts = ratio.map(|r| [r.ratio, r.low, r.high]);
            [0, 1, 2].map(|i| some(parts.map(|parts| parts[i])))
        };
        let mut row = vec![
            compared.test.clone(),
            compared.reference.clone(),
            comparison.level.to_string(),
            compared.ministat.difference.to_string(),
            compared.ministat.plus_minus.to_string(),
            compared.ministat.proven.to_string(),
            compared.exact.pooled.plus_minus.to_string(),
            compared.exact.welch_plus_minus.to_string(),
            compared.exact.welch_p.to_string(),
        ];
        row.extend(ratio(samples.and_then(|samples| samples.means)));
        row.extend(ratio(samples.and_then(|samples| samples.medians)));
        row.push(some(samples.map(|samples| samples.mann_whitney.u)));
        row.push(some(samples.map(|samples| samples.mann_whitney.p)));
        row.push(some(compared.mann_whitney_p_holm));
        row.push(some(samples.map(|samples| samples.below)));
        writer.write_record(&row).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
