//! Small changes that break careless readers, from a fixed seed so that each can be made again.

/// Bytes that text is made of here: numbers grow by one digit, fields and lines are split and joined.
const TEXT: &[u8] = b"0123456789-+.,:;=/\\ \t\n\0xf";

/// Words that overflow, are negative, or are absurd as a size.
const EXTREMES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// The same as text.
const NUMBERS: [&str; 6] = [
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967295",
    "-1",
];

/// No mutation makes its input longer than this, bytes.
const MAX_BYTES: usize = 64 << 10;

/// Makes mutations of a corpus.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The same seed gives the same mutations.
    #[must_use]
    pub fn new(seed: u64) -> Mutator {
        Mutator { state: seed }
    }

    /// A number below `bound`, which is not 0. Not random enough for anything but this.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % bound
    }

    /// One of the corpus, changed in one to eight ways.
    pub fn of(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.one_of(corpus);
        for _ in 0..1 + self.below(8) {
            self.change(&mut bytes, corpus);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    fn one_of(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        if corpus.is_empty() {
            return Vec::new();
        }
        corpus[self.below(corpus.len())].clone()
    }

    fn change(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        if bytes.is_empty() {
            bytes.push(self.below(256) as u8);
            return;
        }
        let place = self.below(bytes.len());
        match self.below(9) {
            0 => bytes[place] ^= 1 << self.below(8),
            1 => bytes[place] = self.below(256) as u8,
            2 => bytes[place] = TEXT[self.below(TEXT.len())],
            3 => {
                let width = [1, 2, 4, 8][self.below(4)];
                let word = EXTREMES[self.below(EXTREMES.len())].to_le_bytes();
                let end = (place + width).min(bytes.len());
                bytes[place..end].copy_from_slice(&word[..end - place]);
            }
            4 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                // In place of the number that is there, if one is.
                let digits = bytes[place..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                bytes.splice(place..place + digits, number.bytes());
            }
            5 => {
                let end = place + 1 + self.below(bytes.len() - place);
                bytes.drain(place..end);
            }
            6 => {
                let end = place + 1 + self.below((bytes.len() - place).min(64));
                let piece = bytes[place..end].to_vec();
                let copies = 1 + self.below(16);
                bytes.splice(place..place, piece.repeat(copies));
            }
            7 => {
                let other = self.one_of(corpus);
                let from = self.below(other.len() + 1);
                bytes.truncate(place);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, Mutator};

    #[test]
    fn the_same_seed_makes_the_same_mutations_and_they_differ() {
        let corpus = [b"27 1 254:0 / / rw\n".to_vec(), vec![0; 300]];
        let all = |seed| -> Vec<Vec<u8>> {
            let mut mutator = Mutator::new(seed);
            (0..500).map(|_| mutator.of(&corpus)).collect()
        };
        assert_eq!(all(1), all(1));
        let distinct: std::collections::BTreeSet<Vec<u8>> = all(1).into_iter().collect();
        assert!(distinct.len() > 400, "{}", distinct.len());
        assert!(distinct.iter().all(|one| one.len() <= MAX_BYTES));
    }
}
