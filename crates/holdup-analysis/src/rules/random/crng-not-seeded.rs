//! Waiting for the kernel's random generator to be seeded for the first time: virtual machines, early boot.

use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, duration, fires, say};
use holdup_evidence::{Cause, Ns};

/// How far the end of the wait may be from the kernel log's line, nanoseconds. The log's clock and `CLOCK_MONOTONIC`
/// start some tens of milliseconds apart, and a waiter that loops looks once a tick.
const SAME_INSTANT: Ns = 200_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::CrngNotSeeded,
    about: "the kernel's random generator had not been seeded yet",
    needs: &[Need::SchedulerEvents, Need::KernelStacks, Need::KernelLog],
    causes: &[Cause::RandomUnseeded],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let title = "The kernel had no randomness to give yet".to_owned();
    let (confidence, seen) = seeding(run, waits);
    let finding = RULE
        .finding_by(Severity::Warning, title, waits, seen)
        .and_if(sources(run))
        .confidence(confidence);
    fires(remedies(run, finding))
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
    if ended.abs_diff(*seeded) <= SAME_INSTANT {
        let text = format!(
            "the wait ended at {}, with the kernel's \"{line}\"",
            after_boot(ended)
        );
        return (Confidence::Proved, Evidence::new(text, "the kernel log"));
    }
    let confidence = if began > seeded + SAME_INSTANT {
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
    finding.remedy(Remedy::pointless(
        "a userspace entropy daemon: it starts later than this",
    ))
}
