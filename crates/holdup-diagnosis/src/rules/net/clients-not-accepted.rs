//! Clients stand in the queue of an observed listener, and it does not accept them.

use crate::rules::{
    Extend, Generality, Rule, RuleId, Run, Waits, connected, duration, limit_settings, pools, say,
};
use holdup_evidence::facts::Unaccepted;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, AwaitedClients, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ClientsNotAccepted, check)
    .about("clients wait for an observed server to accept them")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence)
    .explains(&[RuleId::SleepsOnPurpose]);

fn check(run: &Run<'_>) -> Verdict {
    let Some(queues) = &run.facts.unaccepted else {
        return Verdict::CannotTell("how many clients its listeners had not accepted".to_owned());
    };
    // Who has left its clients to children that were not watched is not the one to blame.
    let left: Vec<Finding> = queues
        .iter()
        .filter_map(|queue| left_to_children(run, queue))
        .collect();
    if !left.is_empty() {
        return Verdict::Fires(left);
    }
    let used_up: Vec<Finding> = queues
        .iter()
        .filter_map(|queue| out_of_descriptors(run, queue))
        .collect();
    if !used_up.is_empty() {
        return Verdict::Fires(used_up);
    }
    // A few that stand there at two instants may be others each time: those that found it full tell that it is.
    let full = queues
        .iter()
        .filter(|queue| queue.knocking > 0 || queue.overflows > 0);
    let mut findings: Vec<Finding> = full.filter_map(|queue| finding(run, queue)).collect();
    if findings.is_empty() {
        let standing = queues.iter().filter(|queue| queue.before > 0 && queue.after > 0);
        findings.extend(standing.filter_map(|queue| one_after_another(run, queue)));
    }
    if findings.is_empty() {
        let most = queues.iter().map(|queue| queue.after).max();
        return Verdict::Clear(format!(
            "at most {} in the queue of a listener at the start and end of the observation, and none found \
             its queue full",
            say::several(most.unwrap_or(0).into(), "client")
        ));
    }
    Verdict::Fires(findings)
}

/// By how much a limit of descriptors is raised in the command to copy.
const RAISE: u64 = 4;

