//! What a wait is to the request that its thread has to answer.

use super::Verdict;
use holdup_evidence::Cause;

/// The cause under which a request's time in this wait is booked. An idle wait that timed out may be the request's own time limit.
pub(in super::super) fn spent_on(verdict: &Verdict) -> Cause {
    match verdict.cause {
        Cause::Idle if verdict.timed_out => Cause::TimerSleep,
        cause => cause,
    }
}
