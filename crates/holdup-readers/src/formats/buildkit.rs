//! The log of a build of container images by BuildKit with `--progress=plain`: which step took longest.
//!
//! In: lines that begin with a step's number; the first of them names the step, `#12 DONE 204.7s` ends it, and lines within it may have times of
//! their own. Out: a statement about the longest step, and one about each that failed.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("buildkit", Family::Times, recognise).about("a build log of BuildKit");

/// Steps that are kept, and bytes of a name.
const MAX_STEPS: usize = 2_000;
const NAME: usize = 160;

/// A second-longest step is named too if it is at least so large a part of the longest.
const SECOND_PART: f64 = 0.25;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let lines = || text.lines().filter_map(Line::of);
    let ended = lines().any(|line| matches!(line.what, What::Done(_) | What::Cached | What::Failed(_)));
    let named = lines().any(|line| matches!(line.what, What::Text(text) if text.starts_with('[')));
    Sureness::certain_if(ended && (named || lines().count() >= 3))
}

#[derive(Debug, PartialEq)]
enum What<'a> {
    /// With its length where the line has one.
    Done(Option<Ns>),
    Cached,
    Failed(&'a str),
    Text(&'a str),
}

#[derive(Debug, PartialEq)]
struct Line<'a> {
    step: u32,
    what: What<'a>,
}

/// `204.7s`.
fn seconds(word: &str) -> Option<Ns> {
    let seconds = decimal(word.strip_suffix('s')?.as_bytes())?;
    (0.0..1e8).contains(&seconds).then_some((seconds * 1e9) as Ns)
}

impl<'a> Line<'a> {
    /// `#12 DONE 204.7s`, `#12 [8/9] RUN npm ci`. A log of a CI service may put a time before it.
    fn of(line: &'a str) -> Option<Line<'a>> {
        let line = line.trim();
        let begun = match line.strip_prefix('#') {
            Some(rest) => rest,
            None => {
                let (stamp, rest) = line.split_once(" #")?;
                (stamp.len() <= 32 && stamp.starts_with(|first: char| first.is_ascii_digit()))
                    .then_some(rest)?
            }
        };
        let (step, text) = begun.split_once(' ')?;
        let step = step.parse().ok()?;
        let text = text.trim();
        let what = match text.split_once(' ').unwrap_or((text, "")) {
            ("DONE", rest) => What::Done(seconds(rest)),
            ("CACHED", _) => What::Cached,
            ("ERROR:" | "ERROR" | "CANCELED", rest) => What::Failed(rest),
            _ => What::Text(text),
        };
        Some(Line { step, what })
    }
}

#[derive(Debug, Default)]
struct Step {
    name: String,
    ns: Ns,
    failed: Option<String>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    steps: BTreeMap<u32, Step>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..600).unwrap_or(line));
        let Some(line) = Line::of(&text) else {
            return match text.trim().is_empty() {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        if self.steps.len() >= MAX_STEPS && !self.steps.contains_key(&line.step) {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        let step = self.steps.entry(line.step).or_default();
        match line.what {
            What::Text(text) if step.name.is_empty() => {
                step.name = text.chars().take(NAME).collect();
            }
            What::Done(Some(ns)) if ns >= step.ns => {
                step.ns = ns;
                step.quote = out.here();
            }
            What::Failed(why) => {
                step.failed = Some(why.chars().take(NAME).collect());
                step.quote = out.here();
            }
            // Within a step: `#13 exporting layers 71.3s done`; what a command prints has the seconds since it began before it.
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let steps = std::mem::take(&mut self.steps);
        let whole: Ns = steps.values().map(|step| step.ns).fold(0, Ns::saturating_add);
        for (number, step) in &steps {
            if let Some(why) = &step.failed {
                let text = format!("step #{number} {} failed: {why}", step.name);
                let quote = step.quote.clone();
                out.statement(statements::one(StatementKind::Failed, None, quote, text));
            }
        }
        let mut longest: Vec<(&u32, &Step)> = steps.iter().filter(|(_, step)| step.ns > 0).collect();
        longest.sort_by_key(|(_, step)| std::cmp::Reverse(step.ns));
        let Some(((number, step), rest)) = longest.split_first() else {
            return;
        };
        let mut text = format!(
            "step #{number} {} took {}, {} of all steps' time",
            step.name,
            duration(step.ns),
            holdup_evidence::units::whole_percent(step.ns, whole)
        );
        if let Some((number, next)) = rest.first()
            && next.ns as f64 >= SECOND_PART * step.ns as f64
        {
            text.push_str(&format!("; next #{number} {}, {}", next.name, duration(next.ns)));
        }
        out.statement(statements::one(
            StatementKind::Took,
            Some(step.ns),
            step.quote.clone(),
            text,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_longest_step_by_its_name_and_the_one_that_failed() {
        let text = "#4 [2/3] RUN make deps\n#4 0.845 cc -c a.c\n#4 DONE 3.0s\n\n#5 [3/3] RUN make all\n#5 1.2 cc -c b.c\n#5 DONE 27.0s\n\n#6 exporting to image\n#6 exporting layers 9.3s done\n#6 DONE 10.0s\n";
        let reading = read_text("b", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "buildkit");
        assert_eq!(
            reading.texts(),
            [
                "step #5 [3/3] RUN make all took 27.00 s, 68 % of all steps' time; next #6 exporting to image, 10.00 s"
            ]
        );
        let fails = "#9 [2/2] RUN ./configure\n#9 ERROR: process \"/bin/sh -c ./configure\" did not complete successfully: exit code: 1\n#8 CACHED\n";
        let reading = read_text("b", fails.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Failed);
    }

    #[test]
    fn issues_with_numbers_are_no_build() {
        let text = "#12 is done\n#13 took 3s\n# 1 DONE 3s\n#99999999999999 DONE 1s\n";
        assert_ne!(
            read_text("b", text.as_bytes()).observed.sources[0].format,
            "buildkit"
        );
    }
}
