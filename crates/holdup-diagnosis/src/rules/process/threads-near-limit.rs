//! There are so many threads that the kernel soon gives no more.

use crate::rules::{Extend, Rule, RuleId, Run, figures, fires, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Part of the limit from which a peak is enough to reach it.
const MIN_USED_SHARE: f64 = 0.8;

/// Threads from which their number is worth a note where the limit is not known: a third of the 32768 process ids that
/// kernels have unless somebody gave them more.
const MIN_THREADS: f64 = 10_000.0;

/// Limits of the whole machine, by their path below `/proc/sys`.
const LIMITS: [&str; 2] = ["kernel/pid_max", "kernel/threads-max"];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ThreadsNearLimit, check)
    .about("the number of threads is near the limit of the kernel")
    .causes(&[Cause::KernelWork])
    .intermediate();

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let all = figures::of(observed, Metric::ThreadsTotal);
    let Some(threads) = all.max_by(|a, b| a.most().total_cmp(&b.most())) else {
        return Verdict::CannotTell("how many threads there are: /proc/loadavg, `ps -eL`".to_owned());
    };
    let limits = LIMITS.iter().filter_map(|name| {
        let value: f64 = run.facts.sysctl.get(*name)?.trim().parse().ok()?;
        (value > 0.0).then_some((*name, value))
    });
    let count = threads.most();
    match limits.min_by(|(_, a), (_, b)| a.total_cmp(b)) {
        Some((name, limit)) if count >= MIN_USED_SHARE * limit => fires(near(&threads, name, limit)),
        Some((name, limit)) => Verdict::Clear(format!(
            "at most {count:.0} threads, {} of {name} = {limit:.0}",
            say::percent(count / limit)
        )),
        None if count >= MIN_THREADS => fires(many(&threads)),
        None => Verdict::CannotTell(format!(
            "how many threads there may be: {count:.0} are there (/proc/sys/kernel/pid_max, threads-max)"
        )),
    }
}

/// The process with most threads.
fn most(threads: &figures::Intervals<'_>) -> Option<Evidence> {
    let all = figures::of(threads.observed, Metric::ProcessThreads);
    let most = all.max_by(|a, b| a.most().total_cmp(&b.most()))?;
    Some(most.evidence(format!("{} has {:.0} of them", most.of(), most.most())))
}

fn near(threads: &figures::Intervals<'_>, name: &str, limit: f64) -> Finding {
    let count = threads.most();
    let title = format!(
        "{count:.0} threads exist, {} of the limit: soon none can be started",
        say::percent(count / limit)
    );
    let first = threads.evidence(format!("{count:.0} threads; {name} is {limit:.0}"));
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::KernelWork, first)
        .and_if(most(threads))
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe("find the process with the most threads, and why they do not end")
                .with_command("ps -eo nlwp,pid,comm --sort=-nlwp | head"),
        )
        .remedy(Remedy::changing(
            format!("raise it: sysctl {}", name.replace('/', ".")),
            "each thread uses kernel memory; a leak also reaches the next limit",
        ))
}

fn many(threads: &figures::Intervals<'_>) -> Finding {
    let count = threads.most();
    let title = format!("{count:.0} threads exist; the limit is not known");
    let first = threads.evidence(format!("{count:.0} threads"));
    Finding::without_duration(RULE.id.id(), Severity::Note, title, Cause::KernelWork, first)
        .and_if(most(threads))
        .confidence(Confidence::Suspect)
        .remedy(
            Remedy::safe("print the limits")
                .with_command("cat /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max"),
        )
}
