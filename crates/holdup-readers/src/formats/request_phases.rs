//! The phases of requests, as browsers and `httpstat` show them: HAR files, the copied "Timing" of a browser's tools, the table of httpstat.
//!
//! In: names of phases with their lengths. Out: a statement about the longest request: which phase has most of its time, and what that phase
//! is. Source: the HAR 1.2 specification, and the documentation of Chrome's network panel.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, length, name_of, ns_of, number};
use crate::gather::{Out, text_of};
use crate::lines::MAX_LINE_BYTES;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("request-phases", Family::Times, recognise)
    .about("HAR files, timings of browsers, httpstat");

/// Bytes of a line of text, of one value and of one number that are looked at.
const LINE_BYTES: usize = 64 << 10;
const VALUE: usize = 200;
const NUMBER: usize = 30;

/// Seconds from which a request is long: up to one, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_SECONDS: f64 = 1.0;

/// Phases that are needed to know what a text is.
const MIN_PHASES: usize = 3;

/// What happens to a request, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Queued,
    Lookup,
    Connect,
    Handshake,
    Sent,
    Server,
    Transfer,
}

const PHASES: usize = 7;

impl Phase {
    fn is(self) -> &'static str {
        match self {
            Phase::Queued => {
                "the wait for a free connection (queued or blocked by other requests, or by the proxy)"
            }
            Phase::Lookup => "the lookup of the name (DNS)",
            Phase::Connect => "the connection (TCP)",
            Phase::Handshake => "the handshake (TLS)",
            Phase::Sent => "sending the request",
            Phase::Server => "the server's own work until its first byte",
            Phase::Transfer => "the transfer of the answer",
        }
    }

    /// By the name of a HAR file's timings.
    fn of_har(name: &str) -> Option<Phase> {
        Some(match name {
            "blocked" => Phase::Queued,
            "dns" => Phase::Lookup,
            "connect" => Phase::Connect,
            "ssl" => Phase::Handshake,
            "send" => Phase::Sent,
            "wait" => Phase::Server,
            "receive" => Phase::Transfer,
            _ => return None,
        })
    }

    /// By the words of a browser's panel, and of httpstat.
    fn of_words(name: &str) -> Option<Phase> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "stalled" | "queueing" | "blocked" | "proxy negotiation" => Phase::Queued,
            "dns lookup" | "dns resolution" => Phase::Lookup,
            "initial connection" | "tcp connection" | "connecting" => Phase::Connect,
            "ssl" | "tls setup" | "tls handshake" | "ssl handshake" => Phase::Handshake,
            "request sent" | "sending" => Phase::Sent,
            "waiting for server response" | "waiting (ttfb)" | "waiting" | "server processing" => {
                Phase::Server
            }
            "content download" | "receiving" | "content transfer" => Phase::Transfer,
            _ => return None,
        })
    }
}

const ALL: [Phase; PHASES] = [
    Phase::Queued,
    Phase::Lookup,
    Phase::Connect,
    Phase::Handshake,
    Phase::Sent,
    Phase::Server,
    Phase::Transfer,
];

/// `Stalled 4.81 s`: the phase and its seconds.
fn of_panel(text: &str) -> Option<(Phase, f64)> {
    let at = text.find(|char: char| char.is_ascii_digit())?;
    let (name, value) = text.split_at_checked(at)?;
    let phase = Phase::of_words(name.trim_end_matches([' ', '\t', ':']))?;
    Some((phase, length(value)?))
}

/// The phases that the head of httpstat's table names.
fn of_table(text: &str) -> Vec<Phase> {
    let names = text.split("  ").map(str::trim).filter(|name| !name.is_empty());
    let all: Option<Vec<Phase>> = names.map(Phase::of_words).collect();
    all.filter(|all| all.len() >= MIN_PHASES).unwrap_or_default()
}

fn recognise(head: &[u8]) -> Sureness {
    let har = holds(head, "\"timings\"") && holds(head, "\"receive\"") && holds(head, "\"wait\"");
    let text = text_of(head);
    let lines = || text.lines().map(str::trim);
    let panel = lines().filter(|line| of_panel(line).is_some()).count() >= MIN_PHASES
        && (holds(head, "Content Download") || holds(head, "Waiting for server response"));
    Sureness::certain_if(har || panel || lines().any(|line| !of_table(line).is_empty()))
}

#[derive(Debug, Clone, Default)]
struct Request {
    url: String,
    /// Seconds by phase.
    phases: [Option<f64>; PHASES],
    /// Whether the handshake is within the connection, as HAR files have it.
    nested: bool,
    quote: Option<Quote>,
}

impl Request {
    fn own(&self, phase: Phase) -> f64 {
        let of = |phase: Phase| self.phases.get(phase as usize).copied().flatten().unwrap_or(0.0);
        match phase {
            Phase::Connect if self.nested => (of(Phase::Connect) - of(Phase::Handshake)).max(0.0),
            phase => of(phase),
        }
    }

