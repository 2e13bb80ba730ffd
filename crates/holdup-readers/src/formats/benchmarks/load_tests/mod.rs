//! Load tests: the summaries of JMeter, Gatling, k6 and Locust.
//!
//! Out: how long a request took at the mean, at a high percentile and at most, and how many failed; of Locust the slowest name. Source:
//! `Summariser.java` of JMeter, `ConsoleSummary.scala` of Gatling, k6's "End of test", `stats.py` of Locust.

mod lines;
mod phases;

use self::lines::{Measured, jmeter, k6, locust};
use super::requests::MANY_FAIL;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, ns_of, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("load-test", Family::Times, recognise).about("JMeter, Gatling, k6, Locust");

/// Seconds from which a request is long: up to one, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_REQUEST_SECONDS: f64 = 1.0;

/// What lines of the tools' own logs have in them, which say why requests failed.
const LOGGED: [&str; 4] = ["level=", "WARN", "ERRO", "Exception"];

fn recognise(head: &[u8]) -> Sureness {
    let has = |text: &str| holds(head, text);
    let jmeter = has("summary ") && any_line(head, |line| jmeter(line).is_some());
    // The sign in front is lost where a quotation's signs are taken away.
    let is_gatling = |line: &str| {
        let line = line.strip_prefix("> ").unwrap_or(line);
        let named = line.starts_with("request count") || line.starts_with("mean response time");
        named && Measured::default().gatling(line).is_some()
    };
    let gatling =
        (has("> request count") || has("> mean response time") || has("(OK=")) && any_line(head, is_gatling);
    let k6 = has("http_req_duration")
        && any_line(head, |line| k6(line).is_some_and(|(_, all)| all.contains("avg=")));
    let locust = has("# reqs") && has("# fails") && any_line(head, |line| locust(line).is_some());
    Sureness::certain_if(jmeter || gatling || k6 || locust)
}

