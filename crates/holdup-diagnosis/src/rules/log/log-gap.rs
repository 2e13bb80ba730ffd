//! Nothing was logged for long, after a line that says that something begins.

use super::super::log_times::{of_source, quote};
use crate::rules::{Rule, RuleId, Run, duration};
use holdup_evidence::observed::{Span, SpanKind, Statement, StatementKind};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LogGap, check)
    .about("a log is silent for long after an operation began")
    .causes(&[Cause::Unknown]);

/// A gap of which nothing usual is known must be this long, in nanoseconds: ten seconds are what people sit through before
/// they look for something else to do.
pub(crate) const LONG_GAP_NS: Ns = 10_000_000_000;

/// Where it is known what is usual, a second is long,
pub(crate) const LONGER_BY_NS: Ns = 1_000_000_000;

/// if it is ten times that,
const TIMES: Ns = 10;

/// and if it is known from at least so many.
const MIN_KNOWN_GAPS: u64 = 5;

/// Where nothing usual is known, a gap matters if it is at least one part in so many of the time that the log covers: a
/// service that runs for hours and is silent for half a minute after it began something is not held up by that.
const MIN_PART_OF_LOG: Ns = 10;

/// Characters of a line in the title.
const MAX_CHARACTERS: usize = 90;

/// Gaps that are shown.
const MAX_SHOWN_GAPS: usize = 4;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let kinds = [SpanKind::LogGap, SpanKind::LogSilence];
    let gaps = observed.spans.iter().filter(|span| kinds.contains(&span.kind));
    let Some(longest) = gaps.clone().max_by_key(|gap| gap.ns) else {
        return match observed
            .spans
            .iter()
            .find(|span| span.kind == SpanKind::LogCovers)
        {
            Some(log) => Verdict::Clear(format!("0 gaps in {}", log.name)),
            None => Verdict::CannotTell("where a program was silent: a log of its own with times".to_owned()),
        };
    };
    let mut unusual: Vec<&Span> = gaps.filter(|gap| unusual(gap)).collect();
    unusual.sort_by_key(|gap| std::cmp::Reverse((begins(gap), gap.ns)));
    if unusual.is_empty() {
        return Verdict::Clear(format!(
            "the longest time without a line is {}, which is not long or usual there",
            duration(longest.ns)
        ));
    }
    // Silence that may be for want of work is no answer where the log itself says what went wrong.
    let spoken = unusual.clone();
    unusual.retain(|gap| begins(gap) || !says_what_is_wrong(observed, gap.quote.source));
    let Some(first_spoken) = spoken.first().filter(|_| unusual.is_empty()) else {
        return Verdict::Fires(of_logs(observed, &unusual));
    };
    Verdict::Clear(format!(
        "no line for {}, beside lines of the log itself that say what went wrong",
        duration(first_spoken.ns)
    ))
}

/// Whether a log has lines that say, in its own words, that something was given up, stood still or ended.
fn says_what_is_wrong(observed: &Observed, source: u32) -> bool {
    observed
        .statements
        .iter()
        .any(|one| one.quote.source == source && one.kind <= StatementKind::Stalled)
}

/// The finding of each log: it has its own silence, and one headline.
fn of_logs(observed: &Observed, unusual: &[&Span]) -> Vec<Finding> {
    let mut values: Vec<u32> = Vec::new();
    let mut findings = Vec::new();
    for first in unusual {
        if !values.contains(&first.quote.source) {
            values.push(first.quote.source);
            findings.push(of_log(observed, first, unusual));
        }
    }
    findings
}

