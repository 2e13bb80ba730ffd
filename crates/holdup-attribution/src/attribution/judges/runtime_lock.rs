//! Locks that a runtime keeps, and names itself.

use super::{Case, Verdict};
use crate::classify::Classified;
use holdup_evidence::LockHolder;
use holdup_model::attributed::Reason;

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let Some(LockHolder::Runtime(lock)) = &case.wait.holder else {
        return None;
    };
    let classified = Classified::runtime_lock(&case.wait.call, lock);
    Some(case.named(Reason::LockNamed, classified))
}
