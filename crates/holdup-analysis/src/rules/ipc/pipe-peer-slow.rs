//! Waiting for whoever has the other end of a pipe or FIFO.

use crate::attributed::AttributedWait;
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::PipePeerSlow,
    about: "the other end of a pipe is slower",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::IpcPipe],
    from: MATTERS,
    gives_way_to: &[
        RuleId::FifoWithoutPeer,
        RuleId::PipeHeldOpen,
        RuleId::ChildCannotWrite,
    ],
    place: Place::Way,
    check: Check::Waits(check),
};

/// Whether it waits for room, so that the reader is the one in the way.
fn writes(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Writes | Kind::MovesData)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let key = |wait: &AttributedWait| (wait.asker.name.pid, writes(wait));
    let groups = run.worth(waits, waits.split(key), MATTERS);
    Verdict::Fires(
        groups
            .iter()
            .map(|group| finding(group, run.attributed.by_looks))
            .collect(),
    )
}

fn finding(group: &Waits<'_>, by_looks: bool) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let holders = group.holders();
    let peer = holders.first().map(|holder| say::who(&holder.name));
    // A trace of calls shows who is at the other end only where it follows that one too.
    let unseen = peer.is_none() && !main.read_at.is_empty();
    // Nor do looks always show it: a program that wakes itself, or hands out turns, has both ends in several processes.
    let unmet = peer.is_none() && by_looks;
    let title = match (writes(main), &peer) {
        (true, None) if unmet => format!("{who} waits for room in a pipe; who reads from it was not seen"),
        (false, None) if unmet => format!("{who} waits to read from a pipe; who writes into it was not seen"),
        (true, None) if unseen => {
            format!("{who} waits for room in a pipe; who reads from it is not in the trace")
        }
        (false, None) if unseen => {
            format!("{who} waits to read from a pipe; who writes into it is not in the trace")
        }
        (true, Some(peer)) => format!("{who} waits for {peer} to read from their pipe"),
        (false, Some(peer)) => format!("{who} waits for {peer} to write into their pipe"),
        (true, None) => format!("{who} writes into a pipe faster than anyone reads"),
        (false, None) => format!("{who} reads from a pipe into which nobody writes"),
    };
    // A peer of the run has its own time judged by other rules; anyone else is where the search must go on.
    let severity = if group.handed_on() || unseen || unmet {
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
            "make {peer} faster: its own time is what this wait is"
        ))),
        false => finding.remedy(Remedy::safe(format!(
            "find out what {peer} waits for: it is not part of this run"
        ))),
    };
    finding.remedy(Remedy::pointless(
        "a larger pipe: it only delays the wait while one end is slower",
    ))
}
