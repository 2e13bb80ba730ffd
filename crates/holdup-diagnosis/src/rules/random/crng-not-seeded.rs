//! Waiting for the kernel's random generator to be seeded for the first time: virtual machines, early boot.

use crate::boot::seeding::{self, Seeding};
use crate::boot::units::{Start, starts};
use crate::boot::waits::{self, For, Waited};
use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, duration, fires, logs, say};
use holdup_artefacts::clock::Clock;
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// How far the end of the wait may be from the kernel log's line, nanoseconds. The log's clock and `CLOCK_MONOTONIC`
/// start some tens of milliseconds apart, and a waiter that loops looks once a tick.
const MAX_DISTANCE_NS: Ns = 200_000_000;

/// From how long after its first line a kernel's seeding is trouble although no log says who waited for it, nanoseconds.
/// Most machines are seeded before their first service starts; half a minute is what people notice of a boot.
const MIN_LATE_NS: Ns = 30_000_000_000;

/// How much longer a wait can be than its boot took to seed the generator, nanoseconds: a log without fractions.
const MAX_ROUNDING_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::CrngNotSeeded, check, seen)
    .about("the kernel's random generator had not been seeded yet")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks, Need::KernelLog])
    .causes(&[Cause::RandomUnseeded])
    .explains(&[RuleId::UnitStartTimedOut]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let title = "The kernel had no randomness to give yet".to_owned();
    if let Some(observed) = run.observed {
        return fires(with_logs(run, waits, observed, title));
    }
    let (confidence, seen) = seeding(run, waits);
    let finding = RULE
        .finding_by(Severity::Warning, title, waits, seen)
        .and_if(sources(run))
        .confidence(confidence);
    fires(remedies(run, finding))
}

/// A wait in a trace that someone brought: it has a length and no date. What logs beside it say of the seeding is added where
/// it can be the same boot: nobody waits longer for the seeding than the boot took for it.
fn with_logs(run: &Run<'_>, waits: &Waits<'_>, observed: &Observed, title: String) -> Finding {
    let clock = Clock::of(observed);
    let starts = starts(observed);
    let longest = waits.longest().max;
    let mut finding = RULE.finding(Severity::Warning, title, waits).and_if(sources(run));
    let mut can_be = 0;
    for seeding in seeding::all(observed, &clock) {
        if seeding
            .after
            .is_some_and(|after| after + MAX_ROUNDING_NS >= longest)
        {
            can_be += 1;
            finding = evidence_of(observed, &clock, &starts, &seeding)
                .into_iter()
                .fold(finding, Finding::and);
        }
    }
    if can_be == 0 {
        let text = format!(
            "the kernel log of that boot is not there to compare: none of {} lines of the kernel's tells of it",
            logs::kernel_lines(observed)
        );
        finding = finding.and(Evidence::new(text, "the artefacts"));
    }
    remedies(run, finding.confidence(Confidence::Strong))
}

