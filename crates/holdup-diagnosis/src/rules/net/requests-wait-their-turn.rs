//! Requests wait inside the service before it asks the server behind it: it asks only so many questions at a time.

use crate::rules::{HARM_FLOOR, Rule, RuleId, Run, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Requests, Resource, ResourceKind, Upstream};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Questions from which the most at one instant is a limit and not chance.
const MIN_QUESTIONS: u64 = 10;

/// Part of the limit that is in use on the mean, from which it is the limit that holds the others.
const MIN_USE: f64 = 0.8;

/// Part of the requests' time that passes before they are sent, from which it is spoken of.
const MIN_SHARE: f64 = 0.25;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_requests(RuleId::RequestsWaitTheirTurn, check)
    .about("requests queue before they are sent on")
    .causes(&[Cause::NetReceive, Cause::IpcUnix])
    .from(0.0)
    .explains(&[RuleId::PeerSlow]);

/// Where the limit of a program is set that is known by its name.
const LIMITS: [(&str, &str); 7] = [
    ("haproxy", "`maxconn` on the server line of haproxy"),
    (
        "pgbouncer",
        "`default_pool_size` of pgbouncer, or `pool_size` of the database",
    ),
    ("nginx", "`max_conns` of the upstream server in nginx"),
    (
        "envoy",
        "`max_connections` and `max_requests` of the cluster in envoy",
    ),
    ("odyssey", "`pool_size` of the route in odyssey"),
    ("proxysql", "`max_connections` of the server in proxysql"),
    ("varnishd", "`.max_connections` of the backend in varnish"),
];

/// Where the limit of a program is set, if it is known by its name.
pub(super) fn limit_of(process: &str) -> Option<&'static str> {
    let found = LIMITS.iter().find(|(name, _)| process.starts_with(name));
    found.map(|(_, setting)| *setting)
}

fn check(run: &Run<'_>, requests: &Requests) -> Verdict {
    let Some(upstream) = requests.upstreams.first() else {
        return Verdict::Clear(format!(
            "0 servers were asked for {}",
            say::several(requests.count + requests.open, "request")
        ));
    };
    let on_the_way = requests
        .upstreams
        .iter()
        .map(|one| one.ns)
        .fold(0, u64::saturating_add);
    let unsent = requests.total.saturating_sub(on_the_way);
    let share = unsent as f64 / requests.total.max(1) as f64;
    let watched = upstream.watched.max(1) as f64;
    let used = upstream.ns as f64 / watched;
    let open = requests.total as f64 / watched;
    let limit = upstream.most as f64;
    // More on the way than were ever without an answer: answers that come in parts hide how many there were.
    let limited = upstream.asked >= MIN_QUESTIONS && used >= MIN_USE * limit && used <= limit;
    let wait = unsent / requests.count.saturating_add(requests.open).max(1);
    if !limited || open < limit + 1.0 || share < MIN_SHARE || wait < HARM_FLOOR / 10 {
        return Verdict::Clear(format!(
            "{} of the time of {} was the wait for {}: {used:.1} of at most {} questions were in flight on average",
            percent((1.0 - share).clamp(0.0, 1.0)),
            say::several(requests.count + requests.open, "request"),
            server(upstream),
            upstream.most,
        ));
    }
    fires(finding(
        run,
        requests,
        upstream,
        Queue {
            unsent,
            share,
            used,
            open,
        },
    ))
}

/// What stands before the server.
struct Queue {
    /// Time of requests before they were sent.
    unsent: u64,
    /// As a part of all their time.
    share: f64,
    /// Questions in flight, on the mean,
    used: f64,
    /// and requests that were open.
    open: f64,
}

fn server(upstream: &Upstream) -> &str {
    upstream.server.as_deref().unwrap_or("a server on a Unix socket")
}

fn finding(run: &Run<'_>, requests: &Requests, upstream: &Upstream, queue: Queue) -> Finding {
    let (who, to, most) = (say::who(&upstream.by), server(upstream), upstream.most);
    let program = say::name_or(&upstream.by.process, "the program");
    let waiting = (queue.open - queue.used).round().max(1.0);
    let (verb, pronoun) = match waiting as u64 {
        1 => ("waits", "its"),
        _ => ("wait", "their"),
    };
    let title = format!(
        "{waiting} of {:.0} requests {verb} for {pronoun} turn in {program}, {} of their time: it sends {most} at a time to {to}",
        queue.open,
        percent(queue.share)
    );
    let all = requests.count.saturating_add(requests.open).max(1);
    let seen = Evidence::new(
        format!(
            "of {} that a request was open on average, {} passed before {who} sent it to {to}; the answer then took {}",
            duration(requests.total / all),
            duration(queue.unsent / all),
            duration(upstream.ns / upstream.asked.max(1)),
        ),
        SOURCE,
    );
    let limit = Evidence::new(
        format!(
            "never more than {} in flight, {:.1} on average, while {:.1} requests were open",
            say::several(most, "question"),
            queue.used,
            queue.open
        ),
        SOURCE,
    );
    let of_server =
        |wait: &&AttributedWait| RULE.causes.contains(&wait.cause) && wait.resource.name.contains(to);
    let waits = run.attributed.waits.iter().filter(of_server);
    let longest = waits.max_by_key(|wait| wait.ns);
    let finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::NetReceive,
        queue.unsent,
        seen,
    )
    .and(limit)
    .confidence(Confidence::Strong);
    let finding = match longest {
        Some(wait) => finding.about(wait.resource.clone(), wait.asker.clone()),
        None => finding.about(
            Resource {
                kind: ResourceKind::Socket,
                name: to.to_owned(),
                ..Resource::default()
            },
            holdup_model::attributed::Asker {
                name: upstream.by.clone(),
                ..Default::default()
            },
        ),
    };
    let setting = limit_of(&upstream.by.process).map_or_else(
        || format!("the limit in {program}: the size of its connection pool, a semaphore, or its number of workers"),
        str::to_owned,
    );
    finding
        .remedy(Remedy::changing(
            format!("raise {setting}"),
            "the server behind it gets more requests at once",
        ))
        .remedy(Remedy::safe(format!(
            "make each answer of {to} faster, or ask it less often: each one frees its place sooner"
        )))
        .remedy(Remedy::pointless(
            "more connections from clients: their requests wait in the same queue",
        ))
}

/// Where questions and answers are seen.
const SOURCE: &str = "sock_recv_length and sock_send_length";
