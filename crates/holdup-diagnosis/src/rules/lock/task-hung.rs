//! A task is blocked in the kernel for so long that the kernel complains.

use crate::rules::kernel_places::{frames_that_say, place, told};
use crate::rules::{Rule, RuleId, Run, fires, logs};
use holdup_attribution::classify;
use holdup_evidence::observed::{Happening, KernelEvent};
use holdup_evidence::{Cause, Ns, Observed, TaskState};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::TaskHung, check)
    .about("a task was blocked in the kernel for minutes")
    .causes(&[Cause::LockKernel, Cause::DiskSync, Cause::Unknown])
    .explains(&[RuleId::LoadIsNotCpu])
    .intermediate();

/// Frames of a stack that are quoted: enough to see what it waits for and through which file system.
const MAX_FRAMES: usize = 6;

struct Hung<'a> {
    process: &'a str,
    pid: u32,
    ns: Ns,
    owner: Option<&'a str>,
    stack: &'a [String],
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::HungTask {
            process,
            pid,
            ns,
            owner,
            stack,
        } => Some(Hung {
            process,
            pid: *pid,
            ns: *ns,
            owner: owner.as_deref(),
            stack,
        }),
        _ => None,
    });
    // The task whose owner is known says most; then the one that was blocked for longest.
    let best = lines
        .iter()
        .max_by_key(|(one, hung)| (hung.owner.is_some(), hung.ns, std::cmp::Reverse(one.quote.line)));
    let Some((one, hung)) = best else {
        return logs::kernel_silent(observed, "tasks that are blocked for long");
    };
    let mut tasks: Vec<(&str, u32)> = lines.iter().map(|(_, hung)| (hung.process, hung.pid)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let which = match tasks.len() {
        1 => format!("{} (pid {}) was", hung.process, hung.pid),
        count => format!("{} (pid {}) and {} more were", hung.process, hung.pid, count - 1),
    };
    let held = hung
        .owner
        .map(|owner| format!(", likely by {owner}"))
        .unwrap_or_default();
    let title = format!(
        "{which} blocked in the kernel for more than {}{held}{}",
        logs::seconds(hung.ns),
        place(hung.stack)
    );
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        title,
        cause(hung),
        logs::quote(observed, one),
    );
    if let Some(owner) = hung.owner {
        let text = format!("the kernel says that what it waits for is likely owned by {owner}");
        finding = finding.and(logs::about(observed, one, text));
    }
    if let Some(told) = told(hung.stack.iter().map(String::as_str)) {
        let text = format!("{} {told}", hung.process);
        finding = finding.and(logs::about(observed, one, text));
    }
    if let Some(text) = stack(hung.stack) {
        finding = finding.and(logs::about(observed, one, text));
    }
    if lines.len() > 1 {
        finding = finding.and(others(observed, &lines, &tasks));
    }
    fires(remedies(finding, hung))
}

fn others(
    observed: &Observed,
    rows: &[(&Happening, Hung<'_>)],
    tasks: &[(&str, u32)],
) -> holdup_model::finding::Evidence {
    let names: Vec<String> = tasks
        .iter()
        .take(logs::QUOTED)
        .map(|(process, pid)| format!("{process} (pid {pid})"))
        .collect();
    let more = if tasks.len() > names.len() { ", …" } else { "" };
    let text = format!(
        "the kernel complained {} of {} tasks: {}{more}",
        logs::times(rows.len()),
        tasks.len(),
        names.join(", ")
    );
    logs::about(observed, rows[0].0, text)
}

/// What the time was for, as the stack of any other wait tells it.
fn cause(hung: &Hung<'_>) -> Cause {
    classify::of_task(TaskState::Uninterruptible, hung.stack, None).cause
}

fn stack(frames: &[String]) -> Option<String> {
    let named: Vec<&str> = frames_that_say(frames).take(MAX_FRAMES).collect();
    (!named.is_empty()).then(|| {
        format!(
            "it waits in {} ({} frames are logged)",
            named.join(" < "),
            frames.len()
        )
    })
}

fn remedies(finding: Finding, hung: &Hung<'_>) -> Finding {
    let finding = match hung.owner {
        Some(owner) => finding.remedy(Remedy::safe(format!(
            "look at {owner}: the others wait for its lock; its stack shows what it waits for"
        ))),
        None => finding.remedy(Remedy::safe(
            "find the first blocked task and what its stack waits for: the others wait for it, or for the \
             same thing",
        )),
    };
    finding
        .remedy(
            Remedy::safe(
                "check the device and its log lines if the stacks end in a file system or a block device",
            )
            .with_command("iostat -x 1 3; dmesg | grep -iE 'I/O error|reset|timeout'"),
        )
        .remedy(Remedy::pointless(
            "raising kernel.hung_task_timeout_secs: it only hides the message",
        ))
}
