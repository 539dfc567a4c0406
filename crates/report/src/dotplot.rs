//! Series of numbers on one scale, one below the other.

use std::fmt::Write;

use relatch_stats::ministat::Scale;
use relatch_stats::number::general;
use relatch_stats::summary::Summary;

/// Draws each series as two rows: its values, and below them `|___` one standard deviation to either
/// side of its mean, with `A` the mean and `M` the median, as ministat does. A value is an `x`, two to
/// nine values of one place are their number, more are `#`. `width` is the number of characters
/// between the borders, at least 20; labels stand to the left. The least and the greatest number of
/// the scale close the plot. Numbers that are not finite are left out.
pub fn dotplot(series: &[(&str, &[f64])], width: usize) -> String {
    const NARROWEST: usize = 20;
    let width = width.max(NARROWEST);
    let finite: Vec<(&str, Vec<f64>)> = series
        .iter()
        .map(|(label, values)| (*label, values.iter().copied().filter(|x| x.is_finite()).collect()))
        .collect();
    let ends = finite.iter().filter_map(|(_, values)| Summary::of(values)).flat_map(|summary| {
        [summary.min, summary.max, summary.mean - summary.sd, summary.mean + summary.sd]
    });
    let (min, max) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
    let Some(scale) = Scale::between(min, max, width) else {
        return "[no plot: all values are equal]\n".into();
    };
    let margin = finite.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let border = format!("{:margin$} +{}+\n", "", "-".repeat(width));
    let mut text = border.clone();
    for (label, values) in &finite {
        let _ = writeln!(text, "{label:margin$} |{}|", dots(values, &scale, width));
        let _ = writeln!(text, "{:margin$} |{}|", "", bar(values, &scale, width));
    }
    text.push_str(&border);
    let (left, right) = (general(min, 6), general(max, 6));
    let room = (width + 2).saturating_sub(left.len());
    let _ = writeln!(text, "{:margin$} {left}{right:>room$}", "");
    text
}

fn dots(values: &[f64], scale: &Scale, width: usize) -> String {
    let mut counts = vec![0u32; width];
    for &value in values {
        counts[scale.place(value)] += 1;
    }
    let mark = |count: u32| match count {
        0 => ' ',
        1 => 'x',
        2..=9 => char::from_digit(count, 10).expect("one digit"),
        _ => '#',
    };
    counts.into_iter().map(mark).collect()
}

fn bar(values: &[f64], scale: &Scale, width: usize) -> String {
    let mut row = vec![' '; width];
    if let Some(summary) = Summary::of(values) {
        let left = scale.place(summary.mean - summary.sd);
        let right = scale.place(summary.mean + summary.sd);
        row[left..right].fill('_');
        row[left] = '|';
        row[right] = '|';
        row[scale.place(summary.median)] = 'M';
        row[scale.place(summary.mean)] = 'A';
    }
    row.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::dotplot;

    #[test]
    fn series_stand_on_one_scale() {
        let plot = dotplot(&[("bare", &[1.0, 1.0, 2.0, 4.0]), ("same", &[7.0, 8.0, 9.0])], 41);
        let expected = [
            "     +-----------------------------------------+",
            "bare |  2    x        x                        |",
            "     ||___M__A_____|                           |",
            "same |                              x    x    x|",
            "     |                              |____A____||",
            "     +-----------------------------------------+",
            "     0.585786                                  9",
        ];
        let plot: Vec<&str> = plot.lines().collect();
        assert_eq!(plot, expected);
    }

    #[test]
    fn an_arm_without_results_keeps_its_rows() {
        let plot = dotplot(&[("a", &[1.0, 2.0]), ("failed", &[]), ("b", &[f64::NAN, 2.0])], 30);
        assert_eq!(plot.lines().count(), 9);
        assert!(plot.lines().any(|line| line.starts_with("failed |   ")), "{plot}");
    }

    #[test]
    fn equal_or_no_values_have_no_plot() {
        assert_eq!(dotplot(&[("a", &[2.0, 2.0])], 40), "[no plot: all values are equal]\n");
        assert_eq!(dotplot(&[], 40), "[no plot: all values are equal]\n");
    }

    #[test]
    fn more_than_nine_of_a_place_are_many() {
        let mut values = [1.0; 12].to_vec();
        values.push(50.0);
        assert!(dotplot(&[("a", &values)], 30).contains('#'));
    }
}
