//! The shape of the workspace: who may depend on whom, what a file looks like, what belongs together.
//!
//! Each failure names the file and what is expected of it.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod rooms;

use rooms::{MAY_DEPEND_ON, TESTS_MAY_USE};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only crate that loads BPF, and the crates that do it.
const BPF: (&str, &[&str]) = ("holdup-bpf", &["libbpf-rs", "libbpf-sys", "libbpf-cargo"]);

/// Crates that do no I/O and read no clock, so that live runs, recordings and tests go the same way, with
/// everything from outside that they may use.
const PURE: &[(&str, &[&str])] = &[
    ("holdup-evidence", &["schemars", "serde", "syscalls"]),
    ("holdup-model", &["schemars", "serde"]),
    ("holdup-knowledge", &["syscalls"]),
    ("holdup-runtimes", &["serde", "thiserror"]),
    ("holdup-attribution", &[]),
    ("holdup-artefacts", &[]),
    ("holdup-diagnosis", &[]),
    // foldhash and twox-hash only calculate: hashes of stacks and of frames.
    ("holdup-comparison", &["foldhash", "serde", "twox-hash"]),
    // jiff without its std feature only calculates with dates.
    ("holdup-report", &["jiff"]),
    ("holdup-top", &["ratatui-core"]),
    (
        "holdup-views",
        &[
            "base64",
            "flate2",
            "jiff",
            "prost",
            "pulldown-cmark",
            "schemars",
            "serde",
            "serde_json",
            "sha2",
            "unicode-width",
        ],
    ),
];

/// What those crates must not use of the standard library.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "Instant::now",
    "SystemTime::now",
];

/// No source file is longer than this, in lines; about 500 is the aim.
const LONGEST_FILE: usize = 600;

/// No `main` is longer than this, in lines: it is the table of contents.
const LONGEST_MAIN: usize = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every committed kind of file under the root, by its path there.
fn files() -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != ".git" && !(folder == root && name == "target") {
                    walk(&path, root, found);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &root(), &mut found);
    found.sort();
    found
}

/// Those with this extension.
fn files_of(extension: &str) -> impl Iterator<Item = (String, String)> {
    let suffix = format!(".{extension}");
    files()
        .into_iter()
        .filter(move |(path, _)| path.ends_with(&suffix))
}

/// Fails with every offence, one a line.
fn none(offences: impl IntoIterator<Item = String>) {
    let offences: Vec<String> = offences.into_iter().collect();
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

/// Each crate's dependencies by name, those of tests apart.
struct Dependencies {
    all: BTreeSet<String>,
    shipped: BTreeSet<String>,
}

fn crates() -> BTreeMap<String, Dependencies> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &Value, which: &dyn Fn(&Value) -> bool| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        dependencies
            .filter(|dependency| which(dependency))
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = Dependencies {
                all: names(package, &|_| true),
                shipped: names(package, &|dependency| dependency["kind"] != "dev"),
            };
            (package["name"].as_str().unwrap().to_owned(), dependencies)
        })
        .collect()
}

/// What a crate, or its tests, depends on against these lists.
fn forbidden(name: &str, dependencies: &Dependencies, there: &BTreeSet<&str>) -> Vec<String> {
    let line = |table: &'static [(&str, &[&str])]| {
        let found = table.iter().find(|(of, _)| *of == name);
        found.map_or(&[][..], |(_, allowed)| *allowed)
    };
    let (ships, tests) = (line(MAY_DEPEND_ON), line(TESTS_MAY_USE));
    let within = |dependency: &&String| there.contains(dependency.as_str());
    let shipped = dependencies.shipped.iter().filter(within);
    let shipped = shipped
        .filter(|dependency| !ships.contains(&dependency.as_str()))
        .map(|dependency| format!("{name} must not depend on {dependency}"));
    let tested = dependencies.all.difference(&dependencies.shipped).filter(within);
    let tested = tested
        .filter(|dependency| {
            let one = dependency.as_str();
            !ships.contains(&one) && !tests.contains(&one)
        })
        .map(|dependency| format!("the tests of {name} must not use {dependency}"));
    shipped.chain(tested).collect()
}

#[test]
fn dependencies_go_one_way() {
    let crates = crates();
    let listed: BTreeSet<&str> = MAY_DEPEND_ON.iter().map(|(name, _)| *name).collect();
    let there: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    assert_eq!(listed, there, "every crate has its line in MAY_DEPEND_ON");
    none(
        crates
            .iter()
            .flat_map(|(name, dependencies)| forbidden(name, dependencies, &there)),
    );
}

