//! Two processes that wait for each other at the channel between them.
//!
//! In: a wait for a peer, with the chain of waits behind it, and the other waits of the run. Out: who would have to read, where one of the two is
//! known to write; and the finding. To make the peer faster helps nobody then.

use super::{Rule, Run, Waits, java_waits, say};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_model::attributed::{AttributedWait, Link};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};

/// Waits for the other end of a channel.
const AT_CHANNELS: [Cause; 4] = [Cause::IpcPipe, Cause::IpcUnix, Cause::NetSend, Cause::NetReceive];

/// Two that wait for each other.
pub(super) struct Mutual<'a> {
    main: &'a AttributedWait,
    own: &'a Link,
    other: &'a Link,
    /// The wait of the one that writes, where it is known.
    writes: Option<&'a AttributedWait>,
}

/// Whether a wait that goes on is for a process that waits for this one in turn, at such a channel both.
pub(super) fn of<'a>(run: &Run<'a>, main: &'a AttributedWait) -> Option<Mutual<'a>> {
    let [own, other, last] = main.chain.as_slice() else {
        return None;
    };
    let back = last.name.pid == own.name.pid && other.name.pid != own.name.pid && own.name.pid != 0;
    let at_channels = [own, other].iter().all(|link| AT_CHANNELS.contains(&link.cause));
    if !main.open || !back || !at_channels {
        return None;
    }
    let pids = [own.name.pid, other.name.pid];
    let writes = |wait: &&AttributedWait| {
        let moves = Kind::Writes | Kind::Sends | Kind::MovesData;
        let goes_back = wait
            .holders
            .iter()
            .any(|holder| pids.contains(&holder.name.pid) && holder.name.pid != wait.asker.name.pid);
        wait.open
            && pids.contains(&wait.asker.name.pid)
            && AT_CHANNELS.contains(&wait.cause)
            && system_calls::is_named(wait.call.as_deref(), moves)
            && goes_back
    };
    let writes = run.attributed.waits.iter().find(writes);
    // Two that both wait for a word: only where nobody else is left who could send one, none comes.
    if writes.is_none() && another_may_write(run, main) {
        return None;
    }
    Some(Mutual {
        main,
        own,
        other,
        writes,
    })
}

/// Whether another thread of the same process stands somewhere in the program's code and may go on from there: a thread that only reads what
/// comes on a connection leaves it to others to ask there. Who waits for the end of a thread does not go on before that one has.
fn another_may_write(run: &Run<'_>, main: &AttributedWait) -> bool {
    run.attributed.waits.iter().any(|wait| {
        let name = &wait.asker.name;
        let another = name.pid == main.asker.name.pid && name.tid != main.asker.name.tid;
        another
            && wait.open
            && wait.cause != Cause::Idle
            && primitive(&wait.asker.stack) != Some(Primitive::ThreadEnd)
            && !java_waits::joins(wait)
            && chosen_frame(&wait.asker.stack).is_some_and(is_applications)
    })
}

/// Whether the one that a wait is for waits for a word of the waiter's process itself, and neither is known to write: it has read all that it
/// was sent, and answered what it answers.
pub(super) fn awaits_us(wait: &AttributedWait) -> bool {
    let [own, other, last] = wait.chain.as_slice() else {
        return false;
    };
    let receives = |link: &Link| link.cause == Cause::NetReceive;
    wait.open
        && last.name.pid == own.name.pid
        && other.name.pid != own.name.pid
        && own.name.pid != 0
        && receives(own)
        && receives(other)
}

impl Mutual<'_> {
    /// The finding of a rule about these waits.
    pub(super) fn finding(&self, rule: &Rule, waits: &Waits<'_>) -> Finding {
        let (own, other) = (
            say::who_with_pid(&self.own.name),
            say::who_with_pid(&self.other.name),
        );
        let Some(writes) = self.writes else {
            let title = format!(
                "{own} and {other} wait for each other at the channel between them, and neither can continue"
            );
            return rule
                .finding(Severity::Critical, title, waits)
                .confidence(Confidence::Strong)
                .remedy(Remedy::safe(format!(
                    "find out whose turn it is: {own} waits for a word of {other}, and {other} for one of {own}; a message that was \
                     not flushed, or an end that was not closed, looks so"
                )))
                .remedy(Remedy::pointless("waiting longer: neither can continue"));
        };
        let reader_is_own = writes.asker.name.pid == self.other.name.pid;
        let (reader, writer) = match reader_is_own {
            true => (&own, &other),
            false => (&other, &own),
        };
        let place = self.main.asker.frame.as_deref().filter(|_| reader_is_own);
        let at = place.map_or_else(String::new, |frame| format!(" in {frame}"));
        let title = format!(
            "{writer} cannot write: {reader} does not read its data, and waits for {writer} itself{at}"
        );
        rule.finding(Severity::Critical, title, waits)
            .and(Evidence::new(
                format!("{writer} waits for room to write, and {reader} has the other end"),
                "descriptors, and the calls that both are in",
            ))
            .confidence(Confidence::Strong)
            .remedy(Remedy::safe(format!(
                "have {reader} read all of it until {writer} ends, or not take it at all (the output to a file or to /dev/null; in \
                 Node.js stdio: 'ignore' or stdout.resume(), in Python communicate())"
            )))
            .remedy(Remedy::pointless(format!(
                "a faster {writer}: nobody reads what it writes"
            )))
    }
}
