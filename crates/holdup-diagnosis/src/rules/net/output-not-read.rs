//! A program cannot send: the receiver to which it has connected reads nothing, and its own output is full.

use crate::rules::{Rule, RuleId, Run, live_sessions, say};
use holdup_evidence::facts::FullOutput;
use holdup_evidence::{Cause, units};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::OutputNotRead, check)
    .about("a receiver does not read what a program sends it")
    .causes(Cause::ALL)
    .from(0.0);

/// What stands on a connection from which its receiver is the one that does not keep up, bytes: less a receiver takes in that only has not come
/// to it yet.
const MIN_BYTES: u64 = 16_384;

/// Part of the process's time without the CPU that is spent in the polls of event loops, from which it does nothing else.
const MIN_IDLE_SHARE: f64 = 0.9;

fn check(run: &Run<'_>) -> Verdict {
    let Some(all) = &run.facts.full_outputs else {
        return Verdict::CannotTell(
            "whether those to whom it is connected read: what was unsent on its connections".to_owned(),
        );
    };
    let full = all.iter().filter(|one| stands(one));
    let findings: Vec<Finding> = full.filter_map(|one| finding(run, one)).collect();
    if findings.is_empty() {
        if all.iter().any(stands) {
            return Verdict::Clear(
                "0 of its outputs are full but those of threads that wait to send, which tell it themselves"
                    .to_owned(),
            );
        }
        let most = all.iter().map(|one| one.most).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "{} stood unread for a receiver from the start of the observation to its end, at most",
            units::bytes(most)
        ));
    }
    Verdict::Fires(findings)
}

fn stands(full: &FullOutput) -> bool {
    full.most >= MIN_BYTES
}

/// Whether it is told of a process that its output is full, so that what it keeps waiting waits for that.
pub(super) fn is_full(run: &Run<'_>, pid: u32) -> bool {
    let all = run.facts.full_outputs.iter().flatten();
    let mut of_process = all.filter(|one| one.pid == pid && stands(one));
    of_process.any(|one| finding(run, one).is_some())
}

fn finding(run: &Run<'_>, full: &FullOutput) -> Option<Finding> {
    let theirs = run.waits(|wait| wait.asker.name.pid == full.pid)?;
    // A thread that waits to send is known by itself.
    let sends = |wait: &AttributedWait| wait.cause == Cause::NetSend && wait.open;
    if theirs.only(sends).is_some() {
        return None;
    }
    let who = live_sessions::process(&full.process, full.pid);
    let address = full
        .receiver
        .map_or_else(|| "a receiver".to_owned(), |address| address.to_string());
    let reader = full.reader.as_ref().and_then(|one| Some((one, one.pid?)));
    let receiver = match reader {
        Some((one, pid)) => {
            let name = say::script(run, pid).unwrap_or(&one.process);
            let stopped = if one.stopped { ", which is stopped," } else { "" };
            format!("{} at {address}{stopped}", live_sessions::process(name, pid))
        }
        None => address.clone(),
    };
    let aside = run
        .facts
        .set_aside
        .iter()
        .flatten()
        .find(|one| one.pid == full.pid)
        .map_or(0, |one| u64::from(one.clients));
    let meanwhile = match aside {
        0 => String::new(),
        many => format!(
            "; meanwhile it does not read from {}",
            say::several(many, "client")
        ),
    };
    let title = Title::from(format!(
        "{who} cannot send: its output is full, {receiver} reads nothing of {}",
        match full.connections {
            1 => units::bytes(full.most),
            many => format!("up to {} on {many} connections", units::bytes(full.most)),
        },
    ))
    .with(meanwhile);
    let severity = match aside > 0 || does_nothing_else(run, full.pid) {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let stood = Evidence::new(
        format!(
            "the same number of bytes was unacknowledged on {} at the start and end of the observation{}",
            say::several(full.connections.into(), "connection"),
            match reader {
                Some(_) => ", and bytes that had arrived were unread at the other end",
                None => "",
            }
        ),
        "/proc/net/tcp",
    );
    let resource = Resource::named(ResourceKind::Socket, address);
    let asker = theirs.main().asker.clone();
    let finding = Finding::new(
        RULE.id.id(),
        severity,
        title,
        Cause::NetSend,
        run.attributed.wall,
        stood,
    )
    .about(resource, asker)
    .confidence(Confidence::Strong);
    let finding = match reader {
        Some((one, pid)) if one.stopped => finding.remedy(live_sessions::go_on(
            &live_sessions::process(&one.process, pid),
            pid,
        )),
        Some((_, pid)) => finding.remedy(
            Remedy::safe("find out what the receiver does instead of reading")
                .with_command(format!("holdup attach -p {pid}")),
        ),
        None => finding.remedy(
            Remedy::safe("find out on its machine what the receiver does instead of reading")
                .with_command("ss -tnpi"),
        ),
    };
    Some(
        finding
            .remedy(Remedy::safe(
                "give the output a queue on the disk, or a second receiver, so that one that does not read does not stop the input",
            ))
            .remedy(Remedy::pointless(
                "more memory for its queues: they fill again for as long as nobody reads",
            )),
    )
}

/// Whether its threads do nothing but wait in the polls of event loops, or for work.
fn does_nothing_else(run: &Run<'_>, pid: u32) -> bool {
    let Some(blocked) = run.waits(|wait| wait.asker.name.pid == pid && !wait.cause.on_cpu()) else {
        return false;
    };
    let polls = |wait: &AttributedWait| {
        wait.cause == Cause::Idle
            || system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll)
    };
    let polled = blocked.only(polls).map_or(0, |part| part.own());
    polled as f64 >= blocked.own() as f64 * MIN_IDLE_SHARE
}
