//! Traces of slow requests in the logs of Kubernetes' API server and of other programs that use its library.
//!
//! In: `Trace[9120]: "Update" url:/api/v1/…,user-agent:…,client:… (started: …) (total time: 1204ms):`, and below it the steps with the same
//! number. Out: a statement for each kind of request: the longest, with its longest step, and how many there were.
//! Source: `k8s.io/utils/trace/trace.go`.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, length, name_of, ns_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("apiserver-traces", Family::Logs, recognise)
    .about("traces of slow requests of Kubernetes' API server");

/// Kinds of requests that are kept apart, and traces whose steps may still come.
const MAX_KINDS: usize = 200;
const MAX_OPEN: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    let known = holds(head, "Trace[") && any_line(head, |line| Begin::of(line).is_some());
    match known {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

/// The number of a trace, and what is behind it.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("Trace[")?;
    let (number, rest) = rest.split_once("]:")?;
    let is_number =
        !number.is_empty() && number.len() <= 12 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((number, rest.trim()))
}

/// The first line of a trace.
#[derive(Debug, PartialEq)]
struct Begin {
    number: String,
    name: String,
    seconds: f64,
}

impl Begin {
    fn of(line: &str) -> Option<Begin> {
        let (number, rest) = numbered(line)?;
        let (what, rest) = rest.split_once("(started:")?;
        let (_, total) = rest.split_once("(total time:")?;
        let seconds = length(total.split(')').next()?)?;
        // `"Update" url:/api/v1/nodes/a,user-agent:kubelet/v1.20,client:10.0.0.1`.
        let what = what.trim().trim_start_matches('"');
        let (verb, fields) = what.split_once('"').unwrap_or((what, ""));
        let mut name = verb.trim().to_owned();
        for field in fields.split(',') {
            let field = field.trim();
            let (key, value) = field.split_once(':').unwrap_or((field, ""));
            match key {
                "url" => name.push_str(&format!(" {}", value.split('?').next().unwrap_or(value))),
                "user-agent" => name.push_str(&format!(" by {}", value.split(' ').next().unwrap_or(value))),
                _ => {}
            }
        }
        Some(Begin {
            number: name_of(number),
            name: name_of(&name),
            seconds,
        })
    }
}

/// The verb and the kind of object of a request, by which requests are counted together: names of objects differ.
fn kind_of(name: &str) -> String {
    let mut words = name.split_whitespace();
    let verb = words.next().unwrap_or_default();
    let Some(url) = words.next().filter(|word| word.starts_with('/')) else {
        return name.to_owned();
    };
    // `/api/v1/namespaces/NAME/KIND/NAME`, `/apis/GROUP/VERSION/KIND/NAME`.
    let mut parts = url.split('/').filter(|part| !part.is_empty());
    let before = match parts.next() {
        Some("apis") => 2,
        _ => 1,
    };
    let parts: Vec<&str> = parts.skip(before).take(4).collect();
    let kind = match parts.as_slice() {
        ["namespaces", _, kind, ..] => kind,
        [kind, ..] => kind,
        [] => &url,
    };
    format!("{verb} {kind}")
}

/// A step: `---"Object stored in database" 1100ms (10:00:00.500)`, before 1.25 `[1.1s] [1.05s] Object stored in database`.
fn step(rest: &str) -> Option<(String, f64)> {
    if let Some(rest) = rest
        .trim_start_matches(['-', ' '])
        .strip_prefix('"')
        .filter(|_| rest.starts_with("--"))
    {
        let (name, rest) = rest.split_once('"')?;
        let words = rest.split_whitespace();
        let seconds = words.filter(|word| !word.starts_with('(')).find_map(length)?;
        return Some((name_of(name), seconds));
    }
    let (_, rest) = rest.strip_prefix('[')?.split_once("] [")?;
    let (seconds, name) = rest.split_once(']')?;
    // The last line is that of the end.
    let name = name.trim();
    (!matches!(name, "" | "END")).then_some((name_of(name), length(seconds)?))
}

#[derive(Debug)]
struct Request {
    name: String,
    seconds: f64,
    step: Option<(String, f64)>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    open: BTreeMap<String, Request>,
    /// By what is asked, without the names in it: the longest, and how many.
    kinds: Vec<(String, Request, u64)>,
}