#[test]
fn no_circle_fits_into_the_list() {
    let mut above: BTreeSet<&str> = BTreeSet::new();
    for (name, allowed) in MAY_DEPEND_ON {
        let below = allowed.iter().filter(|dependency| !above.contains(**dependency));
        none(below.map(|dependency| format!("{name} may depend on {dependency}, which is not above it")));
        above.insert(name);
    }
}

#[test]
fn an_edge_that_is_not_listed_is_found() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let there = BTreeSet::from([
        "holdup-diagnosis",
        "holdup-model",
        "holdup-report",
        "holdup-views",
    ]);
    let of = |shipped: &[&str], tests: &[&str]| {
        let all: Vec<&str> = [shipped, tests].concat();
        let dependencies = Dependencies {
            all: set(&all),
            shipped: set(shipped),
        };
        forbidden("holdup-views", &dependencies, &there)
    };
    assert_eq!(of(&["holdup-model", "serde"], &["holdup-report"]), [""; 0]);
    assert_eq!(
        of(&["holdup-diagnosis"], &[]),
        ["holdup-views must not depend on holdup-diagnosis"]
    );
    assert_eq!(
        of(&["holdup-report"], &[]),
        ["holdup-views must not depend on holdup-report"],
        "only its tests may"
    );
    assert_eq!(
        of(&[], &["holdup-diagnosis"]),
        ["the tests of holdup-views must not use holdup-diagnosis"]
    );
}

#[test]
fn only_one_crate_loads_bpf() {
    let (loader, loading) = BPF;
    for (name, dependencies) in crates() {
        if name != loader {
            let used = loading
                .iter()
                .filter(|crate_name| dependencies.all.contains(**crate_name));
            none(used.map(|used| format!("{name} must not depend on {used}: only {loader} may")));
        }
    }
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    let crates = crates();
    for (name, allowed) in PURE {
        let outside = crates[*name]
            .shipped
            .iter()
            .filter(|dependency| !dependency.starts_with("holdup-"));
        none(
            outside
                .filter(|dependency| !allowed.contains(&dependency.as_str()))
                .map(|dependency| {
                    format!("{name} must not depend on {dependency} (see PURE in {})", file!())
                }),
        );
    }
}

#[test]
fn pure_crates_do_no_io_and_read_no_clock() {
    let mut offences = Vec::new();
    for (path, text) in files_of("rs") {
        let pure = PURE
            .iter()
            .any(|(name, _)| path.starts_with(&format!("crates/{name}/src/")));
        let test = path.ends_with("/tests.rs") || path.contains("/tests/") || path.ends_with("/examples.rs");
        if !pure || test {
            continue;
        }
        // Tests at a file's end may read samples.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let used = IMPURE.iter().filter(|word| code.contains(*word));
        offences.extend(
            used.map(|word| {
                format!("{path}: {word} is input or output: it belongs into a source of evidence")
            }),
        );
    }
    none(offences);
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    none(
        files_of("toml")
            .filter(|(path, _)| path.ends_with("/Cargo.toml"))
            .filter_map(|(path, text)| {
                let manifest: toml::Table = text.parse().unwrap();
                // Programs of incidents are workspaces of their own: they look like others' programs.
                if manifest.contains_key("workspace") {
                    return None;
                }
                let takes = manifest.get("lints").and_then(|lints| lints.get("workspace"))
                    == Some(&toml::Value::Boolean(true));
                (!takes).then(|| format!("{path}: [lints] workspace = true is missing"))
            }),
    );
}

#[test]
fn every_source_file_says_what_it_is_for() {
    none(files_of("rs").filter_map(|(path, text)| {
        let generated = text.starts_with("// Generated by cargo xtask gen");
        (!generated && !text.starts_with("//! "))
            .then(|| format!("{path}: does not begin with what it is for (//! …)"))
    }));
}

#[test]
fn no_source_file_is_too_long() {
    let sources = ["rs", "c", "h", "py", "sh", "js", "css"]
        .into_iter()
        .flat_map(files_of);
    none(sources.filter_map(|(path, text)| {
        let lines = text.lines().count();
        let generated = text
            .lines()
            .take(5)
            .any(|line| line.contains("Generated by") || line.contains("generated by"));
        (lines > LONGEST_FILE && !generated && !path.ends_with("vmlinux.h"))
            .then(|| format!("{path}: {lines} lines; split it, at most {LONGEST_FILE}"))
    }));
}