/// What logs show by themselves.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let clock = Clock::of(observed);
    let starts = starts(observed);
    let all = seeding::all(observed, &clock);
    let waits = waits::all(observed, &clock);
    let mut findings = Vec::new();
    let mut soonest: Option<Ns> = None;
    let joins = |seeding: &Seeding<'_>| starts.iter().any(|start| seeding.ended(start, &clock).is_some());
    for (place, seeding) in all.iter().enumerate() {
        let joined = joins(seeding);
        // What another log tells of it too is reported once, by the one that knows more.
        let better = |(other, one): (usize, &Seeding<'_>)| {
            other != place && one.is_same(seeding, &clock) && (joins(one), place) > (joined, other)
        };
        if all.iter().enumerate().any(better) {
            continue;
        }
        let late = seeding.after.is_some_and(|after| after >= MIN_LATE_NS);
        if !joined && !late {
            soonest = soonest.max(seeding.after);
            continue;
        }
        let mut evidence = evidence_of(observed, &clock, &starts, seeding).into_iter();
        let Some(first) = evidence.next() else { continue };
        let title = match seeding.after {
            Some(after) => format!(
                "The kernel had no randomness to give for {}{} after boot",
                if seeding.at_least { "at least " } else { "" },
                logs::seconds(after)
            ),
            None => "The kernel had no randomness to give yet".to_owned(),
        };
        let finding = Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::RandomUnseeded,
            first,
        );
        let confidence = match (joined, seeding.reads.is_empty()) {
            (true, _) => Confidence::Proved,
            (false, false) => Confidence::Strong,
            (false, true) => Confidence::Suspect,
        };
        let mut finding = evidence.fold(finding, Finding::and).and_if(sources(run));
        // The longest one: the others waited at the same time.
        let of_this =
            |wait: &&Waited<'_>| wait.what == For::Seeding && wait.ended.quote == seeding.line.quote;
        if let Some(wait) = waits.iter().find(of_this) {
            let text = format!(
                "{} waited {} for it, from its first try on",
                wait.unit,
                logs::seconds(wait.ns)
            );
            finding = finding.and(logs::about(observed, wait.began, text));
            finding.asker.name.process = wait.unit.to_owned();
            finding.ns = run.boot.then_some(wait.ns);
        }
        findings.push(remedies(run, finding.confidence(confidence)));
    }
    match (findings.is_empty(), soonest, all.is_empty()) {
        (false, ..) => Verdict::Fires(findings),
        (true, Some(after), _) => Verdict::Clear(format!(
            "the generator was seeded {} after the kernel's first line",
            logs::seconds(after)
        )),
        (true, None, false) => Verdict::CannotTell(
            "how long after boot the generator was seeded: the kernel's first line is not in the log"
                .to_owned(),
        ),
        (true, None, true) => Verdict::CannotTell(
            "when the generator was seeded: the kernel log of the boot from its first line on".to_owned(),
        ),
    }
}

