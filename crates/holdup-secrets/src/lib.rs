//! Masks secrets in text and in command lines.
//!
//! In: a text of an observed program (a command line, a URL, a line of a log), or the words of a command line. Out: the same with `***` in the place of
//! each password, token and key. There is no way to find all: what looks like an ordinary word is one. The table in `tests/forms.txt` says what is found.
//!
//! Secrets are known by four signs, a file each: the name before the value (`names.rs`), the program that takes them (`programs.rs`), the place in
//! a URL or another address (`addresses.rs`), and their own shape (`shapes.rs`). Every text is hostile: all expressions are run by `regex`,
//! whose time grows with the length of the text and not faster.

mod addresses;
mod names;
mod programs;
mod shapes;
mod values;

pub use values::{each_text, mask_value};

use std::borrow::Cow;

/// What stands in a secret's place.
pub const MASKED: &str = "***";

/// Masks what is secret in a text.
#[must_use]
pub fn mask_text(text: &str) -> Cow<'_, str> {
    let masked = shapes::mask(text);
    let masked = then(masked, addresses::mask);
    let masked = then(masked, names::mask);
    then(masked, programs::mask_text)
}

/// Masks what is secret in the words of a command line, the program's name first.
#[must_use]
pub fn mask_words(words: &[String]) -> Vec<String> {
    programs::mask_words(words)
}

/// The next step on what the one before has made of a text.
fn then<'a>(text: Cow<'a, str>, step: fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match step(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(changed) => Cow::Owned(changed),
    }
}

/// Compiles an expression that stands in this crate.
fn expression(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).expect("a test compiles every expression")
}

/// Replaces the group `secret` of each match for which `is_secret` says so.
fn replace<'a>(
    text: &'a str,
    expression: &regex::Regex,
    is_secret: impl Fn(&regex::Captures<'_>) -> bool,
) -> Cow<'a, str> {
    let mut clean: Option<String> = None;
    let mut copied = 0;
    for found in expression.captures_iter(text) {
        let Some(secret) = found.name("secret").filter(|secret| secret.as_str() != MASKED) else {
            continue;
        };
        if secret.is_empty() || !is_secret(&found) {
            continue;
        }
        let clean = clean.get_or_insert_with(String::new);
        clean.push_str(&text[copied..secret.start()]);
        clean.push_str(MASKED);
        copied = secret.end();
    }
    match clean {
        None => Cow::Borrowed(text),
        Some(mut clean) => {
            clean.push_str(&text[copied..]);
            Cow::Owned(clean)
        }
    }
}
