//! `passenger-status`: which processes of Passenger have had one request for long, and how many requests wait for a process.
//!
//! In: `Max pool size : 6`, for each application `Requests in queue: 0` and for each process `PID: … Sessions: …`, `CPU: … Last used: …`, which the
//! tool cuts at the width of its column. Out: a statement about what is stuck, about a full queue, or that neither is. Source: the documentation
//! of Passenger, "passenger-status", and `Pool/StateInspection.h`.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("passenger-status", Family::Host, recognise).about("passenger-status");

/// Seconds from which a process that has a request is stuck in it: what proxies give up at, by default.
const STUCK_SECONDS: f64 = 60.0;

/// Processes that are kept, and that are named.
const MAX_PROCESSES: usize = 10_000;
const MAX_NAMED: usize = 4;

fn recognise(head: &[u8]) -> Sureness {
    let is_process = |line: &str| pid(line).is_some() && line.contains("Sessions:");
    Sureness::certain_if(holds(head, "Sessions:") && any_line(head, is_process))
}

/// The number of a process at the beginning of its two lines.
fn pid(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(['*', ' ']).strip_prefix("PID:")?;
    let pid = rest.split_whitespace().next()?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then_some(pid)
}

/// The words behind a name in a line of several: `CPU: 0%  Memory : 118M`.
fn behind<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    Some(rest.trim_start().strip_prefix(':').unwrap_or(rest).trim())
}

/// Seconds of `2h 8m 36s ago`, which may be cut anywhere: `7h 6m 17`.
fn idle(text: &str) -> Option<f64> {
    let mut sum = None;
    for word in text.split_whitespace() {
        let unit = match word.bytes().next_back()? {
            b's' => 1.0,
            b'm' => 60.0,
            b'h' => 3_600.0,
            b'd' => 86_400.0,
            _ => break,
        };
        let Some(count) = word.get(..word.len() - 1).and_then(number) else {
            break;
        };
        sum = Some(sum.unwrap_or(0.0) + count * unit);
    }
    sum
}

