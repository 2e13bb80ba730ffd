//! Hostile input for every reader of what an observed program or a kernel wrote.
//!
//! In: bytes. Out: nothing; a reader must return, without a panic and without asking for absurd amounts of memory,
//! whatever the bytes are. A target is one file, `targets/NAME.rs`: what it reads with, and how many mutations of its
//! corpus (`corpus/NAME/`) the ordinary tests try. `cargo xtask fuzz [NAME]` goes on for as long as it is told to, led
//! by coverage. An input that broke a reader becomes a file of the corpus, and stays one.

mod mutate;

pub use mutate::Mutator;
use std::path::PathBuf;

/// Something that reads bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its file's name, and its corpus's.
    pub name: &'static str,
    /// Reads.
    pub run: fn(&[u8]),
    /// How many mutations the ordinary tests try: some seconds' worth without optimisation.
    pub mutations: usize,
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Target> {
        TARGETS.iter().find(|target| target.name == name).copied()
    }

    /// Where its corpus is.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(self.name)
    }

    /// Its corpus, in the order of the files' names.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn corpus(&self) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.folder())? {
            let path = entry?.path();
            let bytes = std::fs::read(&path)?;
            files.push((path, bytes));
        }
        files.sort();
        Ok(files)
    }
}
