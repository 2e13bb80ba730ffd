//! `squidclient mgr:info` and `mgr:5min` of Squid: how long misses, hits and look-ups of names take, and how many requests are hits.
//!
//! In: lines of names and values; times are medians of 5 and of 60 minutes. Out: a statement about the service times, and one where Squid
//! has no descriptors left or used all of the one CPU that it can use. Source: `src/stat.cc` of Squid.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("squid-status", Family::Host, recognise).about("mgr:info and mgr:5min of Squid");

/// Seconds from which a request is long: up to one, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_REQUEST_SECONDS: f64 = 1.0;

/// Per cent of the time of one CPU, which is all that one process of Squid can use: it handles its requests in one thread.
const ONE_CPU_PERCENT: f64 = 100.0;

/// Digits behind the point of each time that `mgr:info` prints: `Cache Misses:` alone is in reports of other caches too.
const FRACTION_DIGITS: usize = 5;

/// The greatest number of seconds that is a time of a request and no mistake: eleven days.
const MAX_SECONDS: f64 = 1e6;

fn recognise(head: &[u8]) -> Sureness {
    let may =
        holds(head, "Squid Object Cache") || holds(head, "Cache Misses:") || holds(head, "median_svc_time");
    Sureness::certain_if(may && any_line(head, |line| Time::of(line).is_some()))
}

/// The times that are known, in the order in which they are told.
const TIMES: [&str; 5] = [
    "requests",
    "cache misses",
    "cache hits",
    "near hits",
    "DNS look-ups",
];

/// A line of a median.
#[derive(Debug, Clone, PartialEq)]
struct Time {
    /// Its place in `TIMES`.
    which: usize,
    seconds: f64,
    hour: Option<f64>,
}

impl Time {
    /// `Cache Misses:          0.12106  0.10281`, `client_http.miss_median_svc_time = 0.127833 seconds`.
    fn of(line: &str) -> Option<Time> {
        let (name, value) = line.split_once([':', '='])?;
        let which = match name.trim() {
            "HTTP Requests (All)" | "client_http.all_median_svc_time" => 0,
            "Cache Misses" | "client_http.miss_median_svc_time" => 1,
            "Cache Hits" | "client_http.hit_median_svc_time" => 2,
            "Near Hits" | "client_http.nh_median_svc_time" => 3,
            "DNS Lookups" | "dns.median_svc_time" => 4,
            _ => return None,
        };
        let words: Vec<&str> = value.split_whitespace().take(3).collect();
        let precise = |word: &str| {
            let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
            number(word).filter(|_| digits == FRACTION_DIGITS)
        };
        let (seconds, hour) = match words.as_slice() {
            [recent, hour] if !name.contains('.') => (precise(recent)?, Some(precise(hour)?)),
            [recent, "seconds"] if name.contains('.') => (number(recent)?, None),
            _ => return None,
        };
        (seconds < MAX_SECONDS).then_some(Time { which, seconds, hour })
    }
}

#[derive(Debug, Default)]
struct Reader {
    times: [Option<(f64, Option<f64>, Quote)>; TIMES.len()],
    /// `5min: 12.1%, 60min: 10.0%`.
    hits: String,
    /// Descriptors that are free, that are kept back, and all.
    free: Option<(f64, Quote)>,
    reserved: Option<f64>,
    all: Option<f64>,
    cpu: Option<(f64, Quote)>,
    rate: String,
}

impl Reader {
    fn name(&mut self, name: &str, value: &str, out: &Out<'_>) -> bool {
        let first = value.split_whitespace().next().unwrap_or_default();
        let figure = number(first.trim_end_matches(['%', ',']));
        match name {
            "Hits as % of all requests" | "Request Hit Ratios" => self.hits = name_of(value),
            "Available number of file descriptors" => self.free = figure.map(|free| (free, out.here())),
            "Reserved number of file descriptors" => self.reserved = figure,
            "Maximum number of file descriptors" => self.all = figure,
            // Of the last minutes, and not since the start.
            "CPU Usage, 5 minute avg" | "cpu_usage" => self.cpu = figure.map(|cpu| (cpu, out.here())),
            "client_http.requests" => self.rate = name_of(value),
            _ => return false,
        }
        true
    }

