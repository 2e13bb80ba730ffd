//! `dotnet-counters monitor`: whether work waits for threads of .NET, and how much time its collector takes.
//!
//! In: rows `ThreadPool Queue Length   1,204` and `dotnet.thread_pool.queue.length ({work_item})  1,204`; of several screens the last counts.
//! Out: a statement about the queue beside threads and CPU, and one about the collector. How long a queue may be depends on the load, so that
//! only an empty one is judged. Source: Microsoft's documentation of well-known event counters, and "Debug ThreadPool starvation".

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("dotnet-counters", Family::Host, recognise).about("dotnet-counters");

/// Per cent of the time in the collector from which it is told, as of any other collector (rule `collector-stops-threads`).
const MIN_COLLECTOR_PERCENT: f64 = 10.0;

fn recognise(head: &[u8]) -> Sureness {
    let pool = holds(head, "ThreadPool ") || holds(head, "dotnet.thread_pool.");
    Sureness::certain_if(pool && any_line(head, |line| row(line).is_some()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Name {
    Queue,
    Threads,
    Cpu,
    Collector,
    Contention,
}

/// A row: which counter it is, and its value; newer versions have its change behind.
fn row(line: &str) -> Option<(Name, f64)> {
    let known = [
        ("ThreadPool Queue Length", Name::Queue),
        ("dotnet.thread_pool.queue.length", Name::Queue),
        ("ThreadPool Thread Count", Name::Threads),
        ("dotnet.thread_pool.thread.count", Name::Threads),
        ("CPU Usage (%)", Name::Cpu),
        ("% Time in GC", Name::Collector),
        ("Monitor Lock Contention Count", Name::Contention),
        ("dotnet.monitor.lock_contentions", Name::Contention),
    ];
    let (name, rest) = known
        .iter()
        .find_map(|(begin, name)| Some((*name, line.strip_prefix(begin)?)))?;
    // In brackets stands a unit, perhaps with a figure of its own: `(Count / 1 sec)`.
    let value = match rest.rsplit_once(')') {
        Some((_, behind)) => behind.split_whitespace().find_map(number)?,
        None => rest.split_whitespace().find_map(number)?,
    };
    Some((name, value))
}

#[derive(Debug, Default)]
struct Reader {
    queue: Option<(f64, Quote)>,
    threads: Option<f64>,
    cpu: Option<f64>,
    collector: Option<(f64, Quote)>,
    contention: f64,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        let Some((name, value)) = row(&text) else {
            let last = text.split_whitespace().last().unwrap_or_default();
            let of_screen = text.starts_with('[')
                || text.starts_with("Press p")
                || text.starts_with("Status:")
                || number(last).is_some();
            return match of_screen {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        match name {
            Name::Queue => self.queue = Some((value, out.here())),
            Name::Threads => self.threads = Some(value),
            Name::Cpu => self.cpu = Some(value),
            Name::Collector => self.collector = Some((value, out.here())),
            Name::Contention => self.contention = value,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        if let Some((share, quote)) = read
            .collector
            .filter(|(share, _)| *share >= MIN_COLLECTOR_PERCENT)
        {
            let text = format!(
                "the collector of .NET took {} % of the time since its last collection",
                rounded(share)
            );
            out.statement(Statement {
                share: Some(share / 100.0).filter(|share| *share <= 1.0),
                ..statements::one(StatementKind::Took, None, quote, text)
            });
        }
        let Some((queue, quote)) = read.queue else { return };
        let threads = read
            .threads
            .map_or_else(String::new, |threads| format!(", which has {threads:.0} threads"));
        let mut text = format!("{queue:.0} work items wait in the thread pool of .NET{threads}");
        if let Some(cpu) = read.cpu {
            text.push_str(&format!("; CPU usage is {} %", rounded(cpu)));
        }
        if read.contention > 0.0 {
            text.push_str(&format!(
                "; {:.0} contentions of locks within the interval",
                read.contention
            ));
        }
        let kind = match queue > 0.0 {
            true => StatementKind::Took,
            false => {
                text.push_str(" (0 in the queue is well)");
                StatementKind::WithinNorm
            }
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const SCREEN: &str = "Press p to pause, r to resume, q to quit.\n    Status: Running\n\n[System.Runtime]\n\
        \x20   % Time in GC since last GC (%)                          2\n    CPU Usage (%)                                           7\n\
        \x20   Monitor Lock Contention Count (Count / 1 sec)           0\n    ThreadPool Completed Work Item Count (Count / 1 sec)   31\n\
        \x20   ThreadPool Queue Length                             1,204\n    ThreadPool Thread Count                                26\n";

    #[test]
    fn work_that_waits_for_threads() {
        let reading = read_text("d", SCREEN.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "dotnet-counters");
        assert_eq!(
            reading.texts(),
            ["1204 work items wait in the thread pool of .NET, which has 26 threads; CPU usage is 7 %"]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
    }

    #[test]
    fn an_empty_queue_is_well() {
        let well = SCREEN.replace("1,204", "    0");
        assert_eq!(
            read_text("d", well.as_bytes()).observed.statements[0].kind,
            StatementKind::WithinNorm
        );
        let newer = "[System.Runtime]\n    dotnet.thread_pool.queue.length ({work_item})      40\n    dotnet.thread_pool.thread.count ({thread})     8\n";
        assert_eq!(
            read_text("d", newer.as_bytes()).texts(),
            ["40 work items wait in the thread pool of .NET, which has 8 threads"]
        );
    }

    #[test]
    fn other_texts_are_none() {
        let text = "the ThreadPool Queue Length was large\nThreadPool Queue Length is large\n";
        assert_ne!(
            read_text("d", text.as_bytes()).observed.sources[0].format,
            "dotnet-counters"
        );
    }
}
