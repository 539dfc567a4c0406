//! The word at the end of an experiment.

use std::fmt;

use crate::paired::Paired;

/// Chance of a false word that is accepted, over all arms of an experiment together.
pub const ALPHA: f64 = 0.05;

/// How far two arms may differ and still be called equivalent, if nobody says otherwise: 1 %.
pub const EQUIVALENCE: f64 = 0.01;

/// What an arm is compared to its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// Better, by more than chance and by more than the control reaches.
    Faster,
    /// Worse, by more than chance and by more than the control reaches.
    Slower,
    /// Shown to be within the margin of equivalence.
    Equivalent,
    /// The experiment does not tell. More rounds or a quieter machine may.
    Undecided,
}

impl Verdict {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Which direction of the metric is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Better {
    /// Less is better: time, memory.
    #[default]
    Lower,
    /// More is better: operations per second.
    Higher,
}

/// Judges an arm against its reference.
///
/// `p_adjusted` is the p-value after [`crate::multiple::holm`] over all arms judged together.
/// `control` is the comparison of the reference with a second arm just like it, in the same rounds:
/// what it shows is what this machine shows for no change at all. Without it nothing is refused.
/// `equivalence` is the margin as a fraction, such as [`EQUIVALENCE`].
///
/// In this order:
/// 1. *Equivalent* if the whole interval lies within the margin, and that of the control too: an
///    experiment that cannot tell that equal is equal does not tell it of others. A difference within
///    the margin that chance does not explain is equivalent nevertheless; its ratio is there to read.
/// 2. *Undecided* if `p_adjusted` is not below [`ALPHA`] or the interval holds 1.
/// 3. *Undecided* if the control reaches as far: if the ratio does not lie beyond the end of the
///    control's interval on its own side. Where the control's interval excludes 1 (the experiment saw
///    a difference where there was none), its farther end counts on both sides.
/// 4. *Faster* or *slower*, by the side of 1 and by what is better.
pub fn judge(
    paired: &Paired,
    p_adjusted: f64,
    control: Option<&Paired>,
    better: Better,
    equivalence: f64,
) -> Verdict {
    let margin = (1.0 + equivalence).ln();
    let within = |x: &Paired| x.low.ln() >= -margin && x.high.ln() <= margin;
    if within(paired) && control.is_none_or(within) {
        return Verdict::Equivalent;
    }
    let by_chance = p_adjusted.is_nan() || p_adjusted >= ALPHA;
    if by_chance || (paired.low <= 1.0 && paired.high >= 1.0) {
        return Verdict::Undecided;
    }
    if control.is_some_and(|control| reaches(control, paired.ratio)) {
        return Verdict::Undecided;
    }
    match (paired.ratio < 1.0, better) {
        (true, Better::Lower) | (false, Better::Higher) => Verdict::Faster,
        (true, Better::Higher) | (false, Better::Lower) => Verdict::Slower,
    }
}

/// Whether the control's interval reaches as far from 1 as `ratio` does, on the side of `ratio`.
pub fn reaches(control: &Paired, ratio: f64) -> bool {
    let (low, high) = (control.low.ln(), control.high.ln());
    let failed = low > 0.0 || high < 0.0;
    let reach = match ratio > 1.0 {
        _ if failed => low.abs().max(high.abs()),
        true => high,
        false => -low,
    };
    ratio.ln().abs() <= reach
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64, p: f64) -> Paired {
        Paired { n: 20, ratio: (low * high).sqrt(), low, high, p }
    }

    fn lower(paired: &Paired, control: Option<&Paired>) -> Verdict {
        judge(paired, paired.p, control, Better::Lower, EQUIVALENCE)
    }

    #[test]
    fn the_side_and_what_is_better_make_the_word() {
        let less = interval(0.90, 0.94, 0.001);
        assert_eq!(lower(&less, None), Verdict::Faster);
        assert_eq!(judge(&less, 0.001, None, Better::Higher, 0.01), Verdict::Slower);
        let more = interval(1.04, 1.10, 0.001);
        assert_eq!(lower(&more, None), Verdict::Slower);
        assert_eq!(judge(&more, 0.001, None, Better::Higher, 0.01), Verdict::Faster);
    }

    #[test]
    fn a_wide_interval_around_one_tells_nothing() {
        assert_eq!(lower(&interval(0.95, 1.04, 0.7), None), Verdict::Undecided);
    }

    #[test]
    fn many_arms_can_take_a_word_away() {
        let less = interval(0.90, 0.99, 0.03);
        assert_eq!(judge(&less, 0.03, None, Better::Lower, 0.01), Verdict::Faster);
        assert_eq!(judge(&less, 0.06, None, Better::Lower, 0.01), Verdict::Undecided);
        assert_eq!(judge(&less, f64::NAN, None, Better::Lower, 0.01), Verdict::Undecided);
    }

    #[test]
    fn equivalence_is_shown_not_assumed() {
        let narrow = interval(0.995, 1.004, 0.8);
        assert_eq!(lower(&narrow, None), Verdict::Equivalent);
        assert_eq!(lower(&narrow, Some(&interval(0.993, 1.006, 0.5))), Verdict::Equivalent);
        assert_eq!(lower(&narrow, Some(&interval(0.98, 1.02, 0.5))), Verdict::Undecided);
        // A difference too small to matter, though chance does not explain it.
        assert_eq!(lower(&interval(1.002, 1.006, 0.001), None), Verdict::Equivalent);
        assert_eq!(judge(&narrow, 0.8, None, Better::Lower, 0.001), Verdict::Undecided);
    }

    #[test]
    fn the_control_refuses_what_it_reaches_itself() {
        let less = interval(0.95, 0.98, 0.01);
        assert_eq!(lower(&less, Some(&interval(0.97, 1.03, 0.9))), Verdict::Faster);
        assert_eq!(lower(&less, Some(&interval(0.96, 1.01, 0.4))), Verdict::Undecided);
        // Its reach to the other side does not count, unless the control itself saw a difference.
        assert_eq!(lower(&less, Some(&interval(0.99, 1.05, 0.2))), Verdict::Faster);
        assert_eq!(lower(&less, Some(&interval(1.01, 1.05, 0.01))), Verdict::Undecided);
    }
}
