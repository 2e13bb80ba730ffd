//! A program's own log says why work waits or is refused.

use crate::rules::{Generality, HARM_FLOOR, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::{LogLine, LogReason, OwnLog};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_logs(RuleId::OwnLogExplains, check)
    .about("a program's own log says why work waits or is refused")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

/// Logs that become findings.
const FINDINGS_MAX: usize = 3;

/// Letters of a line that a title has, and those behind another finding's title.
const TITLE_LETTERS: usize = 180;
const BEHIND_LETTERS: usize = 110;

/// Lines about peers from which it is no single request that failed.
const MIN_FAILURES: u64 = 2;

/// Rules that say that clients wait for a server, and not why: what the server says itself is the reason.
const SYMPTOMS: &[RuleId] = &[
    RuleId::ClientsWithoutAnswer,
    RuleId::ClientsNotAccepted,
    RuleId::ClientsSetAside,
    RuleId::ConnectionPoolEmpty,
    RuleId::ConnectionsEndedAtOnce,
    RuleId::DatagramsUnanswered,
    RuleId::NoWorkerLeft,
    RuleId::RequestsHeldByTimer,
    RuleId::RequestsWaitTheirTurn,
    RuleId::SleepPolling,
    RuleId::SleepsOnPurpose,
    RuleId::SomeRequestsSlow,
    RuleId::WaitUncategorised,
    RuleId::WaitUnexplained,
    RuleId::WholePoolWaits,
    RuleId::WorkerPoolExhausted,
];

/// Rules about a limit of the kernel's, with the reasons that are the same in a program's words.
const SAME_LIMIT: &[(RuleId, LogReason)] = &[
    (RuleId::NoDescriptorLeft, LogReason::NoDescriptor),
    (RuleId::FileTableFull, LogReason::NoDescriptor),
    (RuleId::ClientsNotAccepted, LogReason::NoDescriptor),
    (RuleId::FileSystemFull, LogReason::NoSpace),
    (RuleId::NoSpaceForWrites, LogReason::NoSpace),
    (RuleId::TaskLimitReached, LogReason::Limit),
    (RuleId::TaskLimitReached, LogReason::NoMemory),
    (RuleId::MemoryShort, LogReason::NoMemory),
];

fn check(run: &Run<'_>, logs: &[OwnLog]) -> Verdict {
    let told = || logs.iter().filter(|log| !log.said.is_empty());
    if logs.is_empty() {
        return Verdict::CannotTell(
            "what the programs say themselves: no observed process has a log file open".to_owned(),
        );
    }
    if told().next().is_none() {
        let bytes: u64 = logs.iter().map(|log| log.added).sum();
        return Verdict::Clear(format!(
            "{} with {} written meanwhile: 0 lines say that work waits or is refused",
            say::several(logs.len() as u64, "log"),
            say::several(bytes, "byte"),
        ));
    }
    let mut findings: Vec<Finding> = told().filter_map(|log| finding(run, log)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.truncate(FINDINGS_MAX);
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true if answers_at_once(run) => Verdict::Clear(format!(
            "the logs say that work is delayed, and all requests were answered within {}",
            duration(HARM_FLOOR)
        )),
        true => {
            Verdict::CannotTell("which of the observed threads belong to the logs that were read".to_owned())
        }
    }
}

/// The waits of those who write it.
fn waits<'a>(run: &Run<'a>, log: &OwnLog) -> Option<Waits<'a>> {
    run.waits(|wait| log.writers.contains(&wait.asker.name.pid))
}

/// How grave a line is.
fn severity(log: &OwnLog, line: &LogLine) -> Severity {
    let of_peers = matches!(
        line.reason,
        LogReason::NoAnswer | LogReason::Unreachable | LogReason::Stalled
    );
    let often = line.during.saturating_add(line.before) >= MIN_FAILURES;
    match log.asked && (line.standing || !of_peers || often) {
        true => Severity::Warning,
        false => Severity::Note,
    }
}

/// Whether all requests were answered so soon that nobody notices: a limit on their rate spreads a burst over some milliseconds.
fn answers_at_once(run: &Run<'_>) -> bool {
    let requests = run.attributed.requests.as_ref();
    requests.is_some_and(|one| {
        one.count > 0 && one.longest < HARM_FLOOR && (one.open == 0 || one.oldest_open < HARM_FLOOR)
    })
}

