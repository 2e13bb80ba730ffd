//! Stopped by a signal, a tracer or the freezer.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, fires, halted, say};
use holdup_evidence::Cause;
use holdup_model::attributed::StopSignal;
use holdup_model::attributed::{AttributedWait, HowKnown};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::Stopped, check, halted::seen)
    .about("it was stopped by a signal, a tracer or the freezer")
    .causes(&[Cause::ProcessStopped, Cause::ProcessFrozen]);

/// What to do where the terminal stopped it: to let it go on does not help, it is stopped again by the next try.
fn at_terminal(wait: &AttributedWait) -> Option<Vec<Remedy>> {
    let reads = match wait.resource.detail.signal {
        Some(StopSignal::TerminalRead) => true,
        Some(StopSignal::TerminalWrite) => false,
        _ => return None,
    };
    let mut remedies = vec![Remedy::safe(
        "use timeout --foreground: timeout puts its command into the background",
    )];
    if reads {
        remedies.push(Remedy::safe("start it with </dev/null if it needs no input"));
    }
    remedies.push(Remedy::safe(
        "bring it to the foreground with fg in its shell; a program that starts others and waits for them \
         must give them the terminal (tcsetpgrp)",
    ));
    remedies.push(Remedy::pointless("kill -CONT: its next attempt stops it again"));
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
        None if waits.open() => format!("{who} was {verb}, and does nothing until it is continued"),
        None => format!("{who} was {verb}, and did nothing until it was continued"),
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
            format!("the sender is not known: it was {verb} before observation began"),
            "no signal was observed",
        ));
    }
    finding = finding.and_if(say::kernel_top(waits));
    let had_a_reason = "it may have been stopped for a reason";
    let remedy = match (main.cause, traced) {
        (Cause::ProcessFrozen, _) => Remedy::changing(
            "find out what froze the cgroup (a paused container?), and thaw it",
            had_a_reason,
        ),
        (_, true) => Remedy::safe("detach the debugger or tracer, or make it stop the program less often"),
        _ => {
            if let Some(terminal) = at_terminal(main) {
                return fires(terminal.into_iter().fold(finding, Finding::remedy));
            }
            Remedy::changing("find out why it was stopped, and continue it", had_a_reason)
                .with_command(format!("kill -CONT {}", main.asker.name.pid))
        }
    };
    fires(finding.remedy(remedy))
}
