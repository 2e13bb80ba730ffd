//! No decision rests on words that holdup wrote itself.
//!
//! A rule that looks for a sentence in a title or in the name of a resource gives another verdict when somebody rewords the sentence. So
//! each string that the code compares with, looks for or matches is compared with each string that the code writes. Facts travel as
//! enums and fields; words of kernels, programs and formats are constants that say whose they are.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// Crates that read what others wrote, and write nothing that a rule or a view sees but through types.
const READERS: &[&str] = &[
    "holdup",
    "holdup-bpf",
    "holdup-collect",
    "holdup-detached",
    "holdup-evidence",
    "holdup-files",
    "holdup-fuzz",
    "holdup-jvm",
    "holdup-proc",
    "holdup-readers",
    "holdup-secrets",
    "holdup-symbols",
];

/// Methods that decide by their argument.
const DECIDES: &[&str] = &[
    "contains",
    "ends_with",
    "eq",
    "find",
    "matches",
    "rfind",
    "rsplit_once",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];

/// Functions whose last argument is the name of a resource.
const NAMES: &[&str] = &["named", "idle"];

/// Where decisions on words that holdup writes as well are right: the end of a path, the words, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "holdup-knowledge/src/postgres_titles.rs",
        " waiting for ",
        "PostgreSQL's own title of a session that waits for a standby",
    ),
    (
        "rules/database_sessions.rs",
        "metadata lock",
        "MySQL's and MariaDB's own state of a session, as its list has it",
    ),
    (
        "holdup-knowledge/src/go.rs",
        "chan send",
        "the Go runtime's reason for a wait, as its dumps print it",
    ),
    (
        "holdup-knowledge/src/go.rs",
        "chan receive",
        "the Go runtime's reason for a wait, as its dumps print it",
    ),
    (
        "holdup-artefacts/src/objects.rs",
        "inotify",
        "the kernel's name of the anonymous inode, which holdup takes as it is",
    ),
    (
        "classify/objects.rs",
        "inotify",
        "the kernel's name of the anonymous inode, which holdup takes as it is",
    ),
    (
        "classify/objects.rs",
        "timerfd",
        "the kernel's name of the anonymous inode, which holdup takes as it is",
    ),
    (
        "holdup-knowledge/src/calls.rs",
        "clone",
        "the system call's name, which the C library has for a function of stacks too",
    ),
    (
        "rules/boot/network-awaited-at-boot.rs",
        "Wait for Network",
        "systemd's own description of its unit, which its log lines have in the place of the unit's name",
    ),
];

/// A piece of source code.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Text(String),
    Word(String),
    Sign(char),
}

impl Token {
    fn is(&self, sign: char) -> bool {
        *self == Token::Sign(sign)
    }

    fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Token::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The code of a file without its comments and its tests.
fn tokens(source: &str) -> Vec<Token> {
    let source =
        source
            .find("#[cfg(test)]")
            .map_or(source, |end| match source[end..].contains("mod tests") {
                true => &source[..end],
                false => source,
            });
    let chars: Vec<char> = source.chars().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let next = chars.get(at + 1).copied();
        match chars[at] {
            '/' if next == Some('/') => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '"' => {
                let (text, end) = quoted(&chars, at + 1);
                all.push(Token::Text(text));
                at = end;
            }
            'r' | 'b' if starts_raw(&chars[at..]) => {
                let open = at + chars[at..].iter().position(|c| *c == '"').unwrap();
                let marks = chars[at..open].iter().filter(|c| **c == '#').count();
                let mut end = open + 1;
                while chars[end] != '"' || !(1..=marks).all(|more| chars.get(end + more) == Some(&'#')) {
                    end += 1;
                }
                all.push(Token::Text(chars[open + 1..end].iter().collect()));
                at = end + 1 + marks;
            }
            'b' if next == Some('"') => {
                let (text, end) = quoted(&chars, at + 2);
                all.push(Token::Text(text));
                at = end;
            }
            // A character, not a lifetime.
            '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => {
                at += if next == Some('\\') { 3 } else { 2 };
                while chars.get(at).is_some_and(|c| *c != '\'') {
                    at += 1;
                }
                at += 1;
                all.push(Token::Sign('\''));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = chars[at..].iter().position(|c| !c.is_alphanumeric() && *c != '_');
                let end = end.map_or(chars.len(), |length| at + length);
                all.push(Token::Word(chars[at..end].iter().collect()));
                at = end;
            }
            c if c.is_whitespace() => at += 1,
            c => {
                all.push(Token::Sign(c));
                at += 1;
            }
        }
    }
    all
}

