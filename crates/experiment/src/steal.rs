//! CPU time that the hypervisor gave to somebody else while a program ran.

/// The machine's CPU time so far, in clock ticks, from the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    total: u64,
    stolen: u64,
}

impl Ticks {
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is part of user and nice.
        (ticks.len() >= 8).then(|| Self { total: ticks[..8].iter().sum(), stolen: ticks[7] })
    }

    /// Share of the machine's CPU time since `earlier` that was stolen, 0 to 1.
    pub(crate) fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        if total == 0 { 0.0 } else { stolen as f64 / total as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_time_between() {
        let before = Ticks::parse("cpu  10 0 10 80 0 0 0 0 5 0\ncpu0 1\n").unwrap();
        let after = Ticks::parse("cpu  30 0 20 135 0 0 0 15 5 0\n").unwrap();
        assert_eq!(after.stolen_since(before), 0.15);
        assert_eq!(after.stolen_since(after), 0.0);
        assert!(Ticks::parse("intr 1 2 3").is_none());
    }
}
