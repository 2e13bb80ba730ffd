//! A process has asked a server on a connection that it made, has had no answer since, and sleeps.

use crate::rules::{
    Extend, Generality, Rule, RuleId, Run, Waits, asked_behind, duration, live_sessions, say,
};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::facts::{OwedAnswers, Taken};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Peer, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ServerOwesAnswer, check)
    .about("a process waits for a server that it asked before")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Part of the time of its threads from which a wait for another process, a disk or the CPU is what it does: rules of their own judge that.
const MAX_ELSE_SHARE: f64 = 0.1;

/// Nanoseconds in a millisecond.
const NS_IN_MS: Ns = 1_000_000;

fn check(run: &Run<'_>) -> Verdict {
    let Some(all) = &run.facts.owed_answers else {
        return Verdict::CannotTell("whether it waits for servers that it asked before".to_owned());
    };
    // Of several servers of one process the first has the most questions.
    let mut told = Vec::new();
    let mut findings = Vec::new();
    for one in all {
        if !told.contains(&one.pid)
            && let Some(finding) = finding(run, one)
        {
            told.push(one.pid);
            findings.push(finding);
        }
    }
    if findings.is_empty() {
        let longest = all.iter().map(|one| one.longest_ms).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "connections that it made and on which it had the last word at the end: {}, the longest for {}; its threads did something else, or \
             another rule has it",
            all.len(),
            duration(longest.saturating_mul(NS_IN_MS))
        ));
    }
    Verdict::Fires(findings)
}

/// Whether a thread rests, as far as its call shows: it sleeps until whatever comes.
fn rests(wait: &AttributedWait) -> bool {
    matches!(
        wait.cause,
        Cause::Idle
            | Cause::PollWait
            | Cause::TimerSleep
            | Cause::LockFutex
            | Cause::NetAccept
            | Cause::IpcSignal
            | Cause::ProcessChild
            | Cause::SchedRunqueue
            | Cause::Unknown
    )
}

/// Whether a thread is known to wait for this server.
fn asks(wait: &AttributedWait, one: &OwedAnswers) -> bool {
    let peer = match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => address.to_string() == one.server,
        Some(Peer::Name(name)) => *name == one.server,
        None => false,
    };
    peer && wait.cause != Cause::Idle
}

fn several_threads(waits: &Waits<'_>) -> bool {
    let first = waits.main().asker.name.tid;
    waits.iter().any(|wait| wait.asker.name.tid != first)
}

fn finding(run: &Run<'_>, one: &OwedAnswers) -> Option<Finding> {
    let theirs = run.waits(|wait| wait.asker.name.pid == one.pid)?;
    let own = |part: Option<Waits<'_>>| part.map_or(0, |part| part.own()) as f64;
    if own(theirs.only(|wait| !rests(wait))) > theirs.own() as f64 * MAX_ELSE_SHARE {
        return None;
    }
    let aside = run.facts.set_aside.iter().flatten();
    if aside
        .filter(|aside| aside.pid == one.pid)
        .any(|aside| asked_behind::unanswered(aside).is_some())
    {
        return None;
    }
    let idle = theirs.only(rests)?;
    let asks = theirs.only(|wait| asks(wait, one));
    let main = asks.as_ref().unwrap_or(&idle).main();
    let who = say::who_with_pid(&match (&asks, main.asker.name.clone()) {
        (Some(_), name) => name,
        // Of several threads that rest it is not known which one asked.
        (None, name) if several_threads(&theirs) => ThreadName {
            thread: name.process.clone(),
            ..name
        },
        (None, name) => name,
    });
    let asked = asks.and_then(|_| chosen_frame(&main.asker.stack).map(say::place));
    let asked = asked.map_or_else(String::new, |place| format!("; asked in {place}"));
    let by = by(run, one);
    let waits = match one.clients {
        0 => format!("{who} waits"),
        1 => format!("1 client of {who} waits"),
        many => format!("{many} clients of {who} wait"),
    };
    let since = match one.longest_ms {
        0 => String::new(),
        ms => format!(" for {}", duration(ms.saturating_mul(NS_IN_MS))),
    };
    let (how, stuck) = match one.by.as_ref().is_some_and(|by| by.stopped) {
        true => (", which is stopped".to_owned(), true),
        false => match one.taken {
            Taken::NotAccepted => (", which does not accept its connection".to_owned(), true),
            Taken::NotRead => (", which does not read it".to_owned(), true),
            Taken::Read | Taken::Unknown => (String::new(), false),
        },
    };
    let has = if one.questions == 1 { "has" } else { "have" };
    let title = format!(
        "{waits} for {by} to answer{how}: {} {has} had no answer{since}{asked}",
        say::several(one.questions.into(), "request"),
    );
    // Where others were answered when something else came, these may wait for that as well.
    let requests = run.attributed.requests.as_ref();
    let by_design = requests.is_some_and(|requests| requests.at_last.count > 0);
    let severity = match (one.clients > 0 && !by_design) || stuck {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let notes = Evidence::new(
        format!(
            "on {} to {by} it sent something last, and received nothing since",
            say::several(one.questions.into(), "connection")
        ),
        "tcp_info and unix_diag, when observation ended",
    );
    let asked_by: Vec<String> = one.asked_by.iter().filter_map(live_sessions::client).collect();
    let asked_by = (!asked_by.is_empty()).then(|| {
        Evidence::new(
            format!("it owes an answer itself to {}", asked_by.join(", ")),
            "tcp_info and /proc/PID/fd, when observation ended",
        )
    });
    let about = Resource::named(ResourceKind::Socket, one.server.clone());
    let about = about.with(|facts| facts.pid = one.by.as_ref().and_then(|by| by.pid));
    let ns = idle.own().min(run.attributed.elapsed);
    let finding = Finding::new(RULE.id.id(), severity, title, main.cause, ns, notes)
        .about(about, main.asker.clone())
        .and_if(asked_by)
        .confidence(match one.questions >= one.clients && one.clients > 0 {
            true => Confidence::Strong,
            false => Confidence::Suspect,
        });
    Some(with_remedies(finding, one, &by))
}

/// `python3 rates.py (pid 7) at 127.0.0.1:80`.
fn by(run: &Run<'_>, one: &OwedAnswers) -> String {
    let process = one.by.as_ref().and_then(|by| Some((by, by.pid?)));
    let process = process.map(|(by, pid)| {
        let name = say::script(run, pid).unwrap_or(&by.process);
        live_sessions::process(name, pid)
    });
    match (process, one.server.is_empty()) {
        (Some(process), false) => format!("{process} at {}", one.server),
        (Some(process), true) => process,
        (None, _) => say::name_or(&one.server, "another process").to_owned(),
    }
}

fn with_remedies(finding: Finding, one: &OwedAnswers, by: &str) -> Finding {
    let process = one.by.as_ref().and_then(|by| Some((by, by.pid?)));
    let finding = match process {
        Some((process, pid)) if process.stopped => finding.remedy(live_sessions::go_on(
            &live_sessions::process(&process.process, pid),
            pid,
        )),
        Some((process, pid)) => finding.remedy(
            Remedy::safe(format!(
                "find out what {} does instead of answering",
                live_sessions::process(&process.process, pid)
            ))
            .with_command(format!("holdup attach -p {pid}")),
        ),
        None => finding.remedy(Remedy::safe(format!("find out why {by} does not answer"))),
    };
    finding
        .remedy(Remedy::changing(
            format!("set a time limit for answers of {by}"),
            "requests that take longer fail",
        ))
        .remedy(Remedy::pointless(
            "more workers: each of them would wait for the same server",
        ))
}
