//! Profiles to compare: collapsed stacks of a large Java service, the same every time.
//!
//! In: how large. Out: two files, BEFORE and AFTER, with the same stacks but for some that are new and some that are gone, other
//! weights, and one function that takes more in AFTER. Some writers put stacks in order and others do not, which readers feel.

use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The function that takes more in AFTER.
pub(super) const PLANTED: &str = "com/example/shop/till/Planted.await";

/// Functions there are, and frames of a stack: a large service has as many.
const FUNCTIONS: u64 = 8_000;
const FRAMES: std::ops::Range<u64> = 14..32;

/// Functions that one calls.
const CALLS: u64 = 3;

/// Each of so many stacks is only in one of the files, or has the planted function on top.
const EACH: u64 = 20;

/// Whether stacks are in the order of the alphabet or in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Sorted,
    Shuffled,
}

/// Any sequence that is the same each time.
#[derive(Debug)]
struct Sequence(u64);

impl Sequence {
    /// A number below `most`.
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Stacks, no two alike, in the order of the alphabet: as many as make each of the two files so large, in which one of
/// [`EACH`] is missing.
pub(super) fn stacks(bytes: u64) -> Vec<String> {
    let bytes = bytes * EACH / (EACH - 1);
    const LAYERS: [&str; 5] = ["rest", "service", "till", "storage", "util"];
    const KINDS: [&str; 4] = ["Handler", "RepositoryImpl", "Controller", "Interceptor"];
    let names: Vec<String> = (0..FUNCTIONS)
        .map(|at| {
            let (layer, kind) = (
                LAYERS[at as usize % LAYERS.len()],
                KINDS[at as usize / 7 % KINDS.len()],
            );
            format!(
                "com/example/shop/{layer}/Order{}{kind}.handle{}_[j]",
                at / 9,
                at % 9
            )
        })
        .collect();
    let mut sequence = Sequence(1);
    let (mut stacks, mut written) = (Vec::new(), 0);
    while written < bytes {
        let mut stack = String::from("java/lang/Thread.run_[j]");
        let mut path = 0_u64;
        let frames = FRAMES.start + sequence.below(FRAMES.end - FRAMES.start);
        for _ in 0..frames {
            // Which functions one calls follows from how it was come to.
            path = path
                .wrapping_mul(31)
                .wrapping_add(sequence.below(CALLS) + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            stack.push(';');
            stack.push_str(&names[((path >> 20) % FUNCTIONS) as usize]);
        }
        written += stack.len() as u64 + 5;
        stacks.push(stack);
    }
    stacks.sort_unstable();
    stacks.dedup();
    stacks
}

/// Puts stacks into no order.
pub(super) fn shuffle(stacks: &mut [String]) {
    let mut sequence = Sequence(2);
    for at in (1..stacks.len()).rev() {
        let other = sequence.below(at as u64 + 1) as usize;
        stacks.swap(at, other);
    }
}

/// Writes both.
pub(super) fn write(stacks: &[String], before: &Path, after: &Path) -> anyhow::Result<()> {
    let open = |path: &Path| -> anyhow::Result<BufWriter<File>> {
        let file = File::create(path).with_context(|| format!("make {}", path.display()))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    };
    let (mut before, mut after) = (open(before)?, open(after)?);
    let mut sequence = Sequence(3);
    for (at, stack) in (0_u64..).zip(stacks) {
        let weight = 1 + sequence.below(1_000);
        match at % EACH {
            0 => writeln!(before, "{stack} {weight}")?,
            1 => writeln!(after, "{stack} {weight}")?,
            2 => {
                writeln!(before, "{stack};{PLANTED}_[j] {weight}")?;
                writeln!(after, "{stack};{PLANTED}_[j] {}", weight * 3)?;
            }
            _ => {
                writeln!(before, "{stack} {weight}")?;
                writeln!(after, "{stack} {}", 1 + (weight + sequence.below(9)) % 1_000)?;
            }
        }
    }
    before.flush().context("write the profile of BEFORE")?;
    after.flush().context("write the profile of AFTER")
}

#[cfg(test)]
mod tests {
    use super::{PLANTED, shuffle, stacks, write};

    #[test]
    fn profiles_are_as_large_as_wanted_and_differ_in_what_is_planted() {
        let mut all = stacks(200_000);
        let sorted = all.clone();
        assert!(all.iter().zip(&all[1..]).all(|(one, next)| one < next));
        shuffle(&mut all);
        assert_ne!(all, sorted);
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        write(&all, &before, &after).unwrap();
        let texts = [before, after].map(|path| std::fs::read_to_string(path).unwrap());
        let weight = |text: &str| -> u64 {
            let lines = text.lines().filter(|line| line.contains(PLANTED));
            lines
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
                .sum()
        };
        for text in &texts {
            assert!((150_000..250_000).contains(&text.len()), "{}", text.len());
        }
        assert!(weight(&texts[0]) > 0);
        assert_eq!(weight(&texts[1]), 3 * weight(&texts[0]));
    }
}
