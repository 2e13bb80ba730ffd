//! Threads of a JVM queue to write their log, whose lock is held by one that waits for the log's disk, pipe or reader.

use crate::rules::java_waits as java;
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LogHoldsUp, check)
    .about("threads queue to write to a slow log")
    .causes(&[Cause::LockMonitor])
    .explains(&[RuleId::LockConvoy]);

/// Beginnings of the classes of loggers, and of the streams that the console is.
const LOGGERS: &[&str] = &[
    "java.util.logging.",
    "java.lang.System$Logger.",
    "sun.util.logging.",
    "jdk.internal.logger.",
    "org.slf4j.",
    "ch.qos.logback.",
    "org.apache.log4j.",
    "org.apache.logging.",
    "org.apache.commons.logging.",
    "org.apache.juli.",
    "org.jboss.logmanager.",
    "org.tinylog.",
];

/// Frames below a logger's: locks, streams and writers of the runtime.
fn below(frame: &str) -> bool {
    const BELOW: [&str; 5] = [
        "jdk.internal.misc.",
        "java.util.concurrent.locks.",
        "java.io.",
        "java.nio.",
        "sun.nio.",
    ];
    BELOW.iter().any(|start| frame.starts_with(start))
}

fn logs(frame: &str) -> bool {
    LOGGERS.iter().any(|start| frame.starts_with(start))
}

/// What of a logger waits, where only the runtime's locks and streams are inside of it.
fn logger<'a>(frames: &[&'a str]) -> Option<&'a str> {
    let outer = frames.iter().position(|frame| !below(frame))?;
    frames.get(outer).filter(|frame| logs(frame))?;
    java::entry(frames, logs)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let inside = waits.only(|wait| logger(&java::frames(wait)).is_some());
    let processes = inside.map_or_else(Vec::new, |inside| inside.split(|wait| wait.asker.name.pid));
    let findings: Vec<Finding> = processes
        .iter()
        .filter(|process| run.matters(process.cost(), MATTERS))
        .map(|process| finding(run, process))
        .collect();
    if findings.is_empty() {
        return Verdict::Clear(run.little(RULE.causes));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let who = say::name_or(&main.asker.name.process, "the program");
    let threads = java::threads(waits);
    let title = match threads {
        1 => format!("A thread of {who} waits to write the log"),
        threads => format!("{threads} threads of {who} queue to write the log"),
    };
    let frames = java::frames(main);
    let text = format!(
        "they wait for a lock in {}, called by {}",
        logger(&frames).unwrap_or("a logger"),
        java::askers(waits, 3).join(", ")
    );
    let holders = waits.holders();
    let holder = java::worst(&holders.iter().collect::<Vec<_>>());
    let between = java::between(run, waits);
    let doing = between
        .map(|wait| wait.cause)
        .or(holder.and_then(|holder| holder.doing));
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "Java frames of the waits"))
        .and_if(between.map(java::meanwhile).or(holder.map(say::meanwhile)))
        .confidence(Confidence::Strong);
    let sink = match doing {
        Some(Cause::IpcPipe | Cause::IpcTty) => {
            "make the reader of the log pipe or terminal faster: a log driver of containers, `docker logs`, \
             a supervisor"
        }
        Some(Cause::IpcUnix) => "make the log daemon read faster, or send to it without blocking",
        Some(Cause::DiskSync | Cause::DiskWrite | Cause::DiskWriteback | Cause::DiskJournal) => {
            "put the log on another disk, and do not sync each line (immediateFlush with a sync, rwd)"
        }
        Some(Cause::NetSend | Cause::NetConnect | Cause::NetReceive | Cause::NetDns) => {
            "do not log over the network from worker threads, and do not resolve names in log lines"
        }
        _ => "log less: fewer lines, and no unused levels",
    };
    finding
        .remedy(Remedy::safe(sink))
        .remedy(Remedy::changing(
            "write from a separate thread, and discard lines when its queue is full (logback AsyncAppender \
             with neverBlock, Log4j 2 AsyncQueueFullPolicy=Discard)",
            "lines are lost when there are too many, and the last ones in a crash",
        ))
        .remedy(Remedy::pointless(
            "more threads: each one waits in the same queue",
        ))
}