fn starts_raw(rest: &[char]) -> bool {
    let after = rest.iter().skip_while(|c| **c == 'b').collect::<Vec<_>>();
    after.first() == Some(&&'r') && {
        let marks = after[1..].iter().take_while(|c| ***c == '#').count();
        after.get(1 + marks) == Some(&&'"')
    }
}

/// The text of a string from behind its first quote, and where the code goes on.
fn quoted(chars: &[char], from: usize) -> (String, usize) {
    let mut text = String::new();
    let mut at = from;
    while let Some(&c) = chars.get(at) {
        match (c, chars.get(at + 1)) {
            ('"', _) => break,
            ('\\', Some('\n')) => {
                at += 2;
                while chars.get(at).is_some_and(|c| c.is_whitespace()) {
                    at += 1;
                }
            }
            ('\\', Some(&escaped)) => {
                text.push(if matches!(escaped, 'n' | 't' | 'r' | '0') {
                    ' '
                } else {
                    escaped
                });
                at += 2;
            }
            _ => {
                text.push(c);
                at += 1;
            }
        }
    }
    (text, at + 1)
}

/// Whether the token at `at`, a string or a constant, is one that a decision is made by.
fn decides(all: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| &all[at]);
    let is = |token: Option<&Token>, sign| token.is_some_and(|token| token.is(sign));
    // Back over `Some(`, `Ok(`, `&`, `(`.
    let mut start = at;
    while start > 0 && (all[start - 1].is('(') || all[start - 1].is('&') || is_wrapper(&all[start - 1])) {
        let callee = start.checked_sub(2).map(|at| &all[at]);
        if all[start - 1].is('(') && !callee.is_some_and(is_wrapper) {
            break;
        }
        start -= 1;
    }
    let (last, one_before) = (
        start.checked_sub(1).map(|at| &all[at]),
        start.checked_sub(2).map(|at| &all[at]),
    );
    if is(last, '=') && (is(one_before, '=') || is(one_before, '!')) {
        return true;
    }
    if is(all.get(at + 1), '=') && is(all.get(at + 2), '=')
        || is(all.get(at + 1), '!') && is(all.get(at + 2), '=')
    {
        return true;
    }
    let argument = is(before(1), '(') || (is(before(1), '&') && is(before(2), '('));
    let callee = if is(before(1), '(') { before(2) } else { before(3) };
    let dot = if is(before(1), '(') { before(3) } else { before(4) };
    if argument
        && is(dot, '.')
        && callee
            .and_then(Token::word)
            .is_some_and(|word| DECIDES.contains(&word))
    {
        return true;
    }
    in_pattern(all, at)
}

fn is_wrapper(token: &Token) -> bool {
    matches!(token.word(), Some("Some" | "Ok" | "Err"))
}

/// Whether it stands in a pattern: of an arm, of `if let` or `let else`, of `matches!`.
fn in_pattern(all: &[Token], at: usize) -> bool {
    // Ahead: what a pattern may have, up to the arrow. A comma as deep as the arrow ends the arm before.
    let (mut ahead, mut depth, mut commas) = (at + 1, 0, Vec::new());
    while let Some(token) = all.get(ahead) {
        match token {
            Token::Sign('=') if all.get(ahead + 1).is_some_and(|next| next.is('>')) => {
                if !commas.contains(&depth) {
                    return true;
                }
                break;
            }
            Token::Sign('(' | '[') => depth += 1,
            Token::Sign(')' | ']') => depth -= 1,
            Token::Sign(',') => commas.push(depth),
            Token::Sign('|' | '.' | '&' | '@') | Token::Text(_) => {}
            Token::Word(word) if word == "if" => {
                let guard = all[ahead..]
                    .iter()
                    .take_while(|token| !token.is(';') && !token.is('{'));
                let guard: Vec<&Token> = guard.collect();
                let arrow = guard.windows(2).any(|pair| pair[0].is('=') && pair[1].is('>'));
                if arrow && !commas.contains(&depth) {
                    return true;
                }
                break;
            }
            Token::Word(word) if word == "_" || is_wrapper(token) || is_constant(word) => {}
            _ => break,
        }
        ahead += 1;
    }
    // Behind: `matches!(…, ` or `let `.
    let mut depth = 0;
    for back in (0..at).rev() {
        match &all[back] {
            Token::Sign(')' | ']' | '}') => depth += 1,
            Token::Sign('(' | '[') if depth > 0 => depth -= 1,
            Token::Sign('(') => {
                let called = back.checked_sub(2).map(|at| (&all[at], &all[at + 1]));
                let matches =
                    called.is_some_and(|(name, mark)| name.word() == Some("matches") && mark.is('!'));
                let wrapped = back.checked_sub(1).is_some_and(|at| is_wrapper(&all[at]));
                if matches {
                    return true;
                }
                let plain = back
                    .checked_sub(1)
                    .is_none_or(|at| all[at].word().is_none() && !all[at].is('!'));
                if !wrapped && !plain {
                    return false;
                }
            }
            Token::Word(word) if word == "let" && depth == 0 => return true,
            Token::Sign('=' | ';' | '{') if depth == 0 => return false,
            Token::Sign('{') => depth -= 1,
            _ => {}
        }
    }
    false
}

