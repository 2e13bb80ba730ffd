//! From attribution and findings to the report, `holdup.report/1`.
//!
//! In: what a run was ([`Subject`]), its attribution, what the rules said, the machine's facts. Out: a
//! [`Report`] in which durations are what attribution says, and shares and dates are worked out. Attribution
//! has folded the smallest of many threads already; here an entry stays an entry.

mod budget;
mod churn;

use holdup_evidence::{Cause, Frame, Ns, SystemFacts};
use holdup_model::attributed::{self, Attributed, AttributedWait, HowKnown, Tally, ThreadLedger};
use holdup_model::finding::{self, Verdicts};
use holdup_model::report::{
    Asker, Backend, CannotTell, CauseShare, Coverage, Elsewhere, Evidence, Finding, Holder, Jvm, Link,
    ListenerRequests, Lost, MoreOf, NotMeasured, RanInstead, Remedy, Report, Requests, RuledOut, SCHEMA,
    SlowRequests, StackFrame, SubjectKind, Task, TaskAsker, Thread, Tool, UpstreamRequests, Wait,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What was observed, as the command that observed it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Kind.
    pub kind: SubjectKind,
    /// Where the evidence came from.
    pub backend: Backend,
    /// The command line.
    pub command: Vec<String>,
    /// Process ids, CMD's own first.
    pub pids: Vec<u32>,
    /// When observation began, `CLOCK_MONOTONIC`.
    pub started: Ns,
    /// Exit status as a shell has it (128+N for a signal); `None` while it runs on.
    pub exit: Option<i32>,
    /// Processes in other namespaces.
    pub elsewhere: Vec<Elsewhere>,
}

/// The report of a run. `version` is holdup's.
#[must_use]
pub fn build(
    subject: Subject,
    attributed: &Attributed,
    verdicts: Verdicts,
    facts: &SystemFacts,
    version: &str,
) -> Report {
    let dates = Dates { facts };
    let observed = attributed.coverage.observed;
    Report {
        schema: SCHEMA.to_owned(),
        holdup: Tool {
            version: version.to_owned(),
        },
        subject: holdup_model::report::Subject {
            kind: subject.kind,
            command: subject.command,
            pids: subject.pids,
            // A live run always knows the offset. Without it the date is that of a machine that was booted
            // at the epoch: still a date, and still the right time since boot.
            started: dates
                .date(subject.started)
                .unwrap_or_else(|| rfc3339(i128::from(subject.started))),
            wall_ns: match attributed.of_threads {
                true => attributed.wall,
                false => attributed.elapsed,
            },
            exit: subject.exit,
            elsewhere: subject.elsewhere,
        },
        machine: None,
        coverage: coverage(attributed, subject.backend),
        causes: causes(
            &attributed.path,
            attributed.path.values().map(|tally| tally.ns).sum(),
        ),
        requests: attributed.requests.as_ref().map(requests),
        threads: attributed.threads.iter().map(thread).collect(),
        waits: attributed
            .waits
            .iter()
            .map(|one| wait(one, observed, &dates))
            .collect(),
        findings: verdicts
            .findings
            .into_iter()
            .map(|one| finding(one, attributed))
            .collect(),
        ruled_out: verdicts
            .ruled_out
            .into_iter()
            .map(|(rule, why)| RuledOut { rule, why })
            .collect(),
        cannot_tell: verdicts
            .cannot_tell
            .into_iter()
            .map(|(rule, missing)| CannotTell { rule, missing })
            .collect(),
        artefacts: Vec::new(),
        account: None,
        outcome: None,
        boot: None,
        host: None,
        churn: attributed.churn.as_ref().map(churn::churn),
        jvms: facts.jvms.iter().map(Jvm::from).collect(),
        tasks: tasks(&attributed.tasks),
        comparison: None,
        scaling: None,
        experiment: None,
        gate: None,
        prediction: attributed.predictions.as_ref().map(|all| all.list.clone()),
        recording: None,
        windows: attributed.windows.clone(),
        timeline: (!attributed.windows.is_empty()).then(|| attributed.timeline.clone()),
        host_figures: attributed.host_figures.clone(),
        hosts: vec![],
        store: None,
        paths: vec![],
    }
}

