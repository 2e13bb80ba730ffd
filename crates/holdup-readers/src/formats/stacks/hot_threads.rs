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

    fn sentence(&self, node: &str, frame: &str) -> String {
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
        let frame = match frame {
            "" => String::new(),
            frame => format!(" in {frame}"),
        };
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
    thread: Option<(Hot, Quote, Option<String>)>,
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
        let text = hot.sentence(&self.node, frame.as_deref().unwrap_or_default());
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
            self.thread = Some((hot, out.here(), None));
            return Understood::Evidence;
        }
        let is_frame = text.ends_with(')') && text.contains('(') && !text.contains(' ');
        if let Some((_, _, frame)) = self.thread.as_mut().filter(|_| is_frame) {
            let call = text.rsplit('/').find(|part| part.contains('(')).unwrap_or(text);
            let own = !RUNTIME.iter().any(|package| call.starts_with(package));
            if own && frame.is_none() {
                *frame = Some(call.to_owned());
            }
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
