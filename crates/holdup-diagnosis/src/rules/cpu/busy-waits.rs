//! It is on a CPU and waits: a spin lock, a yield or a poll without a limit, again and again.

use crate::rules::{Extend, Need, Rule, RuleId, Run, WORTH_A_NOTE, Waits, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::attributed::{Spin, SpinningLibrary};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::BusyWaits, check)
    .about("it polls in a busy loop on a CPU")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuUser, Cause::CpuKernel])
    // Half of what matters: what spins may be half in user mode and half in the kernel.
    .from(WORTH_A_NOTE / 2.0)
    .explains(&[RuleId::CpuBound, RuleId::KernelTimeDominates]);

fn spin(wait: &AttributedWait) -> Option<&Spin> {
    wait.resource.detail.spins.as_ref()
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let all = run.waits(|wait| RULE.causes.contains(&wait.cause) && spin(wait).is_some());
    let cost = all.as_ref().map_or(0, Waits::cost);
    let Some(spins) = all.filter(|spins| run.matters(spins.cost(), WORTH_A_NOTE)) else {
        return Verdict::Clear(format!(
            "functions and calls that are known to spin took {}, {} of the elapsed time",
            duration(cost),
            percent(run.share(cost))
        ));
    };
    if spins.cause() != waits.cause() {
        return Verdict::Clear(format!(
            "{} of spinning is reported by {}",
            duration(spins.cost()),
            spins.cause()
        ));
    }
    let main = spins.main();
    let spun = spin(main);
    let what = spun.map_or("", Spin::id);
    let title = format!(
        "It spins for {} of the time, in {what}",
        percent(run.share(spins.cost()))
    );
    let by: Vec<String> = spins
        .split(|wait| spin(wait).cloned())
        .iter()
        .map(|group| {
            let name = spin(group.main()).map_or("", Spin::id);
            let own = percent(run.share(group.cost()));
            match group.main().asker.frame.as_deref().filter(|frame| *frame != name) {
                Some(frame) => format!("{name} {own}, asked by {frame}"),
                None => format!("{name} {own}"),
            }
        })
        .collect();
    let finding = RULE
        .finding(Severity::Warning, title, &spins)
        .and(Evidence::new(by.join("; "), "CPU samples"))
        .and_if(others(run, &spins))
        .confidence(Confidence::Strong);
    let mut finding = finding.remedy(Remedy::safe(spun.map_or(SLEEPS_INSTEAD, cure)));
    finding.resource = Resource {
        kind: ResourceKind::Name,
        name: what.to_owned(),
        detail: main.resource.detail.clone(),
    };
    fires(finding.remedy(Remedy::pointless(
        "a faster CPU: it then polls more often and waits as long",
    )))
}

/// Threads of the run that work meanwhile: one of them may be what it waits for, which is not known.
fn others(run: &Run<'_>, spins: &Waits<'_>) -> Option<Evidence> {
    let spinner = &spins.main().asker.name;
    let work = run.waits(|wait| {
        wait.cause.on_cpu()
            && spin(wait).is_none()
            && (wait.asker.name.pid, wait.asker.name.tid) != (spinner.pid, spinner.tid)
    })?;
    let busiest = work.iter().max_by_key(|wait| wait.ns)?;
    Some(Evidence::new(
        format!(
            "{} ran for {} at the same time; the object of the wait is not known",
            say::who_with_pid(&busiest.asker.name),
            duration(busiest.ns)
        ),
        say::SCHEDULER,
    ))
}

/// What to do about a loop of whose owner nothing is known.
const SLEEPS_INSTEAD: &str = "use a mutex, a condition variable, a semaphore or an eventfd, so that the thread sleeps until it is woken";

/// Parts of the names of functions of GNU OpenMP (since 4.2) and of LLVM's and Intel's.
const OF_OPENMP: [&str; 2] = ["gomp", "kmp"];

/// What to do about a loop.
pub(super) fn cure(spin: &Spin) -> &'static str {
    let openmp = match spin {
        Spin::Loop(SpinningLibrary::Gomp) => true,
        Spin::Function(name) => OF_OPENMP.iter().any(|part| name.contains(part)),
        Spin::PollsWithoutWaiting | Spin::Yield => false,
    };
    if openmp {
        "set OMP_WAIT_POLICY=passive so that threads sleep at barriers, or share the work more evenly"
    } else if *spin == Spin::PollsWithoutWaiting {
        "use a longer poll timeout, or none, so that the kernel wakes it"
    } else {
        SLEEPS_INSTEAD
    }
}
