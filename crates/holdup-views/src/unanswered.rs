//! Requests that have had no answer for long, and clients that nobody accepts: beside one of them nothing may be called well.
//!
//! In: a report. Out: a sentence, for all views alike, that says what is unanswered since when, and that no rule says why.

use crate::terminal::margins::of_machine;
use crate::units::{counted, duration};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::ResourceKind;
use holdup_model::report::Report;

/// For how long a request has been unanswered from which somebody may miss its answer, nanoseconds. Shorter ones are under way on every
/// service that works.
const LONG_NS: Ns = 10_000_000_000;

/// The sentence, where there is such a request, or clients that nobody has accepted.
pub(crate) fn words(report: &Report) -> Option<String> {
    requests(report).or_else(|| unaccepted(report))
}

/// Clients that stand at a listener, by the first finding that says so.
fn unaccepted(report: &Report) -> Option<String> {
    let at = report.findings.iter().map(|finding| &finding.resource);
    let mut at = at.filter(|at| at.kind == ResourceKind::Socket);
    let (address, clients) =
        at.find_map(|at| Some((&at.name, at.detail.waiting.filter(|count| *count > 0)?)))?;
    let clients = counted(u64::from(clients), "client waits", "clients wait");
    Some(format!(
        "{clients} to be accepted at {address}, and no rule says why."
    ))
}

/// Clients whose words nobody took, for the end of an all-clear. What they sent may be no request, or one that was lost.
pub(crate) fn untaken(report: &Report) -> String {
    let resting = report.requests.as_ref().map_or(0, |requests| requests.resting);
    match resting {
        0 => String::new(),
        1 => " 1 client has sent data that no thread works on: a subscription, or a request that was lost."
            .to_owned(),
        resting => format!(
            " {} sent data that no thread works on: subscriptions, or requests that were lost.",
            counted(resting, "client has", "clients have")
        ),
    }
}

fn requests(report: &Report) -> Option<String> {
    let requests = report.requests.as_ref()?;
    if requests.open == 0 || requests.oldest_open_ns < LONG_NS {
        return None;
    }
    let since = duration(requests.oldest_open_ns);
    let does = requests
        .causes
        .iter()
        .find(|cause| cause.open)
        .map(|one| one.cause);
    if of_machine(report) {
        // Of all programs of a machine some have read what they answer when something happens.
        let works = does.filter(|cause| !cause.rests() && *cause != Cause::PollWait)?;
        let (have, whose) = match requests.open {
            1 => ("has", "its"),
            _ => ("have", "their"),
        };
        return Some(format!(
            "{} {have} had no answer for up to {since}: {whose} server was mostly {}.",
            counted(requests.open, "request", "requests"),
            works.phrase()
        ));
    }
    Some(match requests.open {
        1 => format!("1 request has been unanswered for {since}, and no rule says why."),
        open => format!(
            "{} are unanswered, the oldest for {since}, and no rule says why.",
            counted(open, "request", "requests")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::html::tests::report;
    use crate::terminal::margins::{doubts_earlier, healthy, nothing_found_mood, nothing_found_words};
    use holdup_evidence::Cause;
    use holdup_model::report::{CauseShare, Recording, Report, Requests, SubjectKind};

    /// Idle processes with this many unanswered requests, the oldest read so long ago, in seconds.
    fn idle(open: u64, seconds: u64) -> Report {
        let mut report = report();
        report.subject.kind = SubjectKind::Attach;
        report.findings.clear();
        report.waits.clear();
        report.coverage.unknown_ns = Some(0);
        report.causes.truncate(1);
        report.causes[0].cause = Cause::Idle;
        report.requests = Some(Requests {
            open,
            oldest_open_ns: seconds * 1_000_000_000,
            ..serde_json::from_value(serde_json::json!({"count": 0, "p50_ns": 0, "p99_ns": 0, "causes": []}))
                .unwrap()
        });
        report
    }

    #[test]
    fn one_that_is_unanswered_for_long_is_no_all_clear() {
        let report = idle(1, 46);
        assert!(!healthy(&report));
        let said = nothing_found_words(&report);
        assert!(
            said.starts_with("1 request has been unanswered for 46.00 s"),
            "{said}"
        );
        assert_eq!(nothing_found_mood(&report).0, "note");
    }

    #[test]
    fn clients_whose_words_nobody_took_are_told_beside_an_all_clear() {
        let with = |resting| {
            let mut report = idle(0, 0);
            report.requests.as_mut().unwrap().resting = resting;
            nothing_found_words(&report)
        };
        assert!(with(0).ends_with("waiting for work."), "{}", with(0));
        assert!(with(1).ends_with(
            " 1 client has sent data that no thread works on: a subscription, or a request that was lost."
        ));
        assert!(with(300).ends_with(
            " 300 clients have sent data that no thread works on: subscriptions, or requests that were lost."
        ));
        let mut report = idle(0, 0);
        for (earlier_told, resting, told) in [(true, 0, false), (true, 2, false), (false, 0, true)] {
            let requests = report.requests.as_mut().unwrap();
            (requests.earlier_told, requests.resting) = (earlier_told, resting);
            assert_eq!(doubts_earlier(&report), told, "{earlier_told} {resting}");
        }
    }

    #[test]
    fn on_a_machine_it_is_said_what_the_server_does_or_nothing() {
        let machine = |cause: Cause| {
            let mut report = idle(3, 46);
            report.recording = Some(Recording {
                machine: true,
                ..Recording::default()
            });
            let share = CauseShare {
                cause,
                ns: 1,
                share: 1.0,
                count: 1,
                max_ns: 1,
                open: true,
            };
            report.requests.as_mut().unwrap().causes = vec![share];
            (words(&report), nothing_found_mood(&report))
        };
        let (said, mood) = machine(Cause::DiskSync);
        let said = said.unwrap();
        assert!(
            said.starts_with("3 requests have had no answer for up to 46.00 s: their server was mostly "),
            "{said}"
        );
        assert_eq!(mood, ("note", "Not known"));
        let (said, mood) = machine(Cause::Idle);
        assert_eq!((said, mood.0), (None, "good"));
        assert_eq!(machine(Cause::PollWait).0, None);
    }

    #[test]
    fn those_under_way_and_answered_ones_are_none() {
        assert_eq!(words(&idle(4, 2)), None);
        assert_eq!(words(&idle(0, 46)), None);
        assert!(healthy(&idle(4, 2)));
    }
}
