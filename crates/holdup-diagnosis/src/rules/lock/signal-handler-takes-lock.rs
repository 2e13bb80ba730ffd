//! A thread waits for a lock in the handler of a signal, and what the signal interrupted may have that lock.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, Ns};
use holdup_knowledge::signal_handlers::{Handling, handling_with_lock};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// How long such a wait must have lasted, nanoseconds: another thread may have the lock, and gives it back sooner.
const MIN_WAIT_NS: Ns = 500_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SignalHandlerTakesLock, check)
    .about("a signal's handler waits for a lock that the interrupted code may have")
    .causes(&[Cause::LockFutex]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let in_handler = waits.only(|wait| stands(wait) && handling_with_lock(&wait.asker.stack).is_some());
    let Some(in_handler) = in_handler.filter(|waits| run.matters(waits.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "of {}, none stood in a signal handler for a lock whose owner is not known",
            say::several(waits.count().max(1), "wait")
        ));
    };
    let threads = in_handler.split(|wait| (wait.asker.name.pid, wait.asker.name.tid));
    Verdict::Fires(threads.iter().filter_map(finding).collect())
}

/// Whether a wait has not ended but with its process, and nobody is known who would end it.
fn stands(wait: &AttributedWait) -> bool {
    let owned = wait.holders.iter().any(|holder| holder.how_known.holds());
    let lasts = wait.open || wait.orphaned.is_some();
    lasts && wait.max >= MIN_WAIT_NS && !owned
}

fn finding(waits: &Waits<'_>) -> Option<Finding> {
    let main = waits.main();
    let found = handling_with_lock(&main.asker.stack)?;
    let Handling { handler, interrupted } = found;
    let who = say::who(&main.asker.name);
    let alone = main.orphaned.as_ref().is_some_and(|orphaned| orphaned.alone);
    let place = |frames: &[Frame]| chosen_frame(frames).map(say::place);
    let within = place(handler).map_or_else(String::new, |place| format!(", in {place}"));
    let interrupts = match place(interrupted) {
        Some(place) => format!("{place}, which the signal interrupted,"),
        None => "the code that the signal interrupted".to_owned(),
    };
    // A process that was forked may have a copy of a lock that another thread had; then the signal comes anywhere.
    let has_it = alone && found.within_one_file();
    let title = match has_it {
        true => format!(
            "{who} waits for a lock in a signal handler{within}, and has no other thread: {interrupts} has it"
        ),
        false => format!("{who} waits for a lock in a signal handler{within}: {interrupts} may have it"),
    };
    let innermost = interrupted.iter().find_map(|frame| frame.symbol.clone());
    let interrupted_in = innermost.map(|function| {
        Evidence::new(
            format!("the signal came while the thread was in {function}"),
            "user stack of the wait, beyond the handler",
        )
    });
    let others = alone.then(|| {
        Evidence::new(
            format!(
                "{} has no other thread that could have the lock",
                say::who_with_pid(&main.asker.name)
            ),
            "threads of the process, and the flags of the call",
        )
    });
    let severity = match has_it {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let finding = RULE
            .finding(severity, title, waits)
            .and_if(interrupted_in)
            .and_if(others)
            .confidence(match has_it {
                true => Confidence::Strong,
                false => Confidence::Suspect,
            })
            .remedy(Remedy::safe(
                "in the handler only set a variable of type volatile sig_atomic_t, or write a byte to a pipe or an eventfd, and do the work \
                 outside of it: signal-safety(7) lists what a handler may call",
            ))
            .remedy(Remedy::safe(
                "or block the signal and take it in a thread of its own, with sigwait or a signalfd",
            ));
    // What another thread has it may give back.
    Some(match has_it {
        true => finding.remedy(Remedy::pointless("waiting longer: the wait never ends by itself")),
        false => finding,
    })
}