fn requests(requests: &attributed::Requests) -> Requests {
    let whole = requests.causes.values().map(|tally| tally.ns).sum();
    Requests {
        count: requests.count,
        p50_ns: requests.p50,
        p99_ns: requests.p99,
        max_ns: requests.longest,
        open: requests.open,
        oldest_open_ns: requests.oldest_open,
        resting: requests.resting,
        earlier_told: requests.earlier_told,
        at_last: requests.at_last.count,
        at_last_max_ns: requests.at_last.longest,
        causes: causes(&requests.causes, whole),
        slow: requests.slow.as_ref().map(|slow| SlowRequests {
            count: slow.number,
            mean_ns: slow.ns,
            usual_ns: slow.usual,
            more: slow
                .more
                .iter()
                .map(|(cause, ns)| MoreOf {
                    cause: *cause,
                    ns: *ns,
                })
                .collect(),
            request: slow.line.clone(),
            port: slow.port,
        }),
        listeners: requests
            .listeners
            .iter()
            .map(|one| ListenerRequests {
                port: one.port,
                count: one.count,
                p50_ns: one.p50,
                p99_ns: one.p99,
                max_ns: one.longest,
                open: one.open,
            })
            .collect(),
        total_ns: requests.total,
        upstreams: requests
            .upstreams
            .iter()
            .map(|one| UpstreamRequests {
                server: one.server.clone(),
                pid: one.by.pid,
                process: one.by.process.clone(),
                asked: one.asked,
                ns: one.ns,
                most_in_flight: one.most,
                watched_ns: one.watched,
            })
            .collect(),
    }
}

/// A part of a whole as 0..1; 0 where there is no whole.
fn share(part: Ns, whole: Ns) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Instants on `CLOCK_MONOTONIC` as dates.
struct Dates<'a> {
    facts: &'a SystemFacts,
}

impl Dates<'_> {
    /// As RFC 3339; `None` when the clock's offset was not measured.
    fn date(&self, at: Ns) -> Option<String> {
        let offset = self.facts.unix_minus_monotonic?;
        Some(rfc3339(i128::from(at) + i128::from(offset)))
    }

    /// Since boot, suspended time included; `None` when that offset was not measured.
    fn since_boot(&self, at: Ns) -> Option<Ns> {
        Some(at.saturating_add(self.facts.boot_minus_monotonic?))
    }
}

