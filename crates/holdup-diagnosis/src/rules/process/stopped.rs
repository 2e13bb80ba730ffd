//! Stopped by a signal, a tracer or the freezer.

use crate::rules::{Check, Extend, Generality, MATTERS, Need, Place, Rule, RuleId, Run, Waits, fires, halted, say};
use holdup_model::attributed::StopSignal;
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, HowKnown};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::Stopped,
    about: "it was stopped by a signal, a tracer or the freezer",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::ProcessStopped, Cause::ProcessFrozen],
    from: MATTERS,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Both(check, halted::seen),
};

/// What to do where the terminal stopped it: to let it go on does not help, it is stopped again by the next try.
fn at_terminal(wait: &AttributedWait) -> Option<Vec<Remedy>> {
    let reads = match wait.resource.detail.signal {
        Some(StopSignal::TerminalRead) => true,
        Some(StopSignal::TerminalWrite) => false,
        _ => return None,
    };
    let mut remedies = vec![Remedy::safe(
        "under timeout, which puts what it starts into the background: timeout --foreground",
    )];
    if reads {
        remedies.push(Remedy::safe("if it needs no input, start it with </dev/null"));
    }
    remedies.push(Remedy::safe(
        "bring it to the foreground: fg in the shell that started it; a program that starts others and waits for them gives them the \
         terminal (tcsetpgrp)",
    ));
    remedies.push(Remedy::pointless("kill -CONT: its next try stops it again"));
    Some(remedies)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let holders = waits.holders();
    let by = holders.first();
    let traced = by.is_some_and(|holder| holder.how_known == HowKnown::Tracer);
    let signal = main.resource.detail.signal;
    let verb = match (main.cause, traced) {
        (Cause::ProcessFrozen, _) => "frozen",
        (_, true) => "held by its tracer",
        _ => "stopped",
    };
    let title = match by {
        Some(holder) if traced => format!("{who} was {verb}, {}", say::who_with_pid(&holder.name)),
        // Of the terminal's own signals the sender is one of the same job, which used it.
        _ if at_terminal(main).is_some() => {
            let tried = match signal {
                Some(StopSignal::TerminalRead) => "reads from its terminal",
                _ => "writes to its terminal, or sets it",
            };
            format!("{who} {tried} from the background, and is stopped for that")
        }
        Some(holder) => format!("{who} was {verb} by {}", say::who_with_pid(&holder.name)),
        None if waits.open() => format!("{who} was {verb}, and does nothing until it is told to go on"),
        None => format!("{who} was {verb}, and did nothing until it was told to go on"),
    };
    let mut finding = RULE
        .finding(
            if waits.open() {
                Severity::Critical
            } else {
                Severity::Warning
            },
            title,
            waits,
        )
        .about_if_unnamed(by.map(say::in_the_way))
        .proved_if(by.is_some());
    if let Some(signal) = signal.map(StopSignal::id) {
        let sender = by
            .map(|holder| format!(", sent by {}", say::who_with_pid(&holder.name)))
            .unwrap_or_default();
        finding = finding.and(Evidence::new(
            format!("the signal was {signal}{sender}"),
            "signal_generate",
        ));
    }
    let before = run.attributed.of_threads && main.max > run.attributed.wall;
    if by.is_none() && before {
        finding = finding.and(Evidence::new(
            format!("by whom is not known: it was {verb} before observation began"),
            "no signal was seen",
        ));
    }
    finding = finding.and_if(say::kernel_top(waits));
    let had_a_reason = "whoever stopped it may have had a reason";
    let remedy = match (main.cause, traced) {
        (Cause::ProcessFrozen, _) => Remedy::changing(
            "find out who froze the cgroup (a container was paused?), and thaw it",
            had_a_reason,
        ),
        (_, true) => Remedy::safe("detach the debugger or tracer, or let it stop the program less often"),
        _ => {
            if let Some(terminal) = at_terminal(main) {
                return fires(terminal.into_iter().fold(finding, Finding::remedy));
            }
            Remedy::changing("find out why it was stopped, and let it go on", had_a_reason)
                .with_command(format!("kill -CONT {}", main.asker.name.pid))
        }
    };
    fires(finding.remedy(remedy))
}