/// The finding about one log: its longest gap, and others that are like it.
fn of_log(observed: &Observed, first: &Span, unusual: &[&Span]) -> Finding {
    let source = first.quote.source;
    let shown: Vec<&Span> = unusual
        .iter()
        .filter(|gap| gap.quote.source == source && begins(gap) == begins(first))
        .take(MAX_SHOWN_GAPS)
        .copied()
        .collect();
    let named: Vec<String> = shown
        .iter()
        .map(|gap| format!("for {} after {}", duration(gap.ns), from(gap)))
        .collect();
    let silent = match (&first.thread, shown.len()) {
        (Some(thread), 1) => format!("{thread} logged nothing"),
        _ => "Nothing was logged".to_owned(),
    };
    let total = shown.iter().map(|gap| gap.ns).fold(0, Ns::saturating_add);
    let covers: Option<&Span> = of_source(observed, SpanKind::LogCovers, source).next();
    let usual_known = matches!(first.usual, Some((_, count)) if count >= MIN_KNOWN_GAPS);
    let matters = usual_known || covers.is_none_or(|log| total.saturating_mul(MIN_PART_OF_LOG) >= log.ns);
    let over = !usual_known && shown.iter().all(|gap| comes_about(gap));
    let severity = if begins(first) && matters && !over {
        Severity::Warning
    } else {
        Severity::Note
    };
    // One silence that an error ends is explained by it, as far as a log can.
    let end = match shown.as_slice() {
        [gap] => ended_by(observed, gap),
        _ => None,
    };
    let until = end
        .map(|one| format!(", until `{}`", clipped(&one.text)))
        .unwrap_or_default();
    let title = format!("{silent} {}{until}", named.join(" and "));
    let mut finding = Finding::new(
        RULE.id.id(),
        severity,
        title,
        Cause::Unknown,
        total,
        evidence(observed, first),
    );
    for gap in shown.iter().skip(1) {
        finding = finding.and(evidence(observed, gap));
    }
    if let Some(log) = covers {
        let text = format!("the log has {} in {}", log.name, duration(log.ns));
        finding = finding.and(quote(observed, text, &log.quote));
    }
    if let Some(one) = end {
        finding = finding.and(quote(observed, "what ends the silence", &one.quote));
    }
    let idle = match begins(first) {
        true if end.is_some() => {
            "the line before says that an operation begins, and the line after how it ended"
        }
        true => "the line before says that an operation begins; the log does not show what it waited for",
        false => "the line before does not say that an operation begins: there may have been no work",
    };
    finding
        .and(quote(observed, idle, &first.quote))
        .confidence(Confidence::Suspect)
        .remedy(
            Remedy::safe("run it again under holdup to see what its threads wait for")
                .with_command("holdup run -- COMMAND"),
        )
        .remedy(Remedy::safe(
            "take three thread dumps of a JVM during the gap, a few seconds apart, and read them together \
             with this log",
        ))
}

/// What the log says went wrong in the line that ends the silence; a line further on may be of something else.
fn ended_by<'a>(observed: &'a Observed, gap: &Span) -> Option<&'a Statement> {
    observed.statements.iter().find(|one| {
        one.quote.source == gap.quote.source
            && one.quote.line == gap.quote.line + 1
            && one.kind <= StatementKind::Failed
    })
}

/// As much of a line as a title bears.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Whether it is long, and long for what it is.
fn unusual(gap: &Span) -> bool {
    match gap.usual {
        Some((usual, count)) if count >= MIN_KNOWN_GAPS => {
            gap.ns >= LONGER_BY_NS && gap.ns >= usual.saturating_mul(TIMES)
        }
        Some((usual, _)) => gap.ns >= LONG_GAP_NS && gap.ns >= usual.saturating_mul(3),
        None => gap.ns >= LONG_GAP_NS,
    }
}

/// Whether the line before the gap says that something begins.
fn begins(gap: &Span) -> bool {
    gap.kind == SpanKind::LogGap
}

/// Words with which a line says that something is over and went well.
const WELL: [&str; 14] = [
    "finished",
    "done",
    "completed",
    "complete",
    "succeeded",
    "success",
    "successfully",
    "passed",
    "started",
    "ready",
    "connected",
    "acquired",
    "loaded",
    "healthy",
];

/// Words with which it says that it did not.
const NOT_WELL: [&str; 9] = [
    "fail", "error", "time", "refused", "abort", "unable", "cannot", "retry", "lost",
];

/// What takes no time where all is well: that it came about at last makes a long wait for it no work.
const SHORT: [&str; 18] = [
    "connect",
    "acquir",
    "resolv",
    "authent",
    "lookup",
    "handshake",
    "login",
    "logon",
    "lock",
    "open",
    "clos",
    "request",
    "call",
    "query",
    "send",
    "answer",
    "handl",
    "ping",
];

