//! What the runtime of GHC prints with `+RTS -s` or `-S`: how much of the time a Haskell program collected garbage.
//!
//! In: lines of the times of the parts of a run, of generations with their pauses, and of memory. Out: elapsed and CPU time as spans, and
//! a statement about the collector.
//! Source: `rts/Stats.c` of GHC and its user's guide, "RTS options to produce runtime statistics".

use super::report::{any_line, holds, ns_of, number, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Span, SpanKind, Statement, StatementKind};
use holdup_evidence::units::{bytes, duration};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ghc-rts", Family::Times, recognise).about("+RTS -s of GHC");

/// The part of the elapsed time from which collections are much: the same as for Go's collector, which is paced for a quarter of the CPUs.
const MUCH_COLLECTING_SHARE: f64 = 0.25;

/// Generations that are kept.
const MAX_GENERATIONS: usize = 8;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    let sums = has("bytes allocated in the heap") || has("bytes copied during GC");
    let times = any_line(head, |line| Times::of(line).is_some());
    Sureness::certain_if(times && (sums || has("Productivity")))
}

/// Seconds on a CPU, and elapsed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    part: Part,
    cpu: f64,
    elapsed: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Program,
    Collector,
    Total,
    /// Begin, end, profiling.
    Other,
}

/// Seconds of `1.50s`.
fn seconds(word: &str) -> Option<f64> {
    number(word.trim_end_matches(['s', ')']))
}

impl Times {
    /// `GC      time  166.792s  ( 24.238s elapsed)`.
    fn of(line: &str) -> Option<Times> {
        let (name, rest) = line.split_once(" time ")?;
        let part = match name.trim() {
            "MUT" => Part::Program,
            "GC" => Part::Collector,
            "Total" => Part::Total,
            "INIT" | "EXIT" | "RP" | "PROF" => Part::Other,
            _ => return None,
        };
        let (cpu, rest) = rest.split_once('(')?;
        let (elapsed, _) = rest.split_once("elapsed")?;
        Some(Times {
            part,
            cpu: seconds(cpu.trim())?,
            elapsed: seconds(elapsed.trim())?,
        })
    }
}

/// A generation: collections, and the longest pause in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Generation {
    number: u64,
    collections: f64,
    longest: f64,
}

