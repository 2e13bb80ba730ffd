//! `SECURITY.md` and the attacks belong together: each promise has an attack, and each attack a promise.
//!
//! Each failure names the folder and what is expected of it.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Each attack with the promise that it attacks, by its folder's name.
fn attacks() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("attacks")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if name == "stage" {
            continue;
        }
        let text = std::fs::read_to_string(folder.join("attack.toml"))
            .unwrap_or_else(|_| panic!("attacks/{name} has no attack.toml"));
        assert!(
            folder.join("attack.sh").exists(),
            "attacks/{name} has no attack.sh"
        );
        let about: toml::Table = text.parse().unwrap();
        found.insert(name, about["promise"].as_str().unwrap().to_owned());
    }
    found
}

/// The attacks that hold each promise, by the promise's heading.
fn promises() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut found = BTreeMap::new();
    for section in text.split("\n### ").skip(1) {
        let section = section.split("\n## ").next().unwrap();
        let (name, body) = section.split_once('\n').unwrap();
        let held = body
            .split_once("\nHeld by:")
            .unwrap_or_else(|| panic!("SECURITY.md: nothing holds the promise {name}"))
            .1;
        let attacks = held.split('`').skip(1).step_by(2).map(str::to_owned);
        found.insert(name.to_owned(), attacks.collect());
    }
    found
}

#[test]
fn each_promise_names_attacks_that_exist() {
    let attacks = attacks();
    let promises = promises();
    assert!(!promises.is_empty(), "SECURITY.md has no promises");
    for (promise, held_by) in promises {
        assert!(
            !held_by.is_empty(),
            "SECURITY.md: no attack holds the promise {promise}"
        );
        for name in held_by {
            assert!(
                attacks.contains_key(&name),
                "SECURITY.md: {promise}: there is no attacks/{name}"
            );
        }
    }
}

#[test]
fn each_attack_is_named_by_the_promise_that_it_attacks() {
    let promises = promises();
    for (name, promise) in attacks() {
        let held_by = promises.get(&promise);
        let held_by =
            held_by.unwrap_or_else(|| panic!("attacks/{name}: SECURITY.md has no promise {promise}"));
        assert!(
            held_by.contains(&name),
            "SECURITY.md: the promise {promise} does not name attacks/{name}"
        );
    }
}
