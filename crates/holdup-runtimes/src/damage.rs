//! Damage to memory that a test has written down: whatever is read of it, a reader must come to an end.

use crate::memory::Written;

/// How often an image is damaged and read.
const ROUNDS: usize = 8_000;

/// Of so many rounds a reader must have found something in one, and nothing in another: else the damage tests little.
const ONE_OF_EACH_IN: usize = 8;

/// Overwrites 1 to `max_words` words of an image, sometimes removes a page, and has it read, for many rounds. `read` gets the image and its
/// place in `images`, and says whether it found something.
pub(crate) fn read_damaged(images: &[Written], max_words: u64, read: impl FnMut(Written, usize) -> bool) {
    read_damaged_for(ROUNDS, images, max_words, read);
}

/// The same for so many rounds: of an image that takes long to read.
pub(crate) fn read_damaged_for(
    rounds: usize,
    images: &[Written],
    max_words: u64,
    mut read: impl FnMut(Written, usize) -> bool,
) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut whole = 0;
    for round in 0..rounds {
        let index = round % images.len();
        let mut image = images[index].clone();
        let pages: Vec<u64> = image.0.keys().copied().collect();
        for _ in 0..=random() % max_words {
            let page = pages[random() as usize % pages.len()];
            let word = page + random() % 128 * 8;
            let value = match random() % 5 {
                0 => random(),
                1 => pages[random() as usize % pages.len()] + random() % 512 * 8,
                2 => u64::MAX - random() % 64,
                3 => random() % 64,
                _ => 1 << (random() % 64),
            };
            image.word(word, value);
        }
        if random() % 8 == 0 {
            image.0.remove(&pages[random() as usize % pages.len()]);
        }
        whole += usize::from(read(image, index));
    }
    let broken = rounds - whole;
    assert!(
        whole > rounds / ONE_OF_EACH_IN && broken > rounds / ONE_OF_EACH_IN,
        "{whole} whole, {broken} broken"
    );
}
