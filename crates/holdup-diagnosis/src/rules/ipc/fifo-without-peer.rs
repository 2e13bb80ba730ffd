//! Opening a FIFO that nobody has open at the other end.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::FifoWithoutPeer, check)
    .about("a FIFO has no peer: no process opens the other end")
    .causes(&[Cause::IpcPipe])
    .intermediate();

fn opens(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Opens)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let opening = waits.only(opens);
    let Some(opening) = opening.filter(|opening| run.matters(opening.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "{} of the elapsed time in pipes, and almost none in opening a FIFO",
            percent(run.share(waits.cost()))
        ));
    };
    let key = |wait: &AttributedWait| (wait.asker.name.pid, wait.resource.name.clone());
    let groups = run.worth(&opening, opening.split(key), MATTERS);
    Verdict::Fires(groups.iter().map(finding).collect())
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    // Without a path the resource is the call.
    let fifo = match main.resource.name.as_str() {
        path if path.contains('/') => format!("the FIFO {path}"),
        _ => "a FIFO".to_owned(),
    };
    let holders = group.holders();
    let title = match holders.first() {
        Some(holder) => format!(
            "{who} is opening {fifo} and waits for {} to open the other end",
            say::who(&holder.name)
        ),
        None => format!("{who} is opening {fifo}, and no process opens the other end"),
    };
    let severity = if group.handed_on() {
        Severity::Note
    } else {
        Severity::Warning
    };
    let finding = RULE
        .finding(severity, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .and_if(say::kernel_top(group))
        .proved_if(!holders.is_empty());
    finding
        .remedy(Remedy::safe(
            "start the other process first, or find out why it has not opened the FIFO",
        ))
        .remedy(Remedy::safe(
            "open it with O_NONBLOCK in a reader that must not wait; in a writer, open it for reading and \
             writing",
        ))
}
