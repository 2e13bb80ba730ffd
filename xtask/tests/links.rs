//! The pages for people: every link leads somewhere, and the two pages that everybody reads first stay short.
//!
//! In: all Markdown files of the repository, and comments of source files that name a section of one. Out: a failure that names the
//! page and the link. Links to other sites are not followed: a test asks nobody.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Pages with a limit, lines. Whoever reads more than this at once has lost the thread.
const LINES_MAX: &[(&str, usize)] = &[("README.md", 180), ("ARCHITECTURE.md", 400)];

/// Terms of the glossary at most.
const TERMS_MAX: usize = 60;

/// Kinds of source files whose comments may name a section: `docs/design/ledger.md, "Parts of the clocks"`.
const SOURCES: &[&str] = &["rs", "c", "h"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All files with one of these extensions, by their path below the root.
fn files(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, root: &Path, extensions: &[&str], found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if name != ".git" && !(folder == root && name == "target") {
                    walk(&path, root, extensions, found);
                }
            } else if extensions.contains(&extension.as_ref())
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &root(), extensions, &mut found);
    found.sort();
    found
}

/// Fails with every offence, one a line.
fn none(offences: &[String]) {
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

/// Lines of a page outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence && !line.starts_with("    ")
    })
}

/// The headings of a page.
fn headings(text: &str) -> Vec<&str> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .collect()
}

/// The anchor that a heading has on the usual sites: small letters, hyphens for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    let kept: String = heading.chars().filter(kept).collect();
    kept.to_lowercase().replace(' ', "-")
}

/// The targets of inline links and images of a page: `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A link may be broken over two lines; code between backticks has none.
    let text = prose(text).collect::<Vec<_>>().join(" ");
    let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let mut rest = text.as_str();
    while let Some(start) = rest.find("](") {
        rest = &rest[start + 2..];
        let Some(end) = rest.find(')') else { break };
        found.push(rest[..end].trim().to_owned());
    }
    found
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// What is wrong with a link of a page, if anything is.
fn broken(page: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => plain(&page.parent().unwrap().join(path)),
    };
    let there = root().join(&target);
    if !there.exists() {
        return Some(format!("{}: {link}: there is no such file", page.display()));
    }
    if fragment.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = match path {
        "" => text.to_owned(),
        _ => std::fs::read_to_string(there).unwrap(),
    };
    let anchors: BTreeSet<String> = headings(&text).into_iter().map(anchor).collect();
    (!anchors.contains(fragment)).then(|| format!("{}: {link}: there is no such heading", page.display()))
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut offences = Vec::new();
    let mut seen = 0;
    for (page, text) in files(&["md"]) {
        let links = links(&text);
        seen += links.len();
        offences.extend(links.iter().filter_map(|link| broken(&page, &text, link)));
    }
    assert!(seen > 0, "there are links");
    none(&offences);
}

/// Sections that a text names: `PAGE.md, "Heading"`.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(".md, \"") {
        let start = rest[..end]
            .rfind(|character: char| !(character.is_alphanumeric() || "/_-.".contains(character)))
            .map_or(0, |place| place + 1);
        let page = format!("{}.md", &rest[start..end]);
        rest = &rest[end + ".md, \"".len()..];
        let Some((heading, _)) = rest.split_once('"') else {
            break;
        };
        found.push((page, heading.to_owned()));
    }
    found
}

#[test]
fn comments_name_sections_that_exist() {
    let mut offences = Vec::new();
    let this = Path::new(file!()).file_name().unwrap();
    for (path, text) in files(SOURCES) {
        if path.file_name() == Some(this) {
            continue;
        }
        for (page, heading) in sections(&text) {
            let there = std::fs::read_to_string(root().join(&page)).unwrap_or_default();
            let found = headings(&there)
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&heading));
            if !found {
                offences.push(format!("{}: {page} has no section {heading:?}", path.display()));
            }
        }
    }
    none(&offences);
}

#[test]
fn every_crate_has_its_line_in_the_overview() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let missing: Vec<String> = names
        .filter(|name| !page.contains(&format!("\n| `{name}` |")))
        .map(|name| format!("ARCHITECTURE.md: {name} has no line in the table of rooms"))
        .collect();
    none(&missing);
}

#[test]
fn the_first_pages_stay_short() {
    for (page, most) in LINES_MAX {
        let lines = std::fs::read_to_string(root().join(page))
            .unwrap()
            .lines()
            .count();
        assert!(
            lines <= *most,
            "{page} has {lines} lines, at most {most}: move details to docs/"
        );
    }
}

#[test]
fn the_glossary_is_short_and_in_order() {
    let text = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let term = |line: &'_ str| -> Option<String> {
        let (term, _) = line.strip_prefix("| **")?.split_once("**")?;
        Some(term.to_lowercase())
    };
    let terms: Vec<String> = text.lines().filter_map(term).collect();
    assert!(!terms.is_empty(), "the glossary has terms");
    assert!(
        terms.len() <= TERMS_MAX,
        "{} terms, at most {TERMS_MAX}",
        terms.len()
    );
    assert!(terms.is_sorted(), "terms are in alphabetical order: {terms:?}");
}

#[test]
fn anchors_are_those_of_the_usual_sites() {
    assert_eq!(anchor("Follow one wait"), "follow-one-wait");
    assert_eq!(
        anchor("The last resort: a thread dump"),
        "the-last-resort-a-thread-dump"
    );
    assert_eq!(anchor("`holdup diff`"), "holdup-diff");
    assert_eq!(
        links("see [a](b.md) and `[no](no.md)`\n\n    [no](no.md)\n\n[c\nd](e.md#f)"),
        ["b.md", "e.md#f"]
    );
    let comment = "(see docs/a.md, \"One thing\")";
    assert_eq!(
        sections(comment),
        [("docs/a.md".to_owned(), "One thing".to_owned())]
    );
}
