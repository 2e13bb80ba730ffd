//! Servers that owe answers and do not work on them, and what they stand in instead: the connection of a silent client, or a lock that a killed
//! process of the same service may have had.
//!
//! In: waits for answers, as the kernel's tables have them, of a look at a machine or of the end of a recording. Out: findings, each with whom it
//! is about. Who merely sleeps, and why nobody can tell, is a note.

use super::awaited_said::{awaited, client, programs, sentence, who, without_descriptors};
use super::{Extend, RuleId, duration, say};
use crate::machine::seen::{self, Behind, Unanswered};
use holdup_evidence::observed::{Killed, Occupied, Owed, SeenProcess, SeenWait, Short};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use holdup_model::title::Title;
use std::collections::BTreeMap;

/// What a server may use of one CPU, percent, if it does not work on what it was asked.
const MAX_CPU_PERCENT: u32 = 20;

/// The shortest wait for a server that waits for a lock of its own service: what is shorter may be work.
const MIN_LOCKED_NS: Ns = 3_000_000_000;

/// Programs that a list names.
const MAX_LISTED: usize = 6;

/// How it is known where a process stands.
const STANDS: &str = "/proc/PID/syscall, TCP sockets (sock_diag)";

/// A finding, with whom it is about.
#[derive(Debug)]
pub(super) struct Told {
    /// The servers.
    pub(super) servers: Vec<u32>,
    /// Who waits behind them.
    pub(super) behind: Vec<u32>,
    /// The longest of these waits.
    pub(super) longest: Ns,
    /// What is said.
    pub(super) finding: Finding,
}

/// All of them whose longest wait is at least this: servers behind a killed one first, then those with most waiting.
pub(super) fn of(waits: &[SeenWait], rule: RuleId, least: Ns) -> Vec<Told> {
    let mut told = locked(waits, rule);
    let known: Vec<u32> = told.iter().flat_map(|one| one.servers.iter().copied()).collect();
    let others = seen::unanswered(waits);
    let others = others.iter().filter(|one| !known.contains(&one.server.pid));
    told.extend(others.filter_map(|one| {
        Some(Told {
            servers: vec![one.server.pid],
            behind: one.behind.iter().map(|behind| behind.process.pid).collect(),
            longest: longest(&one.behind),
            finding: finding(one, rule)?,
        })
    }));
    told.retain(|one| one.longest >= least);
    told
}

fn owed<'a>(one: &Unanswered<'a>) -> Option<&'a Owed> {
    match &one.wait.short {
        Short::Answer(owed) => Some(owed),
        Short::Nothing
        | Short::Cpu(_)
        | Short::Memory(_)
        | Short::Device(_)
        | Short::Pool(_)
        | Short::Standby(_) => None,
    }
}

fn longest(behind: &[Behind<'_>]) -> Ns {
    behind.iter().map(|one| one.ns).max().unwrap_or(0)
}

/// Whether a server works on something, or is blocked on a disk: that is another rule's.
fn works(owed: &Owed) -> bool {
    owed.blocked || owed.cpu_percent.is_none_or(|percent| percent >= MAX_CPU_PERCENT)
}

fn asker(server: &SeenProcess) -> Asker {
    Asker {
        name: ThreadName {
            pid: server.pid,
            tid: server.pid,
            process: server.name.clone(),
            ..ThreadName::default()
        },
        ..Asker::default()
    }
}

/// Who of a server's own was killed, where that is what the server waits for.
fn killed_before<'a>(one: &Unanswered<'a>) -> Option<&'a Killed> {
    let owed = owed(one).filter(|owed| !works(owed));
    owed.and_then(|owed| owed.killed.as_deref())
}

/// Whether a finding says that the kernel killed this process for memory, and that a server waits for a lock since.
pub(super) fn tells_kill(waits: &[SeenWait], pid: u32) -> bool {
    let all = seen::owed_for(waits, MIN_LOCKED_NS);
    let mut killed = all.iter().filter_map(killed_before);
    killed.any(|one| one.process.pid == pid && one.memory.is_some())
}

/// Servers that wait for a lock after one of their own was killed, each killed process once.
fn locked(waits: &[SeenWait], rule: RuleId) -> Vec<Told> {
    let all = seen::owed_for(waits, MIN_LOCKED_NS);
    let mut by_killed: BTreeMap<u32, Vec<&Unanswered<'_>>> = BTreeMap::new();
    for one in &all {
        if let Some(killed) = killed_before(one) {
            by_killed.entry(killed.process.pid).or_default().push(one);
        }
    }
    let told = by_killed.into_values().filter_map(|servers| {
        let killed = owed(servers.first()?)?.killed.as_deref()?;
        let mut behind: Vec<Behind<'_>> = Vec::new();
        for one in servers.iter().flat_map(|one| &one.behind) {
            if !behind.iter().any(|known| known.process.pid == one.process.pid) {
                behind.push(one.clone());
            }
        }
        Some(Told {
            servers: servers.iter().map(|one| one.server.pid).collect(),
            behind: behind.iter().map(|one| one.process.pid).collect(),
            longest: longest(&behind),
            finding: left_behind(killed, &servers, &behind, rule),
        })
    });
    told.collect()
}

