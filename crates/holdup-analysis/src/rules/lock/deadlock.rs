//! Threads that wait for each other's locks, so that none can go on.

use crate::attributed::{AttributedWait, Link, ThreadName};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use std::collections::BTreeSet;

/// Share of the elapsed time from which a deadlock is spoken of: one that nothing breaks lasts until the run is ended
/// from outside, which may be soon after.
const FROM: f64 = 0.01;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::Deadlock,
    about: "threads wait for each other's locks and none can go on",
    needs: &[Need::SchedulerEvents, Need::LockHolders],
    causes: &[Cause::LockFutex, Cause::LockFile],
    from: FROM,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(stuck) = waits.only(|wait| wait.deadlock) else {
        return Verdict::Clear(format!(
            "of {}, none was for a lock of a thread that waited for this one's",
            say::several(waits.count().max(1), "wait")
        ));
    };
    let circles = stuck.split(members);
    Verdict::Fires(circles.iter().map(|circle| finding(circle)).collect())
}

/// The threads of a wait's circle, whichever of them it is of.
fn members(wait: &AttributedWait) -> BTreeSet<u32> {
    wait.chain.iter().map(|link| link.name.tid).collect()
}

fn finding(circle: &Waits<'_>) -> Finding {
    let main = circle.main();
    let alone = members(main).len() == 1;
    // A wait that ran into its own time limit breaks the circle, and is tried again.
    let broken = circle.timed_out() > 0;
    let circle_of = &main.chain;
    let who: Vec<String> = circle_of
        .iter()
        .map(|link| named(&link.name, circle_of))
        .collect();
    let title = if alone {
        format!(
            "{} waits for a lock that it holds itself",
            say::who(&main.asker.name)
        )
    } else {
        format!("Deadlock: {}", who.join(" waits for "))
    };
    let severity = if broken {
        Severity::Warning
    } else {
        Severity::Critical
    };
    let mut finding = RULE.finding(severity, title, circle);
    // They stand at the same time: the longest is what the circle costs.
    let longest = circle.iter().map(|wait| wait.ns).fold(0, u64::max);
    finding.ns = finding.ns.map(|ns| ns.min(longest));
    for wait in circle.iter() {
        finding = finding.and(side(wait));
    }
    let finding = finding.and(Evidence::new(
        if broken {
            "a time limit ended it, not the locks"
        } else {
            "no lock in it was let go while it stood; it ended with the run"
        },
        say::SCHEDULER,
    ));
    let finding = finding.confidence(Confidence::Proved);
    if alone {
        return finding.remedy(Remedy::safe(
            "do not lock it again: split the function into one that locks and one that expects the lock, or make the \
             lock recursive",
        ));
    }
    finding
        .remedy(Remedy::safe(
            "take these locks in the same order everywhere (by address, or by a rank), or both under one lock",
        ))
        .remedy(Remedy::safe(
            "where the order can't be known, try the second lock and let go of the first when it is taken",
        ))
        .remedy(Remedy::pointless("waiting longer: none of them can let go"))
}

/// A thread of the circle, told apart from its namesakes in there.
fn named(name: &ThreadName, circle: &[Link]) -> String {
    let who = say::who(name);
    let namesake = |link: &&Link| link.name.tid != name.tid && say::who(&link.name) == who;
    match circle.iter().find(namesake) {
        Some(_) => format!("{who} (tid {})", name.tid),
        None => who,
    }
}

/// Who waits for which lock, and whose that is.
fn side(wait: &AttributedWait) -> Evidence {
    let lock = wait.resource.detail.get("symbol").unwrap_or(&wait.resource.name);
    let asked = wait
        .asker
        .frame
        .as_deref()
        .map(|frame| format!(", in {frame}"))
        .unwrap_or_default();
    let (holder, how) = match wait.holders.first() {
        Some(holder) => (
            format!(", which {} (tid {}) has", say::who(&holder.name), holder.name.tid),
            say::how_known(holder.how_known),
        ),
        None => (String::new(), say::SCHEDULER),
    };
    Evidence::new(
        format!(
            "{} (tid {}) waits for {}{holder}{asked}",
            say::who(&wait.asker.name),
            wait.asker.name.tid,
            say::name_or(lock, "a lock"),
        ),
        how,
    )
}
