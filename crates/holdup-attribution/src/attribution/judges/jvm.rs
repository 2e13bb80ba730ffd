//! Pauses of a Java virtual machine, and its own threads without work.

use super::super::jvms::OfJvm;
use super::{Case, Verdict};
use holdup_model::attributed::Reason;

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let known = &case.known;
    let of_jvm = known.jvms.of_wait(case.wait, known.threads, known.tasks)?;
    if !of_jvm.fits(case.reading.cause) {
        return None;
    }
    let (reason, late) = match &of_jvm {
        OfJvm::Stopped { late, .. } => (Reason::JvmStopped, *late),
        OfJvm::AtRest => (Reason::JvmAtRest, None),
        OfJvm::Unasked => (Reason::NoToolAsks, None),
    };
    Some(Verdict {
        timed_out: false,
        late,
        ..case.named(reason, of_jvm.classified(&case.wait.call))
    })
}
