//! The words that a person reads: string literals with more than one word, and the pages of rules and causes, have none of the phrases
//! of a private dialect. `docs/glossary.md` has the terms to use instead.
//!
//! In: the source files of all crates without their tests, and the pages. Out: a failure that names the file, the line and the phrase.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::{Path, PathBuf};

/// Phrases that no text for people may have, and what to write instead.
const DIALECT: &[(&str, &str)] = &[
    ("as far as could be seen", "in what was observed"),
    ("between two looks", "between two samples"),
    ("births", "starts"),
    ("can't be told", "is not known"),
    ("cannot be told", "is not known"),
    ("could not be told", "unknown"),
    ("hardly do anything", "do almost nothing"),
    ("in hand", "held"),
    ("in the way", "blocker"),
    ("lets go", "releases"),
    ("looked at", "observed, sampled, read"),
    ("looks at", "reads, samples"),
    ("met", "observed"),
    ("more than chance", "significant"),
    ("next to nothing", "almost none"),
    ("nobody is left", "no thread is left"),
    ("not told", "not known"),
    ("on end", "in a row"),
    ("ran out of time", "timed out"),
    ("ready to run", "runnable"),
    ("said to be", "reported as"),
    ("see to", "wait for"),
    ("stand still", "are blocked"),
    ("stands still", "is blocked"),
    ("stood still", "was blocked"),
    ("take it up", "run it"),
    ("time ran out", "timed out"),
    ("time-out", "timeout"),
    ("time-outs", "timeouts"),
    ("to spare", "idle"),
    ("to speak of", "almost none"),
    ("told otherwise", "by default"),
    ("wakings", "wakeups"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Files below a folder with this extension; tests and examples are not for users.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                files(&path, extension, found);
            }
        } else if name.ends_with(&format!(".{extension}")) && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The string literals of a source file before its tests, with the line where each begins. Comments have none.
fn literals(source: &str) -> Vec<(usize, String)> {
    let end = source.find("#[cfg(test)]\nmod tests").unwrap_or(source.len());
    let (bytes, mut at, mut found) = (&source.as_bytes()[..end], 0, Vec::new());
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"'\"'") || rest.starts_with(b"'\\\"'") {
            at += 3;
        } else if rest[0] == b'"' {
            let mut length = 1;
            while length < rest.len() && rest[length] != b'"' {
                length += if rest[length] == b'\\' { 2 } else { 1 };
            }
            let text = String::from_utf8_lossy(&rest[1..length.min(rest.len())]).into_owned();
            let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            found.push((line, text));
            at += length + 1;
        } else {
            at += 1;
        }
    }
    found
}

/// Lines of a page outside of code blocks: examples have what programs wrote.
fn prose(page: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let fence = line.starts_with("```");
        inside ^= fence;
        if !inside && !fence {
            found.push((at + 1, line.to_owned()));
        }
    }
    found
}

/// The phrases of the dialect that a text has, at the borders of words; a line of code that goes on counts as a blank.
fn dialect(text: &str) -> Vec<&'static (&'static str, &'static str)> {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "\\").collect();
    let text = words.join(" ").to_lowercase();
    let part_of_word = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || next == '_');
    let has = |phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            !part_of_word(before.chars().next_back()) && !part_of_word(after.chars().next())
        })
    };
    DIALECT.iter().filter(|(phrase, _)| has(phrase)).collect()
}

fn offences(path: &Path, texts: &[(usize, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (line, text) in texts {
        for (phrase, instead) in dialect(text) {
            let path = path.strip_prefix(root()).unwrap_or(path).display();
            found.push(format!("{path}:{line}: \"{phrase}\"; write {instead}: {text}"));
        }
    }
    found
}

#[test]
fn texts_for_people_have_no_dialect() {
    let mut found = Vec::new();
    let mut seen = 0;
    for one in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = one.unwrap().path();
        let (mut sources, mut pages) = (Vec::new(), Vec::new());
        for part in ["src", "causes"] {
            let part = folder.join(part);
            if part.is_dir() {
                files(&part, "rs", &mut sources);
                files(&part, "md", &mut pages);
            }
        }
        for path in sources {
            let texts = literals(&std::fs::read_to_string(&path).unwrap());
            let several = |(_, text): &(usize, String)| text.trim().contains(' ');
            let texts: Vec<(usize, String)> = texts.into_iter().filter(several).collect();
            seen += texts.len();
            found.extend(offences(&path, &texts));
        }
        for path in pages {
            let texts = prose(&std::fs::read_to_string(&path).unwrap());
            seen += texts.len();
            found.extend(offences(&path, &texts));
        }
    }
    assert!(seen > 5_000, "texts were read: {seen}");
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn dialect_is_found_where_it_is() {
    let planted = "/// \"ready to run\" in a comment\nlet a = '\"'; // \"on end\"\nlet b = format!(\"{who} was ready \\\n    to run\");\n\
                   let c = \"it Stands still\";\n#[cfg(test)]\nmod tests { const D: &str = \"time ran out\"; }";
    let texts = literals(planted);
    let phrases: Vec<(usize, &str)> = texts
        .iter()
        .flat_map(|(line, text)| dialect(text).into_iter().map(move |(phrase, _)| (*line, *phrase)))
        .collect();
    assert_eq!(phrases, [(3, "ready to run"), (5, "stands still")]);
    assert_eq!(offences(Path::new("x.rs"), &texts).len(), 2);
    assert!(dialect("metrics, a method, weekend only").is_empty());
    let page = prose("Nobody is left.\n```toml\nexpect = [\"on end\"]\n```\nThree times on end.");
    let lines: Vec<usize> = page
        .iter()
        .filter(|(_, text)| !dialect(text).is_empty())
        .map(|(line, _)| *line)
        .collect();
    assert_eq!(lines, [1, 5]);
}