/// The process that listens has as many descriptors open as it may: `accept` fails, and the clients stay in the queue.
fn out_of_descriptors(run: &Run<'_>, queue: &Unaccepted) -> Option<Finding> {
    let limit = queue.out_of_descriptors.first()?;
    let theirs = run.waits(|wait| wait.asker.name.pid == limit.pid)?;
    let main = theirs.iter().max_by_key(|wait| wait.ns)?;
    let who = match say::script(run, limit.pid) {
        Some(script) => format!("{script} (pid {})", limit.pid),
        // All its threads have the same limit: the one that waits for longest is no better than another.
        None if main.asker.name.process.is_empty() => say::who_with_pid(&main.asker.name),
        None => format!("{} (pid {})", main.asker.name.process, limit.pid),
    };
    // Another process that accepts there takes the clients that this one cannot.
    let shared = queue.processes.len() > queue.out_of_descriptors.len() || !queue.children.is_empty();
    let whose = connected::most(run, &queue.clients);
    let whose = whose.map_or_else(String::new, |whose| format!(", {whose}"));
    let setting = limit_settings::connections(&main.asker.name.process);
    let title = format!(
        "{who} has used up its limit of {} file descriptors{}{whose}, and {} at {}",
        limit.soft,
        setting.map_or_else(String::new, |setting| format!(" ({setting})")),
        match queue.after {
            1 => "1 client is queued".to_owned(),
            many => format!("{many} clients are queued"),
        },
        queue.address
    );
    let open = Evidence::new(
        format!(
            "{} descriptors are open; the soft limit is {}, the hard limit {}",
            limit.open,
            limit.soft,
            match limit.hard {
                u64::MAX => "none".to_owned(),
                hard => hard.to_string(),
            }
        ),
        "/proc/PID/limits and /proc/PID/fd",
    );
    let severity = match shared {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let ns = theirs.own().min(run.attributed.elapsed);
    let finding = Finding::new(RULE.id.id(), severity, title, main.cause, ns, open)
        .about(listener(queue), main.asker.clone())
        .and(standing(queue))
        .and_if(connected::evidence(run, &queue.clients))
        .confidence(Confidence::Strong);
    let more = limit.soft.saturating_mul(RAISE).min(limit.hard);
    let raised = match (setting, more > limit.soft) {
        (Some(setting), _) => Remedy::changing(
            format!(
                "raise {setting} of {}, and start it again",
                main.asker.name.process
            ),
            "who is connected is cut off",
        ),
        (None, true) => Remedy::safe("raise the limit of the running process; its hard limit stays as it is")
            .with_command(format!("prlimit --nofile={more}: --pid {}", limit.pid)),
        (None, false) => Remedy::safe(
            "raise its hard limit too, where it is set (LimitNOFILE= of its unit, limits.conf), and start it again",
        ),
    };
    Some(
        finding
            .remedy(raised)
            .remedy(
                Remedy::safe("see what it has open: connections that it never closes use up any limit")
                    .with_command(format!("ls -l /proc/{}/fd", limit.pid)),
            )
            .remedy(Remedy::pointless(
                "a longer queue or a faster CPU: it can accept nobody until it closes something",
            )),
    )
}

/// Of the time of a listener's threads, so little was waiting for clients: one part of this many at most.
const NEVER_FREE: Ns = 20;

/// Clients that stand there both times may be others each time. Where no thread was ever free for them, each of them waits for its
/// turn all the same.
fn one_after_another(run: &Run<'_>, queue: &Unaccepted) -> Option<Finding> {
    let theirs = run.waits(|wait| queue.processes.contains(&wait.asker.name.pid))?;
    // A master, which only looks after those that accept, would seem free for ever.
    let processes = theirs.split(|wait| wait.asker.name.pid).into_iter();
    let masters = pools::masters(run, &queue.address.to_string());
    let accept: Vec<u32> = processes
        .filter(|process| !attends(queue, process) && !masters.contains(&process.main().asker.name.pid))
        .map(|process| process.main().asker.name.pid)
        .collect();
    let accepting = theirs.only(|wait| accept.contains(&wait.asker.name.pid))?;
    // Threads in the background of a server that stands are free, and accept nobody.
    let background = background(queue, &accepting);
    let accepting = accepting.only(|wait| !background.contains(&wait.asker.name.tid))?;
    let own = accepting.own();
    let held = accepting.only(|wait| awaits(queue, wait) == Some(Awaits::Request));
    let of_held = held.as_ref().map_or(0, Waits::own);
    let free = accepting
        .only(|wait| matches!(awaits(queue, wait), Some(Awaits::Client | Awaits::Else)))
        .map_or(0, |free| free.own());
    if own == 0 || free.saturating_mul(NEVER_FREE) > own {
        return None;
    }
    if let Some(held) = held.filter(|_| of_held.saturating_mul(2) > own) {
        return Some(held_by_silent(run, queue, &held, own));
    }
    let main = accepting.iter().max_by_key(|wait| wait.ns)?;
    let title = format!(
        "{} has no free thread for its clients at {}: some are queued while it is mostly {}",
        say::program(run, &main.asker.name),
        queue.address,
        main.cause.phrase()
    );
    let stand = standing(queue);
    let busy = Evidence::new(
        format!(
            "of {} of its threads, {} was waiting for clients",
            duration(own),
            duration(free)
        ),
        say::source(main),
    );
    let listener = listener(queue);
    let finding = Finding::new(RULE.id.id(), Severity::Note, title, main.cause, main.ns, stand)
        .about(listener, main.asker.clone())
        .and(busy)
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "shorten its work for each client, or accept in more threads or processes: no statistics of the \
             server include the wait in the queue",
        ))
        .remedy(Remedy::pointless(
            "a longer queue: clients then wait in it for just as long",
        ));
    Some(finding)
}

/// What a thread of a server that does not work for a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// A new client: it is free for one.
    Client,
    /// What a client that it has accepted sends next: it is free for nobody else.
    Request,
    /// Work from another thread, a signal, its next round.
    Else,
}

/// Who waits at another listener is not free for the clients of this one.
fn awaits(queue: &Unaccepted, wait: &AttributedWait) -> Option<Awaits> {
    let is_here = |at: &str| at.parse::<SocketAddr>().is_ok_and(|at| at == queue.address);
    match wait.cause {
        Cause::NetAccept => Some(match wait.resource.detail.local {
            Some(local) if local != queue.address => Awaits::Else,
            _ => Awaits::Client,
        }),
        Cause::Idle => Some(match AwaitedClients::read(&wait.resource.name) {
            Some(AwaitedClients::Connection(at)) if !is_here(&at) => Awaits::Else,
            Some(AwaitedClients::Connection(_)) => Awaits::Client,
            Some(AwaitedClients::Request(_)) => Awaits::Request,
            None => Awaits::Else,
        }),
        _ => None,
    }
}

