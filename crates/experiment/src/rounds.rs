//! The order of runs: complete rounds, each with every arm once in random order.
//!
//! What drifts while an experiment runs (temperature, neighbours on the machine, a filling disk)
//! then meets all arms alike, and what remains inside a round is as likely to favour one arm as the
//! other. Source: A. Abedi and T. Brecht, Conducting repeatable experiments in highly variable cloud
//! computing environments, ICPE 2017.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Most bytes that [`Rounds::padding`] adds: a page, so that every alignment of the stack occurs.
const MOST_PADDING: usize = 4096;

/// Random orders, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Rounds {
    random: Pcg64Mcg,
}

impl Rounds {
    /// Orders that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The order of `arms` arms in the next round, every order being equally likely.
    pub fn next_order(&mut self, arms: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..arms).collect();
        // Fisher and Yates.
        for last in (1..arms).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }

    /// An environment variable's value of random length. The size of the environment moves the stack
    /// of a program, which alone can make a difference of several percent; drawn anew for every run,
    /// it becomes noise that is measured instead of a constant that is not.
    /// Source: T. Mytkowicz and others, Producing wrong data without doing anything obviously wrong,
    /// ASPLOS 2009.
    pub fn padding(&mut self) -> String {
        "-".repeat(self.below(MOST_PADDING + 1))
    }

    /// A number below `limit`; its bias, `limit` in 2^64, is of no account here.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.random.next_u64()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_holds_every_arm_once() {
        let mut rounds = Rounds::new(1);
        for arms in [1, 2, 5, 9] {
            for _ in 0..50 {
                let mut order = rounds.next_order(arms);
                order.sort_unstable();
                assert_eq!(order, (0..arms).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_arm_comes_equally_often_at_every_place() {
        let mut rounds = Rounds::new(7);
        let mut counts = [[0_u32; 4]; 4];
        for _ in 0..8000 {
            for (place, arm) in rounds.next_order(4).into_iter().enumerate() {
                counts[place][arm] += 1;
            }
        }
        // Each is binomial(8000, 1/4): standard deviation 39, so this is five of them.
        assert!(counts.as_flattened().iter().all(|count| count.abs_diff(2000) < 195), "{counts:?}");
    }

    #[test]
    fn the_seed_decides() {
        let orders = |seed| {
            let mut rounds = Rounds::new(seed);
            (0..20).map(|_| (rounds.next_order(5), rounds.padding().len())).collect::<Vec<_>>()
        };
        assert_eq!(orders(42), orders(42));
        assert_ne!(orders(42), orders(43));
        assert!(orders(3).iter().all(|(_, padding)| *padding <= MOST_PADDING));
    }
}
