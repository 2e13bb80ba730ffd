//! `holdup explain`: the page of a rule or cause, or the list of all.

use crate::cli::{Color, ExplainArgs};
use crate::usage::Usage;
use crate::{output, terminal};
use holdup_evidence::Cause;
use holdup_views::text::printable;
use holdup_views::{Style, page};
use std::fmt::Write;

/// Names more different than this aren't what was meant: a similarity between 0 and 1, found by trying typing
/// errors in the names that there are.
const SIMILAR: f64 = 0.7;
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
    holdup_analysis::rules::ALL
        .iter()
        .map(|rule| Topic {
            id: rule.id.id(),
            about: rule.about,
            page: rule.id.page(),
        })
        .collect()
}

fn causes() -> Vec<Topic> {
    Cause::ALL
        .iter()
        .map(|cause| Topic {
            id: cause.id(),
            about: cause.phrase(),
            page: cause.phrase(),
        })
        .collect()
}

/// Prints the page or the list.
///
/// # Errors
/// When there is nothing of that name.
pub(crate) fn run(args: &ExplainArgs, color: Color) -> anyhow::Result<u8> {
    let look = terminal::look(&std::io::stdout(), color);
    let style = Style {
        width: look.width,
        colour: look.colour,
        unicode: look.unicode,
        ..Style::default()
    };
    let (rules, causes) = (rules(), causes());
    let mut text = Vec::new();
    match &args.name {
        None => text.extend(list(&rules, &causes).into_bytes()),
        Some(name) => match rules.iter().chain(&causes).find(|topic| topic.id == name) {
            Some(topic) => page::write(topic.page, &style, &mut text)?,
            None => return Err(Usage::Wrong(unknown(name, &rules, &causes)).into()),
        },
    }
    output::print(&text)?;
    Ok(0)
}

fn list(rules: &[Topic], causes: &[Topic]) -> String {
    let width = rules
        .iter()
        .chain(causes)
        .map(|topic| topic.id.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (title, topics) in [
        ("Rules: what is wrong", rules),
        ("Causes: what time is spent on", causes),
    ] {
        writeln!(text, "{title}\n").expect("memory can be written to");
        for topic in topics {
            writeln!(text, "  {:width$}  {}", topic.id, topic.about).expect("memory can be written to");
        }
        text.push('\n');
    }
    text.push_str("holdup explain NAME prints the page of one.\n");
    text
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
        [] => format!("there is no rule or cause {name}; holdup explain lists them all"),
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

    #[test]
    fn every_topic_is_listed_within_the_terminal() {
        let text = list(&rules(), &causes());
        for topic in rules().iter().chain(&causes()) {
            assert!(text.contains(&format!("  {} ", topic.id)), "{}", topic.id);
            assert!(!topic.page.is_empty(), "{}", topic.id);
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{widest:?}");
    }

    #[test]
    fn the_nearest_names_are_offered() {
        assert!(unknown("disk.snyc", &rules(), &causes()).contains("did you mean disk.sync"));
        assert_eq!(
            unknown("\x1b[0m", &rules(), &causes()),
            "there is no rule or cause \\x1b[0m; holdup explain lists them all"
        );
    }
}
