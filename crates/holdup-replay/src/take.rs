//! Takes new cases into the corpus.
//!
//! In: a folder that `cargo xtask scenarios --keep` has filled. Out: its events in the corpus, if they are small enough, without the path of the
//! checkout in which they were made: that says nothing, and is another one on each machine.

use crate::corpus::EVENTS;
use anyhow::Context;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The largest case, bytes as packed. Most stalls have some thousand bytes; the whole corpus is to stay below 15 MB.
const CASE_BYTES_MAX: usize = 48 << 10;

/// What stands for the checkout's path.
const CHECKOUT: &str = "/src/holdup";

/// Takes all cases of `from`; returns how many, and how many were too large.
pub(crate) fn take(from: &Path, corpus: &Path, checkout: &str) -> anyhow::Result<(usize, usize)> {
    let (mut taken, mut too_large) = (0, 0);
    let entries = std::fs::read_dir(from).with_context(|| format!("list {}", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !name.ends_with(EVENTS) {
            continue;
        }
        let file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        let mut text = String::new();
        MultiGzDecoder::new(file)
            .read_to_string(&mut text)
            .with_context(|| format!("read {}", path.display()))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.replace(checkout, CHECKOUT).as_bytes())?;
        let packed = packed.finish()?;
        if packed.len() > CASE_BYTES_MAX {
            too_large += 1;
            continue;
        }
        let place = corpus.join(&name);
        std::fs::write(&place, packed).with_context(|| format!("write {}", place.display()))?;
        taken += 1;
    }
    Ok((taken, too_large))
}
