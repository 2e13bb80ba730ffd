//! The kernel ended a process because there was no memory left.

use crate::rules::{Rule, RuleId, Run, awaited_instead, duration, logs};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::KilledForMemory, check)
    .about("a process was killed because memory was used up")
    .causes(&[Cause::MemReclaim, Cause::MemLimit]);

/// Below this part of the swap that there is, it is called used up: the kernel keeps some pages back.
const LEFT: u64 = 50;

/// A kill longer ago than this, in nanoseconds, is no longer what goes on: what waits now comes before it.
const RECENT: Ns = 120_000_000_000;

/// And one longer ago than this is history.
const PAST: Ns = 3_600_000_000_000;

/// Whether whom somebody waits for is known to have been left behind by that kill: then it is told there.
fn is_told(observed: &Observed, pid: u32) -> bool {
    let waits = observed.waits.as_deref().unwrap_or_default();
    awaited_instead::tells_kill(waits, pid)
}

/// How grave a kill is that was so long ago, where that is known. `now`: whether the machine was looked at, so that who suffers now is known.
fn severity(ago: Option<Ns>, now: bool) -> Severity {
    match ago {
        Some(ago) if ago > PAST => Severity::Note,
        Some(ago) if ago > RECENT && now => Severity::Note,
        Some(ago) if ago > RECENT => Severity::Warning,
        _ => Severity::Critical,
    }
}

struct Kill<'a> {
    process: &'a str,
    pid: u32,
    resident_kib: Option<u64>,
    cgroup: Option<&'a str>,
    /// Free and in all, KiB.
    swap: Option<(u64, u64)>,
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let kills = logs::happenings(observed, |event| match event {
        KernelEvent::OomKill {
            process,
            pid,
            resident_kib,
            cgroup,
            free_swap_kib,
            total_swap_kib,
        } => Some(Kill {
            process,
            pid: *pid,
            resident_kib: *resident_kib,
            cgroup: cgroup.as_deref(),
            swap: free_swap_kib.zip(*total_swap_kib),
        }),
        _ => None,
    });
    let mut limits: Vec<Option<&str>> = Vec::new();
    for (_, kill) in &kills {
        if !limits.contains(&kill.cgroup) {
            limits.push(kill.cgroup);
        }
    }
    if limits.is_empty() {
        return logs::kernel_silent(observed, "processes killed for their memory");
    }
    let findings = limits.into_iter().filter_map(|limit| {
        let of_it: Vec<_> = kills.iter().filter(|(_, kill)| kill.cgroup == limit).collect();
        let (first, kill) = of_it.first()?;
        let whose = match limit {
            None => "the machine's memory was used up".to_owned(),
            Some("") => "its cgroup's memory limit was reached".to_owned(),
            Some(cgroup) => format!("the memory limit of cgroup {cgroup} was reached"),
        };
        let who = match of_it.len() {
            1 => format!("{} (pid {}) was killed", kill.process, kill.pid),
            count => format!(
                "{count} processes were killed, {} (pid {}) first,",
                kill.process, kill.pid
            ),
        };
        let cause = if limit.is_some() {
            Cause::MemLimit
        } else {
            Cause::MemReclaim
        };
        let last = of_it.last();
        let ago = last.and_then(|(last, _)| logs::ago(observed, last));
        let when = match ago {
            Some(ago) if ago > RECENT => format!(" {} ago", duration(ago)),
            _ => String::new(),
        };
        let mut finding = Finding::without_duration(
            RULE.id.id(),
            match of_it.iter().all(|(_, kill)| is_told(observed, kill.pid)) {
                true => Severity::Note,
                false => severity(ago, observed.waits.is_some()),
            },
            format!("{who}{when} because {whose}"),
            cause,
            logs::quote(observed, first),
        );
        if let (Some((last, _)), Some(ago)) = (last, ago) {
            let which = match of_it.len() {
                1 => "that was",
                _ => "the last of them was",
            };
            let text = format!("{which} {} before the log was read", duration(ago));
            finding = finding.and(logs::about(observed, last, text));
        }
        if let Some(kib) = kill.resident_kib {
            let text = format!(
                "{} kept {} in memory",
                kill.process,
                crate::rules::say::bytes(kib.saturating_mul(1024))
            );
            finding = finding.and(logs::about(observed, first, text));
        }
        if let Some(text) = kill.swap.map(swap) {
            finding = finding.and(logs::about(observed, first, text));
        }
        Some(match limit {
            None => of_machine(finding, kill.swap),
            Some(_) => finding
                .remedy(Remedy::safe("find out what uses its memory before it is killed"))
                .remedy(Remedy::changing(
                    "raise the cgroup's limit (MemoryMax= of its unit, memory of its container)",
                    "other programs then have less memory",
                )),
        })
    });
    Verdict::Fires(findings.collect())
}

fn swap((free, total): (u64, u64)) -> String {
    let bytes = |kib: u64| crate::rules::say::bytes(kib.saturating_mul(1024));
    match total {
        0 => "there was no swap: 0 bytes in total".to_owned(),
        total if free < total / LEFT => {
            format!("swap was used up too: {} free of {}", bytes(free), bytes(total))
        }
        total => format!("{} of {} of swap were free", bytes(free), bytes(total)),
    }
}

fn of_machine(finding: Finding, swap: Option<(u64, u64)>) -> Finding {
    let finding = finding.remedy(Remedy::safe(
        "find the process that uses the memory, and limit it (MemoryMax= of its unit)",
    ));
    match swap {
        Some((_, 0)) => finding.remedy(
            Remedy::changing(
                "enable swap if there is an unused swap area",
                "a machine that swaps is slow",
            )
            .with_command("lsblk -f; swapon --show"),
        ),
        _ => finding.remedy(Remedy::changing(
            "give the machine more memory, or more swap",
            "a machine that swaps is slow",
        )),
    }
}
