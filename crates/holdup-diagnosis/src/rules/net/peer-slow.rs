//! Waiting for the other end of a socket: TCP, UDP or Unix.

use super::bus_call_unanswered::listens;
use crate::rules::{
    Extend, Generality, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, in_queue, limit_settings,
    live_sessions, mutual, root, say, sessions_served, streams,
};
use holdup_evidence::{Cause, Ns, TaskRuntime};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_model::attributed::Common;
use holdup_model::attributed::{AttributedWait, Holder, Task};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::net::SocketAddr;

/// Requests from which their slowest hundredth says how long clients wait, and from which the slowest of all does: of twenty none of which was
/// slow, fewer than one of six is, at 95 % (the rule of three: 3/n).
const MIN_REQUESTS: u64 = 100;
const MIN_REQUESTS_ALL_FAST: u64 = 20;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PeerSlow, check)
    .about("the peer of a socket is slow")
    .causes(&[
        Cause::NetReceive,
        Cause::NetSend,
        Cause::IpcUnix,
        Cause::NetTls,
        Cause::NetConnect,
        Cause::NetDns,
    ])
    .generality(Generality::Describes)
    .intermediate();

pub(in crate::rules) fn peer(wait: &AttributedWait) -> String {
    match (&wait.resource.detail.peer, &wait.resource.detail.server) {
        (None, Some(server)) => server.to_string(),
        _ => say::peer(&wait.resource),
    }
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(asked) = waits.only(|wait| !listens(run, wait)) else {
        let who = say::who(&waits.main().asker.name);
        let listened = duration(waits.own());
        return Verdict::Clear(format!(
            "{who} listened on a message bus for {listened}, without a call in progress"
        ));
    };
    let Some(known) = asked.only(|wait| wait.resource.common() != Some(Common::UnseenSocket)) else {
        return Verdict::CannotTell(format!(
            "the peer of {}: {} on sockets whose peers were not observed",
            say::who(&asked.main().asker.name),
            duration(asked.own())
        ));
    };
    let groups = run.worth(&known, known.split(peer), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

/// Of processes that run already: whether most of the time was another wait, of a process that was asked about too, or such a
/// process had no CPU. That is judged for itself.
fn goes_on(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let subject = |pid: u32| run.attributed.threads.iter().any(|thread| thread.name.pid == pid);
    let there = |wait: &&AttributedWait| match wait.chain.as_slice() {
        [own, next, ..] => {
            let waits = !next.cause.on_cpu() && next.cause != Cause::Idle;
            waits && next.name.pid != own.name.pid && subject(next.name.pid)
        }
        _ => false,
    };
    let elsewhere = group.iter().filter(there).map(|wait| wait.ns);
    run.attributed.of_threads && elsewhere.fold(0, u64::saturating_add) > group.own() / 2
}

/// Of processes that run already: whether those whom they serve have their answers at once all the same. A server that is
/// busy asks others all the time, and that is no trouble.
fn served_at_once(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let requests = run.attributed.requests.as_ref();
    let at_once = requests.is_some_and(|one| {
        let all = one.longest.max(one.oldest_open) < HARM_FLOOR;
        one.count >= MIN_REQUESTS && one.p99 < HARM_FLOOR || one.count >= MIN_REQUESTS_ALL_FAST && all
    });
    run.attributed.of_threads && at_once && group.longest().max < HARM_FLOOR
}

/// From so long a wait on its peer was not about to answer, nanoseconds: an idle loop takes a request up within far less.
const MIN_AT_REST_NS: Ns = 100_000_000;

/// The same of all waits on average, where a timer of the one that waits ends each of them before that: it hears from the peer at last, and not
/// because it was about to answer. To be woken takes far less, also on a machine whose CPUs are short.
const MEAN_AT_REST_NS: Ns = 50_000_000;

/// The same of a server that can keep clients waiting by design: what it holds back takes longer than what it answers at once.
const MEAN_HELD_BACK_NS: Ns = 5_000_000;

/// Part of such waits in which the peer waited for its own clients: three of four.
const MOST_AT_REST: (Ns, Ns) = (3, 4);

/// Of processes that run already: whether the peer waited for its own clients for as long as it was waited for. It answers when
/// others give it something, at a time of its own, or not at all.
fn is_at_rest(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let holders = group.holders();
    let longest = holders.iter().max_by_key(|holder| holder.ns);
    // Of a process only one thread is known: the request may be with another one that does not rest.
    let idle = longest.is_some_and(|holder| holder.doing == Some(Cause::Idle) && holder.others_busy == 0);
    let mean = group.own() / group.count().max(1);
    let rested = longest.map_or(0, |holder| holder.ns);
    let most = rested.saturating_mul(MOST_AT_REST.1) >= group.own().saturating_mul(MOST_AT_REST.0);
    // Of a server that keeps clients waiting by design each of its rests is one.
    let keeps = longest.is_some_and(|holder| limit_settings::held_back(&holder.name.process).is_some());
    let again = most && (keeps && mean >= MEAN_HELD_BACK_NS || mean >= MEAN_AT_REST_NS);
    run.attributed.of_threads && idle && (again || group.longest().max >= MIN_AT_REST_NS)
}

/// Waits from which somebody hears from an idle peer again and again: it gets what others give that one.
const MIN_HEARD: u64 = 4;

/// Whether waiting for a peer at rest is what the program is for: by design of that server, or as something came again and again.
fn is_by_design(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let holders = group.holders();
    let longest = holders.iter().max_by_key(|holder| holder.ns);
    let known = longest.and_then(|holder| limit_settings::held_back(&holder.name.process));
    let came = group.count().saturating_sub(group.timed_out());
    // A server's loop may have heard from its own clients.
    let pid = group.main().asker.name.pid;
    let requests = run.attributed.requests.as_ref();
    let serves = requests.is_some_and(|one| one.count + one.open + one.resting > 0)
        || (run.attributed.waits.iter()).any(|wait| wait.asker.name.pid == pid && wait.cause == Cause::Idle);
    let hears = !serves && came > MIN_HEARD && group.longest().max < run.attributed.wall / 2;
    !group.open() || known.is_some() || hears
}

/// Whether what the peer has sent stands unread on a connection to it, while an event loop polls: it has answered there.
fn has_an_answer(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let polls = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll | Kind::Polls);
    let left = run.facts.left_unread.iter().flatten();
    let mut left = left.filter(|one| one.pid == wait.asker.name.pid && one.server.is_some());
    let peer: Option<SocketAddr> = peer(wait).parse().ok();
    polls && peer.is_some() && left.any(|one| one.server == peer)
}

/// Waits from which their usual length says something of the one that goes on.
const MIN_PACED: u64 = 2;

/// How much longer than usual a wait may last that is one more of the same.
const MAX_PACES: Ns = 2;

/// Whether a wait that goes on is one of several that the peer has ended meanwhile, and is not longer than those: it hands out what others give
/// it, as the broker of a worker without work does.
fn answers_at_its_pace(wait: &AttributedWait) -> bool {
    let ended = wait.count.saturating_sub(u64::from(wait.open));
    // Of a port nothing says that it was one connection, and not a new one after each that was given up.
    let one_channel = wait.cause == Cause::IpcUnix && wait.timed_out == 0;
    one_channel && ended >= MIN_PACED && wait.max <= wait.p50.saturating_mul(MAX_PACES)
}

/// Whether a wait is for room to send.
fn sends(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Sends | Kind::Writes)
}

