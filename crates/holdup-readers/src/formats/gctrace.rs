//! What Go prints with `GODEBUG=gctrace=1`: one line a collection of garbage.
//!
//! In: `gc 7 @2.1s 3%: 0.02+1.3+0.08 ms clock, … 4->5->2 MB, 5 MB goal, 8 P`. Out: the collection that stopped the program longest, its
//! concurrent part, the share of the CPUs since the start, and the heap. The first and the last of the three lengths stop the program.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("go-gctrace", Family::Runtime, recognise).about("gctrace of Go");

/// Stops that are no trouble: Go's collector is built to stop for less than this (its pacing document of 1.5).
const LONG_STOP_NS: Ns = 10_000_000;

/// The share of the CPUs since the start that the collector is paced for while it works (the runtime package's documentation of `GOGC`).
const MAX_CPU_SHARE: f64 = 0.25;

const NS_PER_MS: f64 = 1e6;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(text.lines().any(|line| Collection::of(line).is_some()))
}

/// One collection.
#[derive(Debug, Clone, Default)]
struct Collection {
    number: u64,
    /// Per cent of the CPUs since the start.
    share: f64,
    /// What stopped the program, and what ran beside it, in ns.
    stop: Ns,
    concurrent: Ns,
    heap: String,
}

/// Bytes of a heap's sizes.
const HEAP: usize = 40;

impl Collection {
    fn of(line: &str) -> Option<Collection> {
        let at = line
            .find("gc ")
            .filter(|at| *at == 0 || line[..*at].ends_with(' '))?;
        let rest = line.get(at + 3..)?;
        let (number, rest) = rest.split_once(" @")?;
        let (_, rest) = rest.split_once("s ")?;
        let (share, rest) = rest.split_once("%: ")?;
        let (clock, rest) = rest.split_once(" ms clock")?;
        let parts: Option<Vec<f64>> = clock.split('+').map(|part| part.trim().parse().ok()).collect();
        let parts = parts.filter(|parts| parts.iter().all(|part| (0.0..1e12).contains(part)))?;
        let (stop, concurrent) = match parts.as_slice() {
            [sweep, mark, end] => (sweep + end, *mark),
            // Before Go 1.6: stop for the sweep, scan, install the write barrier, mark, stop for the end.
            [sweep, scan, barrier, mark, end] => (sweep + barrier + end, scan + mark),
            _ => return None,
        };
        let heap = rest
            .split(", ")
            .find(|part| part.contains("->"))
            .unwrap_or_default();
        Some(Collection {
            number: number.parse().ok()?,
            share: share.parse().ok().filter(|share| (0.0..=100.0).contains(share))?,
            stop: (stop * NS_PER_MS) as Ns,
            concurrent: (concurrent * NS_PER_MS) as Ns,
            heap: heap.chars().take(HEAP).collect(),
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    count: u64,
    longest: Option<(Collection, Quote)>,
    /// The last share: it is of the time since the start.
    share: f64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..600).unwrap_or(line));
        let Some(collection) = Collection::of(&text) else {
            return match text.trim().is_empty() {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        self.count += 1;
        self.share = collection.share;
        if self
            .longest
            .as_ref()
            .is_none_or(|(longest, _)| collection.stop > longest.stop)
        {
            self.longest = Some((collection, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some((longest, quote)) = self.longest.take() else {
            return;
        };
        let within = longest.stop < LONG_STOP_NS && self.share / 100.0 < MAX_CPU_SHARE;
        let (kind, norm) = match within {
            true => (
                StatementKind::WithinNorm,
                format!(
                    "; within the norms: less than {} and {:.0} %",
                    duration(LONG_STOP_NS),
                    100.0 * MAX_CPU_SHARE
                ),
            ),
            false => (StatementKind::Took, String::new()),
        };
        let text = format!(
            "collections of garbage of Go stop the program for up to {} (gc {} of {} listed, {} of it concurrent, heap {}); they use {} % of the CPUs{norm}",
            duration(longest.stop),
            longest.number,
            self.count,
            duration(longest.concurrent),
            longest.heap,
            self.share
        );
        out.statement(statements::one(kind, Some(longest.stop), quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn what_stops_the_program_is_not_what_runs_beside_it() {
        let text = "gc 1 @0.038s 1%: 0.55+12+0.081 ms clock, 2.2+6.7/12/0.002+0.32 ms cpu, 4->4->3 MB, 5 MB goal, 4 P\n\
            gc 8 @9.21s 31%: 0.5+9120+1450 ms clock, 0.3+30010/16000/21+5800 ms cpu, 3900->7200->6300 MB, 4000 MB goal, 4 P\n";
        let reading = read_text("g", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "go-gctrace");
        let one = &reading.observed.statements[0];
        assert_eq!((one.kind, one.ns), (StatementKind::Took, Some(1_450_500_000)));
        assert_eq!(
            one.text,
            "collections of garbage of Go stop the program for up to 1.45 s (gc 8 of 2 listed, 9.12 s of it concurrent, heap 3900->7200->6300 MB); they use 31 % of the CPUs"
        );
        let well = text.lines().next().unwrap();
        assert_eq!(
            read_text("g", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn what_is_cut_anywhere_is_survived() {
        let text = "gc 1 @0.038s 1%: 0.55+12+0.081 ms clock, 4->4->3 MB, 5 MB goal\ngc x @s %:  ms clock\n";
        for end in 0..text.len() {
            let _ = read_text("g", text.as_bytes().get(..end).unwrap_or_default());
        }
    }
}
