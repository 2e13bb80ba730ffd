//! The lines about what was made anew: threads, processes and connections, where their rate is worth telling.

use super::margins::{HEADER, of_machine};
use crate::sheet::Sheet;
use crate::units::duration;
use holdup_model::churn::Born;
use holdup_model::report::{Births, Churn, Conversations, Report, SubjectKind};

/// How many there must be, and a second, to be worth a line: fewer cost nobody anything.
const MIN_PER_SECOND_ATTACHED: u64 = 10;
const PER_SECOND: f64 = 1.0;

/// The same of a program that was started for this, and of a machine: what makes and scripts start is what they are for. From this rate on, starting and
/// ending takes a good part of a CPU whatever each of them does.
const MIN_PER_SECOND_RUN: u64 = 100;
const PER_SECOND_OF_RUN: f64 = 50.0;

/// Lines of each kind.
const LINES: usize = 2;

/// Writes them below the header.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let least = match report.subject.kind {
        SubjectKind::Attach if !of_machine(report) => (MIN_PER_SECOND_ATTACHED, PER_SECOND),
        SubjectKind::Run | SubjectKind::Attach => (MIN_PER_SECOND_RUN, PER_SECOND_OF_RUN),
        _ => return,
    };
    let Some(churn) = report.churn.as_ref() else {
        return;
    };
    for words in lines(churn, least) {
        let body = vec![sheet.words(&words)];
        sheet.line(HEADER, body);
    }
}

fn lines(churn: &Churn, least: (u64, f64)) -> Vec<String> {
    let worth = |count: u64, rate: f64| count >= least.0 && rate >= least.1;
    let made = churn.made.iter().filter(|one| worth(one.made, one.per_second));
    let connections = churn
        .connections
        .iter()
        .filter(|one| worth(one.made, one.per_second));
    made.take(LINES)
        .map(births)
        .chain(connections.take(LINES).map(conversations))
        .collect()
}

fn rate(per_second: f64, what: &str) -> String {
    format!("{per_second:.0} {what} a second")
}

fn births(one: &Births) -> String {
    let what = match one.what {
        Born::Thread => "threads",
        Born::Process => "processes",
    };
    let called = match one.names.first() {
        Some(name) if !name.is_empty() && *name != one.by.process => format!(" called {name}"),
        _ => String::new(),
    };
    let mut words = format!(
        "{}{called} started by {}",
        rate(one.per_second, what),
        one.by.process
    );
    if let Some(frame) = &one.by.frame {
        words += &format!(" in {frame}");
    }
    if one.ended > 0 {
        words += &format!(", median lifetime {}", duration(one.p50_ns));
    }
    words
}

fn conversations(one: &Conversations) -> String {
    let way = match one.accepted {
        true => "accepted at",
        false => "made to",
    };
    let mut words = format!("{} {way} {}", rate(one.per_second, "connections"), one.end);
    if one.closed > 0 {
        words += &format!(", {} of {} closed after one request", one.one_request, one.closed);
    }
    if let Some(tls) = &one.tls {
        words += &format!("; TLS handshakes: {} full, {} resumed", tls.full, tls.resumed);
        if tls.mean_ns > 0 {
            words += &format!(", {} each", duration(tls.mean_ns));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{MIN_PER_SECOND_ATTACHED, MIN_PER_SECOND_RUN, PER_SECOND, PER_SECOND_OF_RUN, lines};
    use holdup_model::churn::Born;
    use holdup_model::report::{Asker, Births, Churn, Conversations, Handshakes};

    fn asker(frame: &str) -> Asker {
        Asker {
            pid: 7,
            tid: 7,
            process: "shop".to_owned(),
            thread: "shop".to_owned(),
            frame: Some(frame.to_owned()),
            module: None,
            stack: Vec::new(),
        }
    }

    fn churn(per_second: f64) -> Churn {
        let count = (per_second * 5.0) as u64;
        Churn {
            watched_ns: 5_000_000_000,
            made: vec![Births {
                what: Born::Thread,
                by: asker("serve_one"),
                made: count,
                per_second,
                ended: count,
                p50_ns: 1_500_000,
                max_ns: 2_000_000,
                names: vec!["HandshakeComple".to_owned()],
            }],
            connections: vec![Conversations {
                end: "10.0.0.5:443".to_owned(),
                accepted: false,
                by: asker("fetch"),
                made: count,
                per_second,
                closed: count,
                one_request: count - 1,
                several_requests: 1,
                unknown_requests: 0,
                closed_here: count,
                closed_by_peer: 0,
                p50_ns: 1_000_000,
                open_ns: count * 1_000_000,
                setup_ns: count * 500_000,
                tls: Some(Handshakes {
                    full: count,
                    offered_in_vain: 0,
                    resumed: 0,
                    unknown: 0,
                    mean_ns: 400_000,
                }),
            }],
            ends: Vec::new(),
            traffic_told: true,
        }
    }

    #[test]
    fn rates_and_makers_are_told() {
        assert_eq!(
            lines(&churn(200.0), (MIN_PER_SECOND_ATTACHED, PER_SECOND)),
            [
                "200 threads a second called HandshakeComple started by shop in serve_one, median lifetime \
                 1.5 ms",
                "200 connections a second made to 10.0.0.5:443, 999 of 1000 closed after one request; TLS handshakes: \
                 1000 full, 0 resumed, 400 µs each",
            ]
        );
    }

    #[test]
    fn a_few_are_not_worth_a_line() {
        assert_eq!(
            lines(&churn(0.8), (MIN_PER_SECOND_ATTACHED, PER_SECOND)),
            Vec::<String>::new()
        );
        // Of a program that was started for this a rate is reported from which it costs.
        let of_run = (MIN_PER_SECOND_RUN, PER_SECOND_OF_RUN);
        assert_eq!(lines(&churn(30.0), of_run), Vec::<String>::new());
        assert_eq!(lines(&churn(800.0), of_run).len(), 2);
    }
}