/// Of the time of requests, so little was in waits of a kind that no client waits for them: one part of this many at most.
const NO_CLIENTS: Ns = 50;

/// Of processes that run already: whether no client had a request open in these waits, although requests were seen. A thread that passes on
/// what a server sends at a pace of its own, as a stream of events, waits for it all the time, and so does one that keeps idle connections.
/// Waits from before observation may be for a request that was read then.
fn for_no_client(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let Some(requests) = run
        .attributed
        .requests
        .as_ref()
        .filter(|one| one.count > 0 && one.open == 0)
    else {
        return false;
    };
    let here = |wait: &AttributedWait| {
        let began_here = wait.max_started >= run.attributed.began;
        began_here || !wait.open && wait.max < run.attributed.wall / 2
    };
    let in_requests = requests
        .causes
        .get(&group.main().cause)
        .map_or(0, |tally| tally.ns);
    let none = in_requests.saturating_mul(NO_CLIENTS) <= group.own();
    run.attributed.of_threads && run.attributed.began > 0 && none && group.iter().all(here)
}

/// Who else is a client of a peer that does nothing but wait: a pool whose connections are all taken waits for one of those who
/// have them.
fn others(run: &Run<'_>, group: &Waits<'_>) -> Option<Evidence> {
    let waits = |holder: &&Holder| {
        matches!(
            holder.doing,
            Some(Cause::PollWait | Cause::Idle | Cause::NetAccept)
        )
    };
    group.holders().first().filter(|holder| waits(holder))?;
    let server: SocketAddr = peer(group.main()).parse().ok()?;
    let there = run
        .facts
        .other_clients
        .iter()
        .filter(|client| client.server == server);
    let names: Vec<String> = there
        .map(|client| {
            format!(
                "{} (pid {})",
                say::name_or(&client.process, "a process"),
                client.pid
            )
        })
        .collect();
    (!names.is_empty()).then(|| {
        let text = format!(
            "also connected there, and not observed: {}; a full pool waits for the users of its connections",
            names.join(", ")
        );
        Evidence::new(text, "/proc/net/tcp and /proc/PID/fd")
    })
}

