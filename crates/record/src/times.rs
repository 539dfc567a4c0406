//! Times as they were counted: the buckets of [`histogram`](crate::histogram) with the length of a tick.

use serde::{Deserialize, Serialize};

use crate::histogram::{BUCKETS, lower_bound};

/// Two scales closer than this are one: a clock is measured anew in each process.
const SAME_SCALE: f64 = 1e-3;

/// How many times fell into each bucket. Empty buckets are not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Length of a tick in nanoseconds; zero as long as there are no counts.
    ns_per_tick: f64,
    /// Bucket and count, buckets ascending.
    counts: Vec<(u16, u64)>,
}

impl Times {
    /// Nothing counted.
    pub const NONE: Times = Times { ns_per_tick: 0.0, counts: Vec::new() };

    /// Of counted buckets; what is no bucket or has no count is left out.
    pub fn new(ns_per_tick: f64, counts: &[(u16, u64)]) -> Times {
        let mut times = Times { ns_per_tick, counts: Vec::with_capacity(counts.len()) };
        for &(bucket, count) in counts {
            times.count_bucket(bucket, count);
        }
        times
    }

    /// Whether every bucket exists, in order, and the scale is a length: what comes from a file need
    /// not be.
    pub fn is_sound(&self) -> bool {
        self.counts.windows(2).all(|two| two[0].0 < two[1].0)
            && self.counts.iter().all(|&(bucket, _)| usize::from(bucket) < BUCKETS)
            && (self.counts.is_empty() || (self.ns_per_tick > 0.0 && self.ns_per_tick < 1e9))
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// The time below which the share `q` of all times lies, in nanoseconds, where the longest is
    /// `max_ns` and all together are `sum_ns`. Within a bucket they are taken as evenly spread; in one
    /// that holds most of them, evenly about the mean that the sum leaves for it. So the answer is within
    /// 1/16 of the truth, mostly far closer. `None` where nothing was counted.
    pub fn quantile_ns(&self, q: f64, max_ns: f64, sum_ns: f64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * all as f64;
        let mut below = 0.0;
        for (i, &(bucket, count)) in self.counts.iter().enumerate() {
            let is_last = i + 1 == self.counts.len();
            if below + count as f64 >= rank || is_last {
                let (low, mut high) = bounds(bucket);
                if is_last {
                    // The last bucket need not be filled to its end.
                    high = (max_ns / self.ns_per_tick).clamp(low, high);
                }
                let within = ((rank - below) / count as f64).clamp(0.0, 1.0);
                let most = count as f64 >= 0.5 * all as f64;
                let mean = self.mean_within(i, sum_ns).filter(|mean| (low..high).contains(mean));
                let ticks = match mean.filter(|_| most) {
                    Some(mean) => mean + (2.0 * within - 1.0) * (mean - low).min(high - mean),
                    None => low + (high - low) * within,
                };
                return Some(ticks * self.ns_per_tick);
            }
            below += count as f64;
        }
        None
    }

    /// The mean in ticks that the sum of all times leaves for one bucket, if the others' times lie in the
    /// middle of theirs.
    fn mean_within(&self, at: usize, sum_ns: f64) -> Option<f64> {
        let others = self.counts.iter().enumerate().filter(|&(i, _)| i != at);
        let elsewhere: f64 = others
            .map(|(_, &(bucket, count))| {
                let (low, high) = bounds(bucket);
                (low + high) / 2.0 * count as f64
            })
            .sum();
        let (_, count) = *self.counts.get(at)?;
        (sum_ns > 0.0).then(|| (sum_ns / self.ns_per_tick - elsewhere) / count as f64)
    }

    /// What no counted time exceeds, in nanoseconds: the end of the highest bucket.
    pub fn bound_ns(&self) -> Option<f64> {
        self.counts.last().map(|&(bucket, _)| bounds(bucket).1 * self.ns_per_tick)
    }

    /// Counts `other`'s times too. On another scale they move to the bucket that their middle falls in.
    pub fn add(&mut self, other: &Times) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            *self = other.clone();
            return;
        }
        let scale = other.ns_per_tick / self.ns_per_tick;
        let same = (scale - 1.0).abs() < SAME_SCALE;
        for &(bucket, count) in &other.counts {
            if same {
                self.count_bucket(bucket, count);
            } else {
                let (low, high) = bounds(bucket);
                let moved = crate::histogram::bucket_of(((low + high) / 2.0 * scale) as u64);
                self.count_bucket(moved as u16, count);
            }
        }
    }

    /// What was counted since `earlier`, which is the same histogram as it was before.
    pub fn since(&self, earlier: &Times) -> Times {
        let before = |bucket| {
            let found = earlier.counts.binary_search_by_key(&bucket, |&(bucket, _)| bucket);
            found.map_or(0, |at| earlier.counts[at].1)
        };
        let counts = self.counts.iter();
        let counts: Vec<_> = counts.map(|&(b, n)| (b, n.saturating_sub(before(b)))).collect();
        Times::new(self.ns_per_tick, &counts)
    }

    fn count_bucket(&mut self, bucket: u16, count: u64) {
        if count == 0 || usize::from(bucket) >= BUCKETS {
            return;
        }
        match self.counts.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }
}

