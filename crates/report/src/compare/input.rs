//! Columns of numbers, from files and from summaries on the command line.

use std::fs;
use std::io::Read;

use relatch_stats::ministat::{Dataset, MIN_POINTS, SYMBOLS};

/// Where in a line the number stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which column, from 1.
    pub column: usize,
    /// Characters of which any number part one column from the next.
    pub delimiters: String,
}

impl Default for Layout {
    /// The first of columns parted by spaces and tabs.
    fn default() -> Layout {
        Layout { column: 1, delimiters: " \t".into() }
    }
}

/// A column that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// As ministat sees it.
    pub dataset: Dataset,
    /// Its values in their order; empty if only the summary is known.
    pub values: Vec<f64>,
}

/// Reads the columns to compare: first the summaries, then the files; standard input if there are none.
pub fn read(
    summaries: &[String],
    files: &[String],
    layout: &Layout,
) -> Result<Vec<Column>, String> {
    let standard_input = ["-".to_string()];
    let files = if summaries.is_empty() && files.is_empty() { &standard_input[..] } else { files };
    if summaries.len() + files.len() > SYMBOLS.len() {
        return Err(format!("at most {} columns can be compared", SYMBOLS.len()));
    }
    if files.iter().filter(|path| *path == "-").count() > 1 {
        return Err("standard input can be read only once".into());
    }
    let summaries = (1..).zip(summaries).map(|(number, text)| read_summary(text, number));
    summaries.chain(files.iter().map(|path| read_file(path, layout))).collect()
}

/// Reads a column of a file, or of standard input for `-`.
fn read_file(path: &str, layout: &Layout) -> Result<Column, String> {
    let (name, bytes) = if path == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        ("<stdin>", read.map(|_| bytes))
    } else {
        (path, fs::read(path))
    };
    let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: not a text file"))?;
    read_text(name, &text, layout)
}

/// Reads a column of a text: one number per line; what follows a column that starts with `#` is a
/// comment, and lines that end before the column are passed over.
pub fn read_text(name: &str, text: &str, layout: &Layout) -> Result<Column, String> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let columns = line.trim_end().split(|c| layout.delimiters.contains(c));
        let cell = columns
            .filter(|column| !column.is_empty())
            .take_while(|column| !column.starts_with('#'))
            .nth(layout.column - 1);
        let Some(cell) = cell else { continue };
        match cell.parse() {
            Ok(value) if f64::is_finite(value) => values.push(value),
            _ => return Err(format!("{name}, line {number}: not a number: {}", shown(cell))),
        }
    }
    let dataset = Dataset::of(name, &values).ok_or_else(|| {
        let column = match layout.column {
            1 => String::new(),
            column => format!(" in column {column}"),
        };
        format!("{name}: {} numbers{column}, at least {MIN_POINTS} are needed", values.len())
    })?;
    Ok(Column { dataset, values })
}

/// Reads `[NAME=]N,MEAN,SD[,MIN,MAX,MEDIAN]`; without a name it is called `summary` and its `number`.
pub fn read_summary(text: &str, number: usize) -> Result<Column, String> {
    let bad = |why: &str| {
        format!("--summary {}: {why}; expected [NAME=]N,MEAN,SD[,MIN,MAX,MEDIAN]", shown(text))
    };
    let (name, numbers) = match text.rsplit_once('=') {
        Some((name, numbers)) => (name.to_string(), numbers),
        None => (format!("summary {number}"), text),
    };
    let fields: Vec<&str> = numbers.split(',').map(str::trim).collect();
    if fields.len() != 3 && fields.len() != 6 {
        return Err(bad("3 or 6 numbers are needed"));
    }
    let n: usize = fields[0].parse().map_err(|_| bad("N is not a whole number"))?;
    let mut rest = Vec::new();
    for field in &fields[1..] {
        match field.parse() {
            Ok(value) if f64::is_finite(value) => rest.push(value),
            _ => return Err(bad(&format!("not a number: {}", shown(field)))),
        }
    }
    if n < MIN_POINTS {
        return Err(bad("at least 3 values are needed"));
    }
    let mut dataset = Dataset::of_summary(name, n, rest[0], rest[1])
        .ok_or_else(|| bad("a standard deviation is not negative"))?;
    if let [_, _, min, max, median] = rest[..] {
        if !(min <= median && median <= max && min <= rest[0] && rest[0] <= max) {
            return Err(bad("median and mean lie between MIN and MAX"));
        }
        (dataset.min, dataset.max, dataset.median) = (Some(min), Some(max), Some(median));
    }
    Ok(Column { dataset, values: Vec::new() })
}

/// Foreign text in quotes, cut to what a line has room for.
fn shown(text: &str) -> String {
    const ROOM: usize = 60;
    let cut: String = text.chars().take(ROOM).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, layout: &Layout) -> Result<Vec<f64>, String> {
        read_text("f", text, layout).map(|column| column.values)
    }

    #[test]
    fn columns_comments_and_blank_lines() {
        let first = Layout::default();
        let text = "# head\n\n 1.5 9 # x\r\n2\n\t3e0 #\n";
        assert_eq!(values(text, &first).unwrap(), [1.5, 2.0, 3.0]);
        let second = Layout { column: 2, delimiters: ",;".into() };
        assert_eq!(values("a,1\nb;;2\nc,3,4\nd\n", &second).unwrap(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_no_number_is_named_with_its_line() {
        let error = values("1\n2\nthree\n", &Layout::default()).unwrap_err();
        assert_eq!(error, "f, line 3: not a number: \"three\"");
        for text in ["1\n2\nnan\n", "1\n2\ninf\n", "1\n2\n3#4\n"] {
            assert!(values(text, &Layout::default()).is_err(), "{text}");
        }
        let long = format!("{}\n", "y".repeat(5000));
        assert!(values(&long, &Layout::default()).unwrap_err().len() < 120);
    }

    #[test]
    fn three_numbers_are_the_least() {
        let error = values("1\n2\n", &Layout::default()).unwrap_err();
        assert_eq!(error, "f: 2 numbers, at least 3 are needed");
        let fifth = Layout { column: 5, ..Layout::default() };
        assert!(values("1\n2\n3\n", &fifth).unwrap_err().contains("0 numbers in column 5"));
    }

    #[test]
    fn summaries_with_and_without_extremes() {
        let short = read_summary("6,2798.0617,43.324817", 2).unwrap().dataset;
        assert_eq!((short.name.as_str(), short.n, short.min), ("summary 2", 6, None));
        let long = read_summary("rw=6,2798.0617,43.324817,2710.31,2821.35,2816.75", 1).unwrap();
        assert_eq!((long.dataset.name.as_str(), long.dataset.median), ("rw", Some(2816.75)));
    }

    #[test]
    fn bad_summaries_are_refused() {
        for text in [
            "",
            "6",
            "6,1",
            "6,1,2,3",
            "x,1,2",
            "6,1,y",
            "2,1,1",
            "6,1,-1",
            "6,5,1,6,9,7",
            "6,nan,1",
        ] {
            let error = read_summary(text, 1).unwrap_err();
            assert!(error.contains("expected [NAME=]N,MEAN,SD"), "{text}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
