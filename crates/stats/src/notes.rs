//! What a reader should know before believing a comparison of two samples.

use std::fmt;

use crate::diagnose;
use crate::ministat::Dataset;
use crate::summary;

/// One thing to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Which sample it is about; `None` if about both.
    pub of: Option<String>,
    /// In words.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(name) => write!(f, "{name}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Notes on one sample in the order of its measurement.
pub fn of_one(name: &str, sample: &[f64]) -> Vec<Note> {
    let note = |text: String| Note { of: Some(name.into()), text };
    let mut notes: Vec<Note> =
        diagnose::warnings(sample).iter().map(|warning| note(warning.to_string())).collect();
    let outliers = diagnose::outliers(sample);
    if outliers.mild + outliers.severe > 0 {
        let trimmed = trimmed_mean(sample, &outliers.at);
        let change = 100.0 * (trimmed / summary::mean(sample) - 1.0);
        notes.push(note(format!(
            "outside Tukey's fences: {} mild, {} severe (kept; without them the mean changes by {change:+.2}%)",
            outliers.mild, outliers.severe
        )));
    }
    notes
}

fn trimmed_mean(sample: &[f64], without: &[usize]) -> f64 {
    let kept: Vec<f64> =
        (0..sample.len()).filter(|i| !without.contains(i)).map(|i| sample[i]).collect();
    summary::mean(&kept)
}

/// Notes on sizes and spreads, which a summary is enough for.
pub fn of_two(test: &Dataset, reference: &Dataset) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(Note { of: None, text });
    if test.n != reference.n {
        note(format!(
            "unequal sizes ({} and {}): was the number of runs fixed before the first one?",
            reference.n, test.n
        ));
    }
    let (small, large) = (test.sd.min(reference.sd), test.sd.max(reference.sd));
    if large > 2.0 * small {
        let by = if small > 0.0 { format!("{:.1}-fold", large / small) } else { "wholly".into() };
        note(format!(
            "standard deviations differ {by}: a pooled one fits neither; Welch's interval does not pool"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(notes: &[Note]) -> String {
        notes.iter().map(Note::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_name_cache_comparison_has_its_weak_points_named() {
        let [rwlock, rmlock] = crate::ministat::tests::name_cache();
        let notes = texts(&of_two(&rmlock, &rwlock));
        assert!(notes.contains("unequal sizes (6 and 5)"), "{notes}");
        assert!(notes.contains("differ 8.6-fold"), "{notes}");
        // Six results as it may have been: a cold cache first.
        let notes = texts(&of_one("rwlock", &[2710.3, 2817.0, 2821.4, 2816.5, 2818.0, 2815.2]));
        assert!(notes.contains("rwlock: first run: -3.8%"), "{notes}");
        assert!(notes.contains("1 severe"), "{notes}");
    }

    #[test]
    fn equal_samples_without_oddities_have_no_notes() {
        let sample = [10.1, 9.9, 10.0, 10.2, 9.8, 10.05];
        let dataset = Dataset::of("a", &sample).unwrap();
        assert!(of_two(&dataset, &dataset).is_empty());
        assert!(of_one("a", &sample).is_empty());
    }
}
