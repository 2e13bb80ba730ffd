//! Virtual threads wait without letting go of the threads that carry them.

use crate::rules::java_waits as java;
use crate::rules::{Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::VirtualThreadsPinned, check)
    .about("virtual threads wait without releasing their carriers")
    .causes(&[
        Cause::LockFutex,
        Cause::LockMonitor,
        Cause::TimerSleep,
        Cause::NetReceive,
        Cause::NetConnect,
    ])
    .generality(Generality::Consequence)
    .explains(&[RuleId::NobodyCompletes]);

/// The method in which a virtual thread parks together with its carrier, because it can't be taken off.
const PARKS_CARRIER: &str = "java.lang.VirtualThread.parkOnCarrierThread";

/// Beginnings of the frames in which a carrier runs a virtual thread; what is inside of them is the virtual thread's.
const CARRIES: [&str; 3] = [
    "jdk.internal.vm.Continuation.",
    "java.lang.VirtualThread.run",
    "java.lang.VirtualThread.runContinuation",
];

/// A class's initialiser: the virtual machine has called it, and a stack with such a frame can't be taken off its carrier.
const INITIALISER: &str = "<clinit>";

/// The option that says how many carriers there are, where it is not as many as processors.
const PARALLELISM: &str = "jdk.virtualThreadScheduler.parallelism";

fn pinned(frames: &[&str]) -> bool {
    frames
        .iter()
        .take(4)
        .any(|frame| frame.starts_with(PARKS_CARRIER))
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let inside = waits.only(|wait| pinned(&java::frames(wait)));
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

/// Whether a thread is a carrier that a virtual thread is on.
fn carries(wait: &AttributedWait) -> bool {
    let frames = java::frames(wait);
    let carried = |frame: &&str| CARRIES.iter().any(|carries| frame.starts_with(carries));
    let inside = frames.iter().position(carried);
    inside.is_some_and(|inside| inside > 0) && wait.cause != Cause::Idle
}

/// That no carrier is left, where the JVM says how many it has: as many as processors. What is ready to run then waits, too, and so do the
/// JVM's own virtual threads that poll sockets.
fn none_left(run: &Run<'_>, pid: u32) -> Option<Evidence> {
    let jvm = run.facts.jvms.iter().find(|jvm| jvm.pid == pid)?;
    let given = jvm.options.iter().any(|option| option.contains(PARALLELISM));
    let processors = usize::try_from(jvm.processors.filter(|_| !given)?).ok()?;
    let taken = |wait: &AttributedWait| wait.asker.name.pid == pid && wait.open && carries(wait);
    let taken = run.waits(taken)?;
    let count = java::threads(&taken);
    (count >= processors).then(|| {
        let text = format!(
            "all {count} carriers are taken and wait: no other virtual thread runs, and from Java 22 on neither do those of the \
             JVM itself that poll sockets"
        );
        Evidence::new(text, "Java frames of the waits, and the number of processors of the JVM")
    })
}

fn finding(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let threads = java::threads(waits);
    let who = say::name_or(&main.asker.name.process, "the program");
    let title = match threads {
        1 => format!("A virtual thread of {who} waits and keeps its carrier"),
        threads => format!("{threads} virtual threads of {who} wait and keep their carriers"),
    };
    let frames = java::frames(main);
    let own: Vec<&str> = frames
        .iter()
        .take_while(|frame| !CARRIES.iter().any(|carries| frame.starts_with(carries)))
        .copied()
        .collect();
    let initialiser = own
        .iter()
        .find(|frame| holdup_knowledge::java::method(frame) == INITIALISER);
    let why = match initialiser {
        Some(frame) => format!(
            "it waits inside of {}, which the JVM has called: such a stack cannot be unmounted from its carrier",
            holdup_knowledge::java::bare(frame)
        ),
        None => "its stack cannot be unmounted from its carrier: it has a native frame, or, before Java 24, \
         holds a monitor"
            .to_owned(),
    };
    let places = format!(
        "as many of the scheduler's threads are taken, by {}",
        java::askers(waits, 3).join(", ")
    );
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(why, "Java frames of the waits"))
        .and(Evidence::new(places, "Java frames of the waits"))
        .and_if(none_left(run, main.asker.name.pid))
        .and_if(waits.holders().first().map(say::meanwhile))
        .confidence(Confidence::Strong);
    let finding = match initialiser {
        Some(_) => finding.remedy(Remedy::safe(
            "do not block in a class initialiser: load its data before, or on first use",
        )),
        None => finding
            .remedy(Remedy::safe(
                "use a ReentrantLock instead of `synchronized` around blocking code (before Java 24)",
            ))
            .remedy(Remedy::safe(
                "call blocking native code on a separate thread pool, and await the result in the virtual \
                 thread",
            )),
    };
    finding
        .remedy(
            Remedy::safe("make the JVM record each such wait of 20 ms or more, with its stack")
                .with_command("jcmd PID JFR.start settings=default name=pinned"),
        )
        .remedy(Remedy::changing(
            "give the scheduler more carriers: -Djdk.virtualThreadScheduler.parallelism=N",
            "it only moves the limit: more waits occupy those too",
        ))
}
