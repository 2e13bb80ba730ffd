//! Regions of git with their times: `GIT_TRACE2_PERF`, also where somebody pasted it as a table.
//!
//! In: lines between bars: where, which event, the time since the start, the time of the region, its kind and its name; two dots before the name
//! for each region around it. Out: a statement for the innermost region that has most of the time, and the time of all.
//! Source: `Documentation/technical/api-trace2.txt` of git.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("git-trace2", Family::Times, recognise)
    .about("regions of git with their times (GIT_TRACE2_PERF)");

/// Regions that are kept apart.
const MAX_REGIONS: usize = 500;

/// The part of the whole time from which a region within others is where the time is.
const MIN_PART: f64 = 0.5;

/// Events of a line.
const EVENTS: [&str; 16] = [
    "version",
    "start",
    "exit",
    "atexit",
    "signal",
    "error",
    "cmd_name",
    "cmd_mode",
    "alias",
    "child_start",
    "child_exit",
    "exec",
    "region_enter",
    "region_leave",
    "data",
    "data_json",
];

fn recognise(head: &[u8]) -> Sureness {
    let of_region = |line: &str| {
        let line = Line::of(line);
        line.is_some_and(|line| line.event.starts_with("region_") && line.since_start_s.is_some())
    };
    Sureness::certain_if(holds(head, "region_") && any_line(head, of_region))
}

/// A line with its cells.
#[derive(Debug, PartialEq)]
struct Line {
    event: String,
    /// Seconds since the start, and of what has ended.
    since_start_s: Option<f64>,
    took_s: Option<f64>,
    kind: String,
    message: String,
}

impl Line {
    fn of(text: &str) -> Option<Line> {
        let cells: Vec<&str> = text.split('|').map(str::trim).take(16).collect();
        let at = cells.iter().position(|cell| EVENTS.contains(cell))?;
        let cell = |behind: usize| cells.get(at + behind).copied().unwrap_or_default();
        Some(Line {
            event: cell(0).to_owned(),
            since_start_s: number(cell(2)),
            took_s: number(cell(3)),
            kind: name_of(cell(4)),
            message: name_of(cell(5)),
        })
    }
}

#[derive(Debug)]
struct Region {
    name: String,
    /// How many regions are around it.
    depth: usize,
    took_s: f64,
    times: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    regions: Vec<Region>,
    whole_s: f64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        let Some(line) = Line::of(&text) else {
            // Rules and empty rows of a table.
            let drawn = text.bytes().all(|byte| b"|-+: `".contains(&byte));
            return if drawn {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        self.whole_s = self.whole_s.max(line.since_start_s.unwrap_or(0.0));
        let (Some(took_s), "region_leave" | "child_exit") = (line.took_s, line.event.as_str()) else {
            return Understood::Evidence;
        };
        let bare = line.message.trim_start_matches('.');
        let depth = (line.message.len() - bare.len()) / 2;
        let label = bare.strip_prefix("label:").unwrap_or(bare);
        let name = match line.kind.as_str() {
            "" => label.to_owned(),
            kind => format!("{label} ({kind})"),
        };
        let known = self
            .regions
            .iter_mut()
            .find(|one| one.depth == depth && one.name == name);
        if let Some(known) = known {
            known.took_s += took_s;
            known.times += 1;
        } else if self.regions.len() < MAX_REGIONS {
            self.regions.push(Region {
                name,
                depth,
                took_s,
                times: 1,
                quote: out.here(),
            });
        } else {
            out.account().left_out += 1;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let whole_s = self.whole_s;
        let has_most = |one: &&Region| one.took_s >= MIN_PART * whole_s;
        let inner = self.regions.iter().filter(has_most).max_by_key(|one| one.depth);
        let largest = || {
            self.regions
                .iter()
                .max_by(|one, other| one.took_s.total_cmp(&other.took_s))
        };
        let Some(region) = inner.or_else(largest).filter(|region| region.took_s > 0.0) else {
            return;
        };
        let took = ns_of(region.took_s);
        let often = match region.times {
            1 => String::new(),
            times => format!(" in {times} times"),
        };
        let text = format!(
            "git spent {:.2} s of {whole_s:.2} s in the region {}{often}",
            region.took_s, region.name
        );
        out.statement(Statement {
            share: (whole_s > 0.0).then(|| (region.took_s / whole_s).min(1.0)),
            ..statements::one(StatementKind::Took, Some(took), region.quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TRACE: &str = "10:00:01.100000 common-main.c:48 | d0 | main | version      |     |           |           |              | 2.44.0\n\
        10:00:01.100001 common-main.c:49 | d0 | main | start        |     |  0.001000 |           |              | git status\n\
        10:00:01.200000 unpack-trees.c:1 | d0 | main | region_enter | r1  |  0.100000 |           | index        | label:preload\n\
        10:00:09.200000 unpack-trees.c:2 | d0 | main | region_leave | r1  |  8.100000 |  8.000000 | dir          | ..label:read_directory\n\
        10:00:09.300000 unpack-trees.c:3 | d0 | main | region_leave | r1  |  8.200000 |  8.100000 | status       | label:untracked\n\
        10:00:09.400000 unpack-trees.c:4 | d0 | main | region_leave | r1  |  8.300000 |  0.100000 | status       | label:print\n\
        10:00:09.400000 git.c:4          | d0 | main | exit         |     |  8.400000 |           |              | code:0\n";

    #[test]
    fn the_innermost_region_with_most_of_the_time() {
        let reading = read_text("g", TRACE.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "git-trace2");
        assert_eq!(
            reading.texts(),
            ["git spent 8.00 s of 8.40 s in the region read_directory (dir)"]
        );
    }

    #[test]
    fn as_a_table_of_markdown() {
        let text = "|  |  |\n|---|---|\n| a.c:1 | region_leave | r1 | 5.63 | 5.51 | index | ..label:refresh |\n\
            | a.c:2 | region_leave | r1 | 5.64 | 5.52 | progress | label:Refresh index |\n";
        assert_eq!(
            read_text("g", text.as_bytes()).texts(),
            ["git spent 5.51 s of 5.64 s in the region refresh (index)"]
        );
    }

    #[test]
    fn where_no_region_has_most_it_is_the_largest() {
        let text = "a | region_leave | | 9.0 | 1.0 | x | label:a\nb | region_leave | | 9.5 | 2.0 | x | ..label:b\n|\n| data |\n";
        assert_eq!(
            read_text("g", text.as_bytes()).texts(),
            ["git spent 2.00 s of 9.50 s in the region b (x)"]
        );
    }

    #[test]
    fn other_tables_are_none() {
        let text = "| name | region_leave |\n| a | b |\n| start | 4 | 5 |\n";
        assert_ne!(
            read_text("g", text.as_bytes()).observed.sources[0].format,
            "git-trace2"
        );
    }
}
