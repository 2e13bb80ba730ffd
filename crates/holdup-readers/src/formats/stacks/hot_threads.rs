//! The busiest threads of a node of Elasticsearch or OpenSearch: `GET _nodes/hot_threads`.
//!
//! In: for each node a heading, and its threads with a share of an interval and the frames that several snapshots share. Out: a statement
//! for each thread: how much of a CPU it used, or for how long it was blocked or waited, and in which function.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("hot-threads", Family::Threads, recognise)
    .about("hot threads of Elasticsearch or OpenSearch")
    .openings(&["Hot threads at "]);

/// Lines of the beginning that are looked at, and bytes of a line.
const LOOKED_AT: usize = 200;
const LINE: usize = 600;

/// Threads that are kept.
const THREADS: usize = 500;

/// Packages of the runtime, whose functions do not say for what.
const RUNTIME: [&str; 5] = ["java.", "jdk.", "sun.", "javax.", "com.sun."];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    Sureness::certain_if(lines.any(|line| Hot::of(&text_of(line.get(..LINE).unwrap_or(line))).is_some()))
}

/// Parts of names of classes that run the work of others, and functions that only call what was given to them: neither says what is done.
const CARRIERS: [&str; 4] = [
    ".util.concurrent.",
    "ThreadContext$",
    "TimedRunnable",
    "ActionRunnable",
];
const CALLS: [&str; 6] = ["run", "doRun", "call", "accept", "apply", "onResponse"];

/// The package of the requests of a node: what is behind it names the request (`bulk`, `search`, `get`).
const REQUESTS: [&str; 2] = ["org.elasticsearch.action.", "org.opensearch.action."];

/// Packages of requests that carry any of them.
const ANY_REQUEST: [&str; 3] = ["support", "internal", "resync"];

/// Whether a function only runs what was given to it.
fn carries(call: &str) -> bool {
    let function = call.split('(').next().unwrap_or_default();
    let name = function.rsplit('.').next().unwrap_or_default();
    CARRIERS.iter().any(|part| function.contains(part)) || CALLS.contains(&name)
}

/// The request that a function belongs to: `bulk` of `org.elasticsearch.action.bulk.TransportShardBulkAction.performOnPrimary`.
fn request(call: &str) -> Option<&str> {
    let rest = REQUESTS.iter().find_map(|package| call.strip_prefix(package))?;
    let name = rest.split('.').next()?;
    let lower = name.bytes().all(|byte| byte.is_ascii_lowercase());
    (lower && !ANY_REQUEST.contains(&name)).then_some(name)
}

/// The functions of a stack that say what is done, innermost first.
#[derive(Debug, Default)]
struct Does {
    /// The innermost of the program's own.
    inner: Option<String>,
    /// The innermost of those that do more than to run what was given to them.
    telling: Option<String>,
    /// The innermost that belongs to a request.
    request: Option<String>,
}

impl Does {
    fn frame(&mut self, call: &str) {
        if RUNTIME.iter().any(|package| call.starts_with(package)) {
            return;
        }
        let keep = |place: &mut Option<String>| {
            if place.is_none() {
                *place = Some(call.to_owned());
            }
        };
        keep(&mut self.inner);
        if !carries(call) {
            keep(&mut self.telling);
        }
        if request(call).is_some() {
            keep(&mut self.request);
        }
    }

    /// ` in FUNCTION, for a request of the kind KIND (FUNCTION)`.
    fn sentence(&self) -> String {
        let Some(at) = self.telling.as_ref().or(self.inner.as_ref()) else {
            return String::new();
        };
        let of = self
            .request
            .as_ref()
            .and_then(|call| Some((request(call)?, call)));
        match of {
            Some((kind, call)) if call == at => format!(" in {at}, for a {kind} request"),
            Some((kind, call)) => format!(" in {at}, for a {kind} request ({call})"),
            None => format!(" in {at}"),
        }
    }
}

/// A thread's heading: `  97.4% (487.1ms out of 500ms) cpu usage by thread 'NAME'`.
#[derive(Debug, PartialEq)]
struct Hot {
    share: f64,
    ns: Ns,
    /// `cpu`, `block`, `wait`.
    kind: String,
    /// `487.1ms out of 500ms`.
    amount: String,
    name: String,
}

impl Hot {
    fn of(line: &str) -> Option<Hot> {
        let (share, rest) = line.trim().split_once('%')?;
        let share = decimal(share.as_bytes())?;
        // Since 8.0 with more figures in brackets: `[cpu=60.2%, other=0.0%] (301ms out of 500ms)`.
        let (_, rest) = rest.split_once('(')?;
        let (amount, rest) = rest.split_once(") ")?;
        let (kind, rest) = rest.split_once(" usage by thread '")?;
        let length = amount.split_once(" out of ").map(|(length, _)| length)?;
        Some(Hot {
            share: share / 100.0,
            ns: length_of(length)?,
            kind: kind.to_owned(),
            amount: amount.to_owned(),
            name: rest.trim_end_matches('\'').to_owned(),
        })
    }

