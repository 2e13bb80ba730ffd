//! The pages of causes are held to what is true of all of them. They are `causes/<id>.md` beside the source; `holdup-pages` makes them part of
//! the program.

use holdup_evidence::Cause;
use std::path::{Path, PathBuf};

const HEADINGS: [&str; 4] = [
    "## What it means",
    "## How we know",
    "## What it does not say",
    "## What to look at next",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("causes")
}

#[test]
fn every_cause_has_its_own_page() {
    for cause in Cause::ALL {
        let id = cause.id();
        let page = std::fs::read_to_string(folder().join(format!("{id}.md"))).expect(id);
        assert!(
            page.starts_with(&format!("# {id}\n")),
            "{id}: the page begins with another name"
        );
        assert!(
            page.contains(cause.phrase()),
            "{id}: the page lacks the cause's phrase"
        );
        let mut rest = page.as_str();
        for heading in HEADINGS {
            let (_, after) = rest
                .split_once(heading)
                .unwrap_or_else(|| panic!("{id}: no {heading:?}"));
            assert!(!after.trim_start().starts_with('#'), "{id}: {heading:?} is empty");
            rest = after;
        }
    }
}

#[test]
fn every_page_has_its_cause() {
    for entry in std::fs::read_dir(folder()).expect("the folder of pages is there") {
        let path = entry.expect("a readable entry").path();
        let id = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a page has a name");
        assert!(Cause::from_id(id).is_some(), "{id}.md is no cause's page");
    }
}
