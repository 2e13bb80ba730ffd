//! The pages of `holdup explain` in a terminal.
//!
//! In: the Markdown of a rule's or cause's page. Out: the same as text within the style's columns: headings
//! bold, prose wrapped, code as it is. A rule's page also holds its tests, fenced as `toml`: they are for
//! the machine; what stands of them is the sentence before each and what the rule says to it. A heading that
//! has nothing else under it is left out. `pulldown-cmark` parses; with its default features off it knows
//! CommonMark alone, which is all that pages use.

use crate::sections::arranged;
use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::style::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use std::io::{self, Write};

/// Columns that prose is set in from the left.
const PROSE: usize = 2;

/// Columns that code is set in from the prose around it.
const CODE: usize = 4;

/// What fences the examples that are tests.
const TEST_LANGUAGE: &str = "toml";

/// What a rule says to an example, by the word after the language: as a sentence of its own, or behind a colon.
fn outcome(word: &str, begins_sentence: bool) -> Option<&'static str> {
    Some(match (word, begins_sentence) {
        ("fires", false) => "it fires.",
        ("fires", true) => "It fires.",
        ("near-miss", false) => "it does not fire.",
        ("near-miss", true) => "It does not fire.",
        ("cannot-tell", false) => "it cannot tell.",
        ("cannot-tell", true) => "It cannot tell.",
        _ => return None,
    })
}

/// Writes a page, its examples only where the style is verbose.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(markdown: &str, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let arranged = arranged(markdown, style.verbose);
    let mut page = Page::new(style);
    for event in Parser::new(&arranged) {
        page.event(event);
    }
    page.finish_block();
    out.write_all(page.sheet.into_text().as_bytes())
}

/// Writes a list of names and what each is, under a title. `names` are the columns that all names of the
/// document take.
///
/// # Errors
/// When writing to `out` fails.
pub fn list<'a>(
    title: &str,
    names: usize,
    rows: impl Iterator<Item = (&'a str, &'a str)>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sheet = Sheet::new(style);
    let body = vec![sheet.words(title).paint(Paint::Bold)];
    sheet.row(Row {
        body,
        ..Row::default()
    });
    sheet.blank();
    for (name, about) in rows {
        let lead = vec![sheet.name(&format!("{:PROSE$}{name}", ""))];
        let body = vec![sheet.words(about)];
        sheet.led(lead, PROSE + names + 2, body);
    }
    sheet.blank();
    out.write_all(sheet.into_text().as_bytes())
}

/// A page under way.
struct Page {
    sheet: Sheet,
    /// The block that is being read.
    body: Vec<Piece>,
    /// Whether what is read next stands apart from what was read last.
    spaced: bool,
    /// Whether what was read last ends a sentence.
    sentence: bool,
    /// Depth of emphasis.
    strong: usize,
    /// Headings that nothing has followed yet.
    headings: Vec<(HeadingLevel, Vec<Piece>)>,
    /// The lists that we are in: the next number, or none for bullets.
    lists: Vec<Option<u64>>,
    /// What stands before the block: the item's bullet or number.
    bullet: Option<String>,
    /// Depth of quotes.
    quotes: usize,
    /// Inside a code block: its text, or nothing when it is left out.
    code: Option<Option<String>>,
    /// Whether a blank line comes before the next block.
    apart: bool,
    /// Whether the block is a paragraph that is complete but for what may be said of the test after it.
    paragraph: bool,
}