impl Measured {
    fn says(&self, quote: Quote) -> Option<Statement> {
        let told = |seconds: f64| duration(ns_of(seconds));
        let failed = match (self.failed < 0.0, self.requests) {
            (true, Some(all)) => (-self.failed * all).round(),
            (true, None) => return None,
            (false, _) => self.failed,
        };
        let mean = self.mean?;
        let mut listed = vec![format!("a request took {} at the mean", told(mean))];
        if let Some((place, seconds)) = &self.high {
            listed.push(format!("{place} % of them at most {}", told(*seconds)));
        }
        if let Some(longest) = self.longest {
            listed.push(format!("the longest {}", told(longest)));
        }
        let all = self.requests.unwrap_or(0.0);
        let part = if all > 0.0 { failed / all } else { 0.0 };
        if failed > 0.0 {
            listed.push(format!(
                "{failed:.0} of {all:.0} requests failed, {} %",
                rounded(part * 100.0)
            ));
        } else if all > 0.0 {
            listed.push(format!("none of {all:.0} requests failed"));
        }
        if !self.rate.is_empty() {
            listed.push(format!("{} requests a second", self.rate));
        }
        let before = phases::told(&self.phases);
        let lost = before.is_some();
        if let Some(told) = before {
            listed.insert(0, told);
        }
        let kind = if part >= MANY_FAIL {
            StatementKind::Failed
        } else if lost || mean >= LONG_REQUEST_SECONDS {
            StatementKind::Took
        } else {
            listed.push(format!("from {LONG_REQUEST_SECONDS:.0} s on a request is long"));
            StatementKind::WithinNorm
        };
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!("{name}: "),
        };
        let ns = Some(ns_of(self.longest.unwrap_or(mean)));
        Some(statements::one(
            kind,
            ns,
            quote,
            format!("{name}{}", listed.join("; ")),
        ))
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// JMeter's last line of the whole test, or else of an interval, and whether it is of the whole.
    summary: Option<(bool, Measured, Quote)>,
    named: Measured,
    place: Option<Quote>,
    /// Of Locust: the slowest name, or the one with most failures.
    worst: Option<(Measured, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some((whole, measured)) = jmeter(&text) {
            if whole || self.summary.as_ref().is_none_or(|(whole, ..)| !whole) {
                self.summary = Some((whole, measured, out.here()));
            }
            return Understood::Evidence;
        }
        if let Some(measured) = locust(&text) {
            let weight = |one: &Measured| {
                let part = one.failed / one.requests.unwrap_or(1.0).max(1.0);
                (part >= MANY_FAIL, one.mean.unwrap_or(0.0))
            };
            let known = self.worst.as_ref().map(|(worst, _)| weight(worst));
            if !matches!(measured.name.as_str(), "Aggregated" | "Total")
                && known.is_none_or(|known| weight(&measured) > known)
            {
                self.worst = Some((measured, out.here()));
            }
            return Understood::Evidence;
        }
        match self.named.take(&text) {
            Some(()) => {
                if self.named.mean.is_some() {
                    self.place.get_or_insert_with(|| out.here());
                }
                Understood::Evidence
            }
            None if LOGGED.iter().any(|mark| text.contains(mark)) => Understood::No,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let named = read.place.and_then(|quote| read.named.says(quote));
        let summary = read.summary.and_then(|(_, measured, quote)| measured.says(quote));
        let worst = read.worst.and_then(|(measured, quote)| measured.says(quote));
        [named, summary, worst]
            .into_iter()
            .flatten()
            .for_each(|one| out.statement(one));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("l", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "load-test");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        (one.kind, one.text.clone())
    }

    #[test]
    fn of_jmeter_the_whole_test() {
        let text = "summary +    100 in 00:00:30 =    3.3/s Avg:   900 Min:    12 Max: 15010 Err:     0 (0.00%) Active: 9\n\
            summary =    400 in 00:02:00 =    3.3/s Avg:  2100 Min:    12 Max: 30010 Err:    20 (5.00%)\n";
        let told = "a request took 2.10 s at the mean; the longest 30.01 s; 20 of 400 requests failed, 5 %; 3.3 requests a second";
        assert_eq!(said(text), (StatementKind::Failed, told.to_owned()));
    }

    #[test]
    fn of_k6_and_of_gatling() {
        let text = "     http_req_duration..............: avg=1.5s min=20ms med=900ms max=7.5s p(90)=3s p(95)=4.25s\n\
            \x20    http_req_failed................: 0.00% 0 out of 200\n     http_reqs......................: 200 6.6/s\n";
        let told = "a request took 1.50 s at the mean; 95 % of them at most 4.25 s; the longest 7.50 s; none of 200 requests failed; \
                    6.6 requests a second";
        assert_eq!(said(text), (StatementKind::Took, told.to_owned()));
        let text = "> request count                                        500 (OK=490    KO=10    )\n\
            > mean response time                                   310 (OK=300    KO=900   )\n\
            > response time 95th percentile                        800 (OK=790    KO=950   )\n";
        let told =
            "a request took 310 ms at the mean; 95 % of them at most 800 ms; 10 of 500 requests failed, 2 %";
        assert_eq!(said(text), (StatementKind::Failed, told.to_owned()));
    }

    #[test]
    fn of_locust_the_slowest_name() {
        let text = " Name          # reqs      # fails |     Avg     Min     Max  Median |   req/s failures/s\n\
            GET /cart         90     0(0.00%) |     120      10     400     110 |    1.50    0.00\n\
            GET /find a       30     0(0.00%) |     640      30    2100     600 |    0.50    0.00\n\
            \x20Aggregated       120     0(0.00%) |     250      10    2100     200 |    2.00    0.00\n";
        let (kind, told) = said(text);
        assert_eq!(kind, StatementKind::WithinNorm);
        assert!(
            told.starts_with(
                "GET /find a: a request took 640 ms at the mean; the longest 2.10 s; none of 30"
            ),
            "{told}"
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "summary = 3 apples in a row\n",
            "> mean of it all\n",
            "http_req_duration is a metric: avg\n",
        ] {
            assert_ne!(
                read_text("l", text.as_bytes()).observed.sources[0].format,
                "load-test"
            );
        }
    }
}
