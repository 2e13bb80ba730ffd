//! Waiting for whoever has the other end of a pipe or FIFO.

use crate::rules::{
    Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, duration, flows, root, say, streams,
};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, ThreadName};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// Processes at the other end that a sentence names.
const MAX_NAMED: usize = 3;

/// Waits in one pipe from which its reader hears something again and again.
const MIN_HEARD: u64 = 4;

/// What people try first.
const LARGER: &str = "a larger pipe: it only delays the wait as long as one end is slower";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PipePeerSlow, check)
    .about("the peer of a pipe is slower")
    .causes(&[Cause::IpcPipe])
    .generality(Generality::Describes)
    .intermediate();

/// Whether it waits for room, so that the reader is the one in the way.
fn writes(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Writes | Kind::MovesData)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let key = |wait: &AttributedWait| (wait.asker.name.pid, writes(wait));
    let groups = run.worth(waits, waits.split(key), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

/// Of processes that run already: whether who would write is a server that waits for work itself. It has no word for its reader.
fn has_no_word(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let idle = |holder: &Holder| holder.doing == Some(Cause::Idle);
    run.attributed.of_threads && !writes(group.main()) && group.holders().first().is_some_and(idle)
}

/// Those that have the other end open, where they are several and the wait goes on: which of them is meant nobody knows. An event loop waits
/// for one pipe again and again, and only of its last wait it is known who has an end.
fn several_ends<'a>(group: &Waits<'a>) -> Option<Vec<&'a Holder>> {
    let main = group.main();
    let same = |wait: &&AttributedWait| wait.open && wait.resource.name == main.resource.name;
    let ends = |wait: &'a AttributedWait| {
        let mut pids = BTreeSet::new();
        let ends = wait
            .holders
            .iter()
            .filter(|holder| holder.how_known == HowKnown::PipePeer && pids.insert(holder.name.pid));
        ends.collect::<Vec<&Holder>>()
    };
    let mut all = group.iter().filter(same).map(ends);
    all.find(|ends| ends.len() > 1)
}

/// A process by the script that it runs, where it is an interpreter.
fn named(run: &Run<'_>, name: &ThreadName) -> String {
    match say::script(run, name.pid) {
        Some(script) if name.pid != 0 => format!("{script} (pid {})", name.pid),
        _ => say::who_with_pid(name),
    }
}

/// Of processes that run already: whether a loop looks at pipes of its children each time that its time limit has run out. A supervisor reads
/// so what they write, and nothing is late when they are silent.
fn looks_now_and_then(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let looks = |wait: &AttributedWait| {
        system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll)
    };
    let expired = group.timed_out() >= MIN_EXPIRED && group.timed_out().saturating_mul(2) >= group.count();
    run.attributed.of_threads && expired && group.iter().all(looks)
}

/// Time limits that ran out, from which a loop wakes by them again and again.
const MIN_EXPIRED: u64 = 2;

/// Of processes that run already: whether something came in that pipe again and again meanwhile, and the longest pause is short beside the time
/// watched. Who hears from the others so does not wait for one that keeps the pipe open.
fn hears_often(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let came = group.count() > MIN_HEARD;
    let short = group.longest().max < run.attributed.wall / 2;
    run.attributed.of_threads && !writes(group.main()) && came && short
}

