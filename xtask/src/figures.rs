//! Figures held against their bounds.

use std::fmt::{Display, Write};

/// What was found, a line each: what it is, the figure, the bound, PASS or FAIL.
#[derive(Debug)]
pub struct Figures {
    prints: bool,
    lines: String,
    failed: usize,
}

impl Figures {
    /// Prints each line when it is known.
    pub fn printed() -> Figures {
        Figures { prints: true, lines: String::new(), failed: 0 }
    }

    /// Keeps the lines.
    pub fn kept() -> Figures {
        Figures { prints: false, lines: String::new(), failed: 0 }
    }

    /// Whether all were within their bounds.
    pub fn passed(&self) -> bool {
        self.failed == 0
    }

    /// Every line so far.
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// Begins a part.
    pub fn part(&mut self, name: &str) {
        self.line(&format!("# {name}"));
    }

    /// A line that explains and does not judge.
    pub fn note(&mut self, text: impl Display) {
        self.line(&format!("  {text}"));
    }

    /// A figure and its bound in words, judged by the caller.
    pub fn told(
        &mut self,
        what: impl Display,
        figure: impl Display,
        bound: impl Display,
        pass: bool,
    ) {
        self.failed += usize::from(!pass);
        let word = if pass { "PASS" } else { "FAIL" };
        let (what, figure) = (what.to_string(), figure.to_string());
        self.line(&format!("{word}  {what:<58} {figure:>22}   {bound}"));
    }

    /// A figure that must not be above a bound.
    pub fn at_most(&mut self, what: impl Display, figure: f64, bound: f64, unit: &str) {
        self.told(
            what,
            format!("{figure:.2} {unit}"),
            format!("at most {bound} {unit}"),
            figure <= bound,
        );
    }

    /// A figure that must not be below a bound.
    pub fn at_least(&mut self, what: impl Display, figure: f64, bound: f64, unit: &str) {
        self.told(
            what,
            format!("{figure:.2} {unit}"),
            format!("at least {bound} {unit}"),
            figure >= bound,
        );
    }

    /// A figure that must be known to so many percent of the truth.
    pub fn within(
        &mut self,
        what: impl Display,
        figure: f64,
        truth: f64,
        percent: f64,
        unit: &str,
    ) {
        let off = 100.0 * (figure / truth - 1.0);
        let bound = format!("within {percent} % of {truth:.0} {unit}");
        self.told(what, format!("{figure:.0} {unit} ({off:+.2} %)"), bound, off.abs() <= percent);
    }

    fn line(&mut self, text: &str) {
        if self.prints {
            println!("{text}");
        }
        let _ = writeln!(self.lines, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_held_against_figures() {
        let mut figures = Figures::kept();
        figures.at_most("cost", 40.0, 40.0, "ns");
        figures.at_least("found", 80.0, 80.0, "of 100");
        figures.within("p50", 1049.0, 1000.0, 5.0, "ns");
        assert!(figures.passed(), "{}", figures.lines());
        figures.within("p50", 940.0, 1000.0, 5.0, "ns");
        assert!(!figures.passed());
        assert!(figures.lines().lines().last().unwrap().starts_with("FAIL  p50"));
    }

    #[test]
    fn what_is_no_number_fails() {
        let mut figures = Figures::kept();
        figures.at_most("x", f64::NAN, 1.0, "ns");
        assert!(!figures.passed());
        let mut figures = Figures::kept();
        figures.at_least("x", f64::NAN, 1.0, "ns");
        assert!(!figures.passed());
        let mut figures = Figures::kept();
        figures.within("x", 1.0, 0.0, 5.0, "ns");
        assert!(!figures.passed());
    }
}
