//! Which of two findings is said first, where one is about a process and the other about who waits for that process.
//!
//! The problem: of a program that waits for its child, the child's sleep costs as much as the wait for it. Whoever asked about the program
//! reads a sentence about a process that they may not know, without the function that waits. The choice: of what already runs, the finding
//! about the waiter comes first where it names the one in the way; it is then at least as grave. In: findings in their order. Out: the same.

use super::{Rule, Run};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::Finding;

/// Moves findings about waiters before those about whom they wait for.
pub(super) fn waiters_first(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) {
    if run.machine || run.observed.is_some() || !run.attributed.of_threads {
        return;
    }
    let mut at = 0;
    while at < found.len() {
        let behind = (at + 1..found.len()).find(|later| waits_for(run, &found[*later].1, &found[at].1));
        if let Some(later) = behind {
            let (rule, mut waiter) = found.remove(later);
            waiter.severity = waiter.severity.max(found[at].1.severity);
            found.insert(at, (rule, waiter));
        }
        at += 1;
    }
}

/// Whether one finding is about the wait for the process that the other one is about, and says so.
fn waits_for(run: &Run<'_>, waiter: &Finding, other: &Finding) -> bool {
    let (name, root) = (&waiter.asker.name, &other.asker.name);
    let apart = name.pid != 0 && root.pid != 0 && name.pid != root.pid;
    // What a process does by itself. Its own waits for others say more, unless a thread that has much to do stands in the wait for it.
    let by_itself = matches!(
        other.cause,
        Cause::TimerSleep | Cause::ProcessStopped | Cause::ProcessFrozen
    );
    let blocks = waiter.rule == super::RuleId::BlockingCallInEventLoop.id();
    let of_same = |wait: &&AttributedWait| {
        (wait.asker.name.pid, wait.asker.name.tid) == (name.pid, name.tid) && wait.cause == waiter.cause
    };
    let mut waits = run.attributed.waits.iter().filter(of_same);
    apart
        && (by_itself || blocks)
        && waiter.title.contains(root.process.as_str())
        && waits.any(|wait| leads_to(wait, root.pid, blocks))
}

/// Whether a wait that goes on is for this process, directly or at the end of its way, and the program's own code asked for it.
fn leads_to(wait: &AttributedWait, pid: u32, to_end: bool) -> bool {
    let direct = match wait.holders.as_slice() {
        [one] => one.name.pid == pid,
        _ => false,
    };
    let last = wait.chain.last().is_some_and(|link| link.name.pid == pid);
    let through = to_end && wait.chain.iter().any(|link| link.name.pid == pid);
    wait.open && (direct || last || through) && chosen_frame(&wait.asker.stack).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::examples::mostly;
    use super::super::judge;
    use super::super::run::Run;
    use holdup_evidence::{Cause, Frame, Language, Ns, SystemFacts};
    use holdup_model::attributed::{Attributed, Holder, HowKnown, Link, ThreadName};

    const SECOND: Ns = 1_000_000_000;

    fn name(pid: u32, process: &str) -> ThreadName {
        ThreadName {
            pid,
            tid: pid,
            process: process.to_owned(),
            thread: process.to_owned(),
        }
    }

    /// The first sentence where a process does this, and another one waits for it to end in a function of its own.
    fn first(does: Cause, open: bool) -> String {
        let (parent, child) = (name(1, "batch"), name(2, "wav2opus"));
        let mut run: Attributed = mostly(does, 1, 1.0, SECOND);
        run.of_threads = true;
        run.waits[0].asker.name = child.clone();
        run.waits[0].open = true;
        let mut wait = mostly(Cause::ProcessChild, 1, 1.0, SECOND).waits.remove(0);
        wait.asker.name = parent.clone();
        (wait.open, wait.ns, wait.max) = (open, SECOND, SECOND);
        wait.asker.frame = Some("convert".to_owned());
        wait.asker.stack = vec![Frame {
            symbol: Some("convert".to_owned()),
            file: Some("/srv/batch.py".to_owned()),
            line: Some(43),
            language: Language::Python,
            ..Frame::default()
        }];
        let link = |name: &ThreadName, cause| Link {
            name: name.clone(),
            cause,
            ns: SECOND,
            frame: None,
        };
        wait.chain = vec![link(&parent, Cause::ProcessChild), link(&child, does)];
        wait.holders = vec![Holder {
            name: child,
            how_known: HowKnown::Child,
            doing: Some(does),
            ns: SECOND,
            stack: Vec::new(),
            place: None,
            others_busy: 0,
        }];
        run.waits.push(wait);
        let judged = judge(&Run::new(&run, &SystemFacts::default()));
        judged.findings[0].title.to_string()
    }

    #[test]
    fn who_waits_for_a_child_that_does_nothing_is_said_first() {
        let stopped = first(Cause::ProcessStopped, true);
        assert!(
            stopped.starts_with("batch waits for its child wav2opus, which is stopped"),
            "{stopped}"
        );
        assert!(stopped.contains("convert (batch.py:43)"), "{stopped}");
        let sleeps = first(Cause::TimerSleep, true);
        assert!(
            sleeps.starts_with("batch waits for its child wav2opus"),
            "{sleeps}"
        );
    }

    #[test]
    fn a_wait_that_has_ended_leads_nothing() {
        let stopped = first(Cause::ProcessStopped, false);
        assert!(stopped.starts_with("wav2opus was stopped"), "{stopped}");
    }
}
