//! The order in which a terminal shows the sections of a page: what to do comes before how it is known.
//!
//! In: the Markdown of a page. Out: the same sections in another order; those of examples, which are mostly tests, only where all is asked for.

/// What a reader needs first. Sections with other headings keep their place before these.
const ORDER: [&str; 5] = [
    "What it means",
    "What to do",
    "What to look at next",
    "When this is wrong",
    "How we know",
];

/// The section that is left out.
const EXAMPLES: &str = "Examples";

/// What begins a heading of a section, and what fences code, within which nothing is a heading.
const HEADING: &str = "## ";
const FENCE: &str = "```";

/// The page in the order of its readers; `all`: with its examples.
pub(crate) fn arranged(markdown: &str, all: bool) -> String {
    let mut sections: Vec<(usize, &str)> = sections(markdown)
        .into_iter()
        .map(|section| (place(section), section))
        .filter(|(place, _)| all || *place <= ORDER.len())
        .collect();
    sections.sort_by_key(|(place, _)| *place);
    let mut text = String::new();
    for (_, section) in sections {
        text.push_str(section);
        if !section.ends_with("\n\n") {
            text.push('\n');
        }
    }
    text
}

/// Where a section stands: 0 for what is before all of them, and for those that are of no known kind.
fn place(section: &str) -> usize {
    let heading = section.lines().next().and_then(|line| line.strip_prefix(HEADING));
    let heading = heading.map(str::trim);
    if heading == Some(EXAMPLES) {
        return ORDER.len() + 1;
    }
    let known = ORDER.iter().position(|known| heading == Some(*known));
    known.map_or(0, |at| at + 1)
}

/// The sections with their headings, the first with what is before its heading alone.
fn sections(markdown: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let (mut at, mut code) = (0, false);
    for line in markdown.split_inclusive('\n') {
        code ^= line.trim_start().starts_with(FENCE);
        if !code && at > 0 && line.starts_with(HEADING) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([markdown.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &markdown[*start..end])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::arranged;

    const PAGE: &str = "# name\n\n## What it means\n\nA.\n\n## How we know\n\nB.\n\n```\n## no heading\n```\n\n## What to do\n\nC.\n\n\
                        ## When this is wrong\n\nD.\n\n## Examples\n\nE.\n";

    fn places(text: &str, parts: &[&str]) -> Vec<Option<usize>> {
        parts.iter().map(|part| text.find(part)).collect()
    }

    #[test]
    fn what_to_do_is_before_how_it_is_known() {
        let text = arranged(PAGE, true);
        let found = places(&text, &["# name", "A.", "C.", "D.", "B.", "E."]);
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{text}");
    }

    #[test]
    fn examples_are_left_out_unless_all_is_asked_for() {
        assert!(!arranged(PAGE, false).contains("E."));
        assert!(arranged(PAGE, false).contains("B."));
    }

    #[test]
    fn code_that_looks_like_a_heading_stays_in_its_section() {
        let text = arranged(PAGE, false);
        let found = places(&text, &["B.", "## no heading"]);
        assert!(found.is_sorted() && text.ends_with("```\n\n"), "{text}");
    }

    #[test]
    fn a_page_without_known_sections_stays_as_it_is() {
        assert_eq!(arranged("# a\n\n## b\n\nc\n\n", false), "# a\n\n## b\n\nc\n\n");
        assert_eq!(arranged("", false), "\n");
    }
}