/// Whether a process of a listener does nothing but look after others that accept there.
fn attends(queue: &Unaccepted, process: &Waits<'_>) -> bool {
    let rests = process.only(|wait| awaits(queue, wait) == Some(Awaits::Else));
    let rests = rests.map_or(0, |rests| rests.own());
    (process.own() - rests).saturating_mul(NEVER_FREE) < process.own()
}

/// Threads that do nothing but wait for something else than clients, where others of these do not.
fn background(queue: &Unaccepted, threads: &Waits<'_>) -> BTreeSet<u32> {
    let each = threads.split(|wait| wait.asker.name.tid);
    let rest = each.iter().filter(|thread| attends(queue, thread));
    rest.map(|thread| thread.main().asker.name.tid)
        .filter(|tid| *tid != 0)
        .collect()
}

/// Pieces for each thread from which its client is known to send: one may be the end of a request that began before.
const MIN_PIECES: u64 = 2;

/// How many pieces of requests came where none was completed; `None` where clients send nothing, or whole requests.
fn pieces(run: &Run<'_>, held: &Waits<'_>) -> Option<u64> {
    let requests = run.attributed.requests.as_ref()?;
    let threads: BTreeSet<u32> = held.iter().map(|wait| wait.asker.name.tid).collect();
    let open = held.iter().filter(|wait| wait.open).count() as u64;
    let came = held.count().saturating_sub(open);
    (requests.count == 0 && came >= MIN_PIECES * threads.len() as u64).then_some(came)
}

/// Clients are connected that send no request, each of them keeps a thread, and others stand in the queue for that.
fn held_by_silent(run: &Run<'_>, queue: &Unaccepted, held: &Waits<'_>, own: Ns) -> Finding {
    let main = held.main();
    let threads: BTreeSet<u32> = held.iter().map(|wait| wait.asker.name.tid).collect();
    let pieces = pieces(run, held);
    let known = connected::all(run, &queue.clients);
    let sends = match (pieces, &known) {
        (Some(_), Some((_, true))) => "sends its request slowly, and keeps",
        (Some(_), Some((_, false))) => "send their requests slowly, and keep",
        (Some(_), None) => "that send their requests slowly keep",
        (None, Some((_, true))) => "sends no whole request, and keeps",
        (None, Some((_, false))) => "send no whole request, and keep",
        (None, None) => "that send no whole request keep",
    };
    let clients = known.map_or_else(|| "clients".to_owned(), |(clients, _)| clients);
    let process = &main.asker.name.process;
    let setting = limit_settings::workers(process);
    let setting = setting.map_or_else(String::new, |setting| format!(" ({setting})"));
    let title = format!(
        "{} accepts no clients at {}: {clients} {sends} {}, and {}",
        say::program(run, &main.asker.name),
        queue.address,
        match threads.len() {
            1 => "its only worker".to_owned(),
            many => format!("all of its {many} workers{setting}"),
        },
        match queue.after {
            1 => "1 more is queued".to_owned(),
            many => format!("{many} more are queued"),
        },
    );
    let kept = Evidence::new(
        format!(
            "of {} of these threads, {} was waiting for a request on connections that they had accepted",
            duration(own),
            duration(held.own())
        ),
        say::source(main),
    );
    // They are kept side by side: it is no longer for being many.
    let ns = held.iter().map(|wait| wait.ns).max().unwrap_or(0);
    let port = queue.address.port();
    Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::Idle,
        ns,
        standing(queue),
    )
    .about(listener(queue), main.asker.clone())
    .and(kept)
    .and_if(pieces.map(|pieces| {
        let text = format!(
            "{} of requests came there meanwhile, and no request was complete",
            say::several(pieces, "piece")
        );
        Evidence::new(text, say::source(main))
    }))
    .and_if(connected::evidence(run, &queue.clients))
    .confidence(Confidence::Strong)
    .remedy(
        Remedy::safe(
            "see which clients are connected and send nothing, or send slowly, and end or mend those",
        )
        .with_command(format!("ss -tnpo state established sport = :{port}")),
    )
    .remedy(Remedy::safe(match limit_settings::quiet(process) {
        Some(quiet) => format!(
            "limit how long the server waits for a request on a connection ({quiet} of {process}), or put a proxy before it \
             that waits instead"
        ),
        None => "limit how long the server waits for a request on a connection, or put a proxy before it that \
             waits instead"
            .to_owned(),
    }))
    .remedy(Remedy::pointless(
        "a longer queue: clients then wait in it for just as long",
    ))
}