#[derive(Debug)]
struct Process {
    pid: String,
    of: String,
    sessions: f64,
    cpu: Option<f64>,
    idle: Option<f64>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    most: Option<f64>,
    queued: f64,
    queue: Option<(f64, String, Quote)>,
    group: String,
    all: Vec<Process>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(pid) = pid(&text) {
            let sessions = behind(&text, "Sessions").and_then(|rest| number(rest.split_whitespace().next()?));
            if self.all.len() < MAX_PROCESSES {
                self.all.push(Process {
                    pid: pid.to_owned(),
                    of: self.group.clone(),
                    sessions: sessions.unwrap_or(0.0),
                    cpu: None,
                    idle: None,
                    quote: out.here(),
                });
            }
            return Understood::Evidence;
        }
        if text.starts_with("CPU:") && text.contains("Last used") {
            if let Some(process) = self.all.last_mut() {
                process.cpu = behind(&text, "CPU").and_then(|rest| number(rest.split('%').next()?));
                process.idle = behind(&text, "Last used").and_then(idle);
            }
            return Understood::Evidence;
        }
        let keyed = text.split_once(':').or_else(|| text.split_once('='));
        if let Some((name, value)) = keyed {
            let value = value.trim();
            match name.trim() {
                "Max pool size" | "max" => self.most = number(value),
                "Requests in queue" | "Requests in top-level queue" | "Waiting on global queue" => {
                    let count = number(value).unwrap_or(0.0);
                    self.queued += count;
                    if self.queue.as_ref().is_none_or(|(most, ..)| count > *most) {
                        self.queue = Some((count, self.group.clone(), out.here()));
                    }
                }
                "Version" | "Date" | "Instance" | "App groups" | "Processes" | "App root" | "URL"
                | "Password" | "count" | "active" | "inactive" | "Using global queue" => {}
                _ if value.is_empty() && name.starts_with('/') => {
                    self.group = name_of(name.split(" (").next().unwrap_or(name));
                }
                _ => return Understood::No,
            }
            return Understood::Evidence;
        }
        match text.starts_with("---") {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let busy = read.all.iter().filter(|process| process.sessions > 0.0).count();
        // A process that holds many connections at a time (websockets) may have had its last new one long ago.
        let is_stuck = |process: &&Process| {
            let long = process.idle.is_some_and(|idle| idle >= STUCK_SECONDS);
            long && (process.sessions == 1.0 || process.sessions > 0.0 && read.queued > 0.0)
        };
        let mut stuck: Vec<&Process> = read.all.iter().filter(is_stuck).collect();
        stuck.sort_by(|one, other| other.idle.unwrap_or(0.0).total_cmp(&one.idle.unwrap_or(0.0)));
        if let Some(longest) = stuck.first() {
            out.statement(longest_stuck(&read, longest, &stuck));
            return;
        }
        let Some((count, group, quote)) = read.queue else {
            return;
        };
        let all = read.all.len();
        let of = match group.as_str() {
            "" => String::new(),
            group => format!(" of {group}"),
        };
        let full = busy == all && read.most.is_none_or(|most| all as f64 >= most);
        let (kind, text) = match count > 0.0 {
            true if full => (
                StatementKind::Exhausted,
                format!(
                    "{count:.0} requests{of} wait for a process of Passenger: all {all} have one, and no more may be started (max pool size)"
                ),
            ),
            true => (
                StatementKind::Took,
                format!(
                    "{count:.0} requests{of} wait for a process of Passenger, of which {busy} of {all} have one"
                ),
            ),
            false => (
                StatementKind::WithinNorm,
                format!(
                    "no request waits for a process of Passenger, of which {busy} of {all} have one (a queue of 0 is well)"
                ),
            ),
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

fn longest_stuck(
    read: &Reader,
    longest: &Process,
    stuck: &[&Process],
) -> holdup_evidence::observed::Statement {
    let seconds = longest.idle.unwrap_or(0.0);
    let all = read.all.len();
    let of = match longest.of.as_str() {
        "" => String::new(),
        group => format!(" of {group}"),
    };
    let cpu = longest
        .cpu
        .map_or_else(String::new, |cpu| format!(" at {cpu:.0} % CPU"));
    let queue = match read.queued {
        0.0 => "no request waits in the queue".to_owned(),
        queued => format!("{queued:.0} requests wait in the queue"),
    };
    let others = match stuck.len() {
        1 => String::new(),
        count => {
            let named: Vec<&str> = stuck
                .iter()
                .skip(1)
                .take(MAX_NAMED)
                .map(|one| one.pid.as_str())
                .collect();
            format!("; {} more are stuck, too ({})", count - 1, named.join(", "))
        }
    };
    let text = format!(
        "process {} of Passenger{of} has had its request for {} (last used){cpu}: it is stuck in it{others}, so that {} of {all} processes serve; \
         {queue}",
        longest.pid,
        duration(ns_of(seconds)),
        all - stuck.len()
    );
    statements::one(
        StatementKind::Stalled,
        Some(ns_of(seconds)),
        longest.quote.clone(),
        text,
    )
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const STATUS: &str = "Version : 6.0.4\nDate    : 2021-02-03 10:00:00 +0100\n\n----------- General information -----------\nMax pool size : 3\n\
        App groups    : 1\nProcesses     : 3\nRequests in top-level queue : 0\n\n----------- Application groups -----------\n\
        /srv/shop/public (production):\n  App root: /srv/shop\n  Requests in queue: 0\n\
        \x20 * PID: 101     Sessions: 1       Processed: 1200    Uptime: 5h 1m 4s\n    CPU: 11%     Memory  : 120M    Last used: 1s ago\n\
        \x20 * PID: 102     Sessions: 1       Processed: 31      Uptime: 5h 1m 4s\n    CPU: 0%      Memory  : 98M     Last used: 42m 17s\n\
        \x20 * PID: 103     Sessions: 0       Processed: 900     Uptime: 5h 1m 4s\n    CPU: 3%      Memory  : 110M    Last used: 3m 2s ago\n";

    fn said(text: &str) -> (StatementKind, String) {
        let observed = read_text("p", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "passenger-status");
        let one = &observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn a_process_that_keeps_its_request() {
        let (kind, text) = said(STATUS);
        assert_eq!(kind, StatementKind::Stalled);
        assert_eq!(
            text,
            "process 102 of Passenger of /srv/shop/public has had its request for 42 min 17 s (last used) at 0 % CPU: it is stuck in it, so that 2 \
             of 3 processes serve; no request waits in the queue"
        );
    }

    #[test]
    fn all_are_stuck_and_the_queue_is_full() {
        let text = STATUS
            .replace("Requests in queue: 0", "Requests in queue: 100")
            .replace("Last used: 1s ago", "Last used: 7h 6m 17")
            .replace("PID: 103     Sessions: 0", "PID: 103     Sessions: 1");
        let (kind, text) = said(&text);
        assert_eq!(kind, StatementKind::Stalled);
        assert!(text.contains("2 more are stuck, too (102, 103), so that 0 of 3 processes serve; 100 requests wait in the queue"), "{text}");
        assert!(text.starts_with("process 101"), "{text}");
    }

    #[test]
    fn busy_processes_with_a_queue_and_a_pool_that_keeps_up() {
        let well = STATUS.replace("Last used: 42m 17s", "Last used: 0s ago");
        assert_eq!(said(&well).0, StatementKind::WithinNorm);
        let full = well
            .replace("Requests in queue: 0", "Requests in queue: 12")
            .replace("PID: 103     Sessions: 0", "PID: 103     Sessions: 1")
            .replace("Last used: 3m 2s ago", "Last used: 2s ago");
        let (kind, text) = said(&full);
        assert_eq!(kind, StatementKind::Exhausted, "{text}");
        // Before Passenger 4 the figures have other names.
        let old = "max      = 2\ncount    = 2\nactive   = 0\ninactive = 2\nWaiting on global queue: 0\n\n/srv/a:\n  PID: 9    Sessions: 0    Processed: 3    Uptime: 4s\n";
        assert_eq!(said(old).0, StatementKind::WithinNorm);
    }
}
