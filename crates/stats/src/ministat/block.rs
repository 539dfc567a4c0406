//! The printed block.

use std::fmt::Write;

use super::{Dataset, Level, SYMBOLS, difference, plot};
use crate::number::general;

/// Narrowest plot.
pub const MIN_WIDTH: usize = 2;

/// How the block is printed.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Level of confidence (`-c`).
    pub level: Level,
    /// Characters between the borders of the plot (`-w`).
    pub width: usize,
    /// Without the plot (`-A`).
    pub no_plot: bool,
    /// Without plot and comparison (`-n`).
    pub summary_only: bool,
    /// Without names and header (`-q`).
    pub quiet: bool,
    /// A line for each dataset's bar (`-s`).
    pub separate_bars: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            level: Level::default(),
            width: 74,
            no_plot: false,
            summary_only: false,
            quiet: false,
            separate_bars: false,
        }
    }
}

/// A printed block.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Its lines.
    pub block: String,
    /// Points that the plot has no room for.
    pub not_drawn: usize,
}

/// Prints datasets, each after the first compared to the first. There is no plot if only the summary
/// of a dataset is known, and a dash in place of what is not known of it.
///
/// # Panics
/// If there is no dataset or more than there are [`SYMBOLS`], or if the plot is narrower than 2.
pub fn print(datasets: &[Dataset], options: &Options) -> Text {
    assert!(!datasets.is_empty() && datasets.len() <= SYMBOLS.len(), "1 to 7 datasets");
    assert!(options.width >= MIN_WIDTH, "a plot has at least two columns");
    let mut text = String::new();
    let mut not_drawn = 0;
    if !options.quiet {
        for (symbol, dataset) in SYMBOLS.iter().zip(datasets) {
            let _ = writeln!(text, "{symbol} {}", dataset.name);
        }
    }
    let all_points = datasets.iter().all(|dataset| !dataset.sorted.is_empty());
    if all_points && !options.no_plot && !options.summary_only {
        let (plot, lost) = plot::plot(datasets, options.width, options.separate_bars);
        text.push_str(&plot);
        not_drawn = lost;
    }
    if !options.quiet {
        let _ = writeln!(
            text,
            "    N           Min           Max        Median           Avg        Stddev"
        );
    }
    for (i, (symbol, dataset)) in SYMBOLS.iter().zip(datasets).enumerate() {
        let cell = |x: Option<f64>| x.map_or("-".into(), |x| general(x, 8));
        let _ = write!(text, "{symbol} {:>3}", dataset.n);
        for known in
            [dataset.min, dataset.max, dataset.median, Some(dataset.mean), Some(dataset.sd)]
        {
            let _ = write!(text, " {:>13}", cell(known));
        }
        text.push('\n');
        if i > 0 && !options.summary_only {
            text.push_str(&comparison(dataset, &datasets[0], options.level));
        }
    }
    Text { block: text, not_drawn }
}

fn comparison(dataset: &Dataset, reference: &Dataset, level: Level) -> String {
    let found = difference(dataset, reference, level);
    let percent = level.percent();
    if !found.proven {
        return format!("No difference proven at {percent:.1}% confidence\n");
    }
    let six = |x: f64| general(x, 6);
    format!(
        "Difference at {percent:.1}% confidence\n\t{} +/- {}\n\t{}% +/- {}%\n\t(Student's t, pooled s = {})\n",
        six(found.difference),
        six(found.plus_minus),
        six(found.percent),
        six(found.percent_plus_minus),
        six(found.pooled_sd),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(columns: &[(&str, &[f64])], options: Options) -> Text {
        let datasets: Vec<Dataset> =
            columns.iter().map(|(name, points)| Dataset::of(*name, points).unwrap()).collect();
        print(&datasets, &options)
    }

    #[test]
    fn two_files_as_the_program_of_debian_12_prints_them() {
        let columns: [(&str, &[f64]); 2] =
            [("a", &[1.0, 2.0, 3.0, 4.0]), ("b", &[5.0, 6.0, 7.0, 7.0])];
        let text = printed(&columns, Options { width: 40, ..Options::default() });
        let expected = "\
x a
+ b
+----------------------------------------+
|                                      + |
|x     x      x     x     +     +      + |
| |_______A___M____|        |_____A____M||
+----------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   4             1             4             3           2.5     1.2909944
+   4             5             7             7          6.25    0.95742711
Difference at 95.0% confidence
\t3.75 +/- 1.9665
\t150% +/- 78.66%
\t(Student's t, pooled s = 1.13652)
";
        assert_eq!(text.block, expected);
        assert_eq!(text.not_drawn, 0);
    }

    #[test]
    fn three_files_with_bars_of_their_own_and_points_that_are_not_drawn() {
        let columns: [(&str, &[f64]); 3] = [
            ("h1", &[1.0, 1.0, 1.0, 2.0, 9.0]),
            ("h2", &[4.0, 5.0, 6.0]),
            ("h3", &[7.0, 7.0, 8.0]),
        ];
        let options = Options { width: 40, separate_bars: true, ..Options::default() };
        let text = printed(&columns, options);
        let expected = "\
x h1
+ h2
* h3
+----------------------------------------+
|                               *        |
|       x   x       +   +   +   *   *   x|
||______M______A_____________|           |
|                   |___A___|            |
|                              |MA__|    |
+----------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   5             1             9             1           2.8     3.4928498
+   3             4             6             5             5             1
No difference proven at 95.0% confidence
*   3             7             8             7     7.3333333    0.57735027
No difference proven at 95.0% confidence
";
        assert_eq!(text.block, expected);
        assert_eq!(text.not_drawn, 1, "of three equal points the plot draws two");
    }

    #[test]
    fn equal_points_have_no_plot() {
        let text = printed(&[("a", &[3.0; 3])], Options::default());
        let expected = "\
x a
[no plot, span is zero width]
    N           Min           Max        Median           Avg        Stddev
x   3             3             3             3             3             0
";
        assert_eq!(text.block, expected);
    }

    #[test]
    fn parts_can_be_left_out() {
        let columns: [(&str, &[f64]); 2] = [("a", &[1.0, 2.0, 3.0]), ("b", &[4.0, 5.0, 7.0])];
        let lines = |options: Options| printed(&columns, options).block.lines().count();
        assert_eq!(lines(Options { no_plot: true, ..Options::default() }), 9);
        assert_eq!(lines(Options { summary_only: true, ..Options::default() }), 5);
        let bare = Options { summary_only: true, quiet: true, ..Options::default() };
        assert_eq!(lines(bare), 2);
    }

    #[test]
    fn the_published_name_cache_block() {
        let text = print(&crate::ministat::tests::name_cache(), &Options::default());
        let expected = "\
x rwlock
+ rmlock
    N           Min           Max        Median           Avg        Stddev
x   6       2710.31       2821.35       2816.75     2798.0617     43.324817
+   5       2488.25       2500.25       2498.04      2495.756     5.0494782
Difference at 95.0% confidence
\t-302.306 +/- 44.4709
\t-10.8041% +/- 1.58935%
\t(Student's t, pooled s = 32.4674)
";
        assert_eq!(text.block, expected);
    }
}
