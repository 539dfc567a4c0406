//! Experiments whose truth is known.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Noise of known shape from a seed.
pub struct Noise(Pcg64);

impl Noise {
    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Noise {
        Noise(Pcg64::seed_from_u64(seed))
    }

    /// Uniform, above 0 and at most 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and standard deviation 1, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's distribution with 3 degrees of freedom: its fourth moment is infinite.
    pub fn student_3(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }

    /// Puts values into a random order (Fisher and Yates).
    fn shuffle(&mut self, values: &mut [usize]) {
        for end in (1..values.len()).rev() {
            let other = ((1.0 - self.uniform()) * (end + 1) as f64) as usize;
            values.swap(end, other);
        }
    }
}

/// How the runs of an experiment vary.
///
/// The truth of a comparison is the ratio of the two arms' effects. All arms have noise of one shape,
/// so the logarithm of their ratio in a round is symmetric around the logarithm of the truth, in every
/// family here, also where a single run is not symmetric around anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Normal noise with a standard deviation of 3.5 % per run.
    Normal,
    /// Student's noise with 3 degrees of freedom, scaled by 2 %.
    HeavyTailed,
    /// Normal noise of 1.5 %; one run of ten is delayed besides, by a lognormal 10 % and more.
    Delayed,
    /// Normal noise of 2 %, on a machine that slows by 0.4 % per run, wanders by 1 % per run, and at
    /// some moment slows by 10 % for good; arms run in random order within a round.
    Drifting,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 4] =
        [Family::Normal, Family::HeavyTailed, Family::Delayed, Family::Drifting];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Family::Normal => "normal noise",
            Family::HeavyTailed => "heavy-tailed noise",
            Family::Delayed => "delays in one run of ten",
            Family::Drifting => "a drifting machine",
        }
    }

    /// Seconds of `rounds` rounds for each arm; `effects[arm]` is what its runs take without noise.
    pub fn rounds(self, noise: &mut Noise, rounds: usize, effects: &[f64]) -> Vec<Vec<f64>> {
        let step_at = noise.uniform() * (rounds * effects.len()) as f64;
        let (mut wander, mut run) = (0.0, 0.0);
        let mut arms = vec![Vec::with_capacity(rounds); effects.len()];
        let mut order: Vec<usize> = (0..effects.len()).collect();
        for _ in 0..rounds {
            noise.shuffle(&mut order);
            for &arm in &order {
                let log = match self {
                    Family::Normal => 0.035 * noise.normal(),
                    Family::HeavyTailed => 0.02 * noise.student_3(),
                    Family::Delayed => {
                        let delay =
                            if noise.uniform() < 0.1 { 0.1 * noise.normal().exp() } else { 0.0 };
                        0.015 * noise.normal() + delay
                    }
                    Family::Drifting => {
                        wander += 0.01 * noise.normal();
                        let step = if run >= step_at { 0.1 } else { 0.0 };
                        0.02 * noise.normal() + 0.004 * run + wander + step
                    }
                };
                arms[arm].push(effects[arm] * log.exp());
                run += 1.0;
            }
        }
        arms
    }
}