/// What a program does or lacks, by its own words.
pub(in crate::rules) fn does(reason: LogReason) -> &'static str {
    match reason {
        LogReason::Refuses => "refuses work",
        LogReason::Limit => "has reached a limit of its own",
        LogReason::Slows => "delays work on purpose",
        LogReason::Defers => "puts work off",
        LogReason::NoSpace => "has no space left to write to",
        LogReason::NoMemory => "may use no more memory",
        LogReason::NoDescriptor => "has no file descriptor left",
        LogReason::Lock => "waits for a lock",
        LogReason::NoAnswer => "gets no answer in time",
        LogReason::Unreachable => "cannot reach a peer",
        LogReason::Stalled => "reports that a part of it is stuck or behind",
    }
}

/// How often a line was written, and when, for the middle of a sentence.
pub(in crate::rules) fn often(log: &OwnLog, line: &LogLine) -> String {
    let within = duration(log.watched);
    match (line.during, line.before, line.ago) {
        (0, _, Some(ago)) if line.standing => format!("since {} ago and not ended", duration(ago)),
        (0, _, None) if line.standing => "not ended since".to_owned(),
        (0, 0..2, Some(ago)) => format!("{} ago", duration(ago)),
        (0, before, Some(ago)) => format!("{before} times, last {} ago", duration(ago)),
        (0, _, None) => "shortly before".to_owned(),
        (1, ..) => format!("once in {within}"),
        (during, ..) => format!("{during} times in {within}"),
    }
}

/// A line, short enough for a title.
pub(in crate::rules) fn short(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text).trim_end()),
        None => text.trim_end_matches(['.', ' ']).to_owned(),
    }
}

pub(in crate::rules) fn source(log: &OwnLog, line: &LogLine) -> String {
    match line.line {
        Some(number) => format!("{}:{number}", log.file),
        None => log.file.clone(),
    }
}

/// Whose log it is.
fn who(run: &Run<'_>, log: &OwnLog, asker: &Asker) -> String {
    let pid = asker.name.pid;
    match say::script(run, pid) {
        Some(script) => format!("{script} (pid {pid})"),
        None => {
            let name = say::name_or(&asker.name.process, say::name_or(&log.process, "a process"));
            format!("{name} (pid {pid})")
        }
    }
}

fn quote(log: &OwnLog, line: &LogLine) -> Evidence {
    Evidence::new(format!("{}: {}", often(log, line), line.text), source(log, line))
}

fn finding(run: &Run<'_>, log: &OwnLog) -> Option<Finding> {
    let theirs = waits(run, log)?;
    let line = log.said.first()?;
    if line.reason == LogReason::Slows && answers_at_once(run) {
        return None;
    }
    let main = theirs.main();
    let title = format!(
        "{} {}, by its own log, {}: {}",
        who(run, log, &main.asker),
        does(line.reason),
        often(log, line),
        short(&line.text, TITLE_LETTERS)
    );
    let resource = Resource::named(ResourceKind::File, &log.file);
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        severity(log, line),
        title,
        main.cause,
        quote(log, line),
    )
    .about(resource, main.asker.clone())
    .confidence(match line.during > 0 || line.standing {
        true => Confidence::Strong,
        false => Confidence::Suspect,
    });
    for other in log.said.iter().skip(1) {
        finding = finding.and(quote(log, other));
    }
    let read = Remedy::safe("read what it wrote before that")
        .with_command(format!("tail -n 50 {}", say::quoted(&log.file)));
    let finding = match remedy(line.reason) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    };
    Some(finding.remedy(read))
}

/// What to do about it, where the reason alone says so.
pub(in crate::rules) fn remedy(reason: LogReason) -> Option<Remedy> {
    Some(match reason {
        LogReason::Limit | LogReason::Slows => Remedy::changing(
            "raise the limit that the line names, or send it less at a time",
            "a limit often protects what is behind it",
        ),
        LogReason::Refuses => Remedy::safe(
            "end the condition that the line names: it accepts work again by itself or when it is told to",
        ),
        LogReason::Defers => {
            Remedy::safe("find out what has the place or the peer that the deferred work waits for")
        }
        LogReason::NoSpace => Remedy::safe("find out which file system it writes to, and what fills it")
            .with_command("df -h; df -i"),
        LogReason::NoMemory => Remedy::safe(
            "find out which limit of memory it is, and what uses it: the machine's, its cgroup's, or its own",
        ),
        LogReason::NoDescriptor => Remedy::safe("see what it has open"),
        LogReason::Unreachable | LogReason::NoAnswer => Remedy::safe("look at the peer that the line names"),
        LogReason::Lock | LogReason::Stalled => return None,
    })
}

