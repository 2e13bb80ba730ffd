//! A process can open nothing more: its limit of file descriptors is used up.

use crate::rules::{Generality, Rule, RuleId, Run, asked, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::Cause;
use holdup_evidence::facts::NoDescriptorLeft;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::NoDescriptorLeft, check)
    .about("a process can open nothing more: its limit of file descriptors is used up")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence)
    .explains(&[RuleId::BusyWaits, RuleId::SleepPolling]);

/// By how much the limit is raised in the command to copy.
const RAISE: u64 = 4;

fn check(run: &Run<'_>) -> Verdict {
    let Some(used_up) = &run.facts.no_descriptor_left else {
        return Verdict::CannotTell(
            "whether the processes could open more descriptors: /proc/PID/limits, /proc/PID/fd".to_owned(),
        );
    };
    // What follows for clients in a queue is another rule's.
    let queued = |one: &&NoDescriptorLeft| {
        let mut queues = run.facts.unaccepted.iter().flatten();
        queues.any(|queue| {
            let mut pids = queue.out_of_descriptors.iter().map(|limit| limit.pid);
            pids.any(|pid| pid == one.limit.pid)
        })
    };
    let own = used_up.iter().filter(|one| !queued(one));
    let findings: Vec<Finding> = own.filter_map(|one| finding(run, one)).collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(
            "0 processes had no descriptor left, both when observation began and when it ended".to_owned(),
        ),
    }
}

/// What most of it is, for the middle of a sentence.
fn most(one: &NoDescriptorLeft) -> String {
    let kinds = [(one.sockets, "sockets"), (one.pipes, "pipes")];
    let largest = kinds.into_iter().max_by_key(|(count, _)| *count);
    match largest.filter(|(count, _)| count.saturating_mul(2) > one.limit.open) {
        Some((count, kind)) => format!(", {count} of them {kind}"),
        None => String::new(),
    }
}

/// Where the program sleeps, most likely before it tries again, for the end of a title.
fn tries(main: &AttributedWait) -> String {
    let place = asked::known(chosen_frame(&main.asker.stack)).filter(|_| main.cause == Cause::TimerSleep);
    place.map_or_else(String::new, |frame| {
        format!("; it sleeps in {}", say::place(frame))
    })
}

fn finding(run: &Run<'_>, one: &NoDescriptorLeft) -> Option<Finding> {
    let theirs = run.waits(|wait| wait.asker.name.pid == one.limit.pid)?;
    // Where a program tries again it sleeps in between.
    let main = theirs
        .iter()
        .max_by_key(|wait| (wait.cause == Cause::TimerSleep, wait.ns))?;
    let who = match say::script(run, one.limit.pid) {
        Some(script) => format!("{script} (pid {})", one.limit.pid),
        None => say::who_with_pid(&main.asker.name),
    };
    let title = format!(
        "{who} has used up its limit of {} file descriptors{}: it can open, accept and connect nothing{}",
        one.limit.soft,
        most(one),
        tries(main)
    );
    let open = Evidence::new(
        format!(
            "{} descriptors are open, {} and {} among them; the soft limit is {}, the hard limit {}",
            one.limit.open,
            say::several(one.sockets, "socket"),
            say::several(one.pipes, "pipe"),
            one.limit.soft,
            match one.limit.hard {
                u64::MAX => "none".to_owned(),
                hard => hard.to_string(),
            }
        ),
        "/proc/PID/limits and /proc/PID/fd, when observation began and when it ended",
    );
    let resource = Resource::named(
        ResourceKind::Process,
        say::name_or(&main.asker.name.process, "a process"),
    )
    .with(|facts| facts.setting = Some("RLIMIT_NOFILE".to_owned()));
    let ns = theirs.own().min(run.attributed.elapsed);
    let more = one.limit.soft.saturating_mul(RAISE).min(one.limit.hard);
    let raise = (more > one.limit.soft).then(|| {
        Remedy::changing(
            "raise the limit of the running process",
            "what is never closed uses up any limit",
        )
        .with_command(format!("prlimit --nofile={more}: --pid {}", one.limit.pid))
    });
    let finding = Finding::new(RULE.id.id(), Severity::Warning, title, main.cause, ns, open)
        .about(resource, main.asker.clone())
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe("see what it has open, and close what is not used any more: connections whose peer has gone, too")
                .with_command(format!("ls -l /proc/{}/fd", one.limit.pid)),
        );
    let finding = raise.into_iter().fold(finding, Finding::remedy);
    Some(finding.remedy(Remedy::pointless(
        "trying again: a call that needs a descriptor fails until it closes one",
    )))
}
