//! The report as a page to look at: one file that opens from disk and asks nobody for anything.
//!
//! In: a report. Out: HTML with its style, its script and its data inside. The policy in its head lets run that one script and
//! apply that one style, by their hashes, and fetches nothing; data stand in elements that browsers do not run, and the script
//! puts text into the page as text only. [`report_of`] takes the report out of such a page again.

mod data;
mod plot;
mod words;

pub use data::MOST_READ;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdup_model::report::Report;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// The page around it all.
const PAGE: &str = include_str!("report.html");

/// Its style, in the order in which it is applied.
const STYLE: &[&str] = &[
    include_str!("style.css"),
    include_str!("parts.css"),
    include_str!("compare.css"),
];

/// Its script, in the order in which it runs; all in one function of its own.
const SCRIPT: &[&str] = &[
    include_str!("text.js"),
    include_str!("state.js"),
    include_str!("verdict.js"),
    include_str!("path.js"),
    include_str!("axis.js"),
    include_str!("timeline.js"),
    include_str!("host.js"),
    include_str!("flame.js"),
    include_str!("tables.js"),
    include_str!("compare.js"),
    include_str!("both.js"),
    include_str!("walk.js"),
    include_str!("start.js"),
];

/// What is put in, in the order of the page.
#[cfg(test)]
const MARKS: &[&str] = &["POLICY", "TITLE", "STYLE", "PLOT", "REPORT", "WORDS", "SCRIPT"];

/// What the element of data begins and ends with.
const DATA: (&str, &str) = (r#"<script type="application/json" id="report">"#, "</script>");

/// Why a page gives no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageError {
    /// It is no page of holdup's.
    NotOurs,
    /// It is larger than any of ours.
    TooLarge,
    /// The report was too large for the page.
    LeftOut,
    /// What stands where the report should be is none.
    Unreadable(String),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PageError::NotOurs => f.write_str("holdup did not write this page"),
            PageError::TooLarge => f.write_str("the page is larger than any page that holdup writes"),
            PageError::LeftOut => f.write_str("the report was too large for the page: use --json"),
            PageError::Unreadable(why) => write!(f, "the report in the page can't be read: {why}"),
        }
    }
}

impl std::error::Error for PageError {}

/// Writes the page.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let packed = data::pack(report);
    let mut words = words::words(report);
    words["left_out"] = serde_json::json!(packed.left_out);
    let title = crate::text::printable(words["headline"].as_str().unwrap_or("holdup"), true);
    let (style, script) = (style(), script());
    let parts = [
        ("POLICY", policy(&style, &script)),
        ("TITLE", html(&title)),
        ("STYLE", style),
        (
            "PLOT",
            report.scaling.as_ref().map(plot::figure).unwrap_or_default(),
        ),
        ("REPORT", packed.json),
        ("WORDS", data::text(&words)),
        ("SCRIPT", script),
    ];
    // In one pass: what is put in may contain anything, a mark of ours too.
    let mut rest = PAGE;
    while let Some((before, mark, after)) = next_mark(rest) {
        out.write_all(before.as_bytes())?;
        let part = parts.iter().find(|(name, _)| *name == mark);
        out.write_all(part.expect("every mark has its part").1.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// What is before the next `{{MARK}}`, the mark, and what is after it.
fn next_mark(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (mark, after) = rest.split_once("}}")?;
    Some((before, mark, after))
}

fn style() -> String {
    STYLE.concat()
}

fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPT.concat())
}

/// Nothing but this script and this style.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

/// Text between tags.
fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The JSON of the report in a page that [`write()`] wrote. The page is anybody's. Who asks reads reports elsewhere, too: what reads one is
/// a large part of a program, and is not made here once more.
///
/// # Errors
/// [`PageError`].
pub fn report_of(page: &[u8]) -> Result<String, PageError> {
    if page.len() > MOST_READ {
        return Err(PageError::TooLarge);
    }
    let page = std::str::from_utf8(page).map_err(|_| PageError::NotOurs)?;
    let (_, rest) = page.split_once(DATA.0).ok_or(PageError::NotOurs)?;
    let (json, _) = rest.split_once(DATA.1).ok_or(PageError::NotOurs)?;
    data::unpack(json)
}

/// Whether bytes begin as a page of holdup's does.
#[must_use]
pub fn is_page(head: &[u8]) -> bool {
    let first = PAGE.split("{{").next().unwrap_or(PAGE).as_bytes();
    let length = head.len().min(first.len());
    length > 0 && head[..length] == first[..length] && head.len() >= first.len().min(64)
}

#[cfg(test)]
pub(crate) mod tests;