/// Adds what a program says itself to the finding about the same thing; what is about nothing else stays a finding. Returns whose finding has
/// it now.
pub(in crate::rules) fn join(run: &Run<'_>, found: &mut Vec<(&Rule, Finding)>) -> Vec<(RuleId, RuleId)> {
    let mut joined = Vec::new();
    let logs = run.facts.own_logs.as_deref().filter(|_| run.observed.is_none());
    for log in logs.unwrap_or_default() {
        let Some(line) = log.said.first() else { continue };
        let is_own =
            |(rule, finding): &(&Rule, Finding)| rule.id == RULE.id && finding.resource.name == log.file;
        let own = found.iter().position(is_own);
        // A program in the way has no finding of its own. What it says counts where it is about now.
        if own.is_none() && (log.asked || line.during == 0 && !line.standing) {
            continue;
        }
        let relation = |(rule, finding): &(&Rule, Finding)| match rule.id == RULE.id
            || finding.severity < Severity::Warning && log.writers.contains(&finding.asker.name.pid)
        {
            true => None,
            false => relation(run, log, line, rule, finding),
        };
        let best = found
            .iter_mut()
            .filter_map(|one| Some((relation(one)?, one)))
            .max_by_key(|(relation, (_, finding))| (*relation, finding.severity, finding.ns));
        match best {
            None => {}
            Some((Relation::OfTheSame, _)) if !is_limit(line) => {
                // Something else holds it up more: what it says as well comes below.
                if let Some((_, own)) = own.and_then(|own| found.get_mut(own)) {
                    own.severity = Severity::Note;
                }
            }
            Some((relation, (rule, finding))) => {
                joined.push((RULE.id, rule.id));
                let says = format!(
                    "{} says so itself, {}: {}",
                    log.process,
                    often(log, line),
                    line.text
                );
                *finding = finding.clone().and(Evidence::new(says, source(log, line)));
                let also = match relation {
                    Relation::Explains => Some(""),
                    Relation::OfTheSame => Some("also "),
                    Relation::Confirms => None,
                };
                if relation == Relation::Explains && is_limit(line) {
                    finding.severity = finding.severity.max(Severity::Warning);
                }
                if let Some(also) = also {
                    finding.title.push(format!(
                        "; {} {also}{}, by its own log: {}",
                        say::name_or(&log.process, "the program"),
                        does(line.reason),
                        short(&line.text, BEHIND_LETTERS)
                    ));
                }
                if let Some(own) = own {
                    found.remove(own);
                }
            }
        }
    }
    joined
}

/// Whether a line tells of work that is refused or delayed now, whatever else there is to wait for.
fn is_limit(line: &LogLine) -> bool {
    let limits = [
        LogReason::Refuses,
        LogReason::Limit,
        LogReason::Slows,
        LogReason::Defers,
        LogReason::NoSpace,
        LogReason::NoMemory,
        LogReason::NoDescriptor,
    ];
    limits.contains(&line.reason) && (line.during > 0 || line.standing)
}

/// What a line is to a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    /// The finding is about the same process, and about something else.
    OfTheSame,
    /// The finding says the same.
    Confirms,
    /// The finding says who waits, and the line why.
    Explains,
}

fn relation(run: &Run<'_>, log: &OwnLog, line: &LogLine, rule: &Rule, finding: &Finding) -> Option<Relation> {
    let pid = finding.asker.name.pid;
    // A parent has the log open, and its workers are those who wait.
    let name = &finding.asker.name.process;
    let is_warning = finding.severity >= Severity::Warning;
    if log.writers.contains(&pid) || log.asked && is_warning && !name.is_empty() && *name == log.process {
        let same_limit = SAME_LIMIT.contains(&(rule.id, line.reason));
        return Some(match SYMPTOMS.contains(&rule.id) {
            _ if same_limit || is_of(line.reason, finding.cause) => Relation::Confirms,
            true => Relation::Explains,
            false => Relation::OfTheSame,
        });
    }
    let theirs = run.waits(|wait| wait.asker.name.pid == pid && wait.cause == finding.cause)?;
    let waits_for_it = theirs
        .holders()
        .iter()
        .any(|holder| log.writers.contains(&holder.name.pid));
    waits_for_it.then_some(Relation::Explains)
}

/// Whether waits of this cause are what the reason is about.
fn is_of(reason: LogReason, cause: Cause) -> bool {
    let of = |begin: &str| cause.id().starts_with(begin);
    match reason {
        LogReason::Lock => of("lock."),
        LogReason::NoAnswer | LogReason::Unreachable => of("net."),
        LogReason::NoSpace => of("disk."),
        LogReason::NoMemory => of("memory."),
        _ => false,
    }
}
