//! Load generators of HTTP: `ab`, `wrk`, `hey` and their kin.
//!
//! Out: how long a request took at the mean and at most, how many of all failed or were given up, and how many were answered a second.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("requests", Family::Times, recognise)
    .about("ab, wrk, hey")
    .openings(&["This is ApacheBench, "]);

/// Seconds from which a request is long: up to one, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_REQUEST_NS: Ns = 1_000_000_000;

/// The part of all requests from which failures are no chance.
pub(super) const MANY_FAIL: f64 = 0.01;

/// Bytes of a line that are looked at.
const LINE: usize = 300;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let has = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    let ab = has("Percentage of the requests served within a certain time")
        || has("Complete requests:")
        || has("This is ApacheBench")
        || has("Time per request:");
    let wrk = has("Thread Stats") || has("Requests/sec:") && (has("Latency ") || has("Transfer/sec:"));
    let hey = has("Requests/sec:") && has("Slowest:");
    match ab || wrk || hey {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    mean: Option<Ns>,
    longest: Option<Ns>,
    /// Of ab, at the mean: until it was connected, from then until the first byte of the answer, and in all.
    connected: Option<Ns>,
    first_byte: Option<Ns>,
    whole: Option<Ns>,
    /// `50 % within 21 ms`, `99 % within 214 ms`.
    half: Option<Ns>,
    most: Option<Ns>,
    requests: Option<f64>,
    failed: f64,
    /// Which of wrk's errors of sockets those are: `read 236`.
    errors: Vec<String>,
    /// Answers that say that something is wrong.
    refused: f64,
    timed_out: f64,
    rate: String,
    clients: String,
    target: String,
    /// What the generator itself gave up with.
    gave_up: Option<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE).unwrap_or(line)).replace("**", "");
        let text = text.trim();
        match self.take(text) {
            Some(()) => {
                self.quote.get_or_insert_with(|| out.here());
                Understood::Evidence
            }
            None if text.is_empty() => Understood::Ignorable,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some(quote) = self.quote.take() else { return };
        if let Some(one) = std::mem::take(self).says(&quote) {
            out.statement(one);
        }
    }
}

/// What stands behind a name.
fn behind<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)
        .map(|rest| rest.trim_start_matches([':', ' ', '\t']))
}

