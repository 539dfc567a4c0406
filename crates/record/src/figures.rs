//! What was counted and timed at one place: sums, maxima and every time in a histogram.

use serde::{Deserialize, Serialize};

use crate::times::Times;

/// What was counted and timed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Acquisitions, contended ones included.
    pub acquisitions: u64,
    /// Acquisitions that found the lock taken and waited.
    pub contended: u64,
    /// Tries that gave up.
    pub rejected: u64,
    /// Nanoseconds waited.
    pub wait_ns: u64,
    /// Longest wait in nanoseconds.
    pub wait_max_ns: u64,
    /// Sections that ended.
    pub held: u64,
    /// Nanoseconds held.
    pub hold_ns: u64,
    /// Longest section in nanoseconds.
    pub hold_max_ns: u64,
    /// Every wait.
    pub wait: Times,
    /// Every section.
    pub hold: Times,
}

impl Figures {
    /// Nothing counted.
    pub const NONE: Figures = Figures {
        acquisitions: 0,
        contended: 0,
        rejected: 0,
        wait_ns: 0,
        wait_max_ns: 0,
        held: 0,
        hold_ns: 0,
        hold_max_ns: 0,
        wait: Times::NONE,
        hold: Times::NONE,
    };

    /// Acquisitions and the tries that gave up.
    pub fn total(&self) -> u64 {
        self.acquisitions.saturating_add(self.rejected)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.total() == 0 && self.wait_ns == 0 && self.held == 0
    }

    /// How many waits were timed: those of timed tries that gave up are among them.
    pub fn waits(&self) -> u64 {
        self.contended.max(self.wait.count())
    }

    /// Mean wait of those that waited, in nanoseconds; of the tries that gave up where these alone did.
    pub fn wait_mean_ns(&self) -> f64 {
        let waits = self.waits();
        ratio(self.wait_ns, if waits == 0 { self.rejected } else { waits })
    }

    /// Mean length of a section in nanoseconds.
    pub fn hold_mean_ns(&self) -> f64 {
        ratio(self.hold_ns, self.held)
    }

    /// The wait that the share `q` of the waits stays below, in nanoseconds; 0 without any.
    pub fn wait_quantile_ns(&self, q: f64) -> u64 {
        quantile(&self.wait, q, self.wait_max_ns, self.wait_ns)
    }

    /// The wait that the share `q` of all acquisitions stays below, in nanoseconds: those that found the
    /// lock free waited 0.
    pub fn wait_quantile_of_all_ns(&self, q: f64) -> u64 {
        let waits = self.waits() as f64;
        let all = waits.max(self.acquisitions as f64);
        let rank = q * all - (all - waits);
        if rank <= 0.0 { 0 } else { self.wait_quantile_ns(rank / waits) }
    }

    /// The length that the share `q` of the sections stays below, in nanoseconds; 0 without any.
    pub fn hold_quantile_ns(&self, q: f64) -> u64 {
        quantile(&self.hold, q, self.hold_max_ns, self.hold_ns)
    }

    /// Counts `other` too.
    pub fn add(&mut self, other: &Figures) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.acquisitions, other.acquisitions);
        sum(&mut self.contended, other.contended);
        sum(&mut self.rejected, other.rejected);
        sum(&mut self.wait_ns, other.wait_ns);
        self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
        sum(&mut self.held, other.held);
        sum(&mut self.hold_ns, other.hold_ns);
        self.hold_max_ns = self.hold_max_ns.max(other.hold_max_ns);
        self.wait.add(&other.wait);
        self.hold.add(&other.hold);
    }

    /// What was counted since `earlier`, which are the same figures as they were before. A maximum that
    /// did not rise since is the end of the highest bucket that counted: at most 1/16 too long.
    pub fn since(&self, earlier: &Figures) -> Figures {
        let wait = self.wait.since(&earlier.wait);
        let hold = self.hold.since(&earlier.hold);
        let wait_ns = self.wait_ns.saturating_sub(earlier.wait_ns);
        let hold_ns = self.hold_ns.saturating_sub(earlier.hold_ns);
        Figures {
            acquisitions: self.acquisitions.saturating_sub(earlier.acquisitions),
            contended: self.contended.saturating_sub(earlier.contended),
            rejected: self.rejected.saturating_sub(earlier.rejected),
            wait_max_ns: maximum_since(self.wait_max_ns, earlier.wait_max_ns, wait_ns, &wait),
            wait_ns,
            held: self.held.saturating_sub(earlier.held),
            hold_max_ns: maximum_since(self.hold_max_ns, earlier.hold_max_ns, hold_ns, &hold),
            hold_ns,
            wait,
            hold,
        }
    }

    /// Whether the histograms can be calculated with.
    pub(crate) fn is_sound(&self) -> bool {
        self.wait.is_sound() && self.hold.is_sound()
    }
}

fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

fn quantile(times: &Times, q: f64, max_ns: u64, sum_ns: u64) -> u64 {
    times
        .quantile_ns(q, max_ns as f64, sum_ns as f64)
        .map_or(0, |ns| (ns.round() as u64).min(max_ns))
}

fn maximum_since(now: u64, before: u64, sum: u64, times: &Times) -> u64 {
    if now > before {
        return now;
    }
    // Without a histogram (they had run out) the sum bounds it too.
    times.bound_ns().map_or(sum, |bound| bound as u64).min(now).min(sum)
}

/// The sum of figures.
pub fn sum_of<'a>(all: impl IntoIterator<Item = &'a Figures>) -> Figures {
    let mut sum = Figures::default();
    for figures in all {
        sum.add(figures);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_own_maximum() {
        let times = |counts: &[(u16, u64)]| Times::new(1.0, counts);
        // Bucket 15 is 15 ns, bucket 100 is 640 to 671 ns.
        let before = Figures {
            hold_ns: 671,
            hold_max_ns: 671,
            held: 1,
            hold: times(&[(100, 1)]),
            ..Figures::default()
        };
        let mut after = before.clone();
        after.add(&Figures {
            hold_ns: 30,
            hold_max_ns: 15,
            held: 2,
            hold: times(&[(15, 2)]),
            ..Figures::default()
        });
        let window = after.since(&before);
        assert_eq!((window.held, window.hold_ns, window.hold_max_ns), (2, 30, 16));
        // Two that sum to 30 in the bucket of 15 are 15 each.
        assert_eq!(window.hold_quantile_ns(1.0), 15);
        assert!(before.since(&before).is_empty());
    }

    #[test]
    fn acquisitions_that_found_it_free_waited_nothing() {
        let figures = Figures {
            acquisitions: 100,
            contended: 10,
            wait_max_ns: 700,
            // 640 to 672 ns.
            wait: Times::new(1.0, &[(100, 10)]),
            ..Figures::default()
        };
        assert_eq!(figures.wait_quantile_of_all_ns(0.9), 0);
        assert_eq!(figures.wait_quantile_of_all_ns(0.95), 656);
        assert_eq!(figures.wait_quantile_ns(0.5), 656);
    }

    #[test]
    fn means_without_counts_are_zero() {
        let none = Figures::default();
        assert_eq!((none.wait_mean_ns(), none.hold_mean_ns()), (0.0, 0.0));
        assert_eq!((none.wait_quantile_ns(0.5), none.hold_quantile_ns(0.99)), (0, 0));
    }
}
