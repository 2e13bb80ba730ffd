//! A server that withholds its service: it does nothing, its clients wait for its answer, and others wait for them.
//!
//! The problem: a broker whose alarm is set, a database that takes no writes, and a proxy at a limit of its own sleep as they do with nothing to do,
//! and a client that waits looks like one that waits for whatever comes. In: waits for answers. Out: findings, where others wait behind
//! the clients, and the server's own log tells of a limit, or it has been silent for as long on connections that were busy before.

use super::awaited_said::{awaited, programs, sentence, who};
use super::list::own_log_explains::{does, often, remedy, short, source};
use super::{Extend, Rule, RuleId, Run, duration, say};
use crate::machine::seen::{self, Behind, Unanswered};
use holdup_evidence::facts::{LogLine, LogReason, OwnLog};
use holdup_evidence::observed::{FilledVolume, Owed, SeenWait, Short, Silence};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};

/// The shortest wait that is reported: what is shorter may be work.
const MIN_NS: Ns = 5_000_000_000;

/// What a server may use of one CPU, percent, if it does nothing.
const MAX_CPU_PERCENT: u32 = 20;

/// How long before a wait, or after its begin, a line of a log may have been written that explains it.
const ABOUT_NS: Ns = 30_000_000_000;

/// Connections of a server that must be silent, and the part of all of them.
const MIN_SILENT: u32 = 3;
const MIN_SILENT_SHARE: f64 = 0.8;

/// Segments that would have gone over them meanwhile, as often as before, from which silence is no chance.
const MIN_MISSED: f64 = 20.0;

/// Servers that are reported, programs that a list names, letters of a log's line in a title.
const MAX_SERVERS: usize = 2;
const MAX_LISTED: usize = 6;
const LETTERS: usize = 140;

/// Lines of its logs that evidence quotes.
const MAX_LINES: usize = 3;

/// How answers are known to be awaited.
const SOURCE: &str = "TCP sockets (sock_diag), /proc/PID/fd";

/// Findings, the server with most behind it first.
pub(super) fn of(waits: &[SeenWait]) -> Vec<Finding> {
    servers(waits).into_iter().map(|one| one.finding).collect()
}

/// A server that withholds its service.
#[derive(Debug)]
pub(super) struct Withheld {
    pub(super) server: u32,
    /// Who waits behind it.
    pub(super) behind: Vec<u32>,
    /// The longest of these waits.
    pub(super) longest: Ns,
    /// The file system that it writes to, where little is left there.
    fills: Option<String>,
    /// What is said of it.
    pub(super) finding: Finding,
}

/// Those that are reported, the one with most behind it first.
pub(super) fn servers(waits: &[SeenWait]) -> Vec<Withheld> {
    servers_but(waits, |_| false)
}

/// The same but for those of which this is so: they do not take the place of another one.
pub(super) fn servers_but(waits: &[SeenWait], left_out: impl Fn(&Withheld) -> bool) -> Vec<Withheld> {
    let found = seen::owed_for(waits, MIN_NS);
    let known = |one: &Unanswered<'_>| {
        Some(Withheld {
            server: one.server.pid,
            behind: one.behind.iter().map(|behind| behind.process.pid).collect(),
            longest: one.behind.iter().map(|behind| behind.ns).max().unwrap_or(0),
            fills: owed(one)
                .and_then(|owed| owed.filled.as_ref())
                .map(|volume| volume.mount.clone()),
            finding: finding(one, waits)?,
        })
    };
    let known = found.iter().filter_map(known);
    known.filter(|one| !left_out(one)).take(MAX_SERVERS).collect()
}