/// Nanoseconds since the epoch as RFC 3339 in UTC. `jiff` does the calendar: without its default features it
/// depends on nothing, reads no time zones and no clock.
#[must_use]
pub fn rfc3339(unix_ns: i128) -> String {
    Timestamp::from_nanosecond(unix_ns)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

/// Causes with shares, largest first.
fn causes(tallies: &BTreeMap<Cause, Tally>, whole: Ns) -> Vec<CauseShare> {
    let mut causes: Vec<CauseShare> = tallies
        .iter()
        .filter(|(_, tally)| tally.ns > 0 || tally.count > 0)
        .map(|(cause, tally)| CauseShare {
            cause: *cause,
            ns: tally.ns,
            share: share(tally.ns, whole),
            count: tally.count,
            max_ns: tally.max,
            open: tally.open,
        })
        .collect();
    causes.sort_by_key(|cause| (std::cmp::Reverse(cause.ns), cause.cause));
    causes
}

fn coverage(attributed: &Attributed, backend: Backend) -> Coverage {
    let coverage = &attributed.coverage;
    let unpredicted = attributed.predictions.as_ref().and_then(|all| {
        Some(NotMeasured {
            what: "what it would take without a wait".into(),
            why: all.not.clone()?,
            fix: "none is needed for causes".into(),
        })
    });
    Coverage {
        backend,
        observed_ns: Some(coverage.observed),
        attributed_ns: Some(coverage.attributed),
        unknown_ns: Some(coverage.unknown),
        lost: coverage
            .lost
            .iter()
            .map(|(what, count, ns)| Lost {
                what: what.clone(),
                count: *count,
                ns: *ns,
            })
            .collect(),
        not_measured: coverage
            .not_measured
            .iter()
            .map(|(what, why, fix)| NotMeasured {
                what: what.clone(),
                why: why.clone(),
                fix: fix.clone(),
            })
            .chain(unpredicted)
            .collect(),
        own_cost_ns: coverage.own_cost,
        budget: coverage.budget.as_ref().map(budget::told),
    }
}

fn thread(ledger: &ThreadLedger) -> Thread {
    Thread {
        pid: ledger.name.pid,
        tid: ledger.name.tid,
        process: ledger.name.process.clone(),
        name: ledger.name.thread.clone(),
        wall_ns: ledger.wall,
        causes: causes(&ledger.causes, ledger.wall),
        threads: ledger.threads.max(1),
        open: ledger.open,
        host: None,
    }
}

fn wait(wait: &AttributedWait, observed: Ns, dates: &Dates) -> Wait {
    // A wait of which no single one is known (CPU time) has no longest to date.
    let dated = Some(wait.max_started).filter(|at| *at > 0);
    let holders: Vec<Holder> = wait.holders.iter().map(holder).collect();
    Wait {
        cause: wait.cause,
        ns: wait.ns,
        share: share(wait.ns, observed),
        count: wait.count,
        max_ns: wait.max,
        p50_ns: wait.p50,
        p99_ns: wait.p99,
        max_started: dated.and_then(|at| dates.date(at)),
        max_started_boot_ns: dated.and_then(|at| dates.since_boot(at)),
        how: wait.how,
        error_ns: wait.error,
        open: wait.open,
        timed_out: wait.timed_out,
        host: None,
        path_ns: wait.path_ns,
        handed_on_ns: wait.handed_on_ns,
        call: wait.call.clone(),
        bytes: wait.bytes,
        resource: wait.resource.clone(),
        asker: asker(&wait.asker),
        held_by: holders.iter().rev().max_by_key(|holder| holder.ns).cloned(),
        holders,
        chain: wait
            .chain
            .iter()
            .map(|link| Link {
                pid: link.name.pid,
                tid: link.name.tid,
                process: link.name.process.clone(),
                cause: link.cause,
                ns: link.ns,
                host: None,
            })
            .collect(),
        deadlock: wait.deadlock,
        ran_instead: wait
            .ran_instead
            .iter()
            .map(|(process, ns)| RanInstead {
                process: process.clone(),
                ns: *ns,
            })
            .collect(),
        kernel_stack: wait.kernel_stack.clone(),
        why_unknown: wait.why_unknown.clone(),
        judged_by: wait.judged_by,
    }
}

fn asker(asker: &attributed::Asker) -> Asker {
    Asker {
        pid: asker.name.pid,
        tid: asker.name.tid,
        process: asker.name.process.clone(),
        thread: asker.name.thread.clone(),
        frame: asker.frame.clone(),
        module: asker.module.clone(),
        stack: asker.stack.iter().map(stack_frame).collect(),
    }
}

fn tasks(tasks: &[attributed::Task]) -> Vec<Task> {
    let by_id: BTreeMap<(u32, u64), &attributed::Task> =
        tasks.iter().map(|task| ((task.pid, task.id), task)).collect();
    let mut awaited_by: BTreeMap<(u32, u64), Vec<String>> = BTreeMap::new();
    for task in tasks {
        if let Some(awaited) = task.awaits.or(task.held_by) {
            let waiters = awaited_by.entry((task.pid, awaited)).or_default();
            waiters.push(task.id.to_string());
        }
    }
    let of = |one: &attributed::Task| {
        let held_by = one.held_by.and_then(|holder| by_id.get(&(one.pid, holder)));
        Task {
            held_by: held_by.map(|holder| task_holder(holder, one.ns)),
            awaited_by: awaited_by.remove(&(one.pid, one.id)).unwrap_or_default(),
            ..task(one)
        }
    };
    tasks.iter().map(of).collect()
}

/// A task that has what another one waits for. Its thread is none of its own.
fn task_holder(task: &attributed::Task, ns: Ns) -> Holder {
    Holder {
        pid: task.pid,
        tid: 0,
        process: task.process.clone(),
        thread: task.name.clone().unwrap_or_else(|| task.id.to_string()),
        how_known: HowKnown::Interpreter,
        doing: Some(task.cause),
        ns,
        frame: task.place.as_ref().and_then(|frame| frame.symbol.clone()),
        file: task.place.as_ref().and_then(|frame| frame.file.clone()),
        line: task.place.as_ref().and_then(|frame| frame.line),
        stack: task.stack.iter().map(stack_frame).collect(),
    }
}

fn task(task: &attributed::Task) -> Task {
    let place = task.place.as_ref();
    Task {
        runtime: task.runtime,
        id: task.id.to_string(),
        name: task.name.clone(),
        state: task.state,
        cause: task.cause,
        since_ns: task.since,
        ns: task.ns,
        asker: TaskAsker {
            pid: task.pid,
            process: task.process.clone(),
            frame: place.and_then(|frame| frame.symbol.clone()),
            module: place.and_then(|frame| frame.module.clone()),
            file: place.and_then(|frame| frame.file.clone()),
            line: place.and_then(|frame| frame.line),
            stack: task.stack.iter().map(stack_frame).collect(),
        },
        resource: task.resource.clone(),
        held_by: None,
        awaited_by: Vec::new(),
    }
}

fn holder(holder: &attributed::Holder) -> Holder {
    let place = holder.place.as_ref();
    Holder {
        pid: holder.name.pid,
        tid: holder.name.tid,
        process: holder.name.process.clone(),
        thread: holder.name.thread.clone(),
        how_known: holder.how_known,
        doing: holder.doing,
        ns: holder.ns,
        frame: place.and_then(|frame| frame.symbol.clone()),
        file: place.and_then(|frame| frame.file.clone()),
        line: place.and_then(|frame| frame.line),
        stack: holder.stack.iter().map(stack_frame).collect(),
    }
}

fn stack_frame(frame: &Frame) -> StackFrame {
    StackFrame {
        symbol: frame.symbol.clone(),
        module: frame.module.clone(),
        offset: frame.offset,
        file: frame.file.clone(),
        line: frame.line,
        language: frame.language,
        inlined: frame.inlined,
    }
}

fn finding(finding: finding::Finding, attributed: &Attributed) -> Finding {
    let elapsed = attributed.elapsed;
    let predictions = attributed.predictions.as_ref();
    let without = predictions.and_then(|all| all.without(finding.cause).ok());
    let evidence = finding
        .evidence()
        .iter()
        .map(|evidence| Evidence {
            text: evidence.text.clone(),
            source: evidence.source.clone(),
        })
        .collect();
    let clauses: Vec<String> = finding.title.clauses().map(str::to_owned).collect();
    let headline = (!clauses.is_empty()).then(|| finding.title.first().to_owned());
    Finding {
        rule: finding.rule,
        severity: finding.severity,
        headline,
        clauses,
        title: finding.title.into(),
        cause: finding.cause,
        ns: finding.ns,
        // No elapsed time, no share: artefacts mostly prove neither.
        share: finding
            .ns
            .filter(|_| elapsed > 0)
            .map(|ns| share(ns, elapsed).min(1.0)),
        error_ns: finding.error,
        resource: finding.resource,
        asker: asker(&finding.asker),
        evidence,
        remedies: finding
            .remedies
            .into_iter()
            .map(|remedy| Remedy {
                text: remedy.text,
                command: remedy.command,
                safe: remedy.safe,
                risk: remedy.risk,
                pointless: remedy.pointless,
            })
            .collect(),
        predicted_ns: without.map(|one| one.elapsed_ns),
        confidence: finding.confidence,
        host: None,
    }
}
