//! An observation of which nothing is left.
//!
//! In: when it began and ended, and why there is nothing. Out: what was collected, with that reason and no evidence.

use super::Collected;
use holdup_attribution::attribution::Attribution;
use holdup_evidence::{Finish, NotMeasured, Ns};
use holdup_model::report::Backend;
use holdup_proc::{Root, facts};
use std::collections::BTreeMap;

/// Nothing, between these two instants.
pub fn nothing(started: Ns, ended: Ns, why: NotMeasured) -> Collected {
    let mut problems = Vec::new();
    let facts = facts::collect(&Root::system(), &facts::Question::default(), &mut problems);
    let finish = Finish {
        started,
        ended,
        not_measured: vec![why],
        ..Finish::default()
    };
    Collected {
        backend: Backend::Bpf,
        attributed: Attribution::of_threads().finish(&finish, &facts),
        started,
        facts,
        ended: None,
        problems,
        elsewhere: Vec::new(),
        build_ids: BTreeMap::new(),
        events: None,
    }
}
