//! The thread pool of .NET as the debugger shows it: `threadpool` and `threadpoolqueue` of `dotnet-dump analyze`, `!threadpool` of SOS.
//!
//! In: `Workers Running:  22` of newer versions, `Worker Thread: Total: 16 Running: 16 Idle: 0 MaxLimit: 32767 MinLimit: 8` of older ones, rows of a
//! queue with an address and a type. Out: whether work waits while all threads are at work. Source: `SOS` in dotnet/diagnostics.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("dotnet-threadpool", Family::Host, recognise).about("threadpool of dotnet-dump");

/// The part of the threads that has to be at work for the pool to have none free.
const BUSY: f64 = 0.9;

/// Kinds of work that are counted.
const MAX_KINDS: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    let is_pool =
        |line: &str| line.starts_with("Workers Running:") || line.starts_with("Worker Thread: Total:");
    let is_queue = |line: &str| line.starts_with("global work item queue");
    let may = holds(head, "Worker") || holds(head, "work item queue");
    Sureness::certain_if(may && any_line(head, |line| is_pool(line) || is_queue(line)))
}

#[derive(Debug, Default)]
struct Reader {
    total: Option<f64>,
    running: Option<(f64, Quote)>,
    idle: Option<f64>,
    most: Option<f64>,
    cpu: Option<f64>,
    /// Work that the queue lists, and how much of each type.
    listed: u64,
    kinds: Vec<(String, u64)>,
    queued: Option<f64>,
    in_queue: bool,
    quote: Option<Quote>,
}

/// The number behind a name: `Running: 16`.
fn value(text: &str, name: &str) -> Option<f64> {
    let (_, rest) = text.split_once(name)?;
    number(rest.split_whitespace().next()?.trim_end_matches('%'))
}