    fn total(&self) -> f64 {
        ALL.into_iter().map(|phase| self.own(phase)).sum()
    }

    fn put(&mut self, phase: Phase, seconds: f64, quote: Quote) {
        if let Some(known) = self.phases.get_mut(phase as usize) {
            *known = Some(known.unwrap_or(0.0) + seconds.max(0.0));
        }
        self.quote.get_or_insert(quote);
    }
}

#[derive(Debug, Default)]
struct Reader {
    request: Request,
    worst: Option<Request>,
    requests: u64,
    /// Whether the next address is the request's own.
    of_request: bool,
    /// Whether requests may be missing, because a line was too long to be read whole.
    cut: bool,
    /// The phases of the table of which the next line has the lengths.
    table: Vec<Phase>,
}

impl Reader {
    /// The request is over.
    fn close(&mut self) {
        let one = std::mem::take(&mut self.request);
        if one.quote.is_none() {
            self.request.url = one.url;
            return;
        }
        self.requests += 1;
        if self
            .worst
            .as_ref()
            .is_none_or(|worst| one.total() > worst.total())
        {
            self.worst = Some(one);
        }
    }

    /// A line of a HAR file: names and values in quotation marks, many or one in a line.
    fn har(&mut self, text: &str, out: &Out<'_>) -> bool {
        let mut any = false;
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once('"') {
            let Some((name, behind)) = behind.split_once('"') else {
                break;
            };
            let Some(value) = behind.trim_start().strip_prefix(':').map(str::trim_start) else {
                rest = behind;
                continue;
            };
            rest = value;
            match name {
                "startedDateTime" => self.close(),
                // Who began it stands before it in some files, with an address of its own.
                "request" if value.starts_with('{') => {
                    self.close();
                    self.of_request = true;
                }
                "url" if std::mem::take(&mut self.of_request) => {
                    let url = value
                        .trim_start_matches('"')
                        .split('"')
                        .next()
                        .unwrap_or_default();
                    self.request.url = name_of(url.get(..VALUE).unwrap_or(url));
                }
                name => {
                    let Some(phase) = Phase::of_har(name) else {
                        continue;
                    };
                    let ends = |byte: u8| matches!(byte, b',' | b'}' | b' ' | b'\n');
                    let end = value.bytes().take(NUMBER).position(ends);
                    let digits = value
                        .get(..end.unwrap_or(value.len().min(NUMBER)))
                        .unwrap_or_default();
                    // What did not happen is -1.
                    if let Some(ms) = number(digits.trim_start_matches('-')) {
                        let ms = if digits.starts_with('-') { 0.0 } else { ms };
                        self.request.put(phase, ms / 1e3, out.here());
                        self.request.nested = true;
                        any = true;
                    }
                }
            }
        }
        any
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        // A file that a program wrote is often a single line.
        if line.contains(&b'"') {
            self.cut |= line.len() >= MAX_LINE_BYTES;
            return match self.har(text_of(line).trim(), out) {
                true => Understood::Evidence,
                false => Understood::Ignorable,
            };
        }
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let text = text.trim();
        let table = of_table(text);
        if !table.is_empty() {
            self.close();
            self.table = table;
            return Understood::Evidence;
        }
        if text.starts_with('[') && !self.table.is_empty() {
            let cells = text.trim_matches(['[', ']']).split('|');
            for (phase, cell) in std::mem::take(&mut self.table).into_iter().zip(cells) {
                if let Some(seconds) = length(cell) {
                    self.request.put(phase, seconds, out.here());
                }
            }
            return Understood::Evidence;
        }
        if text.starts_with("Queued at") {
            self.close();
        }
        match of_panel(text) {
            Some((phase, seconds)) => {
                self.request.put(phase, seconds, out.here());
                Understood::Evidence
            }
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        let Some(worst) = read.worst else { return };
        let total = worst.total();
        let most = ALL
            .into_iter()
            .max_by(|one, other| worst.own(*one).total_cmp(&worst.own(*other)));
        let (Some(most), Some(quote)) = (most.filter(|_| total > 0.0), worst.quote.clone()) else {
            return;
        };
        let told = |seconds: f64| duration(ns_of(seconds));
        let url = match worst.url.as_str() {
            "" => "the request".to_owned(),
            url => format!("the request of {url}"),
        };
        let mut text = format!(
            "{url} took {}, and {} of it ({}) was {}",
            told(total),
            told(worst.own(most)),
            whole_percent(ns_of(worst.own(most)), ns_of(total)),
            most.is()
        );
        if most != Phase::Server && worst.own(Phase::Server) > 0.0 {
            text.push_str(&format!(
                "; the server itself needed {}",
                told(worst.own(Phase::Server))
            ));
        }
        // Of what is missing nobody knows how long it took.
        if read.cut && total < LONG_SECONDS {
            return;
        }
        if read.requests > 1 && !read.cut {
            text.push_str(&format!("; it is the longest of {} requests", read.requests));
        }
        let kind = match total >= LONG_SECONDS {
            true => StatementKind::Took,
            false => StatementKind::WithinNorm,
        };
        out.statement(Statement {
            ns: Some(ns_of(total)),
            ..statements::one(kind, None, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("r", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "request-phases");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        (one.kind, one.text.clone())
    }

    const HAR: &str = "{\n \"log\": {\n  \"entries\": [\n   {\"startedDateTime\": \"2026-03-03T10:00:00.123Z\", \"time\": 5412.3,\n    \
        \"request\": {\"method\": \"GET\", \"url\": \"https://shop.example/api/cart\"},\n    \
        \"timings\": {\"blocked\": 4812.1, \"dns\": -1, \"connect\": -1, \"ssl\": -1, \"send\": 0.2, \"wait\": 512.3, \"receive\": 87.7}},\n   \
        {\"startedDateTime\": \"2026-03-03T10:00:01.123Z\", \"time\": 91.3,\n    \"request\": {\"url\": \"https://shop.example/logo.png\"},\n    \
        \"timings\": {\n     \"blocked\": 1.1,\n     \"dns\": 3,\n     \"connect\": 12,\n     \"ssl\": 8,\n     \"send\": 0.2,\n     \"wait\": 61.3,\n     \"receive\": 5.7\n    }}\n  ]\n }\n}\n";

    #[test]
    fn of_a_har_file_the_longest_request() {
        let told = "the request of https://shop.example/api/cart took 5.41 s, and 4.81 s of it (89 %) was the wait for a free connection (queued or \
                    blocked by other requests, or by the proxy); the server itself needed 512 ms; it is the longest of 2 requests";
        assert_eq!(said(HAR), (StatementKind::Took, told.to_owned()));
        let fast = HAR.replace("4812.1", "2.1");
        assert_eq!(said(&fast).0, StatementKind::WithinNorm);
    }

    #[test]
    fn a_har_file_in_a_single_line_is_read_to_its_end() {
        let entry = |wait: f64| {
            format!(
                "{{\"startedDateTime\":\"2026-03-03T10:00:00.123Z\",\"request\":{{\"url\":\"https://shop.example/a\"}},\"timings\":{{\"blocked\":1,\
                 \"send\":0.2,\"wait\":{wait},\"receive\":0.7}}}}"
            )
        };
        let file = |fast: usize| {
            let all: Vec<String> = std::iter::repeat_n(12.3, fast)
                .chain([9_000.5])
                .map(entry)
                .collect();
            format!("{{\"log\":{{\"entries\":[{}]}}}}", all.join(","))
        };
        let (kind, told) = said(&file(1_500));
        assert_eq!(kind, StatementKind::Took);
        assert!(
            told.starts_with("the request of https://shop.example/a took 9.00 s")
                && told.ends_with("the longest of 1501 requests"),
            "{told}"
        );
        // Of one that is longer than any line the end is not read.
        assert_eq!(read_text("r", file(8_000).as_bytes()).observed.statements, []);
        // Values without an end.
        let hostile = format!("\"timings\"\"receive\"\"wait\"{}", "\"wait\":".repeat(120_000));
        let _ = read_text("r", hostile.as_bytes());
    }

    #[test]
    fn of_a_browsers_panel_and_of_httpstat() {
        let text = "Queued at 1.21 s\nStarted at 1.22 s\nResource Scheduling\nQueueing 3.12 ms\nConnection Start\nStalled 12.40 ms\nDNS Lookup 5.01 s\n\
            Request/Response\nRequest sent 0.21 ms\nWaiting for server response 512.33 ms\nContent Download 87.71 ms\n";
        let (kind, told) = said(text);
        assert_eq!(kind, StatementKind::Took);
        assert!(
            told.contains("5.01 s of it (89 %) was the lookup of the name (DNS)"),
            "{told}"
        );
        let text = "  DNS Lookup   TCP Connection   TLS Handshake   Server Processing   Content Transfer\n\
            [     5ms    |      12ms      |     31ms      |      4100ms       |        2ms       ]\n             |                |\n    namelookup:5ms\n";
        let (kind, told) = said(text);
        assert_eq!(kind, StatementKind::Took);
        assert!(
            told.contains("4.10 s of it (99 %) was the server's own work"),
            "{told}"
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "Waiting 3 s\nBlocked 4 s\n",
            "\"timings\": 3",
            "DNS Lookup   x   y\n",
        ] {
            assert_ne!(
                read_text("r", text.as_bytes()).observed.sources[0].format,
                "request-phases"
            );
        }
        for text in [
            "\"timings\"\"receive\"\"wait\": \"\" : \"wait\":x",
            "\"timings\":{\"receive\":-,\"wait\":9e99",
        ] {
            let _ = read_text("r", text.as_bytes());
        }
    }
}