    fn of_times(&self) -> Option<Statement> {
        let told = |which: usize| self.times.get(which).and_then(Option::as_ref);
        let longest = |first: usize| {
            let all = (first..TIMES.len()).filter_map(|which| Some((which, told(which)?)));
            all.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0))
        };
        // What is made of the others comes last.
        let (which, (seconds, hour, quote)) =
            longest(1).filter(|(_, one)| one.0 > 0.0).or_else(|| longest(0))?;
        let of = TIMES.get(which)?;
        let mut text = format!("{of} of Squid take {} s at the median", rounded(*seconds));
        if let Some(hour) = hour {
            text.push_str(&format!(" of 5 min ({} s of 60 min)", rounded(*hour)));
        }
        for (other, name) in TIMES.iter().enumerate().filter(|(other, _)| *other != which) {
            if let Some((seconds, ..)) = told(other).filter(|(seconds, ..)| *seconds > 0.0) {
                text.push_str(&format!("; {name} {} s", rounded(*seconds)));
            }
        }
        if !self.hits.is_empty() {
            text.push_str(&format!("; hits as a share of all requests: {}", self.hits));
        }
        if !self.rate.is_empty() {
            text.push_str(&format!("; {} requests", self.rate));
        }
        if let Some((cpu, _)) = &self.cpu {
            text.push_str(&format!("; Squid used {} % of one CPU", rounded(*cpu)));
        }
        let kind = match *seconds >= LONG_REQUEST_SECONDS {
            true => StatementKind::Took,
            false => {
                text.push_str(&format!("; less than {LONG_REQUEST_SECONDS:.0} s is well"));
                StatementKind::WithinNorm
            }
        };
        Some(statements::one(kind, Some(ns_of(*seconds)), quote.clone(), text))
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("Squid Object Cache") {
            self.end(out);
            return Understood::Evidence;
        }
        if let Some(time) = Time::of(&text) {
            if self.times.get(time.which).is_some_and(Option::is_some) {
                self.end(out);
            }
            if let Some(place) = self.times.get_mut(time.which) {
                *place = Some((time.seconds, time.hour, out.here()));
            }
            return Understood::Evidence;
        }
        let pair = text.split_once([':', '=']);
        match pair.map(|(name, value)| self.name(name.trim(), value.trim(), out)) {
            Some(true) => Understood::Evidence,
            Some(false) => Understood::Ignorable,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        // Squid accepts no connection while fewer are free than are kept back.
        if let Some(((free, quote), reserved)) = read.free.as_ref().zip(read.reserved)
            && *free < reserved
        {
            let of = read.all.map_or_else(String::new, |all| format!(" of {all:.0}"));
            let text = format!(
                "Squid has {free:.0}{of} file descriptors left, and keeps {reserved:.0} back: it accepts no connection"
            );
            out.statement(statements::one(
                StatementKind::Exhausted,
                None,
                quote.clone(),
                text,
            ));
        }
        if let Some((cpu, quote)) = read.cpu.as_ref().filter(|(cpu, _)| *cpu >= ONE_CPU_PERCENT) {
            let text = format!(
                "Squid used {} % of one CPU within 5 min; one process of it cannot use more than one",
                rounded(*cpu)
            );
            out.statement(statements::one(
                StatementKind::Exhausted,
                None,
                quote.clone(),
                text,
            ));
        }
        if let Some(one) = read.of_times() {
            out.statement(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const INFO: &str = "Squid Object Cache: Version 5.7\nCache information for squid:\n\
        \tHits as % of all requests:\t5min: 8.4%, 60min: 9.1%\n\
        Median Service Times (seconds)  5 min    60 min:\n\
        \tHTTP Requests (All):   2.10310  0.19020\n\tCache Misses:          2.41700  0.22004\n\
        \tCache Hits:            0.00286  0.00179\n\tNear Hits:             0.00000  0.00000\n\
        \tDNS Lookups:           5.02300  0.04433\n\
        Resource usage for squid:\n\tCPU Usage:\t3.10%\n\tCPU Usage, 5 minute avg:\t4.20%\n\
        \tMaximum number of file descriptors:   16384\n\tAvailable number of file descriptors: 15000\n\
        \tReserved number of file descriptors:   100\n";

    #[test]
    fn what_takes_longest_and_the_rest_beside_it() {
        let reading = read_text("s", INFO.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "squid-status");
        assert_eq!(
            reading.texts(),
            [
                "DNS look-ups of Squid take 5.02 s at the median of 5 min (0.04 s of 60 min); requests 2.1 s; cache misses 2.42 s; \
                 cache hits 0.0029 s; hits as a share of all requests: 5min: 8.4%, 60min: 9.1%; Squid used 4.2 % of one CPU"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
    }

    #[test]
    fn a_quick_cache_is_well_and_one_without_descriptors_is_not() {
        let well = INFO
            .replace("5.02300", "0.02300")
            .replace("2.41700", "0.30000")
            .replace("2.10310", "0.20000");
        let reading = read_text("s", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
        let none = well.replace("15000", "12");
        let reading = read_text("s", none.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Exhausted);
    }

    #[test]
    fn an_excerpt_and_what_looks_alike() {
        let excerpt = "client_http.requests = 21.4/sec\nclient_http.miss_median_svc_time = 1.310 seconds\n\
            dns.median_svc_time = 0.020 seconds\ncpu_usage = 100.0%\n";
        let reading = read_text("s", excerpt.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "squid-status");
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Exhausted);
        for other in [
            "Cache Misses: many\nCache Hits: 12 of 30 requests\n",
            "Cache Hits: 9120\nCache Misses: 31\n",
            "Cache Hits: 0.90 0.80\nCache Misses: 0.10 0.20\n",
        ] {
            assert_ne!(
                read_text("s", other.as_bytes()).observed.sources[0].format,
                "squid-status",
                "{other}"
            );
        }
    }
}
