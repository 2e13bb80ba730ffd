//! Hostile input for every reader of what an observed program or a kernel wrote.
//!
//! In: bytes. Out: nothing; a reader must return, without a panic and without asking for absurd amounts of memory,
//! whatever the bytes are. A target is one file, `targets/NAME.rs`: what it reads with, and how many mutations of its
//! corpus (`corpus/NAME/`) the ordinary tests try. `cargo xtask fuzz [NAME]` goes on for as long as it is told to, led
//! by coverage. An input that broke a reader becomes a file of the corpus, and stays one.

mod mutate;

pub use mutate::Mutator;
use std::path::{Path, PathBuf};

/// Something that reads bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its file's name, and its corpus's.
    pub name: &'static str,
    /// Reads.
    pub run: fn(&[u8]),
    /// How many mutations the ordinary tests try: some seconds' worth without optimisation.
    pub mutations: usize,
    /// A folder with more to begin with, seen from this crate's.
    pub seeds: Option<&'static str>,
}

/// Bytes of a seed that are taken: its beginning is what a format is known by, and a longer one is slow to try.
const SEED_BYTES: usize = 8 << 10;

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
        if let Some(seeds) = self.seed_folder() {
            samples(&seeds, &mut files)?;
        }
        files.sort();
        Ok(files)
    }

    /// Where its seeds are.
    #[must_use]
    pub fn seed_folder(&self) -> Option<PathBuf> {
        Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(self.seeds?))
    }
}

/// The samples below a folder; what is said of them in files beside them is none.
fn samples(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            samples(&path, files)?;
        } else if path.extension().is_none_or(|extension| extension != "toml") {
            let mut bytes = std::fs::read(&path)?;
            bytes.truncate(SEED_BYTES);
            files.push((path, bytes));
        }
    }
    Ok(())
}
