//! Much compiled code was given up at once.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, fires};
use holdup_evidence::observed::{Happening, JvmEvent, What};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CompiledCodeGivenUp, check)
    .about("a JVM discarded the compiled code of many methods at once")
    .causes(&[Cause::CpuUser]);

/// Methods at once from which something brought it about that is not theirs: one by one they fall all the time.
const MIN_METHODS: usize = 5;

/// Nanoseconds that are "at once": a tenth of a second is what one event takes to be seen to.
const AT_ONCE: i128 = 100_000_000;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let all: Vec<(&Happening, &str)> = observed
        .happenings
        .iter()
        .filter_map(|one| match &one.what {
            What::Jvm(JvmEvent::Deoptimised { method }) => Some((one, method.as_str())),
            _ => None,
        })
        .collect();
    if all.is_empty() {
        return Verdict::CannotTell(
            "whether compiled code was discarded: a log with `-Xlog:jit+compilation=debug` or \
             `-XX:+PrintCompilation`"
                .to_owned(),
        );
    }
    let burst = (0..all.len())
        .map(|first| of_one_moment(&all[first..]))
        .max_by_key(|burst| burst.len());
    let burst = burst.unwrap_or_default();
    let Some(((first, method), count)) = burst
        .first()
        .zip(Some(burst.len()))
        .filter(|(_, count)| *count >= MIN_METHODS)
    else {
        return Verdict::Clear(format!(
            "at most {} of {} methods within a tenth of a second",
            burst.len(),
            all.len()
        ));
    };
    let title = format!("A JVM discarded the compiled code of {count} methods at once");
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Note,
            title,
            Cause::CpuUser,
            quote(
                observed,
                format!(
                    "{count} methods within 100 ms, {method} the first of them: {}",
                    first.text
                ),
                &first.quote,
            ),
        )
        .and(quote(
            observed,
            "they run interpreted until they are compiled again; these lines do not show the reason",
            &first.quote,
        ))
        .remedy(
            Remedy::safe("enable the compiler log, which has the reason for each method")
                .with_command("-XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation"),
        )
        .remedy(Remedy::safe(
            "find out what happened at that instant: a class was loaded, an agent was attached or began to \
             trace",
        )),
    )
}

/// Those of the beginning that are within a moment of the first, in the same artefact.
fn of_one_moment<'a, 'b>(all: &'a [(&'b Happening, &'b str)]) -> &'a [(&'b Happening, &'b str)] {
    let Some(((first, _), at)) = all.first().and_then(|first| Some((first, first.0.at?))) else {
        return &[];
    };
    let same = |one: &Happening| {
        let later = one.at.and_then(|when| when.since(at));
        one.quote.source == first.quote.source && later.is_some_and(|ns| (0..=AT_ONCE).contains(&ns))
    };
    let count = all.iter().take_while(|(one, _)| same(one)).count();
    &all[..count]
}