impl Page {
    fn new(style: &Style) -> Page {
        Page {
            sheet: Sheet::new(style),
            body: Vec::new(),
            spaced: true,
            sentence: false,
            strong: 0,
            headings: Vec::new(),
            lists: Vec::new(),
            bullet: None,
            quotes: 0,
            code: None,
            apart: true,
            paragraph: false,
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(Some(code)) => code.push_str(&text),
                Some(None) => {}
                None => self.inline(&text, Paint::Plain),
            },
            Event::Code(code) if self.sheet.style().colour => self.inline(&code, Paint::Bold),
            Event::Code(code) => self.inline(&format!("`{code}`"), Paint::Plain),
            Event::SoftBreak => self.spaced = true,
            Event::HardBreak => {
                self.finish_block();
                self.apart = false;
            }
            Event::Rule => self.finish_block(),
            // Pages hold no HTML; what looks like it is text.
            Event::Html(text) | Event::InlineHtml(text) => self.inline(&text, Paint::Plain),
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag) {
        match tag {
            Tag::Emphasis | Tag::Strong => self.strong += 1,
            Tag::CodeBlock(kind) => {
                let mut fence = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace(),
                    CodeBlockKind::Indented => "".split_whitespace(),
                };
                let test = fence.next() == Some(TEST_LANGUAGE);
                let outcome = fence.next().and_then(|word| outcome(word, self.sentence));
                let outcome = outcome.filter(|_| test && self.paragraph);
                self.body.extend(outcome.map(|words| self.sheet.words(words)));
                self.finish_block();
                self.code = Some((!test).then(String::new));
            }
            Tag::List(first) => {
                self.finish_block();
                self.lists.push(*first);
            }
            Tag::Item => {
                self.finish_block();
                self.bullet = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "-".to_owned(),
                });
            }
            Tag::BlockQuote(_) => {
                self.finish_block();
                self.quotes += 1;
            }
            Tag::Heading { .. } | Tag::Paragraph | Tag::HtmlBlock => self.finish_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong => self.strong -= 1,
            TagEnd::CodeBlock => {
                if let Some(Some(code)) = self.code.take() {
                    self.code_block(&code);
                }
            }
            TagEnd::List(_) => {
                self.finish_block();
                self.lists.pop();
                self.apart = true;
            }
            TagEnd::Item => {
                self.finish_block();
                self.bullet = None;
                self.apart = false;
            }
            TagEnd::BlockQuote(_) => {
                self.finish_block();
                self.quotes -= 1;
            }
            TagEnd::Heading(level) => {
                let body = std::mem::take(&mut self.body);
                self.spaced = true;
                self.headings.retain(|(above, _)| *above < level);
                self.headings.push((level, body));
            }
            TagEnd::Paragraph => self.paragraph = true,
            _ => {}
        }
    }

    /// Adds text to the block.
    fn inline(&mut self, text: &str, paint: Paint) {
        let paint = if self.strong > 0 { Paint::Bold } else { paint };
        let apart = self.spaced || text.starts_with(char::is_whitespace);
        self.spaced = text.ends_with(char::is_whitespace);
        if text.trim().is_empty() {
            self.spaced = true;
            return;
        }
        self.sentence = text.trim_end().ends_with('.');
        let piece = self.sheet.words(text).paint(paint).after(usize::from(apart));
        self.body.push(piece);
    }

    /// Column at which blocks begin here.
    fn indent(&self) -> usize {
        PROSE + 2 * (self.lists.len() + self.quotes)
    }

    /// Ends the block: a paragraph, or an item's.
    fn finish_block(&mut self) {
        self.spaced = true;
        let paragraph = std::mem::take(&mut self.paragraph);
        let body = std::mem::take(&mut self.body);
        if body.is_empty() {
            self.apart |= paragraph;
            return;
        }
        self.begin();
        let mut indent = self.indent();
        let lead = self.bullet.take().map(|bullet| {
            let before = indent.saturating_sub(2);
            indent = indent.max(before + bullet.len() + 1);
            self.sheet.name(&format!("{:before$}{bullet}", ""))
        });
        self.sheet.led(lead.into_iter().collect(), indent, body);
        self.apart |= paragraph;
    }

    /// Code, line by line as it is; what is too long wraps.
    fn code_block(&mut self, code: &str) {
        self.apart = true;
        self.begin();
        let indent = self.indent() + CODE;
        for line in code.trim_end_matches('\n').split('\n') {
            let depth = line.len() - line.trim_start_matches(' ').len();
            let fits = indent + crate::text::width(line) <= self.sheet.columns();
            let line = line.trim_start_matches(' ');
            let body = vec![if fits {
                self.sheet.name(line)
            } else {
                self.sheet.words(line)
            }];
            self.sheet.row(Row {
                indent: indent + depth,
                hang: Some(indent + depth + 2),
                body,
                ..Row::default()
            });
        }
        self.apart = true;
    }

    /// Puts the headings that waited for something to follow, and the blank line.
    fn begin(&mut self) {
        for (level, body) in std::mem::take(&mut self.headings) {
            self.sheet.blank();
            let body = body.into_iter().map(|piece| piece.paint(Paint::Bold)).collect();
            let indent = if level <= HeadingLevel::H2 { 0 } else { PROSE };
            self.sheet.line(indent, body);
            self.apart = level == HeadingLevel::H1;
        }
        if self.apart {
            self.sheet.blank();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::Style;
    use proptest::prelude::{any, prop_assert, proptest};
    use unicode_width::UnicodeWidthStr;

    const PAGE: &str = "\
# Small synchronous writes

The program makes each small write durable by itself, so that every one of them waits for the disk.

## What to do

- Write more at a time, and sync once: `PRAGMA synchronous=NORMAL`, say.
- Or put the journal on a faster disk, where the file that is written is one that \
  can be lost:
  a second line of the same item.

1. First.
2. Second, **really**.

```
mount -o remount,nobarrier /x
  --and more
```

## Examples

### Fires

```toml fires
elapsed = 10
```

## When this is wrong

> Never trust a disk.
";

    fn text(markdown: &str, style: &Style) -> String {
        let mut out = Vec::new();
        write(markdown, style, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("only text is written")
    }

    #[test]
    fn a_page_reads_well() {
        insta::assert_snapshot!(text(
            PAGE,
            &Style {
                width: 60,
                ..Style::default()
            }
        ));
    }

    #[test]
    fn of_a_test_stands_its_sentence_and_what_the_rule_says() {
        let page = "# R\n\n## Examples\n\nA short wait:\n\n```toml near-miss\nelapsed = 1\n```\n\nNo names.\n\n\
                    ```toml cannot-tell\nelapsed = 2\n```\n";
        let verbose = Style {
            verbose: true,
            ..Style::default()
        };
        assert_eq!(
            text(page, &verbose),
            "R\n\nExamples\n  A short wait: it does not fire.\n\n  No names. It cannot tell.\n"
        );
        assert!(!text(page, &Style::default()).contains("A short wait"));
    }

    #[test]
    fn tests_are_left_out_with_their_headings() {
        let verbose = Style {
            verbose: true,
            ..Style::default()
        };
        let text = text(PAGE, &verbose);
        assert!(
            !text.contains("elapsed") && !text.contains("Examples") && !text.contains("Fires"),
            "{text}"
        );
        assert!(text.contains("When this is wrong"), "{text}");
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        let colour = Style {
            colour: true,
            ..Style::default()
        };
        assert!(text(PAGE, &colour).contains("\x1b[1mPRAGMA"));
        assert!(!text(PAGE, &Style::default()).contains('\x1b'));
    }

    proptest! {
        #[test]
        fn any_page_fits(markdown in any::<String>(), width in 0_usize..130) {
            let style = Style { width, ..Style::default() };
            for line in text(&markdown, &style).lines() {
                prop_assert!(line.width() <= style.columns());
                prop_assert!(!line.contains(char::is_control));
            }
        }
    }
}
