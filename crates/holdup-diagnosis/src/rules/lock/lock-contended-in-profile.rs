//! A profile in which much of the time goes to taking locks that others hold.

use crate::rules::{MATTERS, Rule, RuleId, Run, percent};
use holdup_artefacts::profile::{Does, Part, amount, parts, whole};
use holdup_evidence::observed::{Samples, Weight};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LockContendedInProfile, check)
    .about("a profile shows much time in contended locks")
    .causes(&[
        Cause::LockFutex,
        Cause::LockMonitor,
        Cause::LockKernel,
        Cause::CpuKernel,
    ]);

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    if observed.samples.is_empty() {
        return Verdict::CannotTell("stacks with weights: a profile, collapsed or by perf script".to_owned());
    }
    let mut findings = Vec::new();
    let mut most = 0.0f64;
    for samples in &observed.samples {
        let all = parts(observed, samples);
        let contended: Vec<&Part> = all.iter().filter(|part| part.contended).collect();
        let weight = contended
            .iter()
            .map(|part| part.weight)
            .fold(0, u64::saturating_add);
        let share = weight as f64 / samples.total.max(1) as f64;
        most = most.max(share);
        if share >= MATTERS
            && let Some(main) = contended.first()
        {
            findings.push(finding(run, samples, main, share));
        }
    }
    if findings.is_empty() {
        return Verdict::Clear(format!("{} of the samples take a contended lock", percent(most)));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, samples: &Samples, main: &Part, share: f64) -> Finding {
    let asker = match main.asker.as_str() {
        "" => "code without a name",
        name => name,
    };
    let spins = main.does == Does::For(Cause::CpuKernel) || main.does == Does::For(Cause::CpuUser);
    let how = match samples.weight {
        Weight::Count if spins => "spin for",
        Weight::Count => "wait for",
        Weight::Ns | Weight::Us => "went to",
    };
    let cause = match main.does {
        Does::For(cause) => cause,
        Does::Idle | Does::Unknown => Cause::LockFutex,
    };
    let title = format!(
        "{} {} {how} contended locks, most under {asker}, in {}",
        percent(share),
        whole(samples),
        main.function
    );
    let own = main.weight as f64 / samples.total.max(1) as f64;
    let text = format!(
        "{} of {} in {} under {asker}",
        percent(own),
        amount(samples, samples.total),
        main.function
    );
    let place = run
        .observed
        .map(|observed| observed.place(&samples.quote))
        .unwrap_or_default();
    Finding::without_duration(
        RuleId::LockContendedInProfile.id(),
        Severity::Warning,
        title,
        cause,
        Evidence::new(text, place),
    )
    .confidence(Confidence::Strong)
    .remedy(Remedy::safe(
        "hold the lock for less time: move work that needs no protection out of it",
    ))
    .remedy(Remedy::changing(
        "use a separate lock for each thread, or for each part of the data",
        "operations on several parts then need several locks, always in the same order",
    ))
    .remedy(Remedy::pointless(
        "more threads: each one waits for the same lock",
    ))
}
