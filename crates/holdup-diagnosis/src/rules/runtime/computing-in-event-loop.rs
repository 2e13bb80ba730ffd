//! A function that an event loop calls computes: no other task of the loop runs meanwhile.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, say};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::python;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// Share of the elapsed time that one function must have: a fifth of the time is what other tasks notice, however short its pieces are.
const MIN_SHARE: f64 = 0.20;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_executors(RuleId::ComputingInEventLoop, any, check)
    .about("computing keeps an event loop from its other tasks")
    .causes(&[Cause::CpuUser])
    .from(MIN_SHARE)
    .explains(&[RuleId::CpuBound]);

/// Asked of commands only. A service that answers its clients computes in its loop, too: how long each piece is, a sample does not say, and a thread that
/// uses its CPU fully while clients wait is told by `thread-saturates-cpu`.
fn any(run: &Run<'_>) -> bool {
    !run.attributed.of_threads && run.attributed.task_looks > 0
}

fn check(run: &Run<'_>) -> Verdict {
    let kept = run.waits(|wait| {
        let on_cpu = wait.cause == Cause::CpuUser && place(wait).is_some();
        on_cpu && python::keeps_event_loop(&wait.asker.stack)
    });
    let Some(kept) = kept else {
        return Verdict::Clear("0 samples of a CPU were in functions that an event loop called".to_owned());
    };
    let loops = kept.split(|wait| {
        let name = &wait.asker.name;
        (name.pid, name.tid, wait.asker.frame.clone())
    });
    let mut longest = 0;
    let mut findings = Vec::new();
    for group in &loops {
        longest = longest.max(group.cost());
        let others = others(run, group);
        if others > 0 && run.matters(group.cost(), MIN_SHARE) {
            findings.push(finding(group, others));
        }
    }
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "no function computed for long in an event loop that has other tasks; the longest did for {}",
            duration(longest)
        )),
    }
}

/// The program's function that computes, or calls what does.
fn place(wait: &AttributedWait) -> Option<&Frame> {
    chosen_frame(&wait.asker.stack).filter(|frame| is_applications(frame))
}

/// How many other tasks the loop had meanwhile, at most.
fn others(run: &Run<'_>, group: &Waits<'_>) -> u64 {
    let name = &group.main().asker.name;
    let mut loops = run.attributed.event_loops.iter();
    let own = loops.find(|one| (one.pid, one.tid) == (name.pid, name.tid));
    own.map_or(0, |one| one.tasks.saturating_sub(1))
}

fn finding(group: &Waits<'_>, others: u64) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let function = place(main).map_or_else(|| "a callback".to_owned(), say::place);
    let title = Title::from(format!("{function} computes in the event loop of {who}")).with(format!(
        "; {} of the loop cannot run meanwhile",
        say::several(others, "other task")
    ));
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(
            format!(
                "the loop had {} while it computed, at the most",
                say::several(others + 1, "task")
            ),
            "the program's own structures, read from its memory",
        ))
        .and_if(caller(main))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "move the work to another process: await loop.run_in_executor(ProcessPoolExecutor(), …); a thread helps only if the work releases the interpreter's lock",
        ))
        .remedy(Remedy::safe(
            "do it in small parts, with await asyncio.sleep(0) between them, so that the others have their turn",
        ))
        .remedy(Remedy::pointless(
            "more tasks, or a larger pool of connections: one thread runs all of them",
        ))
}

/// The function of the program that called it.
fn caller(wait: &AttributedWait) -> Option<Evidence> {
    let own = place(wait)?;
    let after = wait
        .asker
        .stack
        .iter()
        .skip_while(|frame| !std::ptr::eq(*frame, own));
    let caller = after.skip(1).find(|frame| {
        is_applications(frame)
            && frame.symbol.is_some()
            && frame.symbol != own.symbol
            && frame.language == own.language
    })?;
    Some(Evidence::new(
        format!("called by {}", say::place(caller)),
        "user stacks",
    ))
}
