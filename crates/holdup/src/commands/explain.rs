//! `holdup explain`: the page of a rule or cause, or the list of all.

use crate::cli::{Color, ExplainArgs};
use crate::usage::Usage;
use crate::{output, terminal};
use holdup_collect::privileges::{self, Part};
use holdup_evidence::Cause;
use holdup_views::text::printable;
use holdup_views::{Style, page};
use std::io::{self, Write};

/// Names more different than this aren't what was meant: a similarity between 0 and 1, found by trying typing
/// errors in the names that there are.
const SIMILAR: f64 = 0.8;
/// How many of the nearest are named.
const NEAREST: usize = 3;

/// Something that has a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Topic {
    /// What to type.
    id: &'static str,
    /// In a few words.
    about: &'static str,
    /// Its page, Markdown.
    page: &'static str,
}

fn rules() -> Vec<Topic> {
    holdup_diagnosis::rules::ALL
        .iter()
        .map(|rule| Topic {
            id: rule.id.id(),
            about: rule.about,
            page: holdup_pages::rule(rule.id.id()).expect("a test holds every rule to have a page"),
        })
        .collect()
}

fn causes() -> Vec<Topic> {
    Cause::ALL
        .iter()
        .map(|cause| Topic {
            id: cause.id(),
            about: cause.phrase(),
            page: holdup_pages::cause(cause.id()).expect("a test holds every cause to have a page"),
        })
        .collect()
}

/// Prints the page or the list.
///
/// # Errors
/// When there is nothing of that name.
pub(crate) fn run(args: &ExplainArgs, color: Color) -> anyhow::Result<u8> {
    privileges::keep(Part::Nothing)?;
    let look = terminal::look(&io::stdout(), color);
    let style = Style {
        width: look.width,
        colour: look.colour,
        unicode: look.unicode,
        verbose: args.verbose,
        ..Style::default()
    };
    let (rules, causes) = (rules(), causes());
    let mut text = Vec::new();
    match &args.name {
        None => list(&rules, &causes, &style, &mut text)?,
        Some(name) => match rules.iter().chain(&causes).find(|topic| topic.id == name) {
            Some(topic) => page::write(topic.page, &style, &mut text)?,
            None => return Err(Usage::Wrong(unknown(name, &rules, &causes)).into()),
        },
    }
    output::print(&text)?;
    Ok(0)
}

/// The page of a rule or cause.
///
/// # Errors
/// The sentence that says which names are near.
pub(crate) fn page_of(name: &str) -> Result<&'static str, String> {
    let (rules, causes) = (rules(), causes());
    let found = rules.iter().chain(&causes).find(|topic| topic.id == name);
    found
        .map(|topic| topic.page)
        .ok_or_else(|| unknown(name, &rules, &causes))
}

fn list(rules: &[Topic], causes: &[Topic], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let width = rules
        .iter()
        .chain(causes)
        .map(|topic| topic.id.len())
        .max()
        .unwrap_or(0);
    for (title, topics) in [
        ("Rules: what is wrong", rules),
        ("Causes: what time is spent on", causes),
    ] {
        let rows = topics.iter().map(|topic| (topic.id, topic.about));
        page::list(title, width, rows, style, out)?;
    }
    writeln!(out, "holdup explain NAME prints the page of one.")
}

fn unknown(name: &str, rules: &[Topic], causes: &[Topic]) -> String {
    let mut near: Vec<(f64, &str)> = rules
        .iter()
        .chain(causes)
        .map(|topic| (strsim::jaro_winkler(name, topic.id), topic.id))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let name = printable(name, true);
    match near
        .iter()
        .take(NEAREST)
        .map(|(_, id)| *id)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => format!("there is no rule or cause {name}; holdup explain lists all of them"),
        [one] => format!("there is no rule or cause {name}; did you mean {one}?"),
        [first @ .., last] => {
            format!(
                "there is no rule or cause {name}; did you mean {} or {last}?",
                first.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{causes, list, rules, unknown};
    use holdup_views::Style;

    #[test]
    fn every_topic_is_listed_within_the_terminal() {
        let mut text = Vec::new();
        list(&rules(), &causes(), &Style::default(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for topic in rules().iter().chain(&causes()) {
            assert!(text.contains(&format!("  {} ", topic.id)), "{}", topic.id);
            assert!(!topic.page.is_empty(), "{}", topic.id);
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}");
    }

    #[test]
    fn the_nearest_names_are_offered() {
        assert!(unknown("disk.snyc", &rules(), &causes()).contains("did you mean disk.sync"));
        assert_eq!(
            unknown("nonsense", &rules(), &causes()),
            "there is no rule or cause nonsense; holdup explain lists all of them"
        );
        assert_eq!(
            unknown("\x1b[0m", &rules(), &causes()),
            "there is no rule or cause \\x1b[0m; holdup explain lists all of them"
        );
    }
}
