//! A JVM stops all its threads for something else than collecting garbage.

use crate::rules::{Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::Common;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::StoppedByJvmOperation, check)
    .about("a JVM stops all its threads for an operation other than garbage collection")
    .causes(&[Cause::RuntimeSafepoint])
    .generality(Generality::General);

/// Operations by the machine's names, what they do in plain words, and what to look for.
const KNOWN: [(&[&str], &str, &str); 5] = [
    (
        &[
            "ThreadDump",
            "PrintThreads",
            "FindDeadlocks",
            "GetAllStackTraces",
            "GetThreadListStackTraces",
        ],
        "to read the stacks of its threads",
        "find the program that reads stacks so often: thread dumps by monitoring, an agent, \
         Thread.getAllStackTraces or a ThreadMXBean in the program itself; a profiler that samples with \
         signals stops no threads",
    ),
    (
        &["HeapDumper"],
        "to write a dump of its heap",
        "take heap dumps of an instance without clients: all threads are stopped until it is written",
    ),
    (
        &["GC_HeapInspection", "HeapIterateOperation", "HeapWalkOperation"],
        "to walk through its heap",
        "find the program that reads heap histograms or walks the heap: jmap -histo, jcmd \
         GC.class_histogram, monitoring",
    ),
    (
        &["RedefineClasses"],
        "to have classes redefined",
        "find the agent that redefines classes, and make it do so once, at the start",
    ),
    (
        &["EnableBiasedLocking", "BulkRevokeBias", "RevokeBias"],
        "to revoke biased locks",
        "disable biased locking: -XX:-UseBiasedLocking (the default since JDK 15; later JDKs do not have it)",
    ),
];

/// Kinds of operations that are listed at most.
const LISTED: usize = 4;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // Of many things that a thread waited for, the rest has no name of its own.
    let operations = waits.only(|wait| wait.resource.common() != Some(Common::JvmReaching));
    let Some(operations) = operations.filter(|all| run.matters(all.cost(), MATTERS)) else {
        return Verdict::Clear(run.little(RULE.causes));
    };
    let main = operations.main();
    let who = say::name_or(&main.asker.name.process, "a JVM");
    let named = main.resource.detail.operation.as_ref();
    let known = named.and_then(|name| KNOWN.iter().find(|(names, ..)| names.contains(&name.as_str())));
    // Of a machine that shares no figures nobody knows whether it collected.
    let may_collect = named.is_none() && main.resource.common() == Some(Common::JvmMayCollect);
    let what = match (known, named) {
        (Some((_, what, _)), Some(name)) => format!("{what} ({name})"),
        (_, Some(name)) => format!("for the operation {name}, and not to collect garbage"),
        (_, None) if may_collect => "to collect garbage or for something else".to_owned(),
        (_, None) => "and not to collect garbage".to_owned(),
    };
    let share = percent(run.share(operations.cost()));
    let comma = if named.is_none() { "," } else { "" };
    let title = format!("{who} stops its threads for {share} of the time{comma} {what}");
    let finding: Finding = RULE
        .finding(Severity::Warning, title, &operations)
        .and_if(counted(run, main.asker.name.pid))
        .confidence(match (named.is_some(), may_collect) {
            (true, _) => Confidence::Proved,
            (false, true) => Confidence::Suspect,
            (false, false) => Confidence::Strong,
        });
    fires(match (known, named) {
        (Some((.., remedy)), _) => finding.remedy(Remedy::safe(*remedy)),
        (None, Some(_)) => finding.remedy(Remedy::safe(ASKS)),
        (None, None) => finding
            .remedy(
                Remedy::safe("make the JVM log the operation of each safepoint (JDK 9 and later)")
                    .with_command(format!("jcmd {} VM.log what=safepoint", main.asker.name.pid)),
            )
            .remedy(Remedy::safe(ASKS)),
    })
}

/// Where such operations come from.
const ASKS: &str = "find what requests it: thread dumps and heap histograms by monitoring, agents that \
 redefine classes, and biased locking on JDK 17 and before (-XX:-UseBiasedLocking)";

/// What the machine has counted itself while it was looked at.
pub(super) fn counted(run: &Run<'_>, pid: u32) -> Option<Evidence> {
    let jvm = run.facts.jvms.iter().find(|jvm| jvm.pid == pid)?;
    let listed = jvm.operations.iter().take(LISTED);
    let listed: Vec<String> = listed
        .map(|(name, count)| format!("{name} {count} times"))
        .collect();
    let text = format!("it stopped all its threads for {}", listed.join(", "));
    (!listed.is_empty()).then(|| Evidence::new(text, "the safepoint statistics of the JVM"))
}
