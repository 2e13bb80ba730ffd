//! What was made anew, from attribution to the report.

use super::asker;
use holdup_model::attributed;
use holdup_model::churn;
use holdup_model::report::{Births, Churn, Conversations, Ends, Handshakes};

pub(super) fn churn(churn: &churn::Churn) -> Churn {
    Churn {
        watched_ns: churn.watched,
        made: churn.made.iter().map(|one| births(churn, one)).collect(),
        connections: churn
            .connections
            .iter()
            .map(|one| conversations(churn, one))
            .collect(),
        ends: churn.ends.iter().filter(|one| one.failed > 0).map(ends).collect(),
        traffic_told: churn.traffic_told,
    }
}

fn ends(one: &churn::Ends) -> Ends {
    Ends {
        by: asker(&attributed::Asker {
            name: one.by.clone(),
            ..attributed::Asker::default()
        }),
        program: one.program.clone(),
        ended: one.ended,
        failed: one.failed,
        failure: one.failure,
        alike: one.alike,
        p50_ns: one.p50,
    }
}

fn births(churn: &churn::Churn, one: &churn::Births) -> Births {
    Births {
        what: one.what,
        by: asker(&one.by),
        made: one.made,
        per_second: churn.per_second(one.made),
        ended: one.ended,
        p50_ns: one.p50,
        max_ns: one.longest,
        names: one.names.iter().map(|called| called.name.clone()).collect(),
    }
}

fn conversations(churn: &churn::Churn, one: &churn::Conversations) -> Conversations {
    Conversations {
        end: one.end.clone(),
        accepted: one.accepted,
        by: asker(&one.by),
        made: one.made,
        per_second: churn.per_second(one.made),
        closed: one.closed,
        one_request: one.once,
        several_requests: one.more,
        unknown_requests: one.untold,
        closed_here: one.closed_here,
        closed_by_peer: one.closed_by_peer,
        p50_ns: one.p50,
        open_ns: one.open_ns,
        setup_ns: one.setup_ns,
        tls: (one.tls.all() > 0).then(|| Handshakes {
            full: one.tls.full,
            offered_in_vain: one.tls.in_vain,
            resumed: one.tls.resumed,
            unknown: one.tls.untold,
            mean_ns: one.tls.mean(),
        }),
    }
}
