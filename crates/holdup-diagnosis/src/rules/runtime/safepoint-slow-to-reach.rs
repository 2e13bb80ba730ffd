//! A JVM's threads take long to come to a safepoint, and those that have come stand and wait.

use super::super::log_times::{covered, longest, most, quote, share, sum};
use super::stopped_by_jvm_operation::counted as operations_of;
use crate::rules::{Extend, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::observed::{Metric, SpanKind};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::Common;
use holdup_model::attributed::HowKnown;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::SafepointSlowToReach, late, check)
    .about("the threads of a JVM are slow to reach a safepoint")
    .causes(&[Cause::RuntimeSafepoint]);

/// By the threads that stood and waited.
fn late(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // Whoever waits for all to come waits for that; who waits for what is done there does not.
    let reaching = waits.only(|wait| wait.resource.common() == Some(Common::JvmReaching));
    let Some(reaching) = reaching.filter(|reaching| run.matters(reaching.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "less than {} of the time went by until all threads had stopped",
            percent(MATTERS)
        ));
    };
    let main = reaching.main();
    let who = say::name_or(&main.asker.name.process, "a JVM");
    let holders = reaching.holders();
    let late = holders
        .iter()
        .find(|holder| holder.how_known == HowKnown::LastToStop);
    let title = match late {
        Some(late) => format!(
            "Threads of {who} wait for {} to reach a safepoint, up to {}",
            say::who(&late.name),
            duration(reaching.longest().max)
        ),
        None => format!(
            "Threads of {who} wait until all have reached a safepoint, up to {}",
            duration(reaching.longest().max)
        ),
    };
    let computes = late.is_some_and(|late| late.doing.is_some_and(Cause::on_cpu));
    let finding = RULE
        .finding(Severity::Warning, title, &reaching)
        .and_if(late.map(say::meanwhile))
        .and_if(own_count(run, main.asker.name.pid))
        .and_if(operations_of(run, main.asker.name.pid))
        .proved_if(late.is_some());
    fires(if computes || late.is_none() {
        finding
            .remedy(Remedy::safe(
                "use -XX:+UseCountedLoopSafepoints if it is a counted loop (the default of G1 since JDK 10)",
            ))
            .remedy(
                Remedy::safe("make the JVM log the slow thread")
                    .with_command("-XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100"),
            )
    } else {
        finding.remedy(Remedy::safe(
            "check what delayed it: it did not compute, so it was a busy CPU, a quota, swap or a slow disk \
             under a mapped file",
        ))
    })
}

/// What the machine has counted itself.
fn own_count(run: &Run<'_>, pid: u32) -> Option<Evidence> {
    let jvm = run.facts.jvms.iter().find(|jvm| jvm.pid == pid)?;
    let took = jvm.after.reaching?.saturating_sub(jvm.before.reaching?);
    let count = jvm.after.safepoints?.saturating_sub(jvm.before.safepoints?);
    let text = format!(
        "it counted {} itself, and {} until they were reached",
        say::several(count, "safepoint"),
        duration(took)
    );
    (count > 0).then(|| Evidence::new(text, "the JVM's performance data"))
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = most(observed, Metric::SafepointReachMs) else {
        return Verdict::CannotTell(
            "the time to safepoint: a log with `-Xlog:safepoint`, or before JDK 9 \
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
        "Threads of a JVM take up to {} to reach a safepoint",
        duration(worst.ns)
    );
    let operation = match worst.name.as_str() {
        "" => String::new(),
        name => format!(" for {name}"),
    };
    let first = quote(
        observed,
        format!("{} until all threads had stopped{operation}", duration(worst.ns)),
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
        Finding::new(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::RuntimeSafepoint,
            total,
            first,
        )
        .and(quote(observed, all, &worst.quote))
        .remedy(
            Remedy::safe("make the JVM log the slow thread")
                .with_command("-XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100"),
        )
        .remedy(Remedy::safe(
            "use -XX:+UseCountedLoopSafepoints if it is a counted loop (the default of G1 since JDK 10)",
        ))
        .remedy(Remedy::safe(
            "if it is another thread each time, check what keeps threads off the CPU: swap, a CPU quota, \
                 a busy machine, a slow disk under a mapped file",
        )),
    )
}
