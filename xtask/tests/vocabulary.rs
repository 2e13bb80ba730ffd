//! The kernel's vocabulary stands in one place: no file but the tables of holdup-knowledge keeps a list of system calls, or of
//! file systems.
//!
//! A list is two or more of the names beside each other, in an array or as alternatives of a pattern, or as the first members
//! of tuples. A single name decides about arguments that only one call has, and is no list.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The table of system calls.
const SYSTEM_CALLS: &str = "crates/holdup-knowledge/src/system_calls/table.rs";

/// The table of file systems.
const FILE_SYSTEMS: &str = "crates/holdup-knowledge/src/file_systems.rs";

/// Where else such lists stand, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "holdup-artefacts/src/dumps/native.rs",
        "functions of the C library, as stacks show them: other names for some calls, and other meanings",
    ),
    (
        "holdup-artefacts/src/dumps/python.rs",
        "functions of Python's library, as stacks show them",
    ),
    (
        "holdup-artefacts/src/profile.rs",
        "functions of the C library, as profiles show them",
    ),
    (
        "src/classify/java.rs",
        "methods of Java's runtime, whose native parts are called like some calls",
    ),
    (
        "src/attribution/asker.rs",
        "functions of the C library, in which threads start",
    ),
    (
        "src/user_code/primitive.rs",
        "methods of locks in Rust's library, which are called like calls",
    ),
    (
        "formats/benchmarks/fio.rs",
        "directions of fio's jobs, which are called like calls",
    ),
    (
        "rules/libuv_pool.rs",
        "functions of the C library, in which threads start",
    ),
    (
        "crates/holdup-detached/src/arch/x86_64.rs",
        "of the same policy: calls that one processor's kernel has",
    ),
    (
        "crates/holdup-detached/src/confine.rs",
        "a security policy: calls that a detached reader must not make, whether or not they can block",
    ),
    (
        "crates/holdup-readers/src/formats/strace_log/describe.rs",
        "reads the text that strace writes of the arguments, which has another form for each call",
    ),
    (
        "crates/holdup-readers/src/formats/strace_log/descriptors.rs",
        "reads the text that strace writes of the arguments, which has another form for each call",
    ),
    (
        "crates/holdup-readers/src/formats/strace_log/failures.rs",
        "which calls of a trace have a limit of their own, or are what a thread stands in",
    ),
    (
        "crates/holdup-readers/src/formats/strace_log/threads.rs",
        "compares bytes of a trace, once a line: strace also writes names of 32-bit calls, such as waitpid",
    ),
    (
        "crates/holdup-readers/src/formats/strace_log/trace.rs",
        "reads the text that strace writes of the arguments, which has another form for each call",
    ),
    (
        "crates/holdup-artefacts/src/dumps/ruby.rs",
        "methods of Ruby and of its gems, some of which are called as a system call is",
    ),
    (
        "crates/holdup/src/cli/scale.rs",
        "options of the command line, some of which are called as a system call is",
    ),
    (
        "crates/holdup-readers/src/formats/lsblk.rs",
        "what lsblk finds on disks, by which its columns are recognised: swap and RAID too",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Source files of the crates and of xtask, by their paths; without tests, which name what they try.
fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.ends_with("/tests") && !name.ends_with("/target") {
                    walk(&path, root, found);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    for folder in ["crates", "xtask/src"] {
        walk(&root().join(folder), &root(), &mut found);
    }
    found
}

/// The words that stand behind `before` in a table, up to the first character that no word has.
fn words(path: &str, before: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let words: BTreeSet<String> = text
        .split(before)
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| is_of_word(*c)).collect())
        .collect();
    assert!(words.len() > 40, "{path}: {words:?}");
    words
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A name in a source text: as a string, or as a constant with its number.
struct Name<'a> {
    word: &'a str,
    begin: usize,
    end: usize,
}

/// The names of a text that are among the words.
fn names<'a>(code: &'a str, words: &BTreeSet<String>) -> Vec<Name<'a>> {
    let mut found = Vec::new();
    for (before, after) in [("\"", "\""), ("SYS_", ""), ("Sysno::", "")] {
        for (at, _) in code.match_indices(before) {
            let rest = &code[at + before.len()..];
            let word = &rest[..rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())];
            if words.contains(word) && rest[word.len()..].starts_with(after) {
                let end = at + before.len() + word.len() + after.len();
                found.push(Name { word, begin: at, end });
            }
        }
    }
    found.sort_by_key(|name| name.begin);
    found
}