/// Whether two processes are workers of one server.
fn is_of_one_pool(run: &Run<'_>, one: u32, other: u32) -> bool {
    let both = |pids: &[u32]| pids.contains(&one) && pids.contains(&other);
    one != other && run.facts.workers.iter().any(|workers| both(&workers.pids))
}

/// Whether an event loop waits on a socket of UDP that gets datagrams of anybody: a server waits so for its clients, and nobody is known to owe
/// it anything.
fn from_anybody(wait: &AttributedWait) -> bool {
    let loops = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll | Kind::Polls);
    let detail = &wait.resource.detail;
    let unconnected = detail.peer.is_none() && detail.server.is_none() && detail.local.is_some();
    loops
        && unconnected
        && wait.cause == Cause::NetReceive
        && wait.holders.is_empty()
        && detail.protocol.as_deref() == Some(UDP)
}

/// What the kernel's protocol for datagrams is called.
const UDP: &str = "udp";

/// Of processes that run already: whether one thread waits for an answer that the peer's thread holds back until something happens, with
/// nobody behind it. A client of a long poll has such a thread beside its first one, and it may be that what is to happen does not; a program
/// whose first thread waits goes on with nothing else.
fn is_held_back(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let thread = |wait: &AttributedWait| (wait.asker.name.pid, wait.asker.name.tid);
    let one = thread(group.main());
    let holders = group.holders();
    let longest = holders.iter().max_by_key(|holder| holder.ns);
    let for_event = longest.is_some_and(|holder| {
        holder.doing == Some(Cause::LockFutex) && primitive(&holder.stack) == Some(Primitive::Condition)
    });
    let requests = run.attributed.requests.as_ref();
    let answers = requests.is_none_or(|requests| requests.open == 0);
    let all = run.attributed.waits.iter();
    let alone = all
        .filter(|wait| wait.cause == group.cause() && thread(wait).0 == one.0)
        .all(|wait| thread(wait) == one);
    let beside = one.0 != one.1;
    run.attributed.of_threads && for_event && answers && alone && beside
}

/// Whether the answer of the peer is a name: a resolver of the program's runtime asks it, and has no frames.
fn is_for_names(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let mut tasks = run.attributed.tasks.iter();
    let asks = |task: &Task| {
        let place = task.place.as_ref().and_then(|frame| frame.symbol.as_ref());
        task.pid == wait.asker.name.pid
            && task.runtime == TaskRuntime::Node
            && task.cause == Cause::NetDns
            && place == wait.asker.frame.as_ref()
    };
    wait.cause == Cause::NetReceive && wait.asker.frame.is_some() && tasks.any(asks)
}