/// A file system that is full and that nobody is known to wait for is less grave than what others wait behind.
pub(super) fn shortages_after(run: &Run<'_>, found: &mut [(&Rule, Finding)]) {
    // What is merely suspected may be due to the full one.
    let behind = |(rule, finding): &(&Rule, Finding)| {
        rule.id == RuleId::OthersWaitBehind
            && finding.severity == Severity::Warning
            && finding.confidence != Confidence::Suspect
    };
    if !found.iter().any(behind) {
        return;
    }
    let seen = run.observed.and_then(|observed| observed.waits.as_deref());
    let waits = [seen.unwrap_or_default(), &run.facts.answers_awaited];
    let withheld: Vec<Withheld> = waits.into_iter().flat_map(servers).collect();
    let is_reason = |mount: &str| withheld.iter().any(|one| one.fills.as_deref() == Some(mount));
    for (rule, finding) in found.iter_mut() {
        if rule.id == RuleId::FileSystemFull && !is_reason(&finding.resource.name) {
            finding.severity = finding.severity.min(Severity::Warning);
        }
    }
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

/// What a server's own logs say of this time, what counts most first.
fn reasons(owed: &Owed, ns: Ns) -> Vec<(&OwnLog, &LogLine)> {
    let about = |line: &LogLine| {
        let near = |ago: Ns| ago <= ns.saturating_add(ABOUT_NS) && ago.saturating_add(ABOUT_NS) >= ns;
        line.standing || line.ago.is_some_and(near)
    };
    let lines = owed
        .says
        .iter()
        .flat_map(|log| log.said.iter().map(move |line| (log, line)));
    let mut lines: Vec<(&OwnLog, &LogLine)> = lines.filter(|(_, line)| about(line)).collect();
    lines.sort_by_key(|(_, line)| !line.standing);
    lines
}

/// Whether a program that says this of itself gives no answers meanwhile. What it says of others, or of a delay, has another end.
fn withholds(reason: LogReason) -> bool {
    match reason {
        LogReason::Refuses
        | LogReason::Limit
        | LogReason::NoSpace
        | LogReason::NoMemory
        | LogReason::NoDescriptor => true,
        LogReason::Slows
        | LogReason::Defers
        | LogReason::Lock
        | LogReason::NoAnswer
        | LogReason::Unreachable
        | LogReason::Stalled => false,
    }
}

/// Whether a server has fallen silent: nearly all of its connections were busy, and nothing has come or gone since.
fn fell_silent(silence: &Silence, ns: Ns) -> bool {
    let before = silence.lived.saturating_sub(ns).max(1) as f64;
    let missed = silence.segments as f64 / before * ns as f64;
    silence.connections >= MIN_SILENT
        && f64::from(silence.connections) >= f64::from(silence.of) * MIN_SILENT_SHARE
        && missed >= MIN_MISSED
}

fn finding(one: &Unanswered<'_>, waits: &[SeenWait]) -> Option<Finding> {
    let owed = owed(one)?;
    // What runs, or is blocked on a disk, is another rule's; who waits for another machine is no end.
    let works = owed.blocked || owed.cpu_percent.is_none_or(|percent| percent >= MAX_CPU_PERCENT);
    // A client that waits for whatever comes has nobody behind it.
    if works || one.elsewhere.is_some() || one.behind.iter().all(|one| one.directly) {
        return None;
    }
    let reasons = reasons(owed, one.wait.ns);
    let reason = reasons.iter().copied().find(|(_, line)| withholds(line.reason));
    let silence = owed
        .silence
        .as_ref()
        .filter(|silence| fell_silent(silence, one.wait.ns));
    // That all is quiet says nothing of a server to which the way is inferred: those who wait may wait for something else.
    if reason.is_none() && (silence.is_none() || way(one, waits).is_some()) {
        return None;
    }
    let first = Evidence::new(behind(&one.behind), SOURCE);
    let finding = Finding::without_duration(
        RuleId::OthersWaitBehind.id(),
        match reason {
            Some(_) => Severity::Warning,
            None => Severity::Note,
        },
        title(one, reason, silence, owed.filled.as_ref()),
        Cause::NetReceive,
        first,
    )
    .and_if(way(one, waits))
    .and_if(silence.or(owed.silence.as_ref()).and_then(silent))
    .and_if(owed.filled.as_ref().map(filled));
    let says = reasons.iter().take(MAX_LINES);
    let finding = says.fold(finding, |finding, (log, line)| {
        let text = format!("{}: {}", often(log, line), line.text);
        finding.and(Evidence::new(text, source(log, line)))
    });
    let asker = Asker {
        name: ThreadName {
            pid: one.server.pid,
            tid: one.server.pid,
            process: one.server.name.clone(),
            ..ThreadName::default()
        },
        ..Asker::default()
    };
    let finding = finding
        .about(Resource::named(ResourceKind::Process, &one.server.name), asker)
        .confidence(match reason {
            Some(_) => Confidence::Strong,
            None => Confidence::Suspect,
        });
    Some(remedies(finding, one, reason, owed.filled.as_ref()))
}

fn title(
    one: &Unanswered<'_>,
    reason: Option<(&OwnLog, &LogLine)>,
    silence: Option<&Silence>,
    filled: Option<&FilledVolume>,
) -> String {
    let (direct, through): (Vec<Behind<'_>>, Vec<Behind<'_>>) =
        one.behind.iter().cloned().partition(|one| one.directly);
    let longest = one.behind.iter().map(|one| one.ns).max().unwrap_or(0);
    let why = match reason {
        Some((log, line)) => format!(
            "; by its own log it {}, {}: {}",
            does(line.reason),
            often(log, line),
            short(&line.text, LETTERS)
        ),
        None => String::new(),
    };
    let filled = match filled.and_then(|volume| Some((volume, volume.by.as_ref()?))) {
        Some((volume, by)) => format!(
            "; {} has {} left, and {} (pid {}) has filled {} of it",
            volume.mount,
            say::bytes(volume.left),
            say::name_or(&by.name, "a process"),
            by.pid,
            say::bytes(volume.bytes)
        ),
        None => String::new(),
    };
    // That it owes answers is not known of one that is merely silent.
    let does = match (reason, silence) {
        (None, Some(silence)) if silence.connections >= silence.of => "has been silent on all connections",
        (None, Some(_)) => "has been silent on nearly all connections",
        _ => "does not answer, and does nothing",
    };
    format!(
        "{} {does}: {} for it, and {} behind, for at least {}{why}{filled}",
        who(one.server),
        sentence(&direct),
        sentence(&through),
        duration(longest)
    )
}

/// Who waits behind it, and how.
fn behind(behind: &[Behind<'_>]) -> String {
    let list: Vec<String> = (programs(behind).into_iter().take(MAX_LISTED))
        .map(|(name, count, ns)| {
            let count = say::several(count, "process");
            format!("{} ({count}, {})", say::name_or(name, "a program"), duration(ns))
        })
        .collect();
    format!(
        "{} wait behind it: {}",
        say::several(behind.len() as u64, "process"),
        list.join(", ")
    )
}

/// How it is known that the clients wait for it, where they did not speak last on their connections.
fn way(one: &Unanswered<'_>, waits: &[SeenWait]) -> Option<Evidence> {
    let is_inferred = |wait: &&SeenWait| {
        let inferred = matches!(&wait.short, Short::Answer(owed) if owed.inferred);
        inferred
            && wait
                .holder
                .as_ref()
                .is_some_and(|holder| holder.pid == one.server.pid)
    };
    let wait = waits.iter().filter(is_inferred).max_by_key(|wait| wait.ns)?;
    Some(Evidence::new(
        format!(
            "{} waits for {}: that is the connection on which it was active last since it was asked itself, and nothing has come there for {}",
            who(&wait.waiter),
            awaited(wait),
            duration(wait.ns)
        ),
        SOURCE,
    ))
}

fn silent(silence: &Silence) -> Option<Evidence> {
    let programs: Vec<String> = (silence.programs.iter())
        .map(|(name, count)| match count {
            1 => say::name_or(name, "a program").to_owned(),
            count => format!("{} ({count})", say::name_or(name, "a program")),
        })
        .collect();
    (silence.connections > 0 && !programs.is_empty()).then(|| {
        Evidence::new(
            format!(
                "since about then nothing has come or gone on {} of its {}, on which there were {} before: {}",
                silence.connections,
                say::several(silence.of.into(), "connection"),
                say::several(silence.segments, "segment"),
                programs.join(", ")
            ),
            SOURCE,
        )
    })
}

fn filled(volume: &FilledVolume) -> Evidence {
    let by = volume.by.as_ref().map_or_else(String::new, |by| {
        format!(
            "; the largest file there that is still open to write to is {} ({}), of {} (pid {})",
            volume.file,
            say::bytes(volume.bytes),
            say::name_or(&by.name, "a process"),
            by.pid
        )
    });
    Evidence::new(
        format!(
            "it writes to {}, of which {} of {} are left{by}",
            volume.mount,
            say::bytes(volume.left),
            say::bytes(volume.size)
        ),
        "statvfs, /proc/PID/fd",
    )
}

fn remedies(
    finding: Finding,
    one: &Unanswered<'_>,
    reason: Option<(&OwnLog, &LogLine)>,
    volume: Option<&FilledVolume>,
) -> Finding {
    let finding = match volume {
        Some(volume) => finding.remedy(
            Remedy::changing(
                format!("free space on {}: move or delete what fills it", volume.mount),
                "deleted files are lost",
            )
            .with_command(format!("du -xah {} | sort -h | tail", say::quoted(&volume.mount))),
        ),
        None => finding,
    };
    let finding = match reason.and_then(|(_, line)| remedy(line.reason)) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    };
    match reason {
        Some((log, _)) => finding.remedy(
            Remedy::safe("read what it wrote before that")
                .with_command(format!("tail -n 50 {}", say::quoted(&log.file))),
        ),
        None => finding.remedy(
            Remedy::safe(format!("find out what {} waits for", who(one.server)))
                .with_command(format!("holdup attach -p {}", one.server.pid)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{of, servers, servers_but};
    use holdup_evidence::Ns;
    use holdup_evidence::facts::{LogLine, LogReason, OwnLog};
    use holdup_evidence::observed::{FilledVolume, Owed, SeenClient, SeenProcess, SeenWait, Short, Silence};

    const S: Ns = 1_000_000_000;

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
            short: Short::Answer(owed),
            ..SeenWait::default()
        }
    }

    fn idle() -> Owed {
        Owed {
            cpu_percent: Some(1),
            ..Owed::default()
        }
    }

    fn silence(connections: u32, of: u32, segments: u64) -> Option<Silence> {
        Some(Silence {
            connections,
            of,
            segments,
            lived: 100 * S,
            programs: vec![("bookings".to_owned(), connections)],
        })
    }

    fn alarm() -> Vec<OwnLog> {
        vec![OwnLog {
            file: "/var/log/broker.log".to_owned(),
            said: vec![LogLine {
                reason: LogReason::Refuses,
                standing: true,
                text: "disk alarm is set".to_owned(),
                ago: Some(27 * S),
                ..LogLine::default()
            }],
            ..OwnLog::default()
        }]
    }

    /// Titles, of a broker with this answer to give to an API that a client has asked.
    fn titles(owed: Owed) -> Vec<String> {
        let waits = [
            wait((1, "client"), (2, "api"), idle()),
            wait((2, "api"), (3, "broker"), owed),
        ];
        of(&waits)
            .into_iter()
            .map(|finding| finding.title.into())
            .collect()
    }

    #[test]
    fn a_server_that_says_why_it_does_not_answer_is_quoted() {
        let filled = FilledVolume {
            mount: "/spool".to_owned(),
            left: 80 << 20,
            size: 400 << 20,
            by: Some(SeenClient {
                pid: 9,
                name: "planner".to_owned(),
            }),
            file: "/spool/trace".to_owned(),
            bytes: 240 << 20,
        };
        let found = titles(Owed {
            says: alarm(),
            filled: Some(filled),
            ..idle()
        });
        assert_eq!(
            found,
            [
                "broker (pid 3) does not answer, and does nothing: api waits for it, and client waits behind, for at least 26.00 s; by its own log it refuses work, since 27.00 s ago and not ended: disk alarm is set; /spool has 80.0 MiB left, and planner (pid 9) has filled 240 MiB of it"
            ]
        );
    }

    #[test]
    fn one_that_fell_silent_everywhere_withholds_its_service() {
        let with = |silence| titles(Owed { silence, ..idle() }).len();
        assert_eq!(with(silence(7, 7, 900)), 1);
        assert_eq!(with(silence(7, 20, 900)), 0, "it answers others");
        assert_eq!(with(silence(7, 7, 12)), 0, "it never had much to say");
        assert_eq!(with(silence(1, 1, 900)), 0, "one client says nothing of a server");
        assert_eq!(with(None), 0);
    }

    #[test]
    fn what_it_says_of_others_or_of_a_delay_is_no_reason_to_withhold() {
        for reason in [
            LogReason::Stalled,
            LogReason::NoAnswer,
            LogReason::Unreachable,
            LogReason::Lock,
            LogReason::Slows,
            LogReason::Defers,
        ] {
            let mut says = alarm();
            says[0].said[0].reason = reason;
            let owed = |silence| Owed {
                says: says.clone(),
                silence,
                ..idle()
            };
            assert!(titles(owed(None)).is_empty(), "{reason:?}");
            assert_eq!(
                titles(owed(silence(7, 8, 900))),
                [
                    "broker (pid 3) has been silent on nearly all connections: api waits for it, and client waits behind, for at least 26.00 s"
                ]
            );
        }
    }

    #[test]
    fn no_more_servers_are_known_as_withholding_than_are_reported() {
        let chain = |server: u32| {
            let owed = Owed {
                says: alarm(),
                ..idle()
            };
            [
                wait((server + 2, "client"), (server + 1, "api"), idle()),
                wait((server + 1, "api"), (server, "broker"), owed),
            ]
        };
        let waits = [chain(10), chain(20), chain(30)].concat();
        assert_eq!(servers(&waits).len(), of(&waits).len());
        assert_eq!(of(&waits).len(), 2);
        let all: Vec<u32> = servers(&waits).iter().map(|one| one.server).collect();
        let but = servers_but(&waits, |one| one.server == all[0]);
        assert_eq!(but.len(), 2, "one that is told elsewhere takes no place");
        assert!(but.iter().all(|one| one.server != all[0]));
    }

    #[test]
    fn one_that_works_or_whose_clients_wait_for_whatever_comes_does_not() {
        let busy = Owed {
            cpu_percent: Some(80),
            says: alarm(),
            ..Owed::default()
        };
        assert!(titles(busy).is_empty());
        let alone = [wait(
            (2, "worker"),
            (3, "broker"),
            Owed {
                says: alarm(),
                ..idle()
            },
        )];
        assert!(of(&alone).is_empty());
    }

    #[test]
    fn what_it_said_long_before_is_no_reason() {
        let mut says = alarm();
        says[0].said[0].standing = false;
        says[0].said[0].ago = Some(900 * S);
        assert!(
            titles(Owed {
                says: says.clone(),
                ..idle()
            })
            .is_empty()
        );
        says[0].said[0].ago = Some(25 * S);
        assert_eq!(titles(Owed { says, ..idle() }).len(), 1);
    }
}
