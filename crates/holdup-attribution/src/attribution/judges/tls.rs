//! TLS handshakes: a receive or a send on a connection whose handshake has begun and is not complete.

use super::{Case, Subject, Verdict};
use holdup_evidence::Cause;
use holdup_model::attributed::{Certainty, Reason};

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let talks = matches!(case.reading.cause, Cause::NetReceive | Cause::NetSend);
    let shakes = talks && case.known.churning.is_handshake(case.wait, case.memory);
    shakes.then_some(Verdict {
        cause: Cause::NetTls,
        subject: Subject::Peer,
        certainty: Certainty::Purpose,
        reason: Reason::TlsHandshake,
        timed_out: case.reading.timed_out,
        late: None,
    })
}