fn is_constant(word: &str) -> bool {
    word.len() > 1
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
}

/// What files write and what they decide by.
#[derive(Debug, Default)]
struct Seen {
    /// Strings, each with a file that writes it.
    written: BTreeMap<String, String>,
    /// Names of resources among them.
    names: BTreeSet<String>,
    /// Strings that decisions are made by, with the file, and whether they are looked for inside of another.
    decisions: BTreeSet<(String, String, bool)>,
}

impl Seen {
    fn of(files: &[(String, String)]) -> Seen {
        let mut seen = Seen::default();
        for (path, source) in files {
            let all = tokens(source);
            let (constants, within) = constants(&all);
            for (at, token) in all.iter().enumerate() {
                // A constant is written, or decided by, where it is used.
                if within.iter().any(|range| range.contains(&at)) {
                    continue;
                }
                if let Some(text) = token.text() {
                    if decides(&all, at) {
                        seen.decisions
                            .insert((text.to_owned(), path.clone(), looks_inside(&all, at)));
                    } else {
                        seen.written
                            .entry(text.to_owned())
                            .or_insert_with(|| path.clone());
                        if names_a_resource(&all, at) {
                            seen.names.insert(text.to_owned());
                        }
                    }
                } else if let Some(texts) = token.word().and_then(|word| constants.get(word)) {
                    for text in texts.iter().filter(|_| !decides(&all, at)) {
                        seen.written.entry(text.clone()).or_insert_with(|| path.clone());
                        if names_a_resource(&all, at) {
                            seen.names.insert(text.clone());
                        }
                    }
                    for text in texts.iter().filter(|_| decides(&all, at)) {
                        seen.decisions
                            .insert((text.clone(), path.clone(), looks_inside(&all, at)));
                    }
                }
            }
        }
        seen
    }

    /// The decisions that rest on words written elsewhere.
    fn offences(&self) -> Vec<(String, String, String)> {
        let mut all = Vec::new();
        for (text, path, inside) in &self.decisions {
            let written = self.written.iter().find(|(words, by)| match is_prose(text) {
                true => words.contains(text.as_str()),
                false if *inside => {
                    let near = *by == path || self.names.contains(*words);
                    near && is_prose(words) && has_word(words, text)
                }
                false => self.names.contains(text) && *words == text,
            });
            if let Some((words, by)) = written {
                all.push((
                    path.clone(),
                    text.clone(),
                    format!("{path} decides by {text:?}, which {by} writes: {words:?}"),
                ));
            }
        }
        all
    }
}

/// Constants that are strings, or lists of strings and nothing else, and where in the file they are made.
fn constants(all: &[Token]) -> (BTreeMap<String, Vec<String>>, Vec<Range<usize>>) {
    let (mut found, mut within) = (BTreeMap::new(), Vec::new());
    for (at, token) in all.iter().enumerate() {
        if token.word() != Some("const") {
            continue;
        }
        let Some(name) = all.get(at + 1).and_then(Token::word) else {
            continue;
        };
        let rest = &all[at..];
        let end = rest.iter().enumerate().position(|(at, token)| {
            token.is(';')
                && rest
                    .get(at + 1)
                    .and_then(Token::word)
                    .is_none_or(|word| word.parse::<u32>().is_err())
        });
        let value = &rest[..end.unwrap_or(rest.len())];
        let texts: Vec<String> = value.iter().filter_map(Token::text).map(str::to_owned).collect();
        if !texts.is_empty() && is_constant(name) && !value.iter().any(|token| token.is('(')) {
            found.insert(name.to_owned(), texts);
            within.push(at..at + value.len());
        }
    }
    (found, within)
}

/// Whether a string is the name that a resource is made with.
fn names_a_resource(all: &[Token], at: usize) -> bool {
    let from = at.saturating_sub(12);
    let open = (from..at).rev().find(|at| all[*at].is('('));
    let callee = open
        .and_then(|open| all.get(open.checked_sub(1)?))
        .and_then(Token::word);
    let of_kind = at.checked_sub(1).is_some_and(|before| {
        let kinds = [
            "File", "Device", "Socket", "Lock", "Process", "Cgroup", "Kernel", "Name",
        ];
        all[before].word().is_some_and(|word| kinds.contains(&word))
    });
    of_kind || callee.is_some_and(|callee| NAMES.contains(&callee))
}

