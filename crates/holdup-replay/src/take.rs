//! Takes new cases into the corpus.
//!
//! In: a folder that `cargo xtask scenarios --keep` has filled. Out: its events in the corpus, if they are small enough, with other words for
//! what is another one on each machine and says nothing: the path of the checkout, the caller's cgroup, the name of the kernel's build.

use crate::corpus::EVENTS;
use anyhow::Context;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::str::FromStr;

/// The largest case, bytes as packed. Most stalls have some thousand bytes; the whole corpus is to stay below 15 MB.
const CASE_BYTES_MAX: usize = 48 << 10;

/// A word that is replaced wherever it is, and by which.
#[derive(Debug, Clone)]
pub(crate) struct Renamed {
    from: String,
    to: String,
}

impl FromStr for Renamed {
    type Err = String;

    /// `FROM=TO`.
    fn from_str(words: &str) -> Result<Renamed, String> {
        match words.split_once('=') {
            Some((from, to)) if !from.is_empty() => Ok(Renamed {
                from: from.to_owned(),
                to: to.to_owned(),
            }),
            _ => Err("it is not FROM=TO".to_owned()),
        }
    }
}

/// Takes all cases of `from`; returns how many, and how many were too large.
pub(crate) fn take(from: &Path, corpus: &Path, renamed: &[Renamed]) -> anyhow::Result<(usize, usize)> {
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
        for Renamed { from, to } in renamed {
            text = text.replace(from, to);
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes())?;
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
