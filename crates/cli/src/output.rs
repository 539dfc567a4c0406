//! How results are shown.

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// With a versioned schema
    Json,
    /// For spreadsheets
    Csv,
}

/// Columns of the terminal that takes standard output; 80 where there is none, and at most 120, since
/// longer lines are hard to follow.
pub fn width() -> usize {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    columns.clamp(60, 120)
}
