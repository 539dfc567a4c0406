//! Ticks: the processor's time stamp where it counts evenly, else `CLOCK_MONOTONIC`.
//!
//! A time stamp costs about 10 ns, `clock_gettime` twice that, and an observed section needs two. What
//! a tick is worth follows from two pairs of (ticks, nanoseconds), taken far enough apart.

use crate::layout::{CLOCK_MONOTONIC, CLOCK_TSC};

/// The kind of ticks this processor offers: [`CLOCK_TSC`] where the time stamp counter is invariant.
pub fn kind() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        // Bit 8 of leaf 0x8000_0007: the counter runs at one rate in every power state.
        if __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0 {
            return CLOCK_TSC;
        }
    }
    CLOCK_MONOTONIC
}

/// Now, in ticks of `kind`.
#[inline(always)]
pub fn ticks(kind: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if kind == CLOCK_TSC {
        // SAFETY: `rdtsc` reads a register; user code may do so wherever `kind` found the counter.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    let _ = kind;
    monotonic_ns()
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn epoch_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; both clocks exist on every Linux, so the call neither fails nor sets errno.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The same moment in ticks and in `CLOCK_MONOTONIC` nanoseconds: the closest of five readings, so that
/// an interrupt between the two clocks does not tilt the scale.
pub fn pair(kind: u32) -> (u64, u64) {
    let mut best = (0, 0);
    let mut closest = u64::MAX;
    for _ in 0..5 {
        let before = ticks(kind);
        let ns = monotonic_ns();
        let after = ticks(kind);
        if after.wrapping_sub(before) < closest {
            closest = after.wrapping_sub(before);
            best = (before + closest / 2, ns);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_nanoseconds_advance_together() {
        let kind = kind();
        let (ticks_then, ns_then) = pair(kind);
        let until = ns_then + 20_000_000;
        while monotonic_ns() < until {}
        let (ticks_now, ns_now) = pair(kind);
        assert!(ticks_now > ticks_then);
        let per_ns = (ticks_now - ticks_then) as f64 / (ns_now - ns_then) as f64;
        assert!((0.01..10.0).contains(&per_ns), "{per_ns} ticks per ns");
    }
}