/// The socket at which clients stand.
fn listener(queue: &Unaccepted) -> Resource {
    Resource::named(ResourceKind::Socket, queue.address.to_string())
        .with(|facts| facts.waiting = Some(queue.after))
}

/// Causes of a process that leaves its clients to others: it waits for those, or for a word to itself.
const LEAVES: [Cause; 3] = [Cause::Idle, Cause::IpcSignal, Cause::ProcessChild];

/// Clients that stand at a listener of a process whose children accept them: where those were not watched, nothing is known of why.
fn left_to_children(run: &Run<'_>, queue: &Unaccepted) -> Option<Finding> {
    let children = match queue.children.len() {
        0 => return None,
        1 => "a child".to_owned(),
        many => format!("{many} children"),
    };
    let main = instead(run, queue).filter(|main| LEAVES.contains(&main.cause))?;
    let at = queue.address.to_string();
    let awaits_clients = |wait: &AttributedWait| match wait.cause {
        Cause::Idle => {
            AwaitedClients::read(&wait.resource.name).is_some_and(|clients| clients.at() == at.as_str())
        }
        Cause::NetAccept => wait.resource.detail.local == Some(queue.address),
        _ => false,
    };
    let accepts =
        |wait: &AttributedWait| awaits_clients(wait) && queue.processes.contains(&wait.asker.name.pid);
    if run.waits(accepts).is_some() {
        return None;
    }
    let title = format!(
        "{} has {children} that answer clients at {}; they were not observed, and some clients are queued",
        say::program(run, &main.asker.name),
        queue.address
    );
    let pids: Vec<String> = queue.children.iter().map(|pid| format!("-p {pid}")).collect();
    let listener = listener(queue);
    let stand = standing(queue);
    let finding = Finding::new(RULE.id.id(), Severity::Note, title, main.cause, main.ns, stand)
        .about(listener, main.asker.clone())
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe("attach to the processes that answer: the clients wait for the same things")
                .with_command(format!("holdup attach {}", pids.join(" "))),
        );
    Some(finding)
}

/// How many clients stood in a listener's queue, both times.
fn standing(queue: &Unaccepted) -> Evidence {
    Evidence::new(
        format!(
            "{} {} in its queue when observation began, and {} when it ended",
            say::several(queue.before.into(), "client"),
            if queue.before == 1 { "was" } else { "were" },
            queue.after
        ),
        "/proc/net/tcp",
    )
}

/// What the processes of a listener did most of the time.
fn instead<'a>(run: &Run<'a>, queue: &Unaccepted) -> Option<&'a AttributedWait> {
    let theirs = |wait: &&AttributedWait| queue.processes.contains(&wait.asker.name.pid);
    run.attributed
        .waits
        .iter()
        .filter(theirs)
        .max_by_key(|wait| wait.ns)
}

fn finding(run: &Run<'_>, queue: &Unaccepted) -> Option<Finding> {
    let main = instead(run, queue)?;
    let title = format!(
        "{} accepts no clients at {}, whose queue is full: it was mostly {}",
        say::program(run, &main.asker.name),
        queue.address,
        main.cause.phrase()
    );
    let stand = standing(queue);
    let knock = (queue.knocking > 0).then(|| {
        let text = format!(
            "{} on this machine requested a connection there and got no answer",
            say::several(queue.knocking.into(), "more client")
        );
        Evidence::new(text, "/proc/net/tcp")
    });
    let overflows = (queue.overflows > 0).then(|| {
        let text = format!(
            "clients found a queue full {} in that time",
            say::several(queue.overflows, "time")
        );
        Evidence::new(text, "ListenOverflows of /proc/net/netstat")
    });
    let did = Evidence::new(
        format!("{} for {}", main.cause.phrase(), duration(main.ns)),
        say::source(main),
    );
    let listener = listener(queue);
    let finding = Finding::new(RULE.id.id(), Severity::Warning, title, main.cause, main.ns, stand)
        .about(listener, main.asker.clone())
        .and_if(knock)
        .and_if(overflows)
        .and(did)
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe("end or shorten its other work, or accept in more threads or processes")
                .with_command(format!("holdup explain {}", main.cause)),
        )
        .remedy(Remedy::pointless(
            "a longer queue: clients then wait in the queue for just as long",
        ));
    Some(finding)
}
