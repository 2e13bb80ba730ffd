//! `turbostat`: how busy each CPU is, and at which frequency it runs while it is.
//!
//! In: a heading with `Busy%` and `Bzy_MHz`, a row of the machine and a row for each CPU, again and again. Out: how busy the machine and
//! its CPUs are, as figures of a report; a statement about CPUs that run far below their base frequency while they have work.
//! Source: `tools/power/x86/turbostat/turbostat.8` of the kernel.

use super::report::{any_line, number, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Metric, Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("turbostat", Family::Host, recognise).about("turbostat");

/// The part of the base frequency (`TSC_MHz`, which is that of the time stamp counter) below which busy CPUs are slowed down: a CPU that is
/// hot or at its power limit runs below its base frequency ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 3B,
/// chapter 15), and measurement is not exact to some per cent.
const SLOW: f64 = 0.9;

/// Per cent of the time in which a CPU has work, from which its frequency is that of work and not of idleness.
const BUSY_PERCENT: f64 = 50.0;

/// The same for the whole machine where a warning is enough: so low a frequency with so much to do is told, though a governor may want it.
const SOME_WORK_PERCENT: f64 = 20.0;
const LOW: f64 = 0.7;

/// Words of a row.
const MAX_COLUMNS: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| Columns::of(line).is_some()))
}

/// Where the columns are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Columns {
    all: usize,
    cpu: Option<usize>,
    busy: usize,
    at_work: usize,
    base: Option<usize>,
    temperature: Option<usize>,
    watts: Option<usize>,
}

impl Columns {
    fn of(line: &str) -> Option<Columns> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS).collect();
        let place = |name: &str| words.iter().position(|word| *word == name);
        Some(Columns {
            all: words.len(),
            cpu: place("CPU"),
            busy: place("Busy%").or_else(|| place("%Busy"))?,
            at_work: place("Bzy_MHz")?,
            base: place("TSC_MHz"),
            temperature: place("PkgTmp").or_else(|| place("CoreTmp")),
            watts: place("PkgWatt"),
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    /// Of the machine, in which a CPU was slowest while it was busy: its part of the base frequency.
    slowest: Option<(f64, String, Quote)>,
    last: Option<(String, Quote)>,
    /// Its part of the base frequency, where it has some work.
    low: Option<f64>,
}

impl Reader {
    fn row(&mut self, columns: Columns, words: &[&str], out: &mut Out<'_>) -> Option<()> {
        let at = |place: usize| words.get(place).copied();
        let figure = |place: Option<usize>| place.and_then(at).and_then(number);
        let busy = number(at(columns.busy)?)
            .filter(|busy| *busy <= 110.0)?
            .min(100.0);
        let at_work = number(at(columns.at_work)?)?;
        let cpu = columns.cpu.and_then(at).unwrap_or("-");
        // The first row is the machine's.
        let is_machine = cpu == "-";
        if is_machine {
            out.report(None, None, false);
        }
        let of = if is_machine { "" } else { cpu };
        out.figure(Metric::CpuIdlePercent, of, 100.0 - busy);
        let base = figure(columns.base);
        let text = || {
            let mut text = format!("busy {} % of the time, at {at_work:.0} MHz", rounded(busy));
            if let Some(base) = base {
                text.push_str(&format!(" (base {base:.0} MHz)"));
            }
            if let Some(degrees) = figure(columns.temperature) {
                text.push_str(&format!(", {degrees:.0} \u{b0}C"));
            }
            if let Some(watts) = figure(columns.watts) {
                text.push_str(&format!(", {} W", rounded(watts)));
            }
            text
        };
        if is_machine {
            self.last = Some((format!("the CPUs are {}", text()), out.here()));
            let part = base.filter(|base| *base > 0.0).map(|base| at_work / base);
            self.low = part.filter(|part| busy >= SOME_WORK_PERCENT && *part < LOW);
        }
        if let Some(part) = base.filter(|base| *base > 0.0).map(|base| at_work / base)
            && busy >= BUSY_PERCENT
            && at_work > 0.0
            && self.slowest.as_ref().is_none_or(|(slowest, ..)| part < *slowest)
        {
            let who = match is_machine {
                true => "the CPUs are".to_owned(),
                false => format!("CPU {cpu} is"),
            };
            self.slowest = Some((part, format!("{who} {}", text()), out.here()));
        }
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(columns) = Columns::of(&text) {
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().take(MAX_COLUMNS).collect();
        // Rows of hardware threads lack the columns of the package, which stand last.
        let Some(columns) = self.columns.filter(|columns| words.len() <= columns.all) else {
            return Understood::Ignorable;
        };
        match self.row(columns, &words, out) {
            Some(()) => Understood::Evidence,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        match (read.slowest, read.last) {
            (Some((part, text, quote)), _) if part < SLOW => {
                let text = format!(
                    "{text}: {} % of the base frequency while there is work",
                    rounded(100.0 * part)
                );
                out.statement(Statement {
                    share: Some(1.0 - part),
                    ..statements::one(StatementKind::Stalled, None, quote, text)
                });
            }
            (_, Some((text, quote))) if read.low.is_some() => {
                let text = format!(
                    "{text}: their frequency is {} % of the base frequency while there is work",
                    rounded(100.0 * read.low.unwrap_or_default())
                );
                out.statement(statements::one(StatementKind::Warned, None, quote, text));
            }
            (_, Some((text, quote))) => {
                let text = format!(
                    "{text}; no busy CPU is below {:.0} % of its base frequency",
                    100.0 * SLOW
                );
                out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Metric, StatementKind as K};

    const SLOW: &str = "Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tTSC_MHz\tIRQ\tPkgTmp\tPkgWatt\n\
        -\t-\t1190\t99.20\t1200\t2400\t8000\t97\t14.90\n\
        0\t0\t1188\t99.00\t1200\t2400\t4000\t97\t14.90\n\
        0\t1\t1192\t99.40\t1199\t2400\t4000\n";

    #[test]
    fn cpus_that_are_slowed_down_and_others() {
        let reading = read_text("t", SLOW.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "turbostat");
        assert_eq!(
            reading.texts(),
            [
                "CPU 1 is busy 99.4 % of the time, at 1199 MHz (base 2400 MHz): 50 % of the base frequency while there is work"
            ]
        );
        let idle: Vec<&str> = reading
            .observed
            .of(Metric::CpuIdlePercent)
            .map(|series| series.of.as_str())
            .collect();
        assert_eq!(idle, ["", "0", "1"]);
        let well = SLOW
            .replace("\t1200\t2400", "\t2900\t2400")
            .replace("\t1199\t2400", "\t2901\t2400");
        let reading = read_text("t", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::WithinNorm);
        assert!(
            reading.texts()[0]
                .starts_with("the CPUs are busy 99.2 % of the time, at 2900 MHz (base 2400 MHz), 97")
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "Busy% Bzy_MHz\n",
            "CPU Busy% Bzy_MHz TSC_MHz\n- x y z\n- 500 1 0\n- 1e999 -1 -1\n",
        ] {
            assert!(
                read_text("t", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
