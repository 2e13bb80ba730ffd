//! A lock of a process that one of its threads has: where the others wait for it, and what that one does with it.
//!
//! In: waits whose holder is known, and all other waits. Out: both in words, for the first sentence of a finding.

use super::{Run, Waits, beside, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Holder};

/// Where these threads wait: ` in Shop.pay (Shop.java:41)`. Empty where the program's code is not known, or they wait in several places.
pub(super) fn waited_in(waits: &Waits<'_>) -> String {
    let Some(place) = known(chosen_frame(&waits.main().asker.stack)) else {
        return String::new();
    };
    let elsewhere = |wait: &AttributedWait| chosen_frame(&wait.asker.stack) != Some(place);
    if waits.iter().any(elsewhere) {
        return String::new();
    }
    format!(" in {}", say::place(place))
}

/// What the one with the lock does meanwhile: `, sleeping on purpose in export (shop.py:33)`. Empty where that is not known.
pub(super) fn with_it(run: &Run<'_>, holder: &Holder) -> String {
    let Some(doing) = holder.doing else {
        return String::new();
    };
    let own = |wait: &&AttributedWait| wait.asker.name == holder.name && wait.cause == doing;
    let wait = run.attributed.waits.iter().filter(own).max_by_key(|wait| wait.ns);
    let place = || match known(holder.place.as_ref().or_else(|| chosen_frame(&holder.stack))) {
        Some(place) => format!(" in {}", say::place(place)),
        None => String::new(),
    };
    match wait {
        // Whoever has a lock that others want is not at rest, whatever it waits for.
        _ if doing == Cause::Idle => format!(", waiting itself{}", place()),
        Some(wait) if !doing.on_cpu() && doing != Cause::SchedRunqueue => {
            format!(", {}", beside::doing(wait))
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

/// A frame with its line: a function of a library says little of the program.
fn known(frame: Option<&Frame>) -> Option<&Frame> {
    frame.filter(|frame| frame.symbol.is_some() && frame.line.is_some())
}