impl Reader {
    fn settle(&mut self, request: Request, out: &mut Out<'_>) {
        let kind = kind_of(&request.name);
        if let Some((_, known, times)) = self.kinds.iter_mut().find(|(known, ..)| *known == kind) {
            *times = times.saturating_add(1);
            if request.seconds > known.seconds {
                *known = request;
            }
        } else if self.kinds.len() < MAX_KINDS {
            self.kinds.push((kind, request, 1));
        } else {
            out.account().left_out += 1;
        }
    }

    fn close(&mut self, out: &mut Out<'_>) {
        for request in std::mem::take(&mut self.open).into_values() {
            self.settle(request, out);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if let Some(begin) = Begin::of(&text) {
            if self.open.len() >= MAX_OPEN {
                self.close(out);
            }
            let request = Request {
                name: begin.name,
                seconds: begin.seconds,
                step: None,
                quote: out.here(),
            };
            if let Some(before) = self.open.insert(begin.number, request) {
                self.settle(before, out);
            }
            return Understood::Evidence;
        }
        let Some((number, rest)) = numbered(&text) else {
            return Understood::Ignorable;
        };
        if let Some(open) = self.open.get_mut(number)
            && let Some((name, seconds)) = step(rest)
            && open.step.as_ref().is_none_or(|(_, known)| seconds > *known)
        {
            open.step = Some((name, seconds));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        let told = |seconds: f64| duration(ns_of(seconds));
        for (_, request, times) in std::mem::take(&mut self.kinds) {
            let mut text = format!("{} took {}", request.name, told(request.seconds));
            if let Some((step, seconds)) = request.step {
                text.push_str(&format!(", of which the step `{step}` {}", told(seconds)));
            }
            if times > 1 {
                text.push_str(&format!("; the longest of {times} such requests"));
            }
            out.statement(Statement {
                times,
                ..statements::one(
                    StatementKind::Took,
                    Some(ns_of(request.seconds)),
                    request.quote,
                    text,
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_longest_request_and_its_longest_step() {
        let text = "I0405 10:00:02.000000       1 trace.go:205] Trace[91201]: \"Update\" url:/api/v1/namespaces/shop/configmaps/a,user-agent:\
            manager/v2 (linux),client:10.0.0.7 (started: 05-Apr-2024 10:00:00.000) (total time: 2000ms):\n\
            Trace[91201]: ---\"Conversion done\" 10ms (10:00:00.010)\nTrace[91201]: ---\"Object stored in database\" 1900ms (10:00:01.910)\n\
            Trace[91201]: [2.0s] [2.0s] END\n\
            I0405 10:00:09.000000       1 trace.go:205] Trace[91202]: \"Update\" url:/api/v1/nodes/b,user-agent:kubelet/v1.20 (started: \
            05-Apr-2024 10:00:08.000) (total time: 700ms):\n\
            I0405 10:00:10.000000       1 trace.go:205] Trace[91203]: \"Update\" url:/api/v1/namespaces/shop/configmaps/b,user-agent:\
            manager/v2 (linux),client:10.0.0.7 (started: 05-Apr-2024 10:00:09.000) (total time: 600ms):\n";
        let reading = read_text("k", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "apiserver-traces");
        assert_eq!(
            reading.texts(),
            [
                "Update /api/v1/namespaces/shop/configmaps/a by manager/v2 took 2.00 s, of which the step `Object stored in database` 1.90 s; \
                 the longest of 2 such requests",
                "Update /api/v1/nodes/b by kubelet/v1.20 took 700 ms",
            ]
        );
    }

    #[test]
    fn steps_of_older_versions() {
        let text = "Trace[7]: \"List etcd3\" key:/pods (started: 2020-04-05 10:00:00 +0000 UTC) (total time: 3.5s):\n\
            Trace[7]: [3.4s] [3.3s] Listing from storage done\nTrace[7]: [3.5s] [3.5s] END\n";
        assert_eq!(
            read_text("k", text.as_bytes()).texts(),
            ["List etcd3 took 3.50 s, of which the step `Listing from storage done` 3.30 s"]
        );
    }

    #[test]
    fn other_logs_are_none() {
        let text = "Trace[abc]: \"x\" (started: a) (total time: 3s):\nTrace[1]: nothing\n";
        assert_ne!(
            read_text("k", text.as_bytes()).observed.sources[0].format,
            "apiserver-traces"
        );
    }
}
