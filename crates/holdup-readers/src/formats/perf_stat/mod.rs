//! `perf stat`: how much of the elapsed time a program had a CPU, and what the CPU did in it.
//!
//! In: the table of one run or of several (`-r`), of a process or the machine, with metrics (`-d`) or without, by intervals (`-I`), and
//! the values with signs between them (`-x,`). Out: elapsed time and time on a CPU as spans, as of `time`; a statement about the
//! counters; of the machine also its rates. Counters that were not counted are named.
//! Source: `builtin-stat.c`, `util/stat-display.c` and `Documentation/perf-stat.txt` of the kernel's tools.

mod rows;

use self::rows::{Counter, Line, Subject};
use super::report::{any_line, holds, name_of, ns_of, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Metric, Quote, Span, SpanKind, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("perf-stat", Family::Profiles, recognise)
    .about("perf stat")
    .openings(&[HEADING]);

/// What stands above the table.
const HEADING: &str = "Performance counter stats for ";

/// Counters of one run that are kept: a run has some tens.
const MAX_COUNTERS: usize = 400;

/// Lines of a command that are passed over.
const MAX_HEADING_LINES: u32 = 50;

/// Counters without a value that are named.
const MAX_NAMED: usize = 4;

/// Instructions of a cycle below which a CPU mostly waits for memory: "Tools and Metrics for CPU Performance Analysis" of Brendan Gregg
/// (2017) has 1.0 as the boundary.
const MIN_INSTRUCTIONS_PER_CYCLE: f64 = 1.0;

/// The part of the CPU time from which the kernel's part is named.
const MUCH_SYSTEM: f64 = 0.5;

/// Rows with signs between their values that make a text one of these.
const MIN_ROWS: usize = 2;

fn recognise(head: &[u8]) -> Sureness {
    if holds(head, HEADING) || holds(head, "seconds time elapsed") {
        let counts = |line: &str| matches!(Line::of(line), Some(Line::Counter(_)));
        return Sureness::certain_if(any_line(head, counts));
    }
    let is_marked = |line: &&[u8]| {
        let line = Line::of(&text_in(line));
        matches!(line, Some(Line::Counter(counter)) if counter.is_marked())
    };
    let rows = head.split(|byte| *byte == b'\n').filter(is_marked);
    Sureness::certain_if(rows.take(MIN_ROWS).count() == MIN_ROWS)
}

/// One run, or one time of observation.
#[derive(Debug, Default)]
struct Run {
    subject: Option<Subject>,
    quote: Option<Quote>,
    counters: Vec<Counter>,
    elapsed_s: Option<(f64, Quote)>,
    user_s: Option<(f64, Quote)>,
    system_s: Option<(f64, Quote)>,
    /// The end of the last interval, in seconds.
    last_interval_s: Option<f64>,
}

#[derive(Debug, Default)]
struct Reader {
    run: Run,
    /// Lines that the heading may still go on for, because the command has line breaks.
    heading_lines: u32,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if self.heading_lines > 0 {
            self.heading_lines = match text.ends_with("':") || text.ends_with("runs):") {
                true => 0,
                false => self.heading_lines - 1,
            };
            return Understood::Evidence;
        }
        let Some(line) = Line::of(&text) else {
            // The heading of the intervals, and shares and deviations on lines of their own.
            let is_known = text.starts_with('#') || text.starts_with('(') || text.starts_with("# ");
            return match is_known {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        match line {
            Line::Heading(subject) => {
                self.close(out);
                self.run.subject = Some(subject);
                self.run.quote = Some(out.here());
                if !text.ends_with(':') {
                    self.heading_lines = MAX_HEADING_LINES;
                }
            }
            Line::Elapsed(seconds) => self.run.elapsed_s = Some((seconds, out.here())),
            Line::User(seconds) => self.run.user_s = Some((seconds, out.here())),
            Line::System(seconds) => self.run.system_s = Some((seconds, out.here())),
            Line::Metric => {}
            Line::Counter(counter) => {
                // Counters stand above the times: what comes below those is of another run.
                if self.run.elapsed_s.is_some() {
                    self.close(out);
                }
                if self.run.quote.is_none() {
                    self.run.quote = Some(out.here());
                }
                if !self.run.count(counter) {
                    out.account().left_out += 1;
                }
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let run = std::mem::take(&mut self.run);
        let Some(quote) = run.quote.clone() else { return };
        run.put(&quote, out);
    }
}

impl Run {
    /// Takes a counter; the same of another interval or CPU is added. Whether there was room.
    fn count(&mut self, counter: Counter) -> bool {
        if let Some(at) = counter.at_s {
            self.last_interval_s = Some(at);
        }
        if let Some(known) = self.counters.iter_mut().find(|known| known.name == counter.name) {
            known.value = match (known.value, counter.value) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            return true;
        }
        let fits = self.counters.len() < MAX_COUNTERS;
        if fits {
            self.counters.push(counter);
        }
        fits
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.counters.iter().find(|counter| counter.name == name)?.value
    }

    /// Whether what was observed is a command from its beginning to its end.
    fn is_command(&self) -> bool {
        matches!(self.subject, Some(Subject::Command(_)))
    }

    /// Seconds on a CPU: of the clock that counts those of a task, else what the kernel accounted.
    fn on_cpu_s(&self) -> Option<f64> {
        let of_task = self.value("task-clock").map(|ms| ms / 1e3);
        let accounted = self.user_s.as_ref().zip(self.system_s.as_ref());
        // The machine's clock runs whether there is work or not.
        let of_machine = matches!(self.subject, Some(Subject::Machine));
        of_task
            .filter(|_| !of_machine)
            .or_else(|| accounted.map(|((user, _), (system, _))| user + system))
    }

    fn put(self, quote: &Quote, out: &mut Out<'_>) {
        let elapsed_s = self
            .elapsed_s
            .as_ref()
            .map(|(seconds, _)| *seconds)
            .or(self.last_interval_s);
        if matches!(self.subject, Some(Subject::Machine)) {
            self.put_rates(elapsed_s, out);
        }
        let told = self.is_command() && self.elapsed_s.is_some();
        if told {
            self.put_spans(out);
        }
        let mut parts = Vec::new();
        if !told {
            parts.extend(self.times(elapsed_s));
        }
        parts.extend(self.counted());
        parts.extend(self.not_counted());
        if parts.is_empty() {
            return;
        }
        let text = format!("{}{}", self.name(), parts.join("; "));
        let ns = self.on_cpu_s().filter(|_| !told).map(ns_of);
        out.statement(statements::one(StatementKind::Took, ns, quote.clone(), text));
    }

    fn name(&self) -> String {
        match &self.subject {
            Some(Subject::Command(command)) => format!("`{}`: ", name_of(command)),
            Some(Subject::Task(which)) => format!("{}: ", name_of(which)),
            Some(Subject::Machine) => "the machine: ".to_owned(),
            None => String::new(),
        }
    }

    /// The rates of the whole machine.
    fn put_rates(&self, elapsed_s: Option<f64>, out: &mut Out<'_>) {
        let Some(seconds) = elapsed_s.filter(|seconds| *seconds > 0.0) else {
            return;
        };
        out.report(None, Some(ns_of(seconds)), false);
        for (name, metric) in [
            ("context-switches", Metric::ContextSwitchesPerSecond),
            ("major-faults", Metric::MajorFaultsPerSecond),
        ] {
            if let Some(count) = self.value(name) {
                out.figure(metric, "", count / seconds);
            }
        }
    }

    /// A command's times, as `time` has them.
    fn put_spans(&self, out: &mut Out<'_>) {
        let Some(Subject::Command(command)) = &self.subject else {
            return;
        };
        let Some((elapsed, elapsed_quote)) = &self.elapsed_s else {
            return;
        };
        let mut put = |kind, seconds: f64, quote: &Quote| {
            out.span(Span {
                kind,
                name: name_of(command),
                began: None,
                ns: ns_of(seconds),
                thread: None,
                usual: None,
                quote: quote.clone(),
                text: String::new(),
            });
        };
        put(SpanKind::CommandElapsed, *elapsed, elapsed_quote);
        match (&self.user_s, &self.system_s) {
            (Some((user, user_quote)), Some((system, system_quote))) => {
                put(SpanKind::CommandUser, *user, user_quote);
                put(SpanKind::CommandSystem, *system, system_quote);
            }
            // Earlier versions, and averages of several runs, have the clock of the task alone.
            _ => {
                if let Some(seconds) = self.on_cpu_s() {
                    put(SpanKind::CommandCpu, seconds, elapsed_quote);
                }
            }
        }
    }

    /// How much of the elapsed time was on a CPU.
    fn times(&self, elapsed_s: Option<f64>) -> Option<String> {
        let on_cpu = self.on_cpu_s()?;
        Some(match elapsed_s.filter(|seconds| *seconds > 0.0) {
            Some(elapsed) => format!(
                "{} on a CPU in {}, {} CPUs at the mean",
                duration(ns_of(on_cpu)),
                duration(ns_of(elapsed)),
                rounded(on_cpu / elapsed)
            ),
            None => format!("{} on a CPU", duration(ns_of(on_cpu))),
        })
    }

    /// What the counters tell.
    fn counted(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let on_cpu = self.on_cpu_s().filter(|seconds| *seconds > 0.0);
        if let (Some((user, _)), Some((system, _))) = (&self.user_s, &self.system_s)
            && *system >= MUCH_SYSTEM * (user + system)
            && *system > 0.0
        {
            let part = 100.0 * system / (user + system);
            parts.push(format!("{part:.0} % of its CPU time is in the kernel"));
        }
        if let Some(switches) = self.value("context-switches") {
            let every = on_cpu
                .filter(|_| switches >= 1.0)
                .map_or_else(String::new, |seconds| {
                    format!(", one for each {} on a CPU", duration(ns_of(seconds / switches)))
                });
            parts.push(format!("{switches:.0} context switches{every}"));
        }
        if let Some(faults) = self.value("major-faults") {
            parts.push(format!(
                "{faults:.0} page faults that read from a disk (major-faults)"
            ));
        }
        if let Some((instructions, cycles)) = self.value("instructions").zip(self.value("cycles"))
            && cycles > 0.0
        {
            let each = instructions / cycles;
            let low = match each < MIN_INSTRUCTIONS_PER_CYCLE {
                true => " (below 1 a CPU mostly waits for memory)",
                false => "",
            };
            parts.push(format!("{} instructions per cycle{low}", rounded(each)));
        }
        let missed = [
            ("cache-misses", "cache-references", "cache accesses"),
            ("LLC-load-misses", "LLC-loads", "loads from the last-level cache"),
        ];
        let missed = missed.iter().find_map(|(misses, of, name)| {
            let (misses, of) = self.value(misses).zip(self.value(of))?;
            (of > 0.0).then(|| format!("{:.0} % of {of:.0} {name} missed", 100.0 * misses / of))
        });
        parts.extend(missed);
        parts
    }

    /// The counters that have no value.
    fn not_counted(&self) -> Option<String> {
        let without: Vec<&str> = self
            .counters
            .iter()
            .filter(|counter| counter.value.is_none())
            .map(|counter| counter.name.as_str())
            .collect();
        let named = without.get(..without.len().min(MAX_NAMED))?.join(", ");
        let more = match without.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!without.is_empty()).then(|| format!("not counted: {named}{more}"))
    }
}

#[cfg(test)]
mod tests;
