//! Connections, what was made anew, and requests of several segments.

use super::{percentile, tallies};
use holdup_evidence::Ns;
use holdup_model::attributed::{OfListener, Requests};
use holdup_model::churn::{Births, Churn, Conversations, Ends, Handshakes};
use holdup_model::connections::Connections;

fn sum(sum: &mut u64, part: u64) {
    *sum = sum.saturating_add(part);
}

/// Requests for connections, by peer.
pub(super) fn connections(whole: &mut Vec<Connections>, next: Vec<Connections>) {
    for part in next {
        let Some(one) = whole.iter_mut().find(|one| one.peer == part.peer) else {
            whole.push(part);
            continue;
        };
        one.by = part.by;
        sum(&mut one.made, part.made);
        sum(&mut one.made_ns, part.made_ns);
        sum(&mut one.refused, part.refused);
        sum(&mut one.no_port, part.no_port);
        sum(&mut one.failed, part.failed);
        sum(&mut one.given_up, part.given_up);
        sum(&mut one.slept_ns, part.slept_ns);
        sum(&mut one.sleeps, part.sleeps);
        sum(&mut one.slept_without_port_ns, part.slept_without_port_ns);
        sum(&mut one.refused_until, part.refused_until);
    }
    whole.sort_by_key(|one| {
        let attempts = [one.refused, one.no_port, one.failed, one.given_up];
        std::cmp::Reverse(attempts.into_iter().fold(one.made, u64::saturating_add))
    });
}

/// What was made anew, by who made it.
pub(super) fn churn(whole: &mut Option<Churn>, next: Option<Churn>) {
    let Some(next) = next else { return };
    let Some(whole) = whole else {
        *whole = Some(next);
        return;
    };
    sum(&mut whole.watched, next.watched);
    whole.traffic_told &= next.traffic_told;
    for part in next.made {
        let same = |one: &&mut Births| {
            one.what == part.what && one.by.name.pid == part.by.name.pid && one.by.frame == part.by.frame
        };
        match whole.made.iter_mut().find(same) {
            Some(one) => births(one, part),
            None => whole.made.push(part),
        }
    }
    whole.made.sort_by_key(|one| std::cmp::Reverse(one.made));
    for part in next.ends {
        let same = |one: &&mut Ends| one.by.pid == part.by.pid && one.program == part.program;
        match whole.ends.iter_mut().find(same) {
            Some(one) => ends(one, &part),
            None => whole.ends.push(part),
        }
    }
    whole.ends.sort_by_key(|one| std::cmp::Reverse(one.failed));
    for part in next.connections {
        let same = |one: &&mut Conversations| {
            one.end == part.end && one.accepted == part.accepted && one.by.name.pid == part.by.name.pid
        };
        match whole.connections.iter_mut().find(same) {
            Some(one) => conversations(one, &part),
            None => whole.connections.push(part),
        }
    }
    whole.connections.sort_by_key(|one| std::cmp::Reverse(one.made));
}

fn births(one: &mut Births, part: Births) {
    one.p50 = percentile(&mut [(one.p50, one.ended), (part.p50, part.ended)], 50);
    one.longest = one.longest.max(part.longest);
    sum(&mut one.made, part.made);
    sum(&mut one.ended, part.ended);
    for called in part.names {
        match one.names.iter_mut().find(|name| name.name == called.name) {
            Some(name) => sum(&mut name.count, called.count),
            None => one.names.push(called),
        }
    }
    one.names.sort_by_key(|name| std::cmp::Reverse(name.count));
}

/// How most of them failed is what failed most often in one part.
fn ends(one: &mut Ends, part: &Ends) {
    one.p50 = percentile(&mut [(one.p50, one.ended), (part.p50, part.ended)], 50);
    sum(&mut one.ended, part.ended);
    sum(&mut one.failed, part.failed);
    match one.failure == part.failure {
        true => sum(&mut one.alike, part.alike),
        false if part.alike > one.alike => (one.failure, one.alike) = (part.failure, part.alike),
        false => {}
    }
}

fn conversations(one: &mut Conversations, part: &Conversations) {
    one.p50 = percentile(&mut [(one.p50, one.closed), (part.p50, part.closed)], 50);
    sum(&mut one.made, part.made);
    sum(&mut one.for_requests, part.for_requests);
    sum(&mut one.closed, part.closed);
    sum(&mut one.once, part.once);
    sum(&mut one.more, part.more);
    sum(&mut one.untold, part.untold);
    sum(&mut one.closed_here, part.closed_here);
    sum(&mut one.closed_by_peer, part.closed_by_peer);
    sum(&mut one.open_ns, part.open_ns);
    sum(&mut one.setup_ns, part.setup_ns);
    handshakes(&mut one.tls, part.tls);
}

fn handshakes(one: &mut Handshakes, part: Handshakes) {
    sum(&mut one.full, part.full);
    sum(&mut one.in_vain, part.in_vain);
    sum(&mut one.resumed, part.resumed);
    sum(&mut one.untold, part.untold);
    sum(&mut one.ns, part.ns);
    sum(&mut one.timed, part.timed);
}

/// Requests; what is open is what was at the end.
pub(super) fn requests(whole: &mut Option<Requests>, next: Option<Requests>) {
    let Some(next) = next else { return };
    let Some(whole) = whole else {
        *whole = Some(next);
        return;
    };
    let between = |one: Ns, other: Ns, counts: (u64, u64), hundredth| {
        percentile(&mut [(one, counts.0), (other, counts.1)], hundredth)
    };
    let counts = (whole.count, next.count);
    whole.p50 = between(whole.p50, next.p50, counts, 50);
    whole.p99 = between(whole.p99, next.p99, counts, 99);
    whole.longest = whole.longest.max(next.longest);
    sum(&mut whole.count, next.count);
    whole.open = next.open;
    whole.oldest_open = next.oldest_open;
    whole.resting = next.resting;
    whole.earlier_told &= next.earlier_told;
    tallies(&mut whole.causes, next.causes);
    sum(&mut whole.held.count, next.held.count);
    sum(&mut whole.held.ns, next.held.ns);
    whole.held.longest = whole.held.longest.max(next.held.longest);
    // Of each segment the slowest are reported beside its own others: the slowest of all are those of one of them.
    if next.slow.as_ref().map(|slow| slow.ns) > whole.slow.as_ref().map(|slow| slow.ns) {
        whole.slow = next.slow;
    }
    for part in next.listeners {
        match whole.listeners.iter_mut().find(|one| one.port == part.port) {
            Some(one) => {
                let counts = (one.count, part.count);
                *one = OfListener {
                    port: one.port,
                    count: one.count.saturating_add(part.count),
                    p50: between(one.p50, part.p50, counts, 50),
                    p99: between(one.p99, part.p99, counts, 99),
                    longest: one.longest.max(part.longest),
                    open: part.open,
                };
            }
            None => whole.listeners.push(part),
        }
    }
    whole.listeners.sort_by_key(|one| one.port);
    for one in &mut whole.named {
        one.unanswered = 0;
    }
    for part in next.named {
        match whole.named.iter_mut().find(|one| one.line == part.line) {
            Some(one) => {
                sum(&mut one.answered, part.answered);
                one.unanswered = part.unanswered;
            }
            None => whole.named.push(part),
        }
    }
}
