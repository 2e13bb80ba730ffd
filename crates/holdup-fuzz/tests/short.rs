//! Every target over its corpus, over its corpus cut short, and over mutations from a fixed seed.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use holdup_fuzz::{Mutator, TARGETS, Target};
use std::panic::catch_unwind;
use std::path::Path;

/// At how many places each file of a corpus is cut.
const CUTS: usize = 12;

/// What the mutations begin with; any number does, and the same one makes a failure come again.
const SEED: u64 = 1;

/// Runs a target; an input that breaks it is kept, so that it can be looked at and join the corpus.
fn try_one(target: Target, bytes: &[u8], what: &str) {
    if catch_unwind(|| (target.run)(bytes)).is_err() {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broke-{}", target.name));
        std::fs::write(&kept, bytes).unwrap();
        panic!(
            "{} breaks at {what}; it is in {}, and belongs into {}",
            target.name,
            kept.display(),
            target.folder().display()
        );
    }
}

/// All of them; returns how many inputs that were.
fn try_all(target: Target) -> usize {
    let corpus = target.corpus().unwrap();
    assert!(!corpus.is_empty(), "{} is empty", target.folder().display());
    let mut tried = 0;
    for (path, bytes) in &corpus {
        try_one(target, bytes, &path.display().to_string());
        for cut in 0..CUTS.min(bytes.len()) {
            let length = bytes.len() * cut / CUTS;
            try_one(
                target,
                &bytes[..length],
                &format!("the first {length} bytes of {}", path.display()),
            );
        }
        tried += 1 + CUTS.min(bytes.len());
    }
    let corpus: Vec<Vec<u8>> = corpus.into_iter().map(|(_, bytes)| bytes).collect();
    let mut mutator = Mutator::new(SEED);
    for number in 0..target.mutations {
        try_one(target, &mutator.of(&corpus), &format!("mutation {number}"));
    }
    tried + target.mutations
}

#[test]
fn nothing_breaks_a_reader() {
    std::thread::scope(|scope| {
        let all: Vec<_> = TARGETS
            .iter()
            .map(|target| {
                let thread = std::thread::Builder::new().name(target.name.to_owned());
                let thread = thread.spawn_scoped(scope, || try_all(*target)).unwrap();
                (target.name, thread)
            })
            .collect();
        let broken: Vec<&str> = all
            .into_iter()
            .filter_map(|(name, thread)| thread.join().is_err().then_some(name))
            .collect();
        assert!(broken.is_empty(), "these broke: {}", broken.join(", "));
    });
}

#[test]
fn every_corpus_has_a_target() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            Target::named(&name).is_some(),
            "corpus/{name} belongs to no targets/{name}.rs"
        );
    }
}
