//! What a piece of a thread's time is reported as: a wait, how it ended, the connection that it was spent on, the signal that stopped it.
//!
//! In: a [`Piece`] and what it was seen to be spent in. Out: [`Wait`]s and the events that belong to them.

use super::account::Piece;
use super::clocks::stat;
use super::waiting::Waiting;
use crate::root::{Root, text_if_there};
use holdup_evidence::{Call, Event, Ns, SignalSent, TaskName, ThreadId, Wait, Waker};
use holdup_knowledge::system_calls;
use std::sync::Arc;

/// Of shorter waits the state of the connection is not known, nanoseconds, as when tracing.
const MIN_TCP_NS: Ns = 1_000_000;

/// Whether a poll's time ran out. No poll lasts longer than it was allowed to, so it did if it lasted that long to within what is in doubt
/// of its ends, and that is little; or if it would have lasted longer still, had it had all of its share of what is in doubt.
fn ran_out(piece: &Piece<Arc<Waiting>>, site: &Waiting) -> bool {
    /// In doubt of the limit may be this part, or that one where it seems to have lasted longer.
    const DOUBT_ONE_PART_IN: u64 = 4;
    const LONGER_DOUBT_ONE_PART_IN: u64 = 2;
    /// It lacks at most this part.
    const NEARLY: u64 = 20;
    let Some(call) = site.site.call.filter(|_| piece.seen) else {
        return false;
    };
    let limit = match system_calls::milliseconds(&call) {
        Some(limit) => u64::from(limit.unwrap_or_default()) * 1_000_000,
        None => site.limit.unwrap_or_default(),
    };
    let lasted = piece.end - piece.start;
    // Where there were other waits between two looks, a part of this one may have been taken for theirs.
    let unsure = piece.doubt.max(limit / NEARLY);
    let as_long = piece.doubt <= limit / DOUBT_ONE_PART_IN && lasted + unsure >= limit;
    limit > 0 && (as_long || piece.doubt <= limit / LONGER_DOUBT_ONE_PART_IN && lasted >= limit)
}

/// The signal that stopped a process, which stands in its status while it is stopped. Who sent it stands nowhere: it is reported as the kernel's.
pub(super) fn stop_signal(root: &Root, pid: u32, id: ThreadId, at: Ns) -> Option<Event> {
    const STOP_SIGNALS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    // That of a thread has its own.
    let text = text_if_there(&root.proc.join(pid.to_string()).join("stat"))?;
    let signal = stat(&text)?.exit_code;
    let by = TaskName {
        pid: 0,
        tid: 0,
        name: String::new(),
        kernel: true,
    };
    STOP_SIGNALS
        .contains(&signal)
        .then_some(Event::Signal(SignalSent {
            at,
            thread: id,
            signal,
            by,
        }))
}

/// The state of the connection that a piece was spent on.
pub(super) fn connection(id: ThreadId, seq: u32, piece: &Piece<Arc<Waiting>>) -> Option<Event> {
    let tcp = piece.site.as_ref()?.tcp.as_ref();
    let tcp = tcp.filter(|_| piece.end - piece.start >= MIN_TCP_NS)?;
    Some(Event::Tcp(tcp.state_of(id, seq)))
}

/// The wait that a piece is.
pub(super) fn wait(id: ThreadId, seq: u32, piece: &Piece<Arc<Waiting>>, waker: Waker) -> Wait {
    let unknown = || Arc::new(Waiting::unknown(holdup_evidence::TaskState::Interruptible));
    let site = piece.site.clone().unwrap_or_else(unknown);
    let mut asked = site.asked.clone();
    if let Some(asked) = &mut asked {
        (asked.thread, asked.first, asked.seq) = (id, seq, seq);
        asked.returned = ran_out(piece, &site).then_some(0);
    }
    Wait {
        thread: id,
        seq,
        start: piece.start,
        end: piece.end,
        clock: piece.clock,
        state: site.site.state,
        iowait: false,
        call: site.site.call.unwrap_or(Call::untold()),
        object: site.object,
        ready: None,
        waker,
        holder: site.holder.clone(),
        kernel_stack: site.kernel_stack,
        serves: false,
        unanswered: None,
        memory_follows: false,
        asked,
    }
}
