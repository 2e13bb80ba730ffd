//! Making random bytes takes the time: many readers of `/dev/urandom`, or far too many bytes.

use crate::rules::{Need, Rule, RuleId, Run, WORTH_A_NOTE, Waits, duration, fires, percent, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// Size of the random pool on the generator before Linux 5.18, bits: `/proc/sys/kernel/random/poolsize`.
const OLD_POOL: u32 = 4096;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::RandomReadsDominate, check)
    .about("the time is spent on generating random bytes")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel])
    .from(WORTH_A_NOTE);

fn is_random(wait: &AttributedWait) -> bool {
    wait.call.as_deref() == Some("getrandom")
        || [&wait.resource.name]
            .into_iter()
            .chain(wait.resource.detail.of.as_ref())
            .any(|name| matches!(name.as_str(), "/dev/urandom" | "/dev/random"))
}

fn check(run: &Run<'_>, kernel: &Waits<'_>) -> Verdict {
    let random = kernel.only(is_random);
    let cost = random.as_ref().map_or(0, Waits::cost);
    let Some(waits) = random.filter(|waits| run.matters(waits.cost(), WORTH_A_NOTE)) else {
        let (cost_text, share) = (duration(cost), percent(run.share(cost)));
        return Verdict::Clear(format!(
            "generating random bytes took {cost_text}, {share} of the elapsed time"
        ));
    };
    let main = waits.main();
    let from = say::name_or(&main.resource.name, "getrandom");
    let title = format!(
        "{} of the time is spent on generating random bytes",
        percent(run.share(waits.cost()))
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, &waits)
        .confidence(Confidence::Strong);
    let bytes = main
        .bytes
        .map(|bytes| format!(", {} at a time", say::several(bytes, "byte")))
        .unwrap_or_default();
    finding = finding.and(Evidence::new(
        format!("running in the kernel for {from}{bytes}"),
        match main.read_at.as_str() {
            "" => "CPU samples",
            place => place,
        },
    ));
    let mut readers: Vec<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    readers.sort_unstable();
    readers.dedup();
    if run.facts.random.pool_size == Some(OLD_POOL) && readers.len() > 1 {
        let text = format!(
            "{} threads read, and on this kernel all readers share one lock",
            readers.len()
        );
        finding = finding.and(Evidence::new(text, "/proc/sys/kernel/random/poolsize"));
    }
    if asked_by_ares(main) {
        finding = finding.remedy(Remedy::safe(
            "c-ares reads random bytes for each channel: keep the handle for many requests, use c-ares 1.20 or later, \
             or build curl without it",
        ));
    }
    fires(
        finding
            .remedy(Remedy::safe(
                "seed a generator inside the program with a few bytes, and use that generator",
            ))
            .remedy(Remedy::pointless(
                "an entropy daemon: the generator is seeded, and generating bytes takes the time",
            )),
    )
}

fn asked_by_ares(wait: &AttributedWait) -> bool {
    let of_ares =
        |module: &Option<String>| module.as_deref().is_some_and(|name| name.starts_with("libcares"));
    of_ares(&wait.asker.module) || wait.asker.stack.iter().any(|frame| of_ares(&frame.module))
}
