//! Threads of a JVM take turns at one generator of random numbers.

use crate::rules::java_waits as java;
use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::java::is_generator;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::GeneratorShared, check)
    .about("threads queue for the lock of one random number generator")
    .causes(&[Cause::LockMonitor])
    .from(0.0)
    .explains(&[RuleId::LockConvoy]);

/// Threads from which it is a queue.
const MIN_QUEUED_THREADS: usize = 2;

/// What makes identifiers with the runtime's one generator for them.
const IDENTIFIERS: &str = "java.util.UUID.randomUUID";

fn generates(frame: &str) -> bool {
    is_generator(frame) || frame.starts_with(IDENTIFIERS)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let inside = waits.only(|wait| java::frames(wait).into_iter().take(4).any(generates));
    let cost = inside.as_ref().map_or(0, Waits::cost);
    let processes = inside.map_or_else(Vec::new, |inside| inside.split(|wait| wait.asker.name.pid));
    let findings: Vec<Finding> = processes
        .iter()
        .filter(|process| run.matters_without_queueing(process.cost(), MATTERS))
        .filter(|process| java::threads(process) >= MIN_QUEUED_THREADS)
        .map(finding)
        .collect();
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "waits for a generator's lock took {} of the elapsed time",
            percent(run.share(cost))
        ));
    }
    Verdict::Fires(findings)
}

fn finding(waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let frames = java::frames(main);
    let called = java::entry(&frames, generates).unwrap_or("java.security.SecureRandom");
    let who = say::name_or(&main.asker.name.process, "the program");
    let threads = java::threads(waits);
    let title = format!("{threads} threads of {who} contend for the lock of one random number generator");
    let asked = java::askers(waits, 3).join(", ");
    let text = format!("they wait for its lock in {called}, called by {asked}");
    let identifiers = frames.iter().any(|frame| frame.starts_with(IDENTIFIERS));
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(text, "Java frames of the waits"))
        .and_if(waits.holders().first().map(say::meanwhile))
        .confidence(Confidence::Strong);
    let finding = match identifiers {
        true => finding.remedy(Remedy::safe(
            "make identifiers that need not be secret without UUID.randomUUID: new UUID(random.nextLong(), random.nextLong()) with a \
             ThreadLocalRandom, or a counter behind a random beginning",
        )),
        false => finding,
    };
    finding
        .remedy(Remedy::safe(
            "give each thread a generator of its own: ThreadLocal.withInitial(() -> SecureRandom.getInstance(\"DRBG\")), before Java 9 \
             \"SHA1PRNG\"",
        ))
        .remedy(Remedy::safe(
            "ask for more bytes at once and less often: the lock is taken once a call, whatever its length",
        ))
        .remedy(Remedy::pointless(
            "new SecureRandom() in each thread: on Linux that is NativePRNG, and all of them have one lock",
        ))
        .remedy(Remedy::pointless(
            "-Djava.security.egd, rngd, haveged: these threads wait for a lock, not for randomness",
        ))
}