/// How a process ended, for the middle of a sentence.
fn ended(killed: &Killed) -> String {
    let ago = killed
        .ago
        .map_or_else(String::new, |ago| format!(" {} ago", duration(ago)));
    let why = match killed.memory.as_deref() {
        None => format!("was ended by signal {}{ago}", killed.signal),
        Some("") => format!("was killed by the kernel for memory (OOM){ago}"),
        Some(cgroup) => {
            format!("was killed by the kernel{ago} for the memory limit of cgroup {cgroup} (OOM)")
        }
    };
    match killed.zombie_of {
        Some(_) => format!("{why} and is a zombie"),
        None => why,
    }
}

fn left_behind(killed: &Killed, servers: &[&Unanswered<'_>], behind: &[Behind<'_>], rule: RuleId) -> Finding {
    let names: Vec<String> = servers.iter().map(|one| who(one.server)).collect();
    let (stand, their) = match names.len() {
        1 => ("waits", "it shares"),
        _ => ("wait", "they share"),
    };
    let few = match names.as_slice() {
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, others @ ..] => format!("{one} and {} others like it", others.len()),
        [] => String::new(),
    };
    let dead = client(&killed.process);
    let title = Title::from(format!(
        "{dead} {}, and {few} {stand} for a lock (futex) that {their} with other processes",
        ended(killed)
    ))
    .with(format!(
        ": {} for an answer, up to {}",
        sentence(behind),
        duration(longest(behind))
    ));
    let list: Vec<String> = (programs(behind).into_iter().take(MAX_LISTED))
        .map(|(name, count, ns)| {
            let count = say::several(count, "process");
            format!("{} ({count}, {})", say::name_or(name, "a program"), duration(ns))
        })
        .collect();
    let first = Evidence::new(
        format!(
            "{} wait behind {}: {}",
            say::several(behind.len() as u64, "process"),
            names.join(", "),
            list.join(", ")
        ),
        "TCP sockets (sock_diag), /proc/PID/fd",
    );
    let zombie = killed.zombie_of.as_ref().map(|parent| {
        Evidence::new(
            format!(
                "{dead} is defunct: {} has not waited for it, so that nobody has noticed its end",
                client(parent)
            ),
            "/proc/PID/status",
        )
    });
    let server = servers.first().map(|one| one.server);
    let finding = Finding::without_duration(
        rule.id(),
        // Nobody is left who ends that.
        Severity::Critical,
        title,
        Cause::LockFutex,
        first,
    )
    .and(Evidence::new(
        "its futex is not private to one process, as that of a semaphore or a mutex in shared memory: the kernel does not release it when its \
         owner is killed, unless it is a robust mutex",
        "/proc/PID/syscall",
    ))
    .and_if(zombie)
    .and(Evidence::new(
        "not measured: that the killed process had the lock; nobody who lives is seen to have it",
        "a look from outside",
    ));
    let finding = match server {
        Some(server) => finding.about(
            Resource::named(ResourceKind::Process, &killed.process.name),
            asker(server),
        ),
        None => finding,
    };
    let start = match &killed.zombie_of {
        Some(parent) => format!("start {} and its workers again", client(parent)),
        None => format!("start {few} again"),
    };
    finding
        .confidence(Confidence::Strong)
        .remedy(Remedy::changing(
            format!("to go on now: {start}"),
            "what the killed process was doing may be half done",
        ))
        .remedy(Remedy::safe(
            "use a lock that the kernel releases when its owner ends (flock, fcntl, a robust mutex), and have the parent notice which child ends",
        ))
        .remedy(Remedy::pointless("waiting longer: no process that lives is known to have the lock"))
}

/// What a server does that reads from a silent client.
fn occupied(one: &Occupied) -> String {
    let by = match one.by.pid {
        0 => say::name_or(&one.by.name, "a client").to_owned(),
        _ => client(&one.by),
    };
    let silent = match one.silent {
        None => "has sent nothing on its connection yet".to_owned(),
        Some(ns) => format!("has sent nothing for {}", duration(ns)),
    };
    match one.threads {
        0 | 1 => format!("reads from {by}, which {silent}, and takes in nobody else meanwhile"),
        threads => format!(
            "reads with all {threads} threads from clients that say nothing, such as {by}, which {silent}"
        ),
    }
}