/// The type of a row of the queue, without its namespace and without what it is of.
fn kind(text: &str) -> Option<&str> {
    let (address, rest) = text.split_once(' ')?;
    let address = address.trim_start_matches("0x");
    let is_address = address.len() >= 8 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = rest.trim().split(['<', ' ', '(']).next()?;
    is_address.then(|| name.rsplit('.').next().unwrap_or(name))
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("global work item queue") || text.starts_with("local per thread work items") {
            self.in_queue = true;
            self.quote.get_or_insert_with(|| out.here());
            return Understood::Evidence;
        }
        if self.in_queue
            && let Some(kind) = kind(&text)
        {
            self.listed += 1;
            let room = self.kinds.len() < MAX_KINDS;
            match self.kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, count)) => *count += 1,
                None if room => self.kinds.push((name_of(kind), 1)),
                None => {}
            }
            return Understood::Evidence;
        }
        if text.starts_with("CPU utilization") {
            self.cpu = value(&text, ":");
        } else if text.starts_with("Workers Total:") {
            self.total = value(&text, ":");
        } else if text.starts_with("Workers Running:") {
            self.running = value(&text, ":").map(|count| (count, out.here()));
        } else if text.starts_with("Workers Idle:") {
            self.idle = value(&text, ":");
        } else if text.starts_with("Worker Max Limit:") {
            self.most = value(&text, ":");
        } else if text.starts_with("Worker Thread: Total:") {
            self.total = value(&text, "Total:");
            self.running = value(&text, "Running:").map(|count| (count, out.here()));
            self.idle = value(&text, "Idle:");
            self.most = value(&text, "MaxLimit:");
        } else if text.starts_with("Work Request in Queue:") {
            self.queued = value(&text, ":");
        } else if !(text.starts_with("Worker Min Limit:")
            || text.starts_with("Completion Port")
            || text.starts_with('>'))
        {
            return match text.starts_with("---")
                || text.starts_with("Number of Timers")
                || text.starts_with("___")
            {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut read = std::mem::take(self);
        read.kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let queued = read.queued.unwrap_or(0.0).max(read.listed as f64);
        let of = read
            .kinds
            .first()
            .map_or_else(String::new, |(kind, count)| match read.kinds.len() {
                1 => format!(" ({kind})"),
                _ => format!(" ({count} of {kind})"),
            });
        let cpu = read
            .cpu
            .map_or_else(String::new, |cpu| format!(", at {cpu:.0} % CPU"));
        let Some(((running, quote), total)) = read.running.clone().zip(read.total) else {
            if queued > 0.0
                && let Some(quote) = read.quote
            {
                let text =
                    format!("{queued:.0} work items stand in the queue of the thread pool of .NET{of}");
                out.statement(statements::one(StatementKind::Took, None, quote, text));
            }
            return;
        };
        let idle = read
            .idle
            .map_or_else(String::new, |idle| format!(", {idle:.0} idle"));
        let limit = read.most.filter(|most| total >= *most);
        let limit = limit.map_or_else(String::new, |most| {
            format!("; no more than {most:.0} may be started")
        });
        let at_work = format!(
            "{running:.0} of {total:.0} worker threads of the thread pool of .NET are at work{idle}{cpu}"
        );
        let full = total > 0.0 && running >= total * BUSY;
        let (kind, text) = match (full, queued > 0.0) {
            (true, true) => (
                StatementKind::Exhausted,
                format!(
                    "{at_work}, and {queued:.0} or more work items wait in its queue{of}{limit}: the pool is starved, and what comes new waits; \
                     the stacks of the workers say what blocks them"
                ),
            ),
            (_, true) => (
                StatementKind::Took,
                format!("{at_work}, and {queued:.0} work items stand in its queue{of}"),
            ),
            (_, false) => (
                StatementKind::WithinNorm,
                format!("{at_work}, and no work item waits"),
            ),
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let observed = read_text("d", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "dotnet-threadpool");
        let one = &observed.statements[0];
        (one.kind, one.text.clone())
    }

    const POOL: &str = "> threadpool\nCPU utilization:  12%\nWorkers Total:    40\nWorkers Running:  40\nWorkers Idle:     0\nWorker Min Limit: 8\n\
        Worker Max Limit: 32767\n\n";
    const QUEUE: &str = "> threadpoolqueue\nglobal work item queue________________________________\n\
        0x00007F0011223344 Shop.Web.Hosting.Connection<Shop.Context>\n0x00007F0011223355 Shop.Web.Hosting.Connection<Shop.Context>\n\
        0x00007F0011223366 System.Threading.Tasks.Task\n";

    #[test]
    fn all_workers_are_busy_and_work_waits() {
        let (kind, text) = said(&format!("{POOL}{QUEUE}"));
        assert_eq!(kind, StatementKind::Exhausted);
        assert!(
            text.starts_with(
                "40 of 40 worker threads of the thread pool of .NET are at work, 0 idle, at 12 % CPU, and 3 or more work items wait in its queue \
                 (2 of Connection): the pool is starved"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_words_of_older_debuggers() {
        let text = "CPU utilization: 3%\nWorker Thread: Total: 1000 Running: 1000 Idle: 0 MaxLimit: 1000 MinLimit: 8\nWork Request in Queue: 812\n\
            --------------------------------------\nNumber of Timers: 0\n--------------------------------------\n\
            Completion Port Thread:Total: 3 Free: 1 MaxFree: 16 CurrentLimit: 2 MaxLimit: 1000 MinLimit: 8\n";
        let (kind, text) = said(text);
        assert_eq!(kind, StatementKind::Exhausted);
        assert!(text.contains("812 or more work items"), "{text}");
        assert!(text.contains("no more than 1000 may be started"), "{text}");
    }

    #[test]
    fn a_pool_with_nothing_to_do() {
        let text = POOL
            .replace("Running:  40", "Running:  2")
            .replace("Idle:     0", "Idle:     38");
        assert_eq!(said(&text).0, StatementKind::WithinNorm);
        assert_eq!(said(&format!("{text}{QUEUE}")).0, StatementKind::Took);
        assert_eq!(said(QUEUE).0, StatementKind::Took);
    }
}
