//! Points and bars of datasets on one scale.

use std::fmt::Write;

use super::{Dataset, SYMBOLS};

/// A plot of datasets with points: one character per `width`th of the range, points of one place
/// stacked, `|___` one standard deviation to either side of the mean, `A` the mean, `M` the median.
/// With the number of points that it has no room for.
pub(super) fn plot(datasets: &[Dataset], width: usize, separate_bars: bool) -> (String, usize) {
    let Some(scale) = Scale::of(datasets, width) else {
        return ("[no plot, span is zero width]\n".into(), 0);
    };
    let (cells, lost) = cells(datasets, &scale, width);
    let mut text = String::new();
    let border = format!("+{}+", "-".repeat(width));
    let _ = writeln!(text, "{border}");
    for row in cells.iter().rev() {
        let row: String = row.iter().map(|&cell| mark(cell)).collect();
        let _ = writeln!(text, "|{row}|");
    }
    for bar in bars(datasets, &scale, width, separate_bars) {
        let _ = writeln!(text, "|{}|", bar.into_iter().collect::<String>());
    }
    let _ = writeln!(text, "{border}");
    (text, lost)
}

/// Which dataset's mark a cell shows. The numbers of datasets that meet in a cell are united bit by
/// bit: 1 (`x`) and 2 (`+`) show as 3 (`*`), which is also the third dataset's.
fn mark(cell: u8) -> char {
    match cell {
        0 => ' ',
        number => SYMBOLS[usize::from(number) - 1],
    }
}

fn cells(datasets: &[Dataset], scale: &Scale, width: usize) -> (Vec<Vec<u8>>, usize) {
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let mut drawn = 0;
    for (number, dataset) in (1u8..).zip(datasets) {
        let places: Vec<usize> = dataset.sorted.iter().map(|&x| scale.place(x)).collect();
        let stacks = places.chunk_by(|a, b| a == b);
        let height = stacks.clone().map(<[usize]>::len).max().unwrap_or(0);
        // Rows above the height of the newest dataset go, with what stood in them.
        rows.resize(height, vec![0; width]);
        for stack in stacks {
            for row in &mut rows[..stack.len()] {
                row[stack[0]] |= number;
            }
        }
        drawn = height;
    }
    let above = |dataset: &Dataset| -> usize {
        let places: Vec<usize> = dataset.sorted.iter().map(|&x| scale.place(x)).collect();
        places.chunk_by(|a, b| a == b).map(|stack| stack.len().saturating_sub(drawn)).sum()
    };
    (rows, datasets.iter().map(above).sum())
}

fn bars(datasets: &[Dataset], scale: &Scale, width: usize, separate: bool) -> Vec<Vec<char>> {
    let mut bars = vec![vec![' '; width]; if separate { datasets.len() } else { 1 }];
    for (number, dataset) in datasets.iter().enumerate() {
        let bar = &mut bars[if separate { number } else { 0 }];
        let left = scale.place(dataset.mean - dataset.sd);
        let right = scale.place(dataset.mean + dataset.sd);
        bar[right] = '|';
        bar[left] = '|';
        for cell in bar.iter_mut().take(right).skip(left + 1).filter(|cell| **cell == ' ') {
            *cell = '_';
        }
        if let Some(median) = dataset.median {
            bar[scale.place(median)] = 'M';
        }
        bar[scale.place(dataset.mean)] = 'A';
    }
    bars
}

/// Where a number stands in a row of characters.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    start: f64,
    step: f64,
    last: usize,
}

impl Scale {
    /// A scale of `width` characters from `min` in the first to `max` in the last; `None` if there is
    /// nothing between them or no room.
    pub fn between(min: f64, max: f64, width: usize) -> Option<Scale> {
        let step = (max - min) / (width as f64 - 1.0);
        (max > min && step.is_finite() && width > 1).then_some(Scale {
            start: min - 0.5 * step,
            step,
            last: width - 1,
        })
    }

    /// The character, from 0, of a number between the ends.
    pub fn place(&self, x: f64) -> usize {
        // Numbers that differ in their last bits alone can round out of the row.
        (((x - self.start) / self.step) as usize).min(self.last)
    }

    /// Room for all points and for a standard deviation around each mean.
    fn of(datasets: &[Dataset], width: usize) -> Option<Scale> {
        let ends = datasets.iter().flat_map(|d| {
            let deviation = [d.mean - d.sd, d.mean + d.sd];
            [d.min, d.max].into_iter().flatten().chain(deviation)
        });
        let (min, max) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
        Scale::between(min, max, width)
    }
}