impl Generation {
    /// `Gen  1        33 colls,    28 par   14.887s   1.523s     0.0461s    0.1048s`.
    fn of(line: &str) -> Option<Generation> {
        let words: Vec<&str> = line.split_whitespace().take(12).collect();
        let ["Gen", generation, collections, "colls,", _, "par", .., longest] = words.as_slice() else {
            return None;
        };
        Some(Generation {
            number: generation.parse().ok()?,
            collections: number(collections)?,
            longest: seconds(longest)?,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    program: Option<Times>,
    collector: Option<(Times, Quote)>,
    generations: Vec<Generation>,
    residency: Option<f64>,
    begun: bool,
}

impl Reader {
    /// The run has ended: its total is the last of its times.
    fn close(&mut self, total: Option<Times>, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((collector, quote)) = read.collector else {
            return;
        };
        let whole = total
            .map(|total| total.elapsed)
            .or_else(|| read.program.map(|program| program.elapsed + collector.elapsed))
            .unwrap_or(collector.elapsed);
        let share = if whole > 0.0 {
            collector.elapsed / whole
        } else {
            0.0
        };
        let mut text = format!(
            "garbage collection took {} of the {} elapsed ({:.0} %)",
            duration(ns_of(collector.elapsed)),
            duration(ns_of(whole)),
            100.0 * share
        );
        if collector.cpu > collector.elapsed {
            text.push_str(&format!(", with {} of CPU time", duration(ns_of(collector.cpu))));
        }
        if let Some(program) = read.program {
            text.push_str(&format!(
                "; the program itself {}",
                duration(ns_of(program.elapsed))
            ));
        }
        let longest = read
            .generations
            .iter()
            .max_by(|one, other| one.longest.total_cmp(&other.longest));
        if let Some(generation) = longest.filter(|generation| generation.longest > 0.0) {
            text.push_str(&format!(
                "; the longest of {} collections of generation {} was {}",
                rounded(generation.collections),
                generation.number,
                duration(ns_of(generation.longest))
            ));
        }
        if let Some(residency) = read.residency {
            text.push_str(&format!("; at most {} in use", bytes(residency as u64)));
        }
        let kind = match share >= MUCH_COLLECTING_SHARE {
            true => StatementKind::Took,
            false => {
                text.push_str(&format!(
                    "; from {:.0} % on that is much",
                    100.0 * MUCH_COLLECTING_SHARE
                ));
                StatementKind::WithinNorm
            }
        };
        out.statement(Statement {
            share: Some(share).filter(|share| kind == StatementKind::Took && *share <= 1.0),
            ..statements::one(kind, Some(ns_of(collector.elapsed)), quote, text)
        });
    }

    fn take(&mut self, text: &str, out: &mut Out<'_>) -> Option<()> {
        if let Some(times) = Times::of(text) {
            match times.part {
                Part::Program => self.program = Some(times),
                Part::Collector => self.collector = Some((times, out.here())),
                Part::Total => {
                    put_spans(times, out);
                    self.close(Some(times), out);
                }
                Part::Other => {}
            }
            return Some(());
        }
        if let Some(generation) = Generation::of(text) {
            if self.generations.len() < MAX_GENERATIONS {
                self.generations.push(generation);
            }
            return Some(());
        }
        let (first, rest) = text.split_once(' ')?;
        let value = number(first)?;
        if rest.starts_with("bytes allocated in the heap") && self.begun {
            self.close(None, out);
        }
        self.begun |= rest.starts_with("bytes ");
        if rest.starts_with("bytes maximum residency") {
            self.residency = Some(value);
        }
        rest.starts_with("bytes ").then_some(())
    }
}

/// The whole run, as `time` has it.
fn put_spans(total: Times, out: &mut Out<'_>) {
    for (kind, seconds) in [
        (SpanKind::CommandElapsed, total.elapsed),
        (SpanKind::CommandCpu, total.cpu),
    ] {
        out.span(Span {
            kind,
            name: String::new(),
            began: None,
            ns: ns_of(seconds),
            thread: None,
            usual: None,
            quote: out.here(),
            text: String::new(),
        });
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        match self.take(&text, out) {
            Some(()) => Understood::Evidence,
            // Tasks, sparks, rates: nothing that is waited for.
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(None, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{SpanKind, StatementKind as K};

    const MUCH: &str = "  63,580,560,024 bytes allocated in the heap\n  12,508,100,280 bytes copied during GC\n\
        \x20    406,780,976 bytes maximum residency (33 sample(s))\n             387 MB total memory in use (0 MB lost due to fragmentation)\n\n\
        \x20                                    Tot time (elapsed)  Avg pause  Max pause\n\
        \x20 Gen  0      9357 colls,  9302 par   151.905s  22.715s     0.0024s    0.0363s\n\
        \x20 Gen  1        33 colls,    28 par   14.887s   1.523s     0.0461s    0.1048s\n\n\
        \x20 INIT    time    0.000s  (  0.000s elapsed)\n  MUT     time   50.173s  ( 30.503s elapsed)\n\
        \x20 GC      time  166.792s  ( 24.238s elapsed)\n  EXIT    time    0.002s  (  0.009s elapsed)\n\
        \x20 Total   time  216.968s  ( 54.750s elapsed)\n\n  Productivity  23.1% of total user, 55.7% of total elapsed\n";

    #[test]
    fn a_program_that_collects_much_and_one_that_does_not() {
        let reading = read_text("g", MUCH.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "ghc-rts");
        assert_eq!(
            reading.texts(),
            [
                "garbage collection took 24.24 s of the 54.75 s elapsed (44 %), with 2 min 47 s of CPU time; the program itself 30.50 s; \
                 the longest of 33 collections of generation 1 was 105 ms; at most 388 MiB in use"
            ]
        );
        let spans = reading.observed.spans.iter();
        let spans: Vec<_> = spans.map(|span| (span.kind, span.ns / 1_000_000)).collect();
        assert_eq!(
            spans,
            [
                (SpanKind::CommandElapsed, 54_750),
                (SpanKind::CommandCpu, 216_968)
            ]
        );
        let well = MUCH.replace("24.238s", "1.238s");
        assert_eq!(
            read_text("g", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "1 bytes copied during GC\nGC time x ( elapsed)\n",
            "Productivity\nGC time -1s ( -1s elapsed)\nGen x colls, par\n",
            "Productivity\nGC      time  1e999s  ( 1s elapsed)\n",
        ] {
            // What any text says is not this reader's.
            let statements = read_text("g", text.as_bytes()).observed.statements;
            assert!(statements.iter().all(|one| !one.of_reader), "{text}");
        }
    }
}
