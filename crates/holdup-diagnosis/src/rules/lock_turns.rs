//! Who has a lock that goes from hand to hand, and what they do with it.
//!
//! In: the waits of a queue, and who ended them or was noted as the owner. Out: what most of them do with it, the one that may have had it first,
//! and that in words.

use super::{Run, Waits, held, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use holdup_model::finding::Evidence;
use std::collections::BTreeSet;

/// What those who have a lock in turn do with it, where most of them do the same: by the one that had it longest.
pub(super) fn in_turn(run: &Run<'_>, queue: &Waits<'_>, owners: &[&Holder], all: Ns) -> Option<String> {
    let tells = |cause: Cause| cause != queue.cause() && cause != Cause::SchedRunqueue;
    let does = |holder: &&&Holder| holder.doing.is_some_and(tells);
    let first = owners.iter().find(does)?;
    let same = owners.iter().filter(|owner| owner.doing == first.doing);
    let mostly = same
        .map(|owner| owner.ns)
        .fold(0, Ns::saturating_add)
        .saturating_mul(2)
        > all;
    let doing = held::with_it(run, first);
    mostly.then(|| doing.trim_start_matches(", ").to_owned())
}

/// Of a lock without an owner: the one thread that let it go and never waited for it, if somebody waited for about as long as anybody until it
/// did. It had the lock before all who waited; what they did with it afterwards was short.
pub(super) fn candidate<'a>(queue: &Waits<'_>, holders: &'a [Holder]) -> Option<&'a Holder> {
    let pid = queue.main().asker.name.pid;
    let tids: BTreeSet<u32> = queue.iter().map(|wait| wait.asker.name.tid).collect();
    let mut others = holders.iter().filter(|holder| !tids.contains(&holder.name.tid));
    let (Some(only), None) = (others.next(), others.next()) else {
        return None;
    };
    let waited_long = only.ns.saturating_mul(2) >= queue.longest().max;
    (waited_long && only.name.pid == pid && only.how_known == HowKnown::Waker).then_some(only)
}

pub(super) fn without_waiting(candidate: &Holder) -> Evidence {
    let text = format!(
        "{} is a candidate for its holder: it let the lock go without having waited for it, and the others waited for that; the lock itself \
         notes no owner",
        say::who(&candidate.name)
    );
    Evidence::new(text, say::how_known(candidate.how_known))
}

/// What the path mostly went through in the threads of a queue while others of them waited: cause, time, and who asked.
pub(super) fn between<'a>(run: &Run<'a>, queue: &Waits<'a>) -> Option<(Cause, Ns, &'a AttributedWait)> {
    let tids: BTreeSet<u32> = queue.iter().map(|wait| wait.asker.name.tid).collect();
    let cause = queue.cause();
    let own =
        run.waits(|wait| wait.cause != cause && tids.contains(&wait.asker.name.tid) && wait.path_ns > 0)?;
    let causes = own.split(|wait| wait.cause);
    let most = causes.iter().max_by_key(|group| group.path())?;
    // Threads do other things, too: what they did with the lock is most of what they did.
    let mostly = most.path().saturating_mul(2) > own.path();
    mostly.then(|| (most.cause(), most.path(), most.main()))
}

pub(super) fn with_it((cause, ns, wait): &(Cause, Ns, &AttributedWait)) -> Evidence {
    let asked = match wait.asker.frame.as_deref().unwrap_or_default() {
        "" => String::new(),
        asker => format!(", asked by {asker}"),
    };
    let text = format!(
        "between them these threads spent {} {} ({cause}){asked}, one after the other",
        say::duration(*ns),
        cause.phrase()
    );
    Evidence::new(text, "the critical path")
}