/// Whether a text is looked for inside of another: as its beginning, its end, or anywhere.
fn looks_inside(all: &[Token], at: usize) -> bool {
    let callee = (at.saturating_sub(3)..at).rev().find_map(|back| all[back].word());
    callee.is_some_and(|callee| DECIDES.contains(&callee) && callee != "eq")
}

/// Whether it is one of the words of a text.
fn has_word(words: &str, text: &str) -> bool {
    let letters = |c: char| c.is_alphabetic();
    text.chars().all(letters) && words.split(|c: char| !letters(c)).any(|word| word == text)
}

/// Whether it is more than one word.
fn is_prose(text: &str) -> bool {
    let words = text
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphabetic));
    words.count() > 1
}

fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" {
                    walk(&path, root, found);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let own = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.push((own, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let source = folder.join("src");
        if !READERS.contains(&name.as_str()) && source.is_dir() {
            walk(&source, root, &mut found);
        }
    }
    found.sort();
    found
}

#[test]
fn no_decision_rests_on_words_that_holdup_wrote() {
    let offences = Seen::of(&sources()).offences();
    let allowed = |path: &str, text: &str| {
        ALLOWED
            .iter()
            .any(|(end, words, why)| path.ends_with(end) && *words == text && !why.is_empty())
    };
    let left: Vec<String> = offences
        .iter()
        .filter(|(path, text, _)| !allowed(path, text))
        .map(|(.., words)| words.clone())
        .collect();
    assert!(left.is_empty(), "\n{}\n", left.join("\n"));
    for (end, words, _) in ALLOWED {
        let used = offences
            .iter()
            .any(|(path, text, _)| path.ends_with(end) && text == words);
        assert!(
            used,
            "nothing in {end} decides by {words:?}: take it off the list"
        );
    }
}

fn planted(source: &str) -> Vec<String> {
    let writer = r#"
        fn name() -> Resource {
            named(ResourceKind::Name, "an operation, which may be a collection")
        }
        fn timer() -> Resource { named(ResourceKind::Kernel, "timer") }
    "#;
    let files = [
        ("writer.rs".to_owned(), writer.to_owned()),
        ("rule.rs".to_owned(), source.to_owned()),
    ];
    let offences = Seen::of(&files).offences();
    offences.into_iter().map(|(_, text, _)| text).collect()
}

#[test]
fn each_way_to_decide_by_a_planted_sentence_is_found() {
    let ways = [
        r#"fn f(name: &str) -> bool { name.contains("may be a collection") }"#,
        r#"fn f(name: &str) -> bool { name == "an operation, which may be a collection" }"#,
        r#"fn f(name: &str) -> bool { "may be a collection" != name }"#,
        r#"fn f(name: Option<&str>) -> bool { name == Some("may be a collection") }"#,
        r#"fn f(name: &str) -> u8 { match name { "" | "may be a collection" => 1, _ => 2 } }"#,
        r#"fn f(name: Option<&str>) -> u8 { match name { Some("may be a collection") if true => 1, _ => 2 } }"#,
        r#"fn f(name: &str) -> bool { matches!(name, "may be a collection" | "x") }"#,
        r#"fn f(name: &str) { if let Some("may be a collection") = Some(name) {} }"#,
        r#"const WORDS: &str = "may be a collection"; fn f(name: &str) -> bool { name.ends_with(WORDS) }"#,
        r#"const WORDS: &str = "may be a collection"; fn f(name: &str) -> bool { name != WORDS }"#,
    ];
    for way in ways {
        assert!(
            planted(way)
                .iter()
                .any(|text| text.ends_with("may be a collection")),
            "{way}"
        );
    }
    let name = r#"fn f(name: &str) -> bool { name == "timer" }"#;
    assert_eq!(planted(name), ["timer"], "a name of one word");
}

#[test]
fn what_is_no_decision_or_not_our_word_is_left_alone() {
    let harmless = [
        r#"fn f() -> String { format!("which may be a collection") }"#,
        r#"fn f(name: &str) -> bool { name.contains("GCLocker Initiated") }"#,
        r#"fn f(name: &str) -> bool { name == "futex" }"#,
        r#"// name == "may be a collection"
           fn f() {}"#,
        r#"fn f(kind: Kind) -> &'static str { match kind { Kind::A => "may be a collection", Kind::B => "b" } }"#,
    ];
    for source in harmless {
        assert_eq!(planted(source), [""; 0], "{source}");
    }
}
