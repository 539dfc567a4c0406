//! What `relatch compare` prints: ministat's block, and below it what ministat lacks.

mod input;
mod text;

use relatch_stats::diagnose::{self, Outliers, Warning};
use relatch_stats::ministat::{self, Dataset, Difference, Level, Options};
use relatch_stats::summary::Summary;
use relatch_stats::unpaired::{self, Means, Samples};
use relatch_stats::{multiple, notes};
use serde::Serialize;

pub use input::{Column, Layout, read, read_summary, read_text};

/// Version of the json form. Fields may be added to it; a new number means that one changed or went.
pub const SCHEMA: &str = "relatch.compare/1";

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One object with a versioned schema.
    Json,
    /// One line per comparison.
    Csv,
}

/// A comparison of columns of numbers, each with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Level of confidence in percent.
    pub level: f64,
    /// The columns.
    pub datasets: Vec<Described>,
    /// Each column after the first, compared to the first.
    pub comparisons: Vec<Compared>,
    /// What to know before believing them.
    pub notes: Vec<String>,
    /// ministat's block.
    pub block: String,
}

/// A column in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// File, or the name given to a summary.
    pub name: String,
    /// Whether only its summary is known.
    pub summary_only: bool,
    /// Number of values.
    pub n: usize,
    /// Smallest value, if known.
    pub min: Option<f64>,
    /// Largest value, if known.
    pub max: Option<f64>,
    /// Median, if known; of an even number of values the mean of the middle two.
    pub median: Option<f64>,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Values beyond Tukey's fences, places counted from 0; none known of a summary.
    pub outliers: Option<Outliers>,
    /// What its order and shape should make suspicious.
    pub warnings: Vec<Warning>,
}

/// One column compared to the first.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the column.
    pub test: String,
    /// Name of the first.
    pub reference: String,
    /// As ministat prints it.
    pub ministat: Difference,
    /// By exact quantiles.
    pub exact: Means,
    /// By ranks and resampling; absent if only a summary is known of one of the two.
    pub samples: Option<Samples>,
    /// p-value of Mann and Whitney's test after Holm, over all comparisons that have one.
    pub mann_whitney_p_holm: Option<f64>,
}

/// Compares columns by ministat's ways and by better ones. `seed` decides the resampling.
///
/// # Panics
/// If there is no column or more than ministat has symbols for; [`read`] never gives that.
pub fn compare(columns: &[Column], options: &Options, seed: u64) -> Comparison {
    let level = options.level.percent() / 100.0;
    let datasets: Vec<Dataset> = columns.iter().map(|column| column.dataset.clone()).collect();
    let block = ministat::print(&datasets, options);
    let reference = &columns[0];
    let tests = if options.summary_only { &[] } else { &columns[1..] };
    let mut comparisons: Vec<Compared> = tests
        .iter()
        .map(|test| Compared {
            test: test.dataset.name.clone(),
            reference: reference.dataset.name.clone(),
            ministat: ministat::difference(&test.dataset, &reference.dataset, options.level),
            exact: unpaired::means(&test.dataset, &reference.dataset, level),
            samples: unpaired::samples(&test.values, &reference.values, level, seed),
            mann_whitney_p_holm: None,
        })
        .collect();
    let p_values: Vec<f64> = comparisons
        .iter()
        .filter_map(|compared| compared.samples.map(|samples| samples.mann_whitney.p))
        .collect();
    let with_p = comparisons.iter_mut().filter(|compared| compared.samples.is_some());
    for (compared, adjusted) in with_p.zip(multiple::holm(&p_values)) {
        compared.mann_whitney_p_holm = Some(adjusted);
    }
    Comparison {
        schema: SCHEMA,
        level: options.level.percent(),
        datasets: columns.iter().map(describe).collect(),
        comparisons,
        notes: all_notes(columns, tests, options.level, block.not_drawn),
        block: block.block,
    }
}

fn describe(column: &Column) -> Described {
    let d = &column.dataset;
    let summary = Summary::of(&column.values);
    Described {
        name: d.name.clone(),
        summary_only: summary.is_none(),
        n: d.n,
        min: d.min,
        max: d.max,
        median: summary.map_or(d.median, |summary| Some(summary.median)),
        mean: d.mean,
        sd: d.sd,
        outliers: summary.map(|_| diagnose::outliers(&column.values)),
        warnings: diagnose::warnings(&column.values),
    }
}

fn all_notes(columns: &[Column], tests: &[Column], level: Level, not_drawn: usize) -> Vec<String> {
    let mut all = Vec::new();
    let own = |column: &Column| notes::of_one(&column.dataset.name, &column.values);
    all.extend(columns.iter().flat_map(own).map(|note| note.to_string()));
    for test in tests {
        let (reference, test) = (&columns[0], test);
        let both = notes::of_two(&test.dataset, &reference.dataset);
        let pair = format!("{} against {}", test.dataset.name, reference.dataset.name);
        all.extend(both.iter().map(|note| format!("{pair}: {note}")));
        let least = unpaired::least_p(test.values.len(), reference.values.len());
        if test.values.is_empty() || reference.values.is_empty() {
            all.push(format!(
                "{pair}: intervals of ratios, ranks, effect size, order and outliers need the values, \
                 not their summary"
            ));
        } else if least > 1.0 - level.percent() / 100.0 {
            all.push(format!(
                "{pair}: too few values for Mann-Whitney at this level (p is never below {least:.3})"
            ));
        }
    }
    if not_drawn > 0 {
        all.push(format!(
            "ministat's plot is only as high as the last column needs; values not drawn: {not_drawn}"
        ));
    }
    if !tests.is_empty() {
        if Some(level) == Level::of(99.5) {
            all.push("ministat's t for 99.5% is that of 99.8%; the exact ones are 99.5%".into());
        }
        all.push(
            "measured one after the other, a drift of the machine looks like a difference; \
             `relatch try` runs in rounds"
                .into(),
        );
    }
    all
}

impl Comparison {
    /// The form asked for.
    pub fn render(&self, format: Format) -> Result<String, String> {
        match format {
            Format::Table => Ok(text::table(self)),
            Format::Json => serde_json::to_string_pretty(self)
                .map(|text| text + "\n")
                .map_err(|error| error.to_string()),
            Format::Csv => text::csv(self),
        }
    }
}
