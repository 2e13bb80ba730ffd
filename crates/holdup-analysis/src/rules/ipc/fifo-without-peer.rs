//! Opening a FIFO that nobody has open at the other end.

use crate::attributed::AttributedWait;
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::FifoWithoutPeer,
    about: "a FIFO that nobody opens at the other end",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::IpcPipe],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::Way,
    check: Check::Waits(check),
};

fn opens(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Opens)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let opening = waits.only(opens);
    let Some(opening) = opening.filter(|opening| run.matters(opening.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "{} of the elapsed time in pipes, and no open of a FIFO to speak of",
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
            "{who} opens {fifo} and waits for {} to open its other end",
            say::who(&holder.name)
        ),
        None => format!("{who} opens {fifo}, whose other end nobody opens"),
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
            "start the other one first, or see why it has not come as far as to open the FIFO",
        ))
        .remedy(Remedy::safe(
            "a reader that must not wait opens it with O_NONBLOCK, a writer for reading and writing at once",
        ))
}
