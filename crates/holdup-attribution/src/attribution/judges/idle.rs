//! Waits for work: what a server does between two requests.

use super::super::idle::Work;
use super::super::{owners, turns};
use super::{Case, Verdict};
use crate::classify::Classified;
use holdup_model::attributed::Reason;

pub(super) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let requests = case.requests();
    let work = requests.work.as_ref()?;
    // A thread that waits for the owner of a lock is not idle, unless that one waits for a client for both. Nor is one with a request
    // to answer, unless it waits for nothing but clients: what it read last is then no request, or not yet a whole one.
    let of_clients = matches!(work, Work::OfClients(_));
    let for_owner = owners::of(case.wait).is_some() && turns::turn(&case.known, case.wait).is_none();
    if for_owner || requests.serves && !of_clients {
        return None;
    }
    let reason = match of_clients {
        true => Reason::NoClient,
        false => Reason::NoWork,
    };
    let classified = Classified::idle(&case.wait.call, work.clone().phrase());
    Some(case.named(reason, classified))
}