/// What logs tell of one seeding: when it was, who read before it, and who was up in the same instant.
fn evidence_of(
    observed: &Observed,
    clock: &Clock<'_>,
    starts: &[Start<'_>],
    seeding: &Seeding<'_>,
) -> Vec<Evidence> {
    let line = seeding.line.text.trim();
    let line = line.rsplit_once("random: ").map_or(line, |(_, message)| message);
    let when = seeding
        .after
        .map_or("at a time that the log does not tell".to_owned(), |after| {
            format!("{} after the kernel's first line", logs::seconds(after))
        });
    let text = format!("\"{line}\" came {when}");
    let mut evidence = vec![logs::about(observed, seeding.line, text)];
    if seeding.at_least {
        let text = "the journal has that line when it took it; when the kernel wrote it, `journalctl -o short-monotonic` tells";
        evidence.push(logs::about(observed, seeding.line, text));
    }
    if let Some((first, _)) = seeding.reads.first() {
        let mut by: Vec<&str> = seeding.reads.iter().map(|(_, process)| *process).collect();
        by.sort_unstable();
        by.dedup();
        let text = format!(
            "{} of unseeded urandom by {} logged, and {} more suppressed",
            say::several(seeding.reads.len() as u64, "read"),
            by.join(", "),
            seeding.suppressed
        );
        evidence.push(logs::about(observed, first, text));
    }
    let ended = seeding.all_ended(starts, clock);
    for start in starts {
        if let Some((one, _)) = start
            .timed_out
            .filter(|_| Seeding::was_for_this(start, &ended, clock))
        {
            evidence.push(logs::quote(observed, one));
        }
        let Some(up) = seeding.ended(start, clock) else {
            continue;
        };
        let did = if start.listens.is_some() {
            "began to listen"
        } else {
            "was up"
        };
        let at = up.at.map(logs::clock_face).unwrap_or_default();
        let second = if seeding.line.at.map(logs::clock_face) == up.at.map(logs::clock_face) {
            "the second in which"
        } else {
            "within a second of when"
        };
        let text = format!(
            "{} {did} at {at}, {second} the generator was seeded: the same wait",
            start.unit
        );
        evidence.push(logs::about(observed, up, text));
    }
    evidence
}

/// Whether the wait ended when the kernel log says that the generator was seeded.
fn seeding(run: &Run<'_>, waits: &Waits<'_>) -> (Confidence, Evidence) {
    let longest = waits.longest();
    // A trace of calls has no time since boot to compare with the kernel's.
    if !longest.read_at.is_empty() {
        return (Confidence::Strong, say::how_long(waits));
    }
    let to_boot = run.facts.boot_minus_monotonic.unwrap_or(0);
    let (began, ended) = (longest.max_started + to_boot, longest.max_ended + to_boot);
    let after_boot = |ns: Ns| format!("{} after boot", duration(ns));
    let Some((seeded, line)) = &run.facts.random.seeded else {
        let text = format!(
            "the wait ended at {}; the kernel log of that time is not there to compare",
            after_boot(ended)
        );
        return (Confidence::Strong, Evidence::new(text, say::SCHEDULER));
    };
    let line = line
        .rsplit_once("random: ")
        .map_or(line.as_str(), |(_, message)| message);
    if ended.abs_diff(*seeded) <= MAX_DISTANCE_NS {
        let text = format!(
            "the wait ended at {}, with the kernel's \"{line}\"",
            after_boot(ended)
        );
        return (Confidence::Proved, Evidence::new(text, "the kernel log"));
    }
    let confidence = if began > seeded + MAX_DISTANCE_NS {
        Confidence::Suspect
    } else {
        Confidence::Strong
    };
    let text = format!(
        "the wait ended at {}; the kernel's \"{line}\" came at {}",
        after_boot(ended),
        after_boot(*seeded)
    );
    (confidence, Evidence::new(text, "the kernel log"))
}

/// What could feed the generator here.
fn sources(run: &Run<'_>) -> Option<Evidence> {
    let random = &run.facts.random;
    let cpu = random
        .cpu_instruction
        .map(|offers| match (offers, random.trust_cpu) {
            (true, Some(false)) => "this CPU offers RDRAND, and random.trust_cpu=off forbids its use",
            (true, _) => "this CPU offers RDRAND",
            (false, _) => "this CPU offers no RDRAND",
        });
    let hardware = random.hardware_source.as_deref().map(|source| match source {
        "" | "none" => "no hardware source is attached (rng_current: none)".to_owned(),
        source => format!("the hardware source is {source}"),
    });
    let text: Vec<String> = cpu.map(str::to_owned).into_iter().chain(hardware).collect();
    (!text.is_empty()).then(|| Evidence::new(text.join("; "), "/proc/cpuinfo, /sys/class/misc/hw_random"))
}

fn remedies(run: &Run<'_>, finding: Finding) -> Finding {
    let random = &run.facts.random;
    let finding = if random.cpu_instruction == Some(true) && random.trust_cpu == Some(false) {
        finding.remedy(Remedy::changing(
            "take random.trust_cpu=off off the kernel command line: the CPU's own generator then seeds at once",
            "the kernel then trusts the CPU's maker for its first seed",
        ))
    } else {
        finding
    };
    let finding = match random.virtual_machine {
        Some(false) => finding.remedy(Remedy::changing(
            "use a kernel of 5.4 or later, which makes its own randomness within a second, or attach a hardware source",
            "another kernel needs a reboot, and everything on the machine runs on it",
        )),
        Some(true) => finding.remedy(Remedy::safe(
            "give the guest a source: -device virtio-rng-pci, or expose RDRAND (-cpu host)",
        )),
        None => finding.remedy(Remedy::safe(
            "in a virtual machine give the guest a source: -device virtio-rng-pci, or expose RDRAND (-cpu host)",
        )),
    };
    let finding = match finding.asker.name.process.as_str() {
        "java" => finding.remedy(Remedy::pointless(
            "-Djava.security.egd=file:/dev/urandom: where that does not wait, Java has bytes that can be guessed, for the generator is \
             not seeded yet",
        )),
        _ => finding,
    };
    finding.remedy(Remedy::pointless(
        "a userspace entropy daemon: it starts later than this",
    ))
}
