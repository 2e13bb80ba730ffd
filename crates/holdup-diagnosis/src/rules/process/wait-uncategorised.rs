//! Waits for which there is no rule of their own yet: says in plain words what they are.

use crate::rules::{
    Extend, Generality, Need, Rule, RuleId, Run, WORTH_A_NOTE, Waits, awaited_threads, duration, fires,
    java_waits, percent, say,
};
use holdup_evidence::Cause;
use holdup_model::attributed::Common;
use holdup_model::attributed::HowKnown;
use holdup_model::finding::{Confidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WaitUncategorised, check)
    .about("a wait of a rarer kind takes much of the time")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[
        Cause::FsNetwork,
        Cause::LockFutex,
        Cause::LockMonitor,
        Cause::LockSysv,
        Cause::IpcQueue,
        Cause::IpcSignal,
        Cause::ProcessExit,
        Cause::RuntimeSafepoint,
        Cause::RuntimeGc,
        Cause::RuntimeInterpreter,
        Cause::GpuWait,
        Cause::IoAsync,
        Cause::KernelWork,
        Cause::DeviceWait,
        Cause::SecurityDecision,
        Cause::Idle,
    ])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes)
    .intermediate();

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // What was handed on to another thread of the run is judged there; a join is no news, nor is what a Java thread has another of
    // its process do.
    let own = waits.only(|wait| java_waits::awaits(wait).is_none());
    if !run.matters(own.as_ref().map_or(0, Waits::path), WORTH_A_NOTE) {
        let share = percent(run.share(waits.path()));
        return Verdict::Clear(format!(
            "{} ended from outside is {share} of the elapsed time",
            waits.cause()
        ));
    }
    let waits = own.as_ref().unwrap_or(waits);
    let explain = |cause: Cause| {
        Remedy::safe("read the page of this kind of wait").with_command(format!("holdup explain {cause}"))
    };
    if let Some(awaited) = awaited_threads::of(waits) {
        if run.attributed.of_threads && awaited.may_be_work() && !awaited.stands(run) {
            return Verdict::Clear(format!(
                "the longest of {} took {}: threads that are signalled again and again, as those are that get work",
                say::several(awaited.waits.count().max(1), "wait"),
                duration(awaited.waits.longest().max)
            ));
        }
        let finding = RULE
            .finding(Severity::Note, awaited.title(run), waits)
            .and_if(awaited.waits.holders().first().map(say::meanwhile))
            .and_if(awaited.others(run))
            .and_if(say::clock(run, waits))
            .confidence(Confidence::Suspect);
        return fires(awaited.remedies(finding).remedy(explain(waits.cause())));
    }
    let main = waits.main();
    let on = match main.resource.common() {
        _ if main.resource.name.is_empty() => String::new(),
        Some(Common::Signal) => String::new(),
        _ => format!(": {}", main.resource.name),
    };
    let holders = waits.holders();
    // A signal may come from anybody; who has one child has it for that one's end, as `timeout` does.
    let child = holders
        .first()
        .filter(|holder| holder.how_known == HowKnown::Child);
    let title = match child {
        Some(child) => format!(
            "{} waits for a signal, perhaps for the exit of its only child: {}",
            say::who(&main.asker.name),
            say::who_with_pid(&child.name)
        ),
        None if main.cause == Cause::IpcSignal => {
            format!("{} waits for a signal", say::who(&main.asker.name))
        }
        None => format!("{} is {}{on}", say::who(&main.asker.name), main.cause.phrase()),
    };
    let finding = RULE
        .finding(Severity::Note, title, waits)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::clock(run, waits))
        .and_if(say::kernel_top(waits))
        .confidence(Confidence::Suspect);
    let finding = match child {
        Some(child) => finding.remedy(Remedy::safe(format!(
            "look at {}",
            say::who_with_pid(&child.name)
        ))),
        None => finding,
    };
    fires(finding.remedy(explain(main.cause)))
}