#[test]
fn main_is_a_table_of_contents() {
    for path in ["crates/holdup/src/main.rs", "xtask/src/main.rs"] {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let body = text
            .split_once("\nfn main()")
            .map(|(_, body)| body)
            .unwrap_or_default();
        let lines = body.split("\n}").next().unwrap_or_default().lines().count();
        assert!(
            lines <= LONGEST_MAIN,
            "{path}: main has {lines} lines, at most {LONGEST_MAIN}"
        );
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Put together, so that this file is not its own offence.
    let words = ["TO", "FIX", "XX"].map(|word| {
        format!(
            "{word}{}",
            if word == "TO" {
                "DO"
            } else if word == "FIX" {
                "ME"
            } else {
                "X"
            }
        )
    });
    none(
        files()
            .into_iter()
            .filter(|(path, _)| !path.starts_with("LICENSE") && path != "Cargo.lock")
            .flat_map(|(path, text)| {
                let found = words.iter().filter(|word| {
                    text.split(|c: char| !c.is_ascii_alphanumeric())
                        .any(|part| part == word.as_str())
                });
                found
                    .map(|word| format!("{path}: {word}: do it, or write an issue"))
                    .collect::<Vec<_>>()
            }),
    );
}

/// `cargo xtask test` runs no documentation examples: one would be compiled by nobody.
#[test]
fn documentation_has_no_examples_that_nothing_runs() {
    none(files_of("rs").flat_map(|(path, text)| {
        let fences = |line: &&str| {
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            comment.is_some_and(|words| words.trim_start().starts_with("```"))
        };
        let lines: Vec<&str> = text.lines().map(str::trim_start).filter(fences).collect();
        let offences = lines.iter().map(|line| format!("{path}: {line}"));
        offences.collect::<Vec<String>>()
    }));
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let home = |variable| std::env::var_os(variable).map(PathBuf::from);
    let places = [Some(root()), home("HOME"), home("CARGO_HOME")];
    // A folder directly under the root directory has a name too short to tell from a word.
    let places: Vec<String> = places
        .into_iter()
        .flatten()
        .filter(|place| place.components().count() > 2)
        .map(|place| place.to_string_lossy().into_owned())
        .collect();
    none(files().into_iter().flat_map(|(path, text)| {
        let found = places.iter().filter(|place| text.contains(place.as_str()));
        found
            .map(|place| format!("{path}: names {place}, a path of this machine"))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn dependencies_come_from_the_public_registry_by_cargos_own_word() {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    // Cargo writes one and the same name for it whatever mirror a machine has.
    let sources: BTreeSet<&str> = packages
        .filter_map(|package| package.get("source")?.as_str())
        .collect();
    assert_eq!(sources.len(), 1, "Cargo.lock: {sources:?}");
    none(
        sources
            .into_iter()
            .filter(|source| !source.starts_with("registry+"))
            .map(|source| format!("Cargo.lock: {source} is no registry")),
    );
    let config = std::fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    let config: toml::Table = config.parse().unwrap();
    none(
        ["source", "registries", "registry"]
            .into_iter()
            .filter(|key| config.contains_key(*key))
            .map(|key| format!(".cargo/config.toml: [{key}] belongs into a machine's own configuration")),
    );
}

#[test]
fn rules_and_pages_are_siblings() {
    let rules = "crates/holdup-diagnosis/src/rules/";
    let in_an_area = |path: &str| {
        path.strip_prefix(rules)
            .is_some_and(|rest| rest.matches('/').count() == 1)
    };
    let stems = |extension: &'static str| -> BTreeSet<String> {
        files_of(extension)
            .filter(|(path, _)| in_an_area(path))
            .map(|(path, _)| path.trim_end_matches(extension).trim_end_matches('.').to_owned())
            .collect()
    };
    let (code, pages) = (stems("rs"), stems("md"));
    assert!(!code.is_empty(), "there are rules in {rules}");
    none(
        code.difference(&pages)
            .map(|rule| format!("{rule}.rs has no page {rule}.md")),
    );
    none(
        pages
            .difference(&code)
            .map(|page| format!("{page}.md has no rule {page}.rs")),
    );
}
