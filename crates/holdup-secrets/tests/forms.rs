//! Every form of the table is masked, as a text and as words; ordinary lines stay as they are.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use holdup_secrets::{mask_text, mask_words};

const FORMS: &str = include_str!("forms.txt");
const ORDINARY: &str = include_str!("ordinary.txt");

/// A line without its marks, and what was between them.
fn unmarked(line: &str) -> (String, Vec<String>) {
    let secrets = line
        .split('‹')
        .skip(1)
        .map(|rest| rest.split('›').next().unwrap().to_owned())
        .collect();
    (line.replace(['‹', '›'], ""), secrets)
}

/// As a shell splits a line, quotes gone; no escapes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_with(String::new);
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(character),
        }
    }
    words.extend(word);
    words
}

/// Lines of a table: those that are empty or begin with `#` are none.
fn lines(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("# "))
}

#[test]
fn no_form_of_the_table_gets_through() {
    let mut through = Vec::new();
    let mut forms = 0;
    let (commands, _) = FORMS.split_once("# Texts").unwrap();
    let commands = lines(commands).count();
    for line in lines(FORMS) {
        let (plain, secrets) = unmarked(line);
        assert!(!secrets.is_empty(), "{line}");
        forms += 1;
        let as_words = (forms <= commands).then(|| mask_words(&words(&plain)).join(" "));
        let as_text = Some(mask_text(&plain).into_owned());
        for (how, masked) in [("text", as_text), ("words", as_words)] {
            let Some(masked) = masked else { continue };
            // Of several words each is one.
            let seen = secrets
                .iter()
                .flat_map(|secret| secret.split(' '))
                .filter(|secret| secret.len() > 2 || masked == plain)
                .any(|secret| masked.contains(secret.trim_matches(['"', '\'', ',', ';'])));
            if seen {
                through.push(format!("{how}: {line}\n      {masked}"));
            }
        }
    }
    assert!(forms >= 200, "{forms} forms");
    assert!(
        through.is_empty(),
        "{} got through:\n{}",
        through.len(),
        through.join("\n")
    );
}

#[test]
fn ordinary_lines_stay_as_they_are() {
    let mut changed = Vec::new();
    for line in lines(ORDINARY) {
        let as_words = mask_words(&words(line)).join(" ");
        if mask_text(line) != line || as_words != words(line).join(" ") {
            changed.push(format!("{line}\n      {}\n      {as_words}", mask_text(line)));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn masking_twice_is_masking_once() {
    for line in lines(FORMS).chain(lines(ORDINARY)) {
        let (plain, _) = unmarked(line);
        let once = mask_text(&plain).into_owned();
        assert_eq!(mask_text(&once), once, "{line}");
    }
}

#[test]
fn a_long_text_takes_no_longer_than_its_length() {
    // Whatever made an expression go back and forth would not come to an end here.
    for piece in [
        "a:",
        "://",
        "password=",
        "-p ",
        "\"'",
        "eyJ",
        "x/",
        "AKIA",
        "-----BEGIN PRIVATE KEY-----",
        "mysql ",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        assert!(mask_text(&text).len() <= text.len() * 3);
    }
}
