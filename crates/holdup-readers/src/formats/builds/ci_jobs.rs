//! Logs of jobs of GitLab and GitHub: which section took longest, and whether the job was ended by its limit of time.
//!
//! In: GitLab's `section_start:1712311200:step_script` and `section_end:…`, seconds since 1970; GitHub's `2024-04-05T10:00:00.0Z ##[group]Run
//! npm ci`, of which each begins a step. Out: a statement about the longest section, one about a limit, and one about what failed.
//! Source: GitLab's documentation, "Job logs"; `runner/src/Runner.Worker` of GitHub's runner.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, ns_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ci-job", Family::Times, recognise).about("logs of jobs of GitLab and GitHub");

/// Sections that are open at once, one within another.
const MAX_OPEN: usize = 50;

/// The greatest length of a section in seconds that is no mistake of a clock: a month.
const MAX_SECONDS: f64 = 31.0 * 86_400.0;

fn recognise(head: &[u8]) -> Sureness {
    let gitlab = holds(head, "section_start:") && any_line(head, |line| !marks(line).is_empty());
    let github = holds(head, "##[group]Run ") && any_line(head, |line| Step::of(line).is_some());
    Sureness::certain_if(gitlab || github)
}

/// A mark of GitLab: whether a section begins, when, and its name.
#[derive(Debug, PartialEq)]
struct Mark<'a> {
    begins: bool,
    seconds: f64,
    name: &'a str,
}

/// All marks of a line: the end of one section and the beginning of the next may stand on one.
fn marks(line: &str) -> Vec<Mark<'_>> {
    /// Marks of one line.
    const MAX_MARKS: usize = 8;
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("section_").filter(|_| found.len() < MAX_MARKS) {
        rest = rest.get(at + "section_".len()..).unwrap_or_default();
        let (begins, behind) = match (rest.strip_prefix("start:"), rest.strip_prefix("end:")) {
            (Some(behind), _) => (true, behind),
            (_, Some(behind)) => (false, behind),
            _ => continue,
        };
        let Some((seconds, name)) = behind.split_once(':') else {
            continue;
        };
        let Some(seconds) = crate::numbers::whole(seconds.as_bytes()) else {
            continue;
        };
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.');
        let end = name.find(|char| !is_name(char)).unwrap_or(name.len());
        // Where the sign between them is lost, the next mark begins right behind the name.
        let name = name.get(..end).unwrap_or_default();
        let name = name.split("section_").next().unwrap_or(name);
        if !name.is_empty() {
            found.push(Mark {
                begins,
                seconds: seconds as f64,
                name,
            });
        }
    }
    found
}

/// A step of GitHub's: `2024-04-05T10:00:00.1234567Z ##[group]Run npm ci`.
#[derive(Debug, PartialEq)]
struct Step<'a> {
    seconds: f64,
    name: &'a str,
}

/// The instant that a line begins with, in seconds, and what is behind it.
fn stamped(line: &str) -> Option<(f64, &str)> {
    let line = line.trim_start_matches('\u{feff}');
    let (stamp, rest) = line.split_once(' ')?;
    let instant: jiff::Timestamp = stamp.parse().ok()?;
    Some((instant.as_millisecond() as f64 / 1e3, rest))
}

impl<'a> Step<'a> {
    fn of(line: &'a str) -> Option<Step<'a>> {
        let (seconds, rest) = stamped(line)?;
        Some(Step {
            seconds,
            name: rest.strip_prefix("##[group]Run ")?.trim(),
        })
    }
}

/// Why a job was ended, where that is its limit of time.
fn limit(line: &str) -> Option<String> {
    let places = [
        (
            "Job failed: execution took longer than ",
            "the job was ended: it took longer than ",
        ),
        (
            "exceeded the maximum execution time of ",
            "the job was ended: it exceeded its limit of ",
        ),
        ("has timed out after ", "a step was ended after its limit of "),
    ];
    places.iter().find_map(|(words, told)| {
        let (_, limit) = line.split_once(words)?;
        let limit = limit.trim_end_matches('.').trim_end_matches(" seconds");
        Some(format!("{told}{}", name_of(limit)))
    })
}

#[derive(Debug, Default)]
struct Reader {
    open: Vec<(String, f64, Quote)>,
    step: Option<(String, f64, Quote)>,
    sections: Largest,
    /// The first and the last instant.
    first: Option<f64>,
    last: f64,
    limit: Option<(String, Quote)>,
    failed: Option<(String, Quote)>,
}

impl Reader {
    fn instant(&mut self, seconds: f64) {
        self.first.get_or_insert(seconds);
        self.last = self.last.max(seconds);
    }

    fn close_step(&mut self, now: f64) {
        if let Some((name, begun, quote)) = self.step.take() {
            let seconds = now - begun;
            if (0.0..MAX_SECONDS).contains(&seconds) {
                self.sections.take(seconds, &name, quote);
            }
        }
    }

