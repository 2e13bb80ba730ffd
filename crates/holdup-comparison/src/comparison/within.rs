//! What one run tells of its own variation: an interval from blocks of its time.
//!
//! Waits are like their neighbours, so single waits can't be drawn again as if each were news: that finds differences in a
//! third of all pairs that have none. Stretches of time that are long beside what ties them together can (block bootstrap;
//! Künsch, Ann. Statist. 17, 1989). Twenty blocks are a compromise: more are too short, fewer too few to draw from.
//!
//! How much one *run* differs from the next is not in there, so nothing is claimed from it.

use super::chance::{Draws, SEED};
use super::student::quantile;

/// Blocks that a run is cut into.
pub(super) const BLOCKS: usize = 20;

/// Times that blocks are drawn.
const DRAWN: usize = 2_000;

/// How often the interval may miss.
const MISSES: f64 = 0.05;

/// A stretch of a run: units of work done in it, and the amount.
pub(super) type Stretch = (f64, f64);

/// Where the change of the amount for each unit lies with 95 %, by what happens within the runs alone; `None` where one
/// has fewer stretches than blocks.
pub(super) fn interval(before: &[Stretch], after: &[Stretch]) -> Option<[f64; 2]> {
    let (before, after) = (blocks(before)?, blocks(after)?);
    let mut draws = Draws::new(SEED);
    let mut rate = |blocks: &[Stretch]| {
        let (mut units, mut amount) = (0.0, 0.0);
        for _ in blocks {
            let block = blocks[draws.below(blocks.len())];
            units += block.0;
            amount += block.1;
        }
        (units > 0.0).then(|| amount / units)
    };
    let changes: Vec<f64> = (0..DRAWN)
        .filter_map(|_| Some(-rate(&before)? + rate(&after)?))
        .collect();
    let count = changes.len() as f64;
    let centre = changes.iter().sum::<f64>() / count;
    let squares: f64 = changes.iter().map(|change| (change - centre).powi(2)).sum();
    let freedom = (BLOCKS - 1) as f64;
    // Drawn means vary less than true ones, by what the mean of the blocks took up.
    let error = (squares / count * BLOCKS as f64 / freedom).sqrt();
    let reach = quantile(MISSES, freedom) * error;
    (count > 0.0).then_some([centre - reach, centre + reach])
}

/// Stretches that follow each other, added up to blocks of the same number of them.
fn blocks(stretches: &[Stretch]) -> Option<Vec<Stretch>> {
    (stretches.len() >= BLOCKS).then(|| {
        (0..BLOCKS)
            .map(|block| {
                let at = |block: usize| block * stretches.len() / BLOCKS;
                let part = &stretches[at(block)..at(block + 1)];
                part.iter()
                    .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS, interval};

    fn run(level: f64) -> Vec<(f64, f64)> {
        // Slow waves, as of a cache that fills and is thrown away.
        let wave = |at: u32| 1.0 + 0.2 * (f64::from(at) / 15.0).sin();
        (0..400).map(|at| (10.0, 10.0 * level * wave(at))).collect()
    }

    #[test]
    fn the_interval_is_around_the_change() {
        let [low, high] = interval(&run(5.0), &run(6.0)).unwrap();
        assert!(low > 0.4 && low < 1.0 && high > 1.0 && high < 1.6, "{low} {high}");
        let [low, high] = interval(&run(5.0), &run(5.0)).unwrap();
        assert!(low < 0.0 && high > 0.0, "{low} {high}");
    }

    #[test]
    fn too_few_stretches_tell_nothing() {
        let short = &run(5.0)[..BLOCKS - 1];
        assert_eq!(interval(short, &run(5.0)), None);
        let idle = vec![(0.0, 0.0); 40];
        assert_eq!(interval(&idle, &idle), None);
    }
}