/// Words that any two lines of one log may have: levels, threads, and what stands before a quoted line.
const OF_ANY_LINE: [&str; 9] = [
    "line", "info", "debug", "notice", "trace", "warn", "main", "thread", "worker",
];

/// Letters of a word by which it is known again: `uploading`, `upload`.
const STEM: usize = 5;

/// Whether the line that ends a gap says that what began before it went well: then the gap is how long that took, which may be long or not.
fn comes_about(gap: &Span) -> bool {
    let Some((before, after)) = gap.text.split_once('\n') else {
        return false;
    };
    let words = |text: &str| -> Vec<String> {
        let words = text
            .split(|char: char| !char.is_alphabetic())
            .filter(|word| word.len() >= STEM - 1);
        words.map(str::to_ascii_lowercase).collect()
    };
    let (before, after) = (words(before), words(after));
    let short = before
        .iter()
        .any(|word| SHORT.iter().any(|short| word.starts_with(short)));
    let bad = short
        || after
            .iter()
            .any(|word| NOT_WELL.iter().any(|not| word.starts_with(not)));
    let well = after.iter().any(|word| WELL.contains(&word.as_str()));
    let stem = |word: &String| word.chars().take(STEM).collect::<String>();
    // The participle of what was begun: `Building image`, `Image built`.
    let same = before
        .iter()
        .filter(|word| after.iter().any(|other| stem(other) == stem(word)));
    let same = same.filter(|word| !OF_ANY_LINE.contains(&word.as_str())).count() > 0;
    !bad && well
        || !bad
            && same
            && after
                .iter()
                .any(|word| word.ends_with("ed") || word == "built" || word == "sent")
}

/// The line before the gap.
fn from(gap: &Span) -> &str {
    gap.name
        .split_once(" to `")
        .map_or(gap.name.as_str(), |(from, _)| from)
}

fn evidence(observed: &Observed, gap: &Span) -> holdup_model::finding::Evidence {
    let usual = match gap.usual {
        Some((usual, count)) => format!(", {} at the mean of {} others", duration(usual), count),
        None => String::new(),
    };
    let thread = gap
        .thread
        .as_deref()
        .map(|thread| format!(" on {thread}"))
        .unwrap_or_default();
    let text = format!(
        "{} from {}{thread}{usual}; {}",
        duration(gap.ns),
        gap.name,
        gap.text.replace('\n', " | ")
    );
    quote(observed, text, &gap.quote)
}

#[cfg(test)]
mod tests {
    use super::comes_about;
    use holdup_evidence::observed::{Quote, Span, SpanKind};

    fn gap(before: &str, after: &str) -> Span {
        Span {
            kind: SpanKind::LogGap,
            name: format!("`{before}` to `{after}`"),
            began: None,
            ns: 43_000_000_000,
            thread: None,
            usual: None,
            quote: Quote::default(),
            text: format!("line 3: {before}\nline 4: {after}"),
        }
    }

    #[test]
    fn work_that_went_well_took_its_time() {
        for (before, after) in [
            ("Building image api:1.2", "Image built"),
            ("INFO Uploading to s3://backups/shop", "INFO Upload finished"),
            ("Starting 'test:e2e'...", "Finished 'test:e2e' after 2.67 min"),
            (
                "Waiting for rollout: 1 out of 2 new replicas",
                "deployment \"api\" successfully rolled out",
            ),
        ] {
            assert!(comes_about(&gap(before, after)), "{before} | {after}");
        }
    }

    #[test]
    fn what_failed_or_takes_no_time_by_itself_was_held_up() {
        for (before, after) in [
            ("Connecting to 10.0.0.7:5432", "Connected to 10.0.0.7:5432"),
            ("Acquiring lock on the index", "Lock on the index acquired"),
            ("Loading plugins", "ERROR: plugins could not be loaded: timed out"),
            ("Starting scheduler", "GET /health 200"),
            ("INFO [main] Loading rules", "INFO [main] listening on 8080"),
        ] {
            assert!(!comes_about(&gap(before, after)), "{before} | {after}");
        }
    }
}