    fn sentence(&self, node: &str, frame: &Does) -> String {
        let does = match self.kind.as_str() {
            "cpu" => "used",
            "block" => "was blocked for",
            _ => "waited for",
        };
        let what = match self.kind.as_str() {
            "cpu" => "of a CPU",
            _ => "of the time",
        };
        let node = match node {
            "" => String::new(),
            node => format!(" on node {node}"),
        };
        let frame = frame.sentence();
        format!(
            "thread {} {does} {:.1} % {what} ({}){frame}{node}",
            self.name,
            self.share * 100.0,
            self.amount
        )
    }
}

/// `487.1ms`, `1.2s`, `500micros`.
fn length_of(text: &str) -> Option<Ns> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "s" => 1e9,
        "ms" => 1e6,
        "micros" => 1e3,
        "nanos" => 1.0,
        _ => return None,
    };
    let ns = decimal(digits.as_bytes())? * unit;
    (0.0..1e18).contains(&ns).then_some(ns as Ns)
}

#[derive(Debug, Default)]
struct Reader {
    node: String,
    thread: Option<(Hot, Quote, Does)>,
    kept: usize,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some((hot, quote, frame)) = self.thread.take() else {
            return;
        };
        self.kept += 1;
        if self.kept > THREADS {
            out.account().left_out += 1;
            return;
        }
        let text = hot.sentence(&self.node, &frame);
        out.statement(Statement {
            share: Some(hot.share),
            ..statements::one(StatementKind::Took, Some(hot.ns), quote, text)
        });
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE).unwrap_or(line));
        let text = text.trim();
        if let Some(node) = text.strip_prefix("::: ") {
            self.close(out);
            let name = node.trim_start_matches(['{', '[']);
            self.node = name.split(['}', ']']).next().unwrap_or_default().to_owned();
            return Understood::Evidence;
        }
        if let Some(hot) = Hot::of(text) {
            self.close(out);
            self.thread = Some((hot, out.here(), Does::default()));
            return Understood::Evidence;
        }
        let is_frame = text.ends_with(')') && text.contains('(') && !text.contains(' ');
        if let Some((_, _, frame)) = self.thread.as_mut().filter(|_| is_frame) {
            let call = text.rsplit('/').find(|part| part.contains('(')).unwrap_or(text);
            frame.frame(call);
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use super::Hot;
    use crate::read_text;

    #[test]
    fn a_thread_with_its_node_and_the_function_that_says_for_what() {
        let text = "::: {data-3}{aBc}{10.0.0.3}\n   Hot threads at 2024-03-03T10:00:00Z, interval=500ms, busiestThreads=3:\n\n\
            \x20  88.2% (441ms out of 500ms) cpu usage by thread 'elasticsearch[data-3][write][T#2]'\n\
            \x20    10/10 snapshots sharing following 3 elements\n       java.base@17/java.util.HashMap.get(HashMap.java:5)\n\
            \x20      app//org.example.Index.add(Index.java:44)\n       org.example.Bulk.run(Bulk.java:4)\n\n\
            \x20  3.1% [cpu=3.1%, other=0.0%] (15.5ms out of 500ms) cpu usage by thread 'other'\n     unique snapshot\n";
        let reading = read_text("h", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "hot-threads");
        let said = &reading.observed.statements;
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(
            said[0].text,
            "thread elasticsearch[data-3][write][T#2] used 88.2 % of a CPU (441ms out of 500ms) in org.example.Index.add(Index.java:44) on node data-3"
        );
        assert_eq!(said[0].share, Some(0.882));
    }

    #[test]
    fn functions_that_run_the_work_of_others_do_not_say_what_is_done() {
        let text = "  99.0% [cpu=98.0%, other=1.0%] (495ms out of 500ms) cpu usage by thread 'elasticsearch[n][search][T#1]'\n\
            \x20    10/10 snapshots sharing following 4 elements\n       app//org.elasticsearch.common.util.concurrent.AbstractRunnable.run(AbstractRunnable.java:2)\n\
            \x20      app//org.elasticsearch.search.SearchService.run(SearchService.java:1)\n\
            \x20      app//org.elasticsearch.search.aggregations.Sum.collect(Sum.java:31)\n\
            \x20      app//org.elasticsearch.action.support.HandledTransportAction.execute(HandledTransportAction.java:1)\n\
            \x20      app//org.elasticsearch.action.search.SearchTransportService.call(SearchTransportService.java:9)\n";
        let said = &read_text("h", text.as_bytes()).observed.statements;
        assert!(
            said[0].text.ends_with(
                "in org.elasticsearch.search.aggregations.Sum.collect(Sum.java:31), for a search request \
                 (org.elasticsearch.action.search.SearchTransportService.call(SearchTransportService.java:9))"
            ),
            "{said:?}"
        );
        // Where nothing else is there, the one that runs it is told.
        let short = text.lines().take(3).collect::<Vec<_>>().join("\n");
        let said = &read_text("h", short.as_bytes()).observed.statements;
        assert!(
            said[0]
                .text
                .contains("in org.elasticsearch.common.util.concurrent.AbstractRunnable.run"),
            "{said:?}"
        );
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "%",
            "5% (",
            "5% (a) cpu usage by thread 'x'",
            "a% (1ms out of 2ms) cpu usage by thread 'x'",
        ] {
            assert_eq!(Hot::of(line), None, "{line}");
        }
    }
}
