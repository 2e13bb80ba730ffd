//! `systemd-analyze critical-chain`: what each unit waited for, last first.
//!
//! In: a tree of units; behind `@` is when a unit was there, or, where `+` tells how long it took, when it began, both since
//! the service manager started. Out: when each was reached, how long it took, and the holes: between the last thing that a
//! unit waited for and its own beginning nothing is reported. Pasted text often has lost its indentation; then each line
//! is what the one before it waited for, as in a chain it is.

use super::length;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, quoted};
use crate::manager::is_unit;
use crate::timespan;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Span, SpanKind, When};

/// What the two lines above the tree begin with, until version 246 and since.
const HEADERS: [&[u8]; 4] = [
    b"The time after the unit is active or started is printed after the",
    b"The time when unit became active or started is printed after the",
    b"The time the unit takes to start is printed after the",
    b"The time the unit took to start is printed after the",
];

pub(crate) static FORMAT: Format = Format::lines::<Reader>("systemd-chain", Family::Logs, recognise)
    .about("systemd-analyze critical-chain")
    .openings(&[
        "The time after the unit is active or started is printed after the",
        "The time when unit became active or started is printed after the",
    ]);

/// A chain is some ten units long; with `--fuzz` some hundred.
const UNITS: usize = 10_000;

/// Nanoseconds under which nothing is called a hole: starting a process and telling of it takes some tens of
/// milliseconds, more on a busy boot.
const HOLE: Ns = 1_000_000_000;

/// What the tree is drawn with, in the locales with and without it.
const BRANCHES: [(&str, bool); 6] = [
    ("└─", true),
    ("├─", true),
    ("│", false),
    ("`-", true),
    ("|-", true),
    ("|", false),
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    if lines.clone().any(is_header) {
        return Sureness::Certain;
    }
    // Pasted without its header.
    let units = lines.by_ref().take(20).filter(|line| unit(line).is_some());
    if units.count() >= 2 {
        Sureness::Likely
    } else {
        Sureness::No
    }
}

fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    HEADERS.iter().any(|header| line.starts_with(header))
}

/// What stands behind a unit's name.
struct Times {
    /// Behind `@`.
    at: Option<Ns>,
    /// Behind `+`.
    took: Option<Ns>,
}

/// A line of the tree.
#[derive(Debug)]
struct Unit {
    depth: usize,
    name: String,
    /// When it was there; when it began, if `took` is reported.
    at: Ns,
    took: Option<Ns>,
    quote: Quote,
    text: String,
}

impl Unit {
    fn ended(&self) -> Ns {
        self.at.saturating_add(self.took.unwrap_or(0))
    }
}

#[derive(Debug, Default)]
struct Reader {
    units: Vec<Unit>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let trimmed = line.trim_ascii();
        if is_header(trimmed) {
            // Another chain begins, in the same paste.
            self.end(out);
            return Understood::Ignorable;
        }
        if trimmed.is_empty() {
            return Understood::Ignorable;
        }
        let Some((depth, name, times)) = unit(line) else {
            return Understood::No;
        };
        let at = match (times.at, times.took) {
            (Some(at), _) => at,
            // The unit that was asked for has no time of its own in its chain.
            (None, Some(took)) => {
                out.span(length(SpanKind::UnitStart, name, took, trimmed, out));
                return Understood::Evidence;
            }
            // It has not been started.
            (None, None) => return Understood::Ignorable,
        };
        if self.units.len() >= UNITS {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        self.units.push(Unit {
            depth,
            name: String::from_utf8_lossy(name).into_owned(),
            at,
            took: times.took,
            quote: out.here(),
            text: quoted(trimmed),
        });
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let units = std::mem::take(&mut self.units);
        // Indentation is lost where no branch is deeper than another.
        let mut depths = units.iter().skip(1).map(|unit| unit.depth);
        let first = depths.next();
        let flat = units.len() > 2 && depths.all(|depth| Some(depth) == first);
        for (place, unit) in units.iter().enumerate() {
            // What began after the unit that waits for it was there did not hold that up: it was started again.
            let before = units.get(..place).unwrap_or_default();
            let waiter = match flat {
                true => before.last(),
                false => before.iter().rev().find(|other| other.depth < unit.depth),
            };
            let again = waiter.is_some_and(|waiter| waiter.ended() < unit.at);
            let rest = units.get(place + 1..).unwrap_or_default();
            let last = if flat {
                rest.first()
            } else {
                let below = rest.iter().take_while(|other| other.depth > unit.depth);
                let nearest = rest.first().map_or(0, |other| other.depth);
                below
                    .filter(|other| other.depth == nearest)
                    .max_by_key(|other| other.ended())
            };
            tell(unit, last.filter(|_| !again), out);
        }
    }
}

