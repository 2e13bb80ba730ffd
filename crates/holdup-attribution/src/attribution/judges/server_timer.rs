//! Requests that their server holds until a timer expires: it looks again and again whether the answer may go out.

use super::super::event_loops::polls;
use super::{Case, Verdict};
use crate::classify::Classified;
use holdup_evidence::Cause;
use holdup_model::attributed::Reason;

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let sleeps = matches!(case.reading.cause, Cause::PollWait | Cause::TimerSleep);
    let expired = case.reading.timed_out && !case.open && polls(&case.wait.call);
    // A thread that has asked somebody else on behalf of a request waits for that, however often it looks meanwhile.
    let asks_nobody = case.wait.unanswered.is_none();
    let holds = sleeps && expired && asks_nobody && case.thread.answers_by_timer && case.requests().serves;
    holds.then(|| case.named(Reason::AnsweredByTimer, Classified::sleep(&case.wait.call)))
}
