//! How results are shown.

use std::io::{ErrorKind, Write};

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

/// Prints results. A reader that has seen enough (`| head`) is no error.
pub fn show(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}
