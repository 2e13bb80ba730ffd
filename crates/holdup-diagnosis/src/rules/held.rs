//! What the one with a lock does with it, in words for the first sentence of a finding.

use super::{Run, asked, beside, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Holder};

/// The one with the lock: by its name, with its process where that is another one, and `another thread (4711)` where the name alone says nothing
/// because it is the waiter's.
pub(super) fn who(owner: &Holder, waiter: &AttributedWait) -> String {
    let (own, waiter) = (&owner.name, &waiter.asker.name);
    match own.pid == waiter.pid {
        true if (&own.process, &own.thread) == (&waiter.process, &waiter.thread) => {
            format!("another thread ({})", own.tid)
        }
        true => say::who(own),
        false => say::who_with_pid(own),
    }
}

/// What the one with the lock does meanwhile: `, sleeping on purpose in export (shop.py:33)`. Empty where that is not known.
pub(super) fn with_it(run: &Run<'_>, holder: &Holder) -> String {
    let Some(doing) = holder.doing else {
        return String::new();
    };
    let own = |wait: &&AttributedWait| wait.asker.name == holder.name && wait.cause == doing;
    let wait = run.attributed.waits.iter().filter(own).max_by_key(|wait| wait.ns);
    let place = || match asked::known(holder.place.as_ref().or_else(|| chosen_frame(&holder.stack))) {
        Some(place) => format!(" in {}", say::place(place)),
        None => String::new(),
    };
    match wait {
        // Whoever has a lock that others want is not at rest, whatever it waits for.
        _ if doing == Cause::Idle => format!(", waiting itself{}", place()),
        Some(wait) if !doing.on_cpu() && doing != Cause::SchedRunqueue => {
            format!(", {}", beside::doing_with_peer(run, wait))
        }
        _ => format!(", {}{}", doing.phrase(), place()),
    }
}

/// Whether the one with the lock has it while it waits for work, and no client waits: workers that take turns before their sockets pass such a
/// lock on, and nobody loses anything by it. Whoever waits for another thread meanwhile is no such.
pub(super) fn takes_turns(run: &Run<'_>, holder: &Holder) -> bool {
    let for_thread = |wait: &AttributedWait| {
        wait.asker.name == holder.name
            && wait.cause == Cause::Idle
            && system_calls::is_named(wait.call.as_deref(), Kind::WaitsForFutex)
    };
    let clients = run
        .attributed
        .requests
        .as_ref()
        .is_some_and(|requests| requests.resting > 0);
    holder.doing == Some(Cause::Idle) && !clients && !run.attributed.waits.iter().any(for_thread)
}