fn first(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn number(text: &str) -> Option<f64> {
    decimal(first(text).trim_end_matches(',').as_bytes()).filter(|value| *value >= 0.0)
}

/// `7.85s`, `812.44ms`, `95us`, `1.20m`; a bare number in a unit of its own.
fn length(word: &str, bare: f64) -> Option<Ns> {
    let at = word.find(|char: char| char.is_alphabetic()).unwrap_or(word.len());
    let (value, unit) = word.split_at_checked(at)?;
    let scale = match unit {
        "" => bare,
        "s" | "secs" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "m" => 60e9,
        "h" => 3_600e9,
        _ => return None,
    };
    let ns = decimal(value.as_bytes())? * scale;
    (0.0..1e15).contains(&ns).then_some(ns as Ns)
}

/// A row of ab's table: min, mean, deviation, median, max, in milliseconds.
fn mean_and_longest(row: &str) -> Option<(Ns, Ns)> {
    let all: Vec<&str> = row.split_whitespace().collect();
    let [_, mean, _, _, longest] = all.as_slice() else {
        return None;
    };
    Some((length(mean, 1e6)?, length(longest, 1e6)?))
}

impl Reader {
    /// What most of a long request's time is, by ab's table.
    fn phase(&self) -> Option<String> {
        let whole = self.whole.filter(|whole| *whole >= LONG_REQUEST_NS)?;
        let most = |part: &Ns| part.saturating_mul(2) > whole;
        let waited = self.first_byte.filter(most).map(|ns| {
            format!(
                "{} of it waiting for the first byte of the answer, which is the server's own time",
                duration(ns)
            )
        });
        let connected = self
            .connected
            .filter(most)
            .map(|ns| format!("{} of it connecting", duration(ns)));
        waited.or(connected)
    }

    /// Takes a line; `None` where it says nothing.
    fn take(&mut self, text: &str) -> Option<()> {
        self.of_ab(text).or_else(|| self.of_wrk(text))
    }

    fn of_ab(&mut self, text: &str) -> Option<()> {
        if let Some(rest) = behind(text, "Complete requests:") {
            self.requests = Some(number(rest)?);
        } else if let Some(rest) = behind(text, "Failed requests:") {
            self.failed = number(rest)?;
        } else if let Some(rest) = behind(text, "Non-2xx responses:") {
            self.refused = number(rest)?;
        } else if let Some(rest) = behind(text, "Concurrency Level:") {
            first(rest).clone_into(&mut self.clients);
        } else if let Some(rest) = behind(text, "Requests per second:") {
            first(rest).clone_into(&mut self.rate);
        } else if let Some(rest) = behind(text, "Document Path:") {
            first(rest).clone_into(&mut self.target);
        } else if let Some(rest) = behind(text, "Time per request:") {
            // The second of them is the time between two answers.
            let ns = length(first(rest), 1e6)?;
            self.mean = self
                .mean
                .max(Some(ns))
                .filter(|_| !rest.contains("across"))
                .or(self.mean);
        } else if let Some(rest) = behind(text, "Connect:") {
            self.connected = Some(mean_and_longest(rest)?.0);
        } else if let Some(rest) = behind(text, "Waiting:") {
            self.first_byte = Some(mean_and_longest(rest)?.0);
        } else if let Some(rest) = behind(text, "Total:") {
            let (mean, longest) = mean_and_longest(rest)?;
            (self.whole, self.longest) = (Some(mean), Some(longest));
        } else if let Some(rest) = behind(text, "50% ") {
            self.half = Some(length(first(rest), 1e6)?);
        } else if let Some(rest) = behind(text, "99% ") {
            self.most = Some(length(first(rest), 1e6)?);
        } else if let Some(rest) = behind(text, "100% ") {
            self.longest = Some(length(first(rest), 1e6)?);
        } else if let Some(rest) = behind(text, "Total of ") {
            self.requests = Some(number(rest)?);
        } else if text.starts_with("apr_") && text.contains(": ") {
            self.gave_up = Some(text.chars().take(LINE).collect());
        } else {
            return None;
        }
        Some(())
    }

    fn of_wrk(&mut self, text: &str) -> Option<()> {
        if let Some(rest) = behind(text, "Latency ") {
            let mut words = rest.split_whitespace();
            let (mean, _, longest) = (words.next()?, words.next(), words.next());
            self.mean = Some(length(mean, 1e9)?);
            self.longest = longest.and_then(|word| length(word, 1e9));
        } else if let Some(rest) = behind(text, "Socket errors:") {
            for part in rest.split(',') {
                let (name, count) = part.trim().split_once(' ')?;
                let count = number(count)?;
                match name {
                    "timeout" => self.timed_out = count,
                    _ if count > 0.0 => {
                        self.failed += count;
                        self.errors.push(part.trim().to_owned());
                    }
                    _ => {}
                }
            }
        } else if let Some(rest) = behind(text, "Non-2xx or 3xx responses:") {
            self.refused = number(rest)?;
        } else if let Some(rest) = behind(text, "Requests/sec:") {
            first(rest).clone_into(&mut self.rate);
        } else if let Some(rest) = behind(text, "Average:") {
            self.mean = Some(length(first(rest), 1e9)?);
        } else if let Some(rest) = behind(text, "Slowest:") {
            self.longest = Some(length(first(rest), 1e9)?);
        } else if let Some(rest) = text.strip_prefix("99%").map(str::trim_start) {
            self.most = Some(length(first(rest.trim_start_matches("in ")), 1e9)?);
        } else if text.contains(" requests in ") {
            self.requests = Some(number(text)?);
        } else {
            return None;
        }
        Some(())
    }

    fn says(self, quote: &Quote) -> Option<Statement> {
        let mut listed = Vec::new();
        // Of no request there is no length.
        let none = self.requests == Some(0.0);
        if let Some(mean) = self.mean.filter(|_| !none) {
            let phase = self
                .phase()
                .map_or_else(String::new, |phase| format!(", {phase}"));
            listed.push(format!("a request took {} at the mean{phase}", duration(mean)));
        }
        // Of a mean nothing is known where only the table of percentiles was copied.
        let half = self.half.filter(|_| self.mean.is_none());
        if let Some(half) = half {
            listed.push(format!("half of all requests took at most {}", duration(half)));
        }
        if let Some(most) = self.most.filter(|_| !none) {
            listed.push(format!("99 % of them at most {}", duration(most)));
        }
        if let Some(longest) = self.longest.filter(|_| !none) {
            let times = half
                .filter(|half| *half > 0)
                .map(|half| longest / half)
                .filter(|times| *times > 1)
                .map_or_else(String::new, |times| format!(", {times} times the half's"));
            listed.push(format!("the longest {}{times}", duration(longest)));
        }
        let of_all = self
            .requests
            .map_or_else(String::new, |all| format!(" of {all:.0} requests"));
        if self.timed_out > 0.0 {
            listed.push(format!("{:.0} timed out{}", self.timed_out, of_all));
        }
        if self.failed > 0.0 {
            let which = match self.errors.as_slice() {
                [] => String::new(),
                errors => format!(" (socket errors: {})", errors.join(", ")),
            };
            listed.push(format!("{:.0} failed{of_all}{which}", self.failed));
        }
        if self.refused > 0.0 {
            listed.push(format!(
                "{:.0} got an answer other than 2xx{}",
                self.refused, of_all
            ));
        }
        if let Some(gave_up) = &self.gave_up {
            let after = self
                .requests
                .map_or_else(String::new, |all| format!(" after {all:.0} requests"));
            listed.push(format!("the test ended with `{gave_up}`{after}"));
        }
        let part = |before: &str, value: &str, behind: &str| match value {
            "" => String::new(),
            value => format!("{before}{value}{behind}"),
        };
        let served = part("", &self.rate, " requests a second");
        if !served.is_empty() {
            listed.push(format!(
                "{served}{}",
                part(" with ", &self.clients, " clients at once")
            ));
        }
        let failed = self.failed.max(self.refused);
        let fails = failed / self.requests.unwrap_or(failed).max(1.0) >= MANY_FAIL;
        let kind = if self.timed_out > 0.0 || self.gave_up.is_some() {
            StatementKind::TimedOut
        } else if failed > 0.0 && fails {
            StatementKind::Failed
        } else if self
            .mean
            .or(self.most.filter(|_| half.is_some()))
            .is_some_and(|ns| ns >= LONG_REQUEST_NS)
        {
            StatementKind::Took
        } else if self.mean.is_some() || self.longest.is_some() {
            listed.push(format!("from {} on a request is long", duration(LONG_REQUEST_NS)));
            StatementKind::WithinNorm
        } else {
            return None;
        };
        let text = format!("{}{}", part("", &self.target, ": "), listed.join("; "));
        Some(statements::one(
            kind,
            self.longest.or(self.mean),
            quote.clone(),
            text,
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("b", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "requests");
        let statements = reading.observed.statements.into_iter();
        statements.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn wrk_says_how_long_and_how_many_were_given_up() {
        let text = "Running 30s test @ http://a/\n  2 threads and 50 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     3.20s     1.75s    6.54s    80.39%\n    Req/Sec     1.82      3.58    30.00     91.95%\n  120 requests in 30.10s, 61.57KB read\n  Socket errors: connect 0, read 0, write 0, timeout 14\nRequests/sec:      3.99\n";
        assert_eq!(
            said(text),
            [(
                StatementKind::TimedOut,
                "a request took 3.20 s at the mean; the longest 6.54 s; 14 timed out of 120 requests; 3.99 requests a second"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn ab_says_what_most_of_a_long_request_is() {
        let text = |connect: u32, waiting: u32| {
            format!(
                "Concurrency Level:      80\nComplete requests:      400\nFailed requests:        0\nTime per request:       3100.5 [ms] (mean)\n\
                 Connection Times (ms)\n              min  mean[+/-sd] median   max\nConnect:       20  {connect} 28.0     41     900\n\
                 Processing:   210 {waiting} 62.2   2862   7670\nWaiting:      210 {waiting} 62.1   2862   7670\n\
                 Total:        259 3050 819.9   2962   8748\n"
            )
        };
        let first = |connect, waiting| said(&text(connect, waiting))[0].1.clone();
        assert!(
            first(50, 3000)
                .starts_with("a request took 3.10 s at the mean, 3.00 s of it waiting for the first byte")
        );
        assert!(first(2900, 150).starts_with("a request took 3.10 s at the mean, 2.90 s of it connecting;"));
        assert!(first(1500, 1500).starts_with("a request took 3.10 s at the mean; "));
    }

    #[test]
    fn of_a_table_of_percentiles_the_tail_is_told() {
        let text = "Percentage of the requests served within a certain time (ms)\n  50%    310\n  90%    795\n  99%   2484\n 100%   6355 (longest request)\n";
        assert_eq!(
            said(text),
            [(
                StatementKind::Took,
                "half of all requests took at most 310 ms; 99 % of them at most 2.48 s; the longest 6.36 s, 20 times the half's".to_owned()
            )]
        );
        let even = text.replace("2484", "484").replace("6355", "635");
        assert_eq!(said(&even)[0].0, StatementKind::WithinNorm);
    }

    #[test]
    fn ab_says_what_failed_and_what_is_within_the_norm() {
        let text = "Document Path:          /a\nConcurrency Level:      60\nComplete requests:      1000\nFailed requests:        0\nNon-2xx responses:      900\nRequests per second:    45.10 [#/sec] (mean)\nTime per request:       131.260 [ms] (mean)\nTime per request:       2.188 [ms] (mean, across all concurrent requests)\n  99%    3336\n 100%   9012 (longest request)\n";
        assert_eq!(
            said(text),
            [(
                StatementKind::Failed,
                "/a: a request took 131 ms at the mean; 99 % of them at most 3.34 s; the longest 9.01 s; 900 got an answer other than 2xx of 1000 requests; 45.10 requests a second with 60 clients at once".to_owned()
            )]
        );
        let well = text.replace("Non-2xx responses:      900\n", "");
        assert_eq!(said(&well)[0].0, StatementKind::WithinNorm);
        let ended = "This is ApacheBench, Version 2.3\nCompleted 500 requests\napr_socket_recv: Operation timed out (60)\nTotal of 633 requests completed\n";
        assert_eq!(
            said(ended),
            [(
                StatementKind::TimedOut,
                "the test ended with `apr_socket_recv: Operation timed out (60)` after 633 requests"
                    .to_owned()
            )]
        );
    }
}
