//! Log-linear buckets: 16 to each power of two, so that a bucket is at most 1/16 of its value wide.
//!
//! Bucket `i < 16` holds the value `i` alone; the power of two `e` (from 4) has the buckets
//! `16 * (e - 3) ..`. The last bucket takes all that is longer than 2^35 ticks; sums and maxima are
//! kept exactly beside the histogram.

/// Buckets of a histogram: one page of u64.
pub const BUCKETS: usize = 512;

/// The bucket that counts `ticks`.
#[inline]
pub const fn bucket_of(ticks: u64) -> usize {
    if ticks < 16 {
        return ticks as usize;
    }
    let power = 63 - ticks.leading_zeros() as usize;
    let bucket = ((power - 3) << 4) | ((ticks >> (power - 4)) & 15) as usize;
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

/// The smallest value that `bucket` counts. `bounds(b + 1)` is behind its largest.
pub const fn lower_bound(bucket: usize) -> u64 {
    if bucket < 16 {
        return bucket as u64;
    }
    ((16 + (bucket & 15)) as u64) << ((bucket >> 4) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_its_bucket() {
        for power in 0..35 {
            for value in [1u64 << power, (1 << power) + 1, (1 << power) | ((1 << power) - 1)] {
                let bucket = bucket_of(value);
                assert!(lower_bound(bucket) <= value, "{value}");
                assert!(bucket == BUCKETS - 1 || value < lower_bound(bucket + 1), "{value}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_bucket_is_at_most_a_sixteenth_wide() {
        for bucket in 16..BUCKETS - 1 {
            let width = lower_bound(bucket + 1) - lower_bound(bucket);
            assert!(width * 16 <= lower_bound(bucket), "{bucket}");
        }
    }
}