/// What one unit's line says, and the hole before it.
fn tell(unit: &Unit, last: Option<&Unit>, out: &mut Out<'_>) {
    let span = |kind, began, ns| Span {
        kind,
        name: unit.name.clone(),
        began,
        ns,
        thread: None,
        usual: None,
        quote: unit.quote.clone(),
        text: unit.text.clone(),
    };
    out.span(span(SpanKind::UnitReached, None, unit.ended()));
    if let Some(took) = unit.took {
        out.span(span(SpanKind::UnitStart, Some(When::SinceStart(unit.at)), took));
    }
    let Some(last) = last else { return };
    // A unit can begin before what it is listed under has ended.
    let hole = unit.at.saturating_sub(last.ended());
    if hole >= HOLE {
        out.span(Span {
            // Whom it waited for, so that the finding can name both.
            thread: Some(last.name.clone()),
            text: format!("{}, and before it {}", unit.text, last.text),
            ..span(SpanKind::ChainHole, Some(When::SinceStart(last.ended())), hole)
        });
    }
}

/// Depth, name and times of a line of the tree.
fn unit(line: &[u8]) -> Option<(usize, &[u8], Times)> {
    let (depth, rest) = branch(line);
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    let (name, rest) = match is_unit(name) {
        true => (name, rest.trim_ascii()),
        // A copy may have lost its blanks: a name can have an `@` of its own, but no time behind it.
        false => {
            let whole = rest.trim_ascii().is_empty().then_some(name)?;
            let at = memchr::memrchr(b'@', whole)?;
            let (name, rest) = whole.split_at_checked(at).filter(|(name, _)| is_unit(name))?;
            (name, rest)
        }
    };
    let mut halves = rest.splitn(2, |byte| *byte == b'+');
    let at = match halves.next()?.trim_ascii_end() {
        b"" => None,
        at => Some(timespan::parse(at.strip_prefix(b"@")?)?),
    };
    let took = match halves.next() {
        Some(took) => Some(timespan::parse(took)?),
        None => None,
    };
    Some((depth, name, Times { at, took }))
}

/// Passes over what the tree is drawn with; how deep the line is.
fn branch(line: &[u8]) -> (usize, &[u8]) {
    let mut rest = line;
    let mut columns = 0;
    loop {
        let trimmed = rest.trim_ascii_start();
        columns += rest.len() - trimmed.len();
        rest = trimmed;
        let found = BRANCHES
            .iter()
            .find_map(|(drawn, last)| Some((rest.strip_prefix(drawn.as_bytes())?, drawn, *last)));
        let Some((after, drawn, last)) = found else {
            return (columns, rest);
        };
        columns += drawn.chars().count();
        rest = after;
        if last {
            return (columns, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Reading, read_text};
    use holdup_evidence::observed::SpanKind;

    const CHAIN: &str = "The time after the unit is active or started is printed after the \"@\" character.
The time the unit takes to start is printed after the \"+\" character.

multi-user.target @1min 40.100s
└─web.service @1min 33.000s +7.100s
  └─network.target @2.500s
    └─networking.service @1.000s +1.500s
      └─-.mount @300ms
";

    fn holes(reading: &Reading) -> Vec<(&str, u64)> {
        let spans = reading.observed.spans.iter();
        spans
            .filter(|span| span.kind == SpanKind::ChainHole)
            .map(|span| (span.name.as_str(), span.ns / 1_000_000))
            .collect()
    }

    #[test]
    fn a_hole_is_between_an_end_and_a_beginning() {
        let reading = read_text("c", CHAIN.as_bytes());
        assert_eq!(holes(&reading), [("web.service", 90_500)]);
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn lost_indentation_other_branches_and_no_header() {
        let flat: String = CHAIN
            .lines()
            .map(|line| format!("{}\n", line.trim_start()))
            .collect();
        let ascii = CHAIN.replace("└─", "`-");
        let bare: String = CHAIN.lines().skip(3).map(|line| format!("{line}\n")).collect();
        for text in [flat, ascii, bare] {
            assert_eq!(
                holes(&read_text("c", text.as_bytes())),
                [("web.service", 90_500)],
                "{text}"
            );
        }
    }

    #[test]
    fn a_copy_without_blanks_is_read() {
        let text: String = CHAIN
            .lines()
            .map(|line| format!("{}\n", line.replace(' ', "")))
            .collect();
        assert_eq!(holes(&read_text("c", text.as_bytes())), [("web.service", 90_500)]);
        let reading = read_text(
            "c",
            b"a.target@3s\n\xe2\x94\x94\xe2\x94\x80getty@tty1.service@1.5s+16.994s\n",
        );
        assert_eq!(
            reading.observed.spans[1].name, "getty@tty1.service",
            "{reading:?}"
        );
    }

    #[test]
    fn of_several_that_it_waited_for_the_last_counts() {
        let text = CHAIN.replace(
            "  └─network.target",
            "  ├─slow.service @3.000s +1min 29.900s\n  └─network.target",
        );
        assert_eq!(holes(&read_text("c", text.as_bytes())), []);
    }

    #[test]
    fn hostile_lines_are_counted_and_the_next_is_read() {
        let text = format!(
            "{CHAIN}└─\n└─.service @1s\nx.service @\nx.service @1s +\n\0\u{fffd}│││\nx.service @99999999999999y\ny.service\n"
        );
        let reading = read_text("c", text.as_bytes());
        assert_eq!(holes(&reading), [("web.service", 90_500)]);
        assert_eq!(reading.accounts[0].not_understood, 6, "{:?}", reading.accounts[0]);
    }
}