/// The server at an address by what the kernel's notes of the connection tell, where no other end was found: one in whose queue the
/// connection stands has no descriptor for it.
fn owing(run: &Run<'_>, main: &AttributedWait, address: &str) -> Option<String> {
    let mut all = run.facts.owed_answers.iter().flatten();
    let one = all.find(|one| one.pid == main.asker.name.pid && one.server == address)?;
    let by = one.by.as_ref()?;
    let name = say::script(run, by.pid?).unwrap_or(&by.process);
    Some(format!("{} at {address}", live_sessions::process(name, by.pid?)))
}

/// Of whom a sentence about waits is.
pub(in crate::rules) struct Subject {
    /// The words.
    pub(in crate::rules) who: String,
    /// Whether several are meant.
    pub(in crate::rules) plural: bool,
    /// What follows from it, for the end of the sentence.
    pub(in crate::rules) so: String,
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let one = Subject {
        who: say::who(&group.main().asker.name),
        plural: false,
        so: String::new(),
    };
    about(run, group, &one)
}

/// The finding about waits for one peer, with this subject.
pub(in crate::rules) fn about(run: &Run<'_>, group: &Waits<'_>, subject: &Subject) -> Finding {
    let main = group.main();
    if let Some(mutual) = mutual::of(run, main) {
        return mutual.finding(&RULE, group);
    }
    let who = &subject.who;
    let (waits, its) = match subject.plural {
        true => ("wait", "their"),
        false => ("waits", "its"),
    };
    let holders = group.holders();
    let address = peer(main);
    let address = say::name_or(&address, "the other end");
    // The stack says of what kind it is, and the connection's other end who it is.
    let session = live_sessions::other_side(run, main);
    let holder = holders.first().filter(|_| session.is_none());
    // A pair of sockets names who made it, whoever has the other one now.
    let made_itself = main.resource.detail.peer_pid == Some(main.asker.name.pid);
    // And where the other one has it, no listener is between the two.
    let paired = holder.filter(|holder| {
        let has_path = main.resource.name.starts_with(['/', '@']);
        main.cause == Cause::IpcUnix && !has_path && main.resource.detail.peer_pid == Some(holder.name.pid)
    });
    let peer = match holder {
        Some(holder) if made_itself || paired.is_some() => say::who_with_pid(&holder.name),
        Some(holder) => format!("{} at {address}", say::program(run, &holder.name)),
        None if made_itself => "the other end of a Unix socket that it has made".to_owned(),
        None => owing(run, main, address).unwrap_or_else(|| address.to_owned()),
    };
    if let Some(stream) = streams::of(run, group, address).filter(|_| session.is_none()) {
        return stream.finding(run, &RULE, group, [who, waits, &peer]);
    }
    let served = sessions_served::of(run, group).filter(|_| session.is_none());
    let queue = in_queue::of(run, main, address).filter(|_| session.is_none());
    let at_rest = session.is_none() && queue.is_none() && served.is_none() && is_at_rest(run, group);
    let awaits_us = session.is_none() && !subject.plural && mutual::awaits_us(main);
    let anybody = session.is_none() && group.iter().all(from_anybody);
    let title = match main.cause {
        Cause::NetReceive if anybody => format!("{who} {waits} for a datagram of anybody on {address}"),
        Cause::NetReceive if queue.is_some() => {
            format!("{who} {waits} for {peer} to accept {its} connection")
        }
        Cause::NetReceive if awaits_us => {
            let own = say::name_or(&main.asker.name.process, "this process");
            format!("{who} {waits} for {peer} to send something, and that one waits for {own} to ask")
        }
        Cause::NetReceive | Cause::IpcUnix if at_rest && !sends(main) => {
            let by_design = holder.and_then(|holder| limit_settings::held_back(&holder.name.process));
            let why = by_design.map_or_else(String::new, |why| format!(": {why}"));
            format!("{who} {waits} for {peer} to answer, which seems idle itself{why}")
        }
        Cause::NetSend => format!("{who} {waits} for {peer} to receive {its} data"),
        // Whoever sends to a Unix socket waits for room in its queue, and not for an answer.
        Cause::IpcUnix if system_calls::is_named(main.call.as_deref(), Kind::Sends | Kind::Writes) => {
            format!("{who} {waits} for {peer} to read {its} data")
        }
        Cause::NetConnect => format!("{who} {waits} for {peer} to accept {its} connections"),
        Cause::NetDns => format!("{who} {waits} for names from {peer}"),
        Cause::NetReceive if is_for_names(run, main) => {
            format!("{who} {waits} for names from {peer}, a DNS server that does not answer")
        }
        Cause::NetTls => format!("{who} {waits} for {peer} to finish TLS handshakes"),
        _ => format!("{who} {waits} for {peer} to answer"),
    };
    let root = root::of(group).filter(|_| session.is_none());
    let behind = root
        .filter(|_| served.is_none())
        .and_then(|root| live_sessions::behind(run, root.pid()));
    let stands = match (&session, root, &behind) {
        (Some(session), ..) => session.clause(),
        _ if served.is_some() => served.as_ref().map(|served| served.clause()).unwrap_or_default(),
        (None, Some(root), Some(behind)) => format!(
            ": {} waits for a lock of another session{}",
            root.who(),
            behind.clause()
        ),
        (None, Some(root), None) if is_of_one_pool(run, main.asker.name.pid, root.pid()) => {
            let by = holder.map_or_else(|| "it".to_owned(), |holder| say::who(&holder.name));
            format!(
                ": {by} waits in turn for {}, one of the workers that wait for it",
                root.who()
            )
        }
        (None, Some(root), None) => root.stands(),
        (None, None, _) => String::new(),
    };
    let stands = match &queue {
        Some(queue) if stands.is_empty() => queue.clause(run),
        Some(queue) => stands + &queue.beside(),
        None => stands,
    };
    // Whoever has an end of a pair waits for somebody else's client meanwhile, not for this one.
    let accepts = paired.filter(|holder| stands.is_empty() && holder.doing == Some(Cause::NetAccept));
    let stands = match accepts {
        Some(_) => ", which waits to accept a connection that no client opens".to_owned(),
        None => stands,
    };
    let title = Title::from(title).with(&subject.so).with(&stands);
    // What a thread of its own asks for names is never on the way itself.
    let handed_on = group.handed_on() && main.cause != Cause::NetDns;
    let judged_there = handed_on || goes_on(run, group);
    let for_nobody = for_no_client(run, group);
    let held_back = session.is_none() && served.is_none() && !subject.plural && is_held_back(run, group);
    let has_answered = group.iter().all(|wait| has_an_answer(run, wait));
    let severity = if judged_there
        || served_at_once(run, group)
        || for_nobody
        || has_answered
        || awaits_us
        || anybody
        || held_back
        || at_rest && (is_by_design(run, group) || answers_at_its_pace(main))
    {
        Severity::Note
    } else {
        Severity::Warning
    };
    let finding = RULE
        .finding(severity, title, group)
        .and_if(match accepts {
            Some(holder) => Some(Evidence::new(
                format!(
                    "{} waited for a client to connect to a listener of its own ({})",
                    say::who_with_pid(&holder.name),
                    Cause::NetAccept
                ),
                say::SCHEDULER,
            )),
            None => holder.map(say::meanwhile),
        })
        .and_if(others(run, group))
        .and_if(session.as_ref().map(|session| session.evidence()))
        .and_if(behind.as_ref().map(|behind| behind.evidence()))
        .and_if(queue.as_ref().map(|queue| queue.evidence()))
        .and_if(queue.as_ref().and_then(|queue| queue.clients(run)))
        .and_if(served.as_ref().map(|served| served.ends().evidence()))
        .and_if(say::way(group))
        .and_if(say::clock(run, group))
        .and_if(for_nobody.then(|| {
            Evidence::new(
                "no request of a client was open meanwhile: what the peer sends by itself is waited for",
                "requests on accepted connections",
            )
        }))
        .and_if(held_back.then(|| {
            Evidence::new(
                "the peer's thread waits for a condition or an event before it answers, as one of a long poll does by design; nobody else of this process \
                 waits for a peer",
                "user stacks",
            )
        }))
        .and_if(at_rest.then(|| {
            Evidence::new(
                "the peer's thread for this connection waited for clients meanwhile: it answers when another client gives it something \
                 (a queue, a subscription), at a time of its own, or not at all; or another of its threads has the request",
                say::SCHEDULER,
            )
        }))
        .proved_if(!holders.is_empty() && !at_rest);
    if awaits_us {
        return finding
            .and(Evidence::new(
                "other threads of the process may ask: nobody writes to this connection now, and both ends are read",
                "descriptors, and the calls that both are in",
            ))
            .remedy(Remedy::safe(
                "look at the other threads: which of them waits for an answer that was not asked for, or that has come and was lost",
            ))
            .remedy(Remedy::pointless("a faster server: it has nothing to answer"));
    }
    if let Some(holder) = accepts {
        let pid = holder.name.pid;
        return finding
            .remedy(
                Remedy::safe(
                    "find out why no client connects to that listener: a firewall, an address translation or a wrong \
                     address in between (of FTP, the range of passive ports and its address)",
                )
                .with_command(format!("ss -ltnp | grep pid={pid},")),
            )
            .remedy(Remedy::safe(
                "limit how long the program waits for that connection (of vsftpd, accept_timeout)",
            ));
    }
    if at_rest {
        let look = format!(
            "find out what {peer} holds the answer back for: another client that should give it something, a \
             worker that is left for that, a timer of its own"
        );
        let pid = holder.map_or(0, |holder| holder.name.pid);
        return finding
            .remedy(Remedy::safe(look).with_command(format!("holdup attach -p {pid}")))
            .remedy(Remedy::pointless("a faster server: it has no work"));
    }
    let ends = session.and_then(|session| session.remedy()).into_iter();
    let ends = ends.chain(behind.iter().flat_map(|behind| behind.remedies()));
    let ends = ends.chain(served.iter().flat_map(|served| served.ends().remedies()));
    let finding = ends.fold(finding, Finding::remedy);
    if served.is_some() && !judged_there {
        return finding.remedy(Remedy::pointless(
            "a faster server, or more connections to it: it waits for a lock",
        ));
    }
    // What is stopped does not get faster.
    if let Some(root) = root.filter(|root| judged_there && root.is_halted()) {
        return finding.remedy(root.remedy());
    }
    if judged_there {
        return finding.remedy(Remedy::safe(format!(
            "make {peer} faster: this wait is its running time"
        )));
    }
    if let Some(queue) = &queue {
        return queue.with_remedies(match root {
            Some(root) => finding.remedy(root.remedy()),
            None => finding,
        });
    }
    match main.cause {
        Cause::NetSend => finding
            .remedy(root.map_or_else(
                || Remedy::safe("check whether the peer reads, and at what rate").with_command("ss -tnoi"),
                |root| root.remedy(),
            ))
            .remedy(Remedy::pointless(
                "a larger send buffer: it only delays the wait as long as the peer is slower",
            )),
        Cause::NetConnect | Cause::NetTls => {
            finding.remedy(Remedy::safe("reuse connections (keep-alive, a connection pool)"))
        }
        Cause::NetDns => finding.remedy(Remedy::safe("store the result, or run a cache on this machine")),
        _ => finding
            .remedy(root.map_or_else(
                || {
                    Remedy::safe(format!(
                        "look at {peer} while this runs, and find out what it waits for"
                    ))
                },
                |root| root.remedy(),
            ))
            .remedy(Remedy::safe(
                "request less, request several things at once, or request in advance",
            )),
    }
}