fn title(one: &Unanswered<'_>, owed: &Owed) -> Title {
    let server = who(one.server);
    let long = duration(longest(&one.behind));
    let behind = sentence(&one.behind);
    match (&owed.occupied, owed.unread) {
        (Some(occupant), _) => Title::from(format!("{server} {}", occupied(occupant)))
            .with(format!(": {behind} for an answer, up to {long}")),
        (None, true) => Title::from(format!(
            "{server}{} does not read its requests: {behind} for an answer, up to {long}",
            without_descriptors(one.server)
        )),
        (None, false) => Title::from(match one.elsewhere {
            Some(wait) => format!(
                "{server} has not answered, and {} waits for {}: {behind} for it, up to {long}",
                match wait.waiter.pid == one.server.pid {
                    true => "itself".to_owned(),
                    false => who(&wait.waiter),
                },
                awaited(wait)
            ),
            None => format!(
                "{server} has not answered: {behind} for it, up to {long}; why is not visible from outside"
            ),
        }),
    }
}

/// What a server that does not work on its requests is in; `None` of one that works.
pub(super) fn finding(one: &Unanswered<'_>, rule: RuleId) -> Option<Finding> {
    let owed = owed(one)?;
    if works(owed) {
        return None;
    }
    let server = who(one.server);
    let sleeps: Vec<String> = (owed.sleeps.iter())
        .map(|(function, count)| format!("{} in {function}", say::several(u64::from(*count), "thread")))
        .collect();
    let sleeps = match sleeps.as_slice() {
        [] => String::new(),
        all => format!("; it sleeps: {}", all.join(", ")),
    };
    let used = owed.cpu_percent.map_or_else(String::new, |percent| {
        format!(", and used {percent} % of one CPU")
    });
    let at = match one.wait.name.as_str() {
        "" => String::new(),
        name => format!(" at {name}"),
    };
    let first = Evidence::new(
        format!(
            "{server} owes an answer{at} for {}{used}{sleeps}",
            duration(one.wait.ns)
        ),
        "TCP sockets (sock_diag), /proc/PID/task/TID/wchan",
    );
    let is_known = owed.unread || owed.occupied.is_some();
    let severity = match is_known {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let finding = Finding::without_duration(rule.id(), severity, title(one, owed), Cause::NetReceive, first)
        .and_if(owed.unread.then(|| {
            Evidence::new(
                "the request stands in its socket, or in the queue of its listener",
                "TCP sockets (sock_diag)",
            )
        }))
        .and_if(owed.occupied.as_ref().map(|occupant| {
            Evidence::new(
                format!(
                    "{server} is in a call that receives on the connection of {}, which is empty, and no thread of it accepts or polls",
                    client(&occupant.by)
                ),
                STANDS,
            )
        }))
        .and_if((!is_known).then(|| {
            Evidence::new(
                "not measured: what it waits for itself; it may hold the answer back on purpose, as a long poll does",
                "a look from outside",
            )
        }));
    let finding = match one.server.descriptors {
        Some(_) => finding.remedy(Remedy::changing(
            format!("raise the limit of {server} (LimitNOFILE= of its unit, ulimit -n), or close what it does not need"),
            "what is never closed uses up any limit",
        )),
        None => finding,
    };
    let finding = finding
        .about(
            Resource::named(ResourceKind::Process, &one.server.name),
            asker(one.server),
        )
        .confidence(match is_known {
            true => Confidence::Strong,
            false => Confidence::Suspect,
        });
    Some(match &owed.occupied {
        Some(occupant) => of_occupied(finding, &server, occupant),
        None => finding.remedy(
            Remedy::safe(format!("find out what {server} waits for"))
                .with_command(format!("holdup attach -p {}", one.server.pid)),
        ),
    })
}

fn of_occupied(finding: Finding, server: &str, occupant: &Occupied) -> Finding {
    finding
        .remedy(Remedy::changing(
            format!(
                "to go on now: have {} close that connection, or end it",
                client(&occupant.by)
            ),
            "what it keeps the connection for has to be made anew",
        ))
        .remedy(Remedy::safe(format!(
            "have {server} give up reading after some seconds, or serve each connection by a thread of its own or by polling"
        )))
        .remedy(Remedy::pointless(
            "a longer queue of its listener: those who stand in it are not served either",
        ))
}

#[cfg(test)]
mod tests {
    use super::{Told, of, tells_kill};
    use crate::rules::RuleId;
    use holdup_evidence::observed::{Killed, Occupied, Owed, SeenClient, SeenProcess, SeenWait, Short};
    use holdup_model::finding::Severity;

    const S: u64 = 1_000_000_000;

    fn wait(waiter: (u32, &str), holder: (u32, &str), owed: Owed) -> SeenWait {
        let process = |(pid, name): (u32, &str)| SeenProcess {
            pid,
            name: name.to_owned(),
            ..SeenProcess::default()
        };
        SeenWait {
            waiter: process(waiter),
            holder: Some(process(holder)),
            ns: 26 * S,
            short: Short::Answer(Owed {
                cpu_percent: Some(0),
                ..owed
            }),
            ..SeenWait::default()
        }
    }

    fn told(waits: &[SeenWait]) -> Vec<Told> {
        of(waits, RuleId::AnswerStillAwaited, S)
    }

    fn silent(name: &str, silent: Option<u64>, threads: u32) -> Owed {
        Owed {
            unread: true,
            occupied: Some(Box::new(Occupied {
                by: SeenClient {
                    pid: 9,
                    name: name.to_owned(),
                },
                silent,
                threads,
            })),
            ..Owed::default()
        }
    }

    fn titles(waits: &[SeenWait]) -> Vec<String> {
        let told = told(waits);
        told.iter().map(|one| one.finding.title.to_string()).collect()
    }

    #[test]
    fn a_silent_client_that_occupies_a_server_is_named() {
        let of = |owed| titles(&[wait((2, "render"), (7, "licenced"), owed)]);
        assert_eq!(
            of(silent("kiosk", None, 1)),
            [
                "licenced (pid 7) reads from kiosk (pid 9), which has sent nothing on its connection yet, and takes in nobody else meanwhile: render waits \
              for an answer, up to 26.00 s"
            ]
        );
        assert!(of(silent("kiosk", Some(90 * S), 1))[0].contains("which has sent nothing for 1 min 30 s,"));
        assert!(of(silent("kiosk", None, 4))[0].contains("with all 4 threads from clients that say nothing"));
    }

    fn killed(memory: Option<&str>, zombie: bool) -> Owed {
        Owed {
            killed: Some(Box::new(Killed {
                process: SeenClient {
                    pid: 8,
                    name: "ingest".to_owned(),
                },
                zombie_of: zombie.then(|| SeenClient {
                    pid: 3,
                    name: "ingest".to_owned(),
                }),
                memory: memory.map(str::to_owned),
                signal: 9,
                ago: Some(30 * S),
            })),
            ..Owed::default()
        }
    }

    #[test]
    fn only_a_kill_for_memory_that_is_told_is_told() {
        let tells = |owed: Owed, pid: u32| tells_kill(&[wait((20, "gateway"), (6, "ingest"), owed)], pid);
        assert!(tells(killed(Some("/ingest"), true), 8));
        assert!(!tells(killed(Some("/ingest"), true), 9), "another one");
        assert!(!tells(killed(None, true), 8), "a signal");
        let blocked = Owed {
            blocked: true,
            ..killed(Some("/ingest"), true)
        };
        assert!(!tells(blocked, 8), "it waits for a disk");
    }

    #[test]
    fn workers_behind_a_killed_one_are_one_finding() {
        let waits = [
            wait((20, "gateway"), (6, "ingest"), killed(Some("/ingest"), true)),
            wait((21, "gateway"), (7, "ingest"), killed(Some("/ingest"), true)),
        ];
        let told = told(&waits);
        assert_eq!(told.len(), 1);
        assert_eq!((&told[0].servers, &told[0].behind), (&vec![6, 7], &vec![20, 21]));
        assert_eq!(
            told[0].finding.title.to_string(),
            "ingest (pid 8) was killed by the kernel 30.00 s ago for the memory limit of cgroup /ingest (OOM) and is a zombie, and ingest (pid 6) and \
             ingest (pid 7) wait for a lock (futex) that they share with other processes: 2 processes of gateway wait for an answer, up to 26.00 s"
        );
        let whole = titles(&[wait((20, "gateway"), (6, "ingest"), killed(Some(""), false))]);
        assert!(
            whole[0]
                .contains("was killed by the kernel for memory (OOM) 30.00 s ago, and ingest (pid 6) waits")
        );
        let signal = titles(&[wait((20, "gateway"), (6, "ingest"), killed(None, true))]);
        assert!(signal[0].contains("was ended by signal 9 30.00 s ago and is a zombie"));
    }

    #[test]
    fn one_that_works_is_none_and_one_that_merely_sleeps_is_a_note() {
        let busy = |mut owed: Owed| {
            owed.unread = true;
            let mut wait = wait((2, "render"), (7, "licenced"), owed);
            if let Short::Answer(owed) = &mut wait.short {
                owed.cpu_percent = Some(90);
            }
            titles(&[wait])
        };
        assert!(busy(silent("kiosk", None, 1)).is_empty());
        assert!(busy(killed(Some(""), true)).is_empty());
        let came = Owed {
            came: true,
            ..Owed::default()
        };
        let waits = [wait((2, "curl"), (7, "app"), came)];
        assert_eq!(told(&waits)[0].finding.severity, Severity::Note);
        let rests = [wait((2, "agent"), (7, "app"), Owed::default())];
        assert!(told(&rests).is_empty(), "it may wait for whatever comes");
    }
}
