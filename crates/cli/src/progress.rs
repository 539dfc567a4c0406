//! Progress of an experiment on standard error: a bar on a terminal, a line per round elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use relatch_experiment::Event;

/// Shows what goes on.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar on a terminal, else lines.
    pub fn new(terminal: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar }
    }

    /// Shows one event.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Run { round, arm, done, total, left } => {
                let Some(bar) = &self.bar else { return };
                bar.set_length(*total as u64);
                bar.set_position(*done as u64);
                let left = left.map_or(String::new(), |left| format!("{} left  ", clock(left)));
                let round = if *round == 0 { "warm-up".into() } else { format!("round {round}") };
                bar.set_message(format!("{left}{round}: {arm}"));
                // The message changes rarely: draw it at once.
                bar.tick();
            }
            Event::Failed { arm, failure } => {
                self.line(&format!("{arm} failed: {}", failure.what));
            }
            Event::Round { round, rounds, done } if self.bar.is_none() => {
                self.line(&format!("round {round} of {rounds} complete, {done} runs"));
            }
            _ => {}
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}
