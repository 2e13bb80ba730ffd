//! Constants say what they limit: `MAX_FRAMES`, `MIN_WAIT_NS`, and not `MOST` or `LONG`, of which a crate soon has twenty.
//!
//! In: the source files of all crates. Out: a failure that names the file, the line and the name.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::{Path, PathBuf};

/// Names that say how much and not of what.
const VAGUE: [&str; 16] = [
    "ENOUGH", "FEW", "FEWEST", "LEAST", "LITTLE", "LONG", "LONGEST", "MANY", "MOST", "MOSTLY", "MUCH",
    "PART", "SHORT", "SHORTEST", "SOME", "TOLD",
];

/// The source files below a folder; a test's own constants stand beside their only use.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "target"].contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The vague name that a line gives to a number, if it does. Texts, such as the words of a command line, are not limits.
fn vague(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = match rest.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => rest,
    };
    let (name, kind) = rest.strip_prefix("const ")?.split_once(": ")?;
    let of_text = kind.starts_with('&') || kind.starts_with("[&");
    (VAGUE.contains(&name) && !of_text).then_some(name)
}

#[test]
fn constants_say_what_they_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    assert!(files.len() > 500, "{}", files.len());
    let mut offences = Vec::new();
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let end = source.find("#[cfg(test)]\nmod tests").unwrap_or(source.len());
        for (number, line) in source[..end].lines().enumerate() {
            if let Some(name) = vague(line) {
                offences.push(format!("{}:{}: {name}", path.display(), number + 1));
            }
        }
    }
    assert!(
        offences.is_empty(),
        "name what is limited, with its unit:\n{}",
        offences.join("\n")
    );
}

#[test]
fn a_vague_name_is_found() {
    assert_eq!(vague("const MOST: usize = 20;"), Some("MOST"));
    assert_eq!(vague("    pub(crate) const LONG: Ns = 5;"), Some("LONG"));
    assert_eq!(vague("const MAX_FRAMES: usize = 20;"), None);
    assert_eq!(vague("const LONG: &str = \"--server\";"), None);
    assert_eq!(vague("/// const MOST: usize"), None);
}
