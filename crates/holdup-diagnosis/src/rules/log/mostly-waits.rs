//! A command's time went by off the CPU.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, duration, fires, percent};
use holdup_evidence::observed::{Span, SpanKind};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::MostlyWaits, check)
    .about("a command used a CPU for little of the time that it took")
    .causes(&[Cause::Unknown]);

/// Share of the elapsed time on a CPU below which the rest is worth a look: with half of it, either could be shortened.
const MAX_CPU_SHARE: f64 = 0.5;

/// Nanoseconds of elapsed time from which it matters: starting a program alone waits for milliseconds.
const MIN_NS: Ns = 1_000_000_000;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let spans = observed.spans.iter().enumerate();
    let elapsed = spans.filter(|(_, span)| span.kind == SpanKind::CommandElapsed);
    let mut clear = None;
    let mut worst: Option<(&Span, Ns)> = None;
    let mut alone = false;
    for (at, span) in elapsed {
        let Some(cpu) = cpu(observed, at, span) else {
            alone = true;
            continue;
        };
        let share = cpu as f64 / span.ns.max(1) as f64;
        if span.ns >= MIN_NS && share <= MAX_CPU_SHARE {
            let waited = |(span, cpu): (&Span, Ns)| span.ns.saturating_sub(cpu);
            if worst.is_none_or(|worst| waited((span, cpu)) > waited(worst)) {
                worst = Some((span, cpu));
            }
        } else {
            clear = Some(format!(
                "{} of {} were on a CPU",
                duration(cpu),
                duration(span.ns)
            ));
        }
    }
    let Some((span, cpu)) = worst else {
        return match (clear, alone) {
            (Some(clear), _) => Verdict::Clear(clear),
            (None, true) => Verdict::CannotTell(
                "whether the time was spent on a CPU or in waiting: the user and sys lines of `time`"
                    .to_owned(),
            ),
            (None, false) => {
                Verdict::CannotTell("how much of a command's time was on a CPU: `time`".to_owned())
            }
        };
    };
    let waited = span.ns.saturating_sub(cpu);
    let name = match span.name.as_str() {
        "" => "A command".to_owned(),
        name => format!("`{name}`"),
    };
    let title = format!(
        "{name} was off the CPU for {} of {}",
        duration(waited),
        duration(span.ns)
    );
    let text = format!(
        "{} on a CPU, {} of the elapsed {}",
        duration(cpu),
        percent(cpu as f64 / span.ns.max(1) as f64),
        duration(span.ns)
    );
    fires(
        Finding::new(
            RULE.id.id(),
            Severity::Note,
            title,
            Cause::Unknown,
            waited,
            quote(observed, text, &span.quote),
        )
        .confidence(Confidence::Strong)
        .and(quote(
            observed,
            "these times do not show what it waited for",
            &span.quote,
        ))
        .remedy(
            Remedy::safe("run it again under holdup to see what it waits for")
                .with_command("holdup run -- COMMAND"),
        ),
    )
}

/// User and system time of the same command: those that stand nearest, in the same artefact. `at` is the place of its
/// elapsed time among all spans.
fn cpu(observed: &Observed, at: usize, elapsed: &Span) -> Option<Ns> {
    /// Spans that a reader puts of one command, and some more.
    const NEAR: usize = 8;
    let last = observed.spans.len().min(at.saturating_add(NEAR));
    let around = observed
        .spans
        .get(at.saturating_sub(NEAR)..last)
        .unwrap_or_default();
    let near = |kind| {
        let same = around.iter().filter(move |span| {
            span.kind == kind && span.quote.source == elapsed.quote.source && span.name == elapsed.name
        });
        same.min_by_key(|span| span.quote.line.abs_diff(elapsed.quote.line))
            // The three stand within a few lines of each other in every layout.
            .filter(|span| span.quote.line.abs_diff(elapsed.quote.line) <= 4)
            .map(|span| span.ns)
    };
    match (near(SpanKind::CommandUser), near(SpanKind::CommandSystem)) {
        (Some(user), Some(system)) => user.checked_add(system),
        _ => near(SpanKind::CommandCpu),
    }
}