fn held_by_several(run: &Run<'_>, group: &Waits<'_>, ends: &[&Holder]) -> Finding {
    let main = group.main();
    // Whoever stands in a wait of its own writes nothing before that is over.
    let stands = |holder: &&&Holder| {
        let rests = |cause| matches!(cause, Cause::Idle | Cause::NetAccept | Cause::ProcessChild);
        holder.doing.is_some_and(|cause| !rests(cause))
    };
    let root = ends
        .iter()
        .find(stands)
        .map(|holder| root::of_holder(group.run, main, holder));
    let stands = root.map_or_else(String::new, |root| root.stands());
    let who = say::who_with_pid(&main.asker.name);
    let shown: Vec<String> = ends
        .iter()
        .take(MAX_NAMED)
        .map(|holder| named(&group.run, &holder.name))
        .collect();
    let more = ends.len() - shown.len();
    let named = match (shown.split_last(), more) {
        (Some((last, rest)), 0) => format!("{} and {last}", rest.join(", ")),
        _ => format!(
            "{} and {}",
            shown.join(", "),
            say::several(more as u64, "other process")
        ),
    };
    let title = match writes(main) {
        true => format!("{who} waits for room in a pipe that {named} have open for reading"),
        false => format!("{who} is reading from a pipe that {named} still have open for writing"),
    };
    let title = Title::from(title).with(&stands);
    let severity = match hears_often(run, group) || looks_now_and_then(run, group) {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let mut finding = RULE.finding(severity, title, group);
    for holder in ends.iter().take(MAX_NAMED) {
        finding = finding.and(say::meanwhile(holder));
    }
    let last = ends[0].name.pid;
    let finding = finding.confidence(Confidence::Strong);
    let finding = match root.filter(|_| !stands.is_empty()) {
        Some(root) => finding.remedy(root.remedy()),
        None => finding,
    };
    finding
        .remedy(
            Remedy::safe(
                "find the process that should write or close its end; a child that merely inherited the end must close it \
                 (after fork, or with close-on-exec), or the pipe never ends",
            )
            .with_command(format!("ls -l /proc/{last}/fd")),
        )
        .remedy(Remedy::pointless(
            "a time limit alone: whoever keeps the end open does so still",
        ))
}

/// The finding about a pipe in which nothing is stuck: its data moves on, or comes now and then.
fn going_on<'a>(
    run: &Run<'a>,
    group: &Waits<'a>,
    root: Option<root::Root<'a>>,
    peer: &str,
) -> Option<Finding> {
    let main = group.main();
    let flow = flows::of(run, group, root, writes(main));
    let came = streams::of_pipe(run, group).filter(|_| !writes(main));
    let title = match (&flow, came) {
        (Some(flow), _) => flow.title(),
        (None, Some(pieces)) => format!(
            "{} waits for what {peer} writes by itself: {} came in {}",
            say::who(&main.asker.name),
            say::several(pieces, "piece"),
            duration(run.attributed.wall)
        ),
        (None, None) => return None,
    };
    let holders = group.holders();
    let finding = RULE
        .finding(Severity::Note, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(flow.as_ref().is_some_and(|flow| flow.most));
    Some(match flow {
        Some(flow) => (flow.remedies().into_iter())
            .fold(finding, Finding::remedy)
            .remedy(Remedy::pointless(LARGER)),
        None => finding.remedy(Remedy::safe(
            "nothing, if it writes now and then: between two pieces both rest",
        )),
    })
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    if let Some(ends) = several_ends(group) {
        return held_by_several(run, group, &ends);
    }
    let source = run.attributed.source;
    let main = group.main();
    let who = say::who(&main.asker.name);
    let holders = group.holders();
    let peer = holders.first().map(|holder| say::who(&holder.name));
    // A trace of calls shows who is at the other end only where it follows that one too.
    let unseen = peer.is_none() && !main.read_at.is_empty();
    // A program that wakes itself, or hands out turns, has both ends in several processes.
    let unmet = peer.is_none() && !source.finds_pipe_peers();
    let root = root::of(group);
    let goes_on = peer.as_deref().and_then(|peer| going_on(run, group, root, peer));
    if let Some(finding) = goes_on {
        return finding;
    }
    let stands = root.map_or_else(String::new, |root| root.stands());
    let title = match (writes(main), &peer) {
        (true, None) if unmet => format!("{who} waits for room in a pipe; its reader was not observed"),
        (false, None) if unmet => format!("{who} is reading from a pipe; its writer was not observed"),
        (true, None) if unseen => {
            format!("{who} waits for room in a pipe; its reader is not in the trace")
        }
        (false, None) if unseen => {
            format!("{who} is reading from a pipe; its writer is not in the trace")
        }
        (true, Some(peer)) => {
            format!("{who} is writing to a pipe that {peer} does not read fast enough")
        }
        (false, Some(peer)) => {
            format!("{who} is reading from a pipe, and {peer} writes nothing to it")
        }
        (true, None) => format!("{who} writes to a pipe faster than its reader reads"),
        (false, None) => format!("{who} is reading from a pipe that no process writes to"),
    };
    let title = Title::from(title).with(if peer.is_some() { stands.as_str() } else { "" });
    // A peer of the run has its own time judged by other rules; anyone else is where the search must go on.
    let note = unseen || unmet || has_no_word(run, group) || looks_now_and_then(run, group);
    let severity = if group.handed_on() || note {
        Severity::Note
    } else {
        Severity::Warning
    };
    let finding = RULE
        .finding(severity, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .proved_if(peer.is_some());
    let peer = peer.unwrap_or_else(|| "the process at the other end".into());
    let finding = match group.handed_on() {
        true => finding.remedy(Remedy::safe(format!(
            "make {peer} faster: this wait is its running time"
        ))),
        false => finding.remedy(root.map_or_else(
            || Remedy::safe(format!("look at {peer}, which was not observed here")),
            |root| root.remedy(),
        )),
    };
    finding.remedy(Remedy::pointless(LARGER))
}