/// From where to where a bucket reaches, in ticks. The last one has no end; it is given the width that
/// it would have.
fn bounds(bucket: u16) -> (f64, f64) {
    let low = lower_bound(usize::from(bucket)) as f64;
    let high = lower_bound(usize::from(bucket) + 1) as f64;
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::bucket_of;

    fn times(ns_per_tick: f64, values: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times { ns_per_tick, counts: Vec::new() };
        for value in values {
            times.count_bucket(bucket_of(value) as u16, 1);
        }
        times
    }

    #[test]
    fn quantiles_of_even_times_are_the_values() {
        let even = times(0.5, 0..100_000);
        assert_eq!(even.count(), 100_000);
        for q in [0.01, 0.1, 0.5, 0.9, 0.99] {
            let found = even.quantile_ns(q, 49_999.5, 0.0).unwrap();
            assert!((found / (q * 50_000.0) - 1.0).abs() < 0.002, "{q}: {found}");
        }
        assert!(Times::default().quantile_ns(0.5, 1.0, 1.0).is_none());
    }

    #[test]
    fn one_time_alone_is_found_within_its_bucket() {
        for value in [0, 1, 15, 16, 1000, 123_456_789] {
            for q in [0.0, 0.5, 1.0] {
                let found = times(1.0, [value]).quantile_ns(q, value as f64, 0.0).unwrap();
                let width = (value as f64 / 16.0).max(1.0);
                assert!((found - value as f64).abs() <= width, "{value} at {q}: {found}");
            }
        }
    }

    #[test]
    fn a_spike_is_found_by_the_sum() {
        // 1000 times of 1030 and ten that are long: the bucket of 1030 reaches from 1024 to 1088.
        let values = std::iter::repeat_n(1030, 1000).chain(std::iter::repeat_n(40_000, 10));
        let sum = 1030.0 * 1000.0 + 400_000.0;
        let found = times(1.0, values).quantile_ns(0.5, 40_000.0, sum).unwrap();
        assert!((found / 1030.0 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn addition_keeps_counts_and_converts_scales() {
        let mut sum = times(1.0, 1000..2000);
        sum.add(&times(1.0, 1000..2000));
        assert_eq!(sum.count(), 2000);
        // The same durations on a clock that ticks three times as fast.
        sum.add(&times(1.0 / 3.0, (1000..2000).map(|ns| ns * 3)));
        assert_eq!(sum.count(), 3000);
        let median = sum.quantile_ns(0.5, 2000.0, 0.0).unwrap();
        assert!((median / 1500.0 - 1.0).abs() < 0.04, "{median}");
    }

    #[test]
    fn since_takes_the_earlier_counts_away() {
        let before = times(1.0, 1..50);
        let mut after = before.clone();
        after.add(&times(1.0, [7, 1000]));
        let new = after.since(&before);
        assert_eq!(new, times(1.0, [7, 1000]));
        assert!(new.bound_ns().unwrap() > 1000.0 && new.bound_ns().unwrap() < 1070.0);
        assert_eq!(after.since(&after).count(), 0);
    }

    #[test]
    fn unsound_ones_are_told() {
        let unsound = |counts: Vec<(u16, u64)>| !Times { ns_per_tick: 1.0, counts }.is_sound();
        assert!(unsound(vec![(512, 1)]));
        assert!(unsound(vec![(2, 1), (2, 1)]));
        assert!(!unsound(vec![(2, 1), (511, 1)]));
        assert!(!Times { ns_per_tick: f64::NAN, counts: vec![(1, 1)] }.is_sound());
    }
}