/// The lists of names in a source text, but for the tests at its end and for comments.
fn lists(text: &str, words: &BTreeSet<String>) -> Vec<String> {
    /// First members of tuples from which they are a list.
    const TUPLES: usize = 3;
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let names = names(&code, words);
    let beside = |pair: &[Name<'_>]| {
        let between = code[pair[0].end..pair[1].begin]
            .replace("libc::", "")
            .replace("b", "");
        between
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '|' | ','))
    };
    let mut lists: Vec<String> = names
        .windows(2)
        .filter(|pair| beside(pair))
        .map(|pair| format!("{} and {}", pair[0].word, pair[1].word))
        .collect();
    let in_array = |name: &&Name<'_>| {
        let before = code[..name.begin].trim_end_matches('b').trim_end();
        let own = before.strip_suffix('(').map(str::trim_end);
        own.is_some_and(|before| before.ends_with([',', '[']) && code[name.end..].starts_with(','))
    };
    let tuples: Vec<&str> = names.iter().filter(in_array).map(|name| name.word).collect();
    if tuples.len() >= TUPLES {
        lists.push(format!("tuples of {}", tuples.join(", ")));
    }
    lists
}

fn vocabularies() -> [(&'static str, BTreeSet<String>); 2] {
    [
        (SYSTEM_CALLS, words(SYSTEM_CALLS, "Sysno::")),
        (FILE_SYSTEMS, words(FILE_SYSTEMS, "row(\"")),
    ]
}

#[test]
fn names_of_the_kernel_stand_in_one_table() {
    let sources = sources();
    let mut offences = Vec::new();
    let mut used = BTreeSet::new();
    for (table, words) in vocabularies() {
        for (path, text) in &sources {
            let lists = match path == table {
                true => Vec::new(),
                false => lists(text, &words),
            };
            if lists.is_empty() {
                continue;
            }
            match ALLOWED.iter().find(|(allowed, _)| path.ends_with(allowed)) {
                Some((allowed, _)) => {
                    used.insert(*allowed);
                }
                None => offences.push(format!("{path}: lists {}: ask {table}", lists.join("; "))),
            }
        }
    }
    let idle = ALLOWED.iter().filter(|(path, _)| !used.contains(path));
    offences.extend(idle.map(|(path, _)| format!("{path} has no such list: take it out of ALLOWED")));
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

#[test]
fn a_planted_list_is_found() {
    let [(_, calls), (_, file_systems)] = vocabularies();
    for planted in [
        "matches!(name, \"read\" | \"write\")",
        "match name {\n    b\"wait4\"\n    | b\"waitid\" => true,\n    _ => false,\n}",
        "const CALLS: [libc::c_long; 2] = [libc::SYS_fsync, libc::SYS_fdatasync];",
        "const CALLS: &[Sysno] = &[\n    Sysno::kill,\n    Sysno::tkill,\n];",
        "const CALLS: &[(&str, u32)] = &[(\"poll\", 1), (\"select\", 2), (\"futex\", 3)];",
    ] {
        assert_ne!(lists(planted, &calls), [""; 0], "{planted}");
    }
    assert_ne!(
        lists("const REMOTE: [&str; 2] = [\"nfs\", \"fuse\"];", &file_systems),
        [""; 0]
    );
    for fine in [
        "call.name() == Some(\"futex\")",
        "// \"read\" | \"write\"",
        "(\"getrandom\", \"no such call\")",
        "fn f() {}\n#[cfg(test)]\nmod tests { const T: [&str; 2] = [\"read\", \"write\"]; }",
    ] {
        assert_eq!(lists(fine, &calls), [""; 0], "{fine}");
    }
}

#[test]
fn one_crate_maps_buffers_of_performance_events() {
    let mapping = sources()
        .into_iter()
        .filter(|(_, text)| text.contains("perf_event_mmap_page"));
    let mapping: Vec<String> = mapping.map(|(path, _)| path).collect();
    assert_eq!(mapping, ["crates/holdup-perf/src/lib.rs"]);
}
