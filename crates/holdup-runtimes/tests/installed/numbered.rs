//! Programs of which several versions may be installed, under names that end in a version.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// `NAME`, `NAME8.2` and the like in the folders of PATH, each real file once.
pub(crate) fn numbered(program: &str) -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let files = folders.flat_map(std::fs::read_dir).flatten().flatten();
    files
        .filter(|file| {
            let name = file.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(program));
            version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
        })
        .filter_map(|file| std::fs::canonicalize(file.path()).ok())
        .collect()
}
