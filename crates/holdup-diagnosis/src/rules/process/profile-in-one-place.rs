//! A profile most of whose time goes to one thing: says what it is and under which code.

use crate::rules::{Generality, Rule, RuleId, Run, WORTH_A_NOTE, percent};
use holdup_artefacts::profile::{Does, Part, amount, parts, whole};
use holdup_evidence::observed::{Samples, Weight};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ProfileInOnePlace, check)
    .about("much of a profile is in one function under one piece of code")
    .causes(&[Cause::CpuUser, Cause::CpuKernel, Cause::NetReceive])
    .from(WORTH_A_NOTE)
    .generality(Generality::Describes)
    .intermediate();

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    if observed.samples.is_empty() {
        return Verdict::CannotTell("stacks with weights: a profile, collapsed or by perf script".to_owned());
    }
    let mut findings = Vec::new();
    let mut most = 0.0f64;
    for samples in &observed.samples {
        for part in parts(observed, samples)
            .iter()
            .filter(|part| part.does != Does::Idle && !part.contended)
        {
            let share = part.weight as f64 / samples.total.max(1) as f64;
            most = most.max(share);
            if share >= WORTH_A_NOTE {
                findings.push(finding(run, observed, samples, part, share));
            }
        }
    }
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "no more than {} of the samples are of one thing under one function",
            percent(most)
        ));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, observed: &Observed, samples: &Samples, part: &Part, share: f64) -> Finding {
    let cause = match part.does {
        Does::For(cause) => cause,
        Does::Idle | Does::Unknown => Cause::Unknown,
    };
    let function = match part.function.as_str() {
        "" => "code without a name",
        name => name,
    };
    let under = match part.asker.as_str() {
        "" => String::new(),
        asker if asker == part.function => String::new(),
        asker => format!(" under {asker}"),
    };
    let are = match samples.weight {
        Weight::Count => "are",
        Weight::Ns | Weight::Us => "was",
    };
    let title = format!(
        "{} {} {are} in {function}{under}: {}",
        percent(share),
        whole(samples),
        cause.phrase()
    );
    let of = match samples.waiting {
        Some(true) => "of waiting",
        Some(false) => "of running",
        None => "the profile does not show whether of CPU time or of all time",
    };
    let place = run.observed.unwrap_or(observed).place(&samples.quote);
    let text = format!(
        "{} of {}, {of}",
        amount(samples, part.weight),
        amount(samples, samples.total)
    );
    let finding = Finding::without_duration(
        RuleId::ProfileInOnePlace.id(),
        Severity::Note,
        title,
        cause,
        Evidence::new(text, place),
    );
    let advice = match cause.on_cpu() {
        true => Remedy::safe("optimise this computation first"),
        false => Remedy::safe("look at the blocker of this wait: a profile shows only the waiter"),
    };
    finding.confidence(Confidence::Suspect).remedy(advice)
}