    fn mark(&mut self, mark: &Mark<'_>, out: &mut Out<'_>) {
        self.instant(mark.seconds);
        if mark.begins {
            if self.open.len() < MAX_OPEN {
                self.open.push((name_of(mark.name), mark.seconds, out.here()));
            } else {
                out.account().left_out += 1;
            }
            return;
        }
        let Some(at) = self
            .open
            .iter()
            .rposition(|(name, ..)| *name == name_of(mark.name))
        else {
            return;
        };
        let (name, begun, quote) = self.open.remove(at);
        let seconds = mark.seconds - begun;
        if (0.0..MAX_SECONDS).contains(&seconds) {
            self.sections.take(seconds, &name, quote);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        let found = marks(&text);
        found.iter().for_each(|mark| self.mark(mark, out));
        let mut any = !found.is_empty();
        if let Some(step) = Step::of(&text) {
            self.close_step(step.seconds);
            self.instant(step.seconds);
            self.step = Some((name_of(step.name), step.seconds, out.here()));
            any = true;
        } else if let Some((seconds, rest)) = stamped(&text) {
            self.instant(seconds);
            if rest.starts_with("Post job cleanup") || rest.starts_with("Cleaning up orphan") {
                self.close_step(seconds);
            }
            any |= rest.starts_with("##[");
        }
        if let Some(limit) = limit(&text) {
            self.limit.get_or_insert_with(|| (limit, out.here()));
            any = true;
        } else if let Some((_, why)) = text
            .split_once("ERROR: Job failed: ")
            .or_else(|| text.split_once("##[error]"))
        {
            self.failed.get_or_insert_with(|| (name_of(why), out.here()));
            any = true;
        }
        // What the job's own commands print is theirs.
        match any {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close_step(self.last);
        let read = std::mem::take(self);
        let told = |seconds: f64| duration(ns_of(seconds));
        // The section that is open at the end is where it was ended.
        let open = read.open.last().filter(|_| read.limit.is_some());
        let within = open.map_or_else(String::new, |(name, ..)| format!(", in section {name}"));
        if let Some((text, quote)) = read.limit {
            out.statement(statements::one(
                StatementKind::TimedOut,
                None,
                quote,
                format!("{text}{within}"),
            ));
        } else if let Some((why, quote)) = read.failed {
            out.statement(statements::one(
                StatementKind::Failed,
                None,
                quote,
                format!("the job failed: {why}"),
            ));
        }
        let Some((seconds, name, quote)) = &read.sections.first else {
            return;
        };
        let whole = read.first.map_or(0.0, |first| read.last - first).max(*seconds);
        let mut text = format!("section {name} took {}", told(*seconds));
        if whole > 0.0 {
            let share = whole_percent(ns_of(*seconds), ns_of(whole));
            text.push_str(&format!(", {share} of the job's {}", told(whole)));
        }
        text.push_str(&read.sections.and_next(told));
        out.statement(Statement {
            share: Some(seconds / whole).filter(|share| share.is_finite()),
            ..statements::one(StatementKind::Took, Some(ns_of(*seconds)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const GITLAB: &str = "section_start:1712311200:get_sources\nFetching changes\nsection_end:1712311210:get_sources\n\
        section_start:1712311210:step_script\n$ make all\ncc -c a.c\n";

    #[test]
    fn the_longest_section_and_a_limit() {
        let done = format!("{GITLAB}section_end:1712311400:step_script\nJob succeeded\n");
        let reading = read_text("c", done.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "ci-job");
        assert!(
            reading.texts().contains(&"section step_script took 3 min 10 s, 95 % of the job's 3 min 20 s; next get_sources, 10.00 s"),
            "{reading:?}"
        );
        let ended = format!("{GITLAB}ERROR: Job failed: execution took longer than 1h0m0s seconds\n");
        let reading = read_text("c", ended.as_bytes());
        let one = reading
            .observed
            .statements
            .iter()
            .find(|one| one.of_reader)
            .unwrap();
        assert_eq!(one.kind, StatementKind::TimedOut);
        assert_eq!(
            one.text,
            "the job was ended: it took longer than 1h0m0s, in section step_script"
        );
    }

    #[test]
    fn steps_of_github() {
        let text = "2024-04-05T10:00:00.1000000Z ##[group]Run actions/checkout@v4\n2024-04-05T10:00:02.1000000Z ##[endgroup]\n\
            2024-04-05T10:00:05.1000000Z ##[group]Run npm ci\n2024-04-05T10:01:35.1000000Z added 900 packages\n\
            2024-04-05T10:01:45.1000000Z Post job cleanup.\n";
        let reading = read_text("c", text.as_bytes());
        assert!(
            reading.texts().contains(&"section npm ci took 1 min 40 s, 95 % of the job's 1 min 45 s; next actions/checkout@v4, 5.00 s"),
            "{reading:?}"
        );
    }

    #[test]
    fn other_logs_are_none() {
        for text in [
            "section_start:now:a\n",
            "##[group]Run x\n",
            "2024-04-05T10:00:00Z Run npm ci\n",
        ] {
            assert_ne!(
                read_text("c", text.as_bytes()).observed.sources[0].format,
                "ci-job"
            );
        }
    }
}
