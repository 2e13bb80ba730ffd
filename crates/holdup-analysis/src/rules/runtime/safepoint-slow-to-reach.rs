//! A JVM's threads take long to come to a safepoint, and those that have come stand and wait.

use super::super::log_times::{covered, longest, most, quote, share, sum};
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{
    Check, HARM_FLOOR, MATTERS, Need, Place, Rule, RuleId, Run, duration, fires, percent, say,
};
use holdup_evidence::observed::{Metric, SpanKind};
use holdup_evidence::{Cause, Observed};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::SafepointSlowToReach,
    about: "the threads of a JVM take long to come to a safepoint",
    needs: &[Need::Artefacts],
    causes: &[Cause::RuntimeSafepoint],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = most(observed, Metric::SafepointReachMs) else {
        return Verdict::CannotTell(
            "how long threads took to come to a safepoint: a log with `-Xlog:safepoint`, or before JDK 9 \
             `-XX:+PrintGCApplicationStoppedTime`"
                .to_owned(),
        );
    };
    let (total, log) = (
        sum(series),
        covered(observed, SpanKind::JvmLogCovers, series.source),
    );
    let Some(worst) = longest(observed, SpanKind::SafepointReach, series.source) else {
        return Verdict::Clear(format!(
            "{} took 0 ns to be reached",
            say::several(series.count, "safepoint")
        ));
    };
    let often = share(total, log) >= MATTERS && total >= HARM_FLOOR;
    if worst.ns < HARM_FLOOR && !often {
        return Verdict::Clear(format!(
            "the slowest of {} was reached in {}",
            say::several(series.count, "safepoint"),
            duration(worst.ns)
        ));
    }
    let title = format!(
        "A JVM's threads take up to {} to come to a safepoint",
        duration(worst.ns)
    );
    let operation = match worst.name.as_str() {
        "" => String::new(),
        name => format!(" for {name}"),
    };
    let first = quote(
        observed,
        format!(
            "{} until all threads had come to a stop{operation}",
            duration(worst.ns)
        ),
        &worst.quote,
    );
    let all = format!(
        "{}: {} to reach them{}",
        say::several(series.count, "safepoint"),
        duration(total),
        match log {
            0 => String::new(),
            log => format!(
                ", {} of the {} that the log covers",
                percent(share(total, log)),
                duration(log)
            ),
        }
    );
    fires(
        Finding::new(RULE.id.id(), Severity::Warning, title, Cause::RuntimeSafepoint, total, first)
            .and(quote(observed, all, &worst.quote))
            .remedy(
                Remedy::safe("have the JVM name the thread that is late")
                    .with_command("-XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100"),
            )
            .remedy(Remedy::safe(
                "if it is a counted loop, let it stop within: -XX:+UseCountedLoopSafepoints, which G1 has by itself since \
                 JDK 10",
            ))
            .remedy(Remedy::safe(
                "if each time it is another thread, look for what keeps threads off the CPU: swap, a CPU quota, a busy \
                 machine, a slow disk under a mapped file",
            )),
    )
}
