//! The longest unit and part of a boot, the longest gap in a log, the slowest call of a trace, the command that took longest.

use super::{Rank, Ranked};
use crate::rules::list::log_gap;
use crate::rules::percent;
use holdup_artefacts::profile;
use holdup_evidence::observed::{CallTime, Calls, Span, SpanKind, StackId, Weight};
use holdup_evidence::units::duration;
use holdup_evidence::{Ns, Observed};
use holdup_knowledge::system_calls::{self, Kind};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Kinds of calls that wait until there is something to do: of those the longest says little.
const IDLE_CALLS: [Kind; 5] = [
    Kind::Accepts,
    Kind::Polls,
    Kind::WaitsForEpoll,
    Kind::WaitsForSignal,
    Kind::WaitsForChild,
];

/// From this part on most of a function's weight is of one program.
const MIN_PROGRAM_SHARE: f64 = 0.5;

/// Callers of a function that are told with it.
const CALLERS: usize = 2;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    add_boot(observed, all);
    add_logs(observed, all);
    add_commands(observed, all);
    for calls in &observed.calls {
        add_calls(observed, calls, all);
    }
    add_profiles(observed, all);
}

fn spans(observed: &Observed, kind: SpanKind) -> impl Iterator<Item = &Span> {
    observed.spans.iter().filter(move |span| span.kind == kind)
}

fn longest(observed: &Observed, kind: SpanKind) -> Option<&Span> {
    spans(observed, kind).max_by_key(|span| span.ns)
}

fn part(ns: Ns, whole: Ns) -> f64 {
    ns as f64 / whole.max(1) as f64
}

/// The longest unit, and the longest part of the boot.
fn add_boot(observed: &Observed, all: &mut Vec<Ranked>) {
    // A sum of parts is in the list, too, where the tool prints one.
    let named = |span: &&Span| !matches!(span.name.as_str(), "" | "total");
    let whole: Ns = spans(observed, SpanKind::BootPhase)
        .filter(named)
        .fold(0, |sum, span| sum.saturating_add(span.ns));
    let userspace = spans(observed, SpanKind::BootPhase).find(|span| span.name == "userspace");
    let reached = longest(observed, SpanKind::UnitReached);
    let phase = spans(observed, SpanKind::BootPhase)
        .filter(named)
        .max_by_key(|span| span.ns);
    let unit = longest(observed, SpanKind::UnitStart);
    if let Some(unit) = unit {
        let of = match (userspace, reached) {
            (Some(userspace), _) => Some((userspace.ns, "userspace's start")),
            (None, Some(reached)) => Some((reached.ns, "the start")),
            (None, None) => None,
        };
        let of = of.filter(|(whole, _)| *whole >= unit.ns);
        let share = of.map(|(whole, what)| format!(", {} of {what}", percent(part(unit.ns, whole))));
        let mut others: Vec<&Span> = spans(observed, SpanKind::UnitStart)
            .filter(|other| other.name != unit.name)
            .collect();
        others.sort_by_key(|span| Reverse(span.ns));
        let next = others
            .first()
            .map(|next| format!("; next {}, {}", next.name, duration(next.ns)));
        let text = format!(
            "{} took {} to start{}{}",
            unit.name,
            duration(unit.ns),
            share.unwrap_or_default(),
            next.unwrap_or_default()
        );
        let line = Ranked::new(Rank::Largest, &unit.name, text, (observed, &unit.quote)).ns(unit.ns);
        // Beside other parts of the boot, what counts is its share of all of it.
        let of = of.map(|(userspace, _)| userspace.max(whole));
        all.push(match of {
            Some(whole) => line.share(part(unit.ns, whole)),
            None => line,
        });
    }
    // What userspace did is known by its units.
    if let Some(phase) = phase.filter(|phase| unit.is_none() || phase.name != "userspace") {
        let text = format!(
            "{} took {}, {} of the boot's {}",
            phase.name,
            duration(phase.ns),
            percent(part(phase.ns, whole)),
            duration(whole)
        );
        let line = Ranked::new(Rank::Largest, &phase.name, text, (observed, &phase.quote)).ns(phase.ns);
        all.push(line.share(part(phase.ns, whole)));
    }
    if let Some(pause) = longest(observed, SpanKind::KernelPause) {
        let text = format!(
            "the kernel logged nothing for {} after `{}`",
            duration(pause.ns),
            pause.name
        );
        all.push(Ranked::new(Rank::Largest, "kernel log", text, (observed, &pause.quote)).ns(pause.ns));
    }
}

/// The longest times in which a log has no line.
fn add_logs(observed: &Observed, all: &mut Vec<Ranked>) {
    let covered = |source: u32| {
        let mut all = spans(observed, SpanKind::LogCovers).filter(|span| span.quote.source == source);
        all.next().map(|span| span.ns)
    };
    let kinds = [
        (SpanKind::LogGap, Rank::Largest),
        (SpanKind::LogStep, Rank::Largest),
        (SpanKind::LogSilence, Rank::Silence),
    ];
    for (kind, rank) in kinds {
        let found =
            longest(observed, kind).filter(|gap| !gap.name.is_empty() && gap.ns >= log_gap::LONGER_BY_NS);
        let Some(gap) = found else { continue };
        // Shorter ones are how any program writes.
        let rank = if gap.ns >= log_gap::LONG_GAP_NS {
            rank
        } else {
            Rank::Silence
        };
        let whole = covered(gap.quote.source).filter(|whole| *whole >= gap.ns);
        let share = whole.map(|whole| format!(", {} of what the log covers", percent(part(gap.ns, whole))));
        let who = gap.thread.as_ref().map_or_else(
            || "the log has nothing".to_owned(),
            |thread| format!("{thread} wrote nothing"),
        );
        let text = format!(
            "{who} for {}{}, from {}",
            duration(gap.ns),
            share.unwrap_or_default(),
            gap.name
        );
        let line = Ranked::new(rank, &gap.name, text, (observed, &gap.quote)).ns(gap.ns);
        all.push(match whole {
            Some(whole) => line.share(part(gap.ns, whole)),
            None => line,
        });
    }
}

/// The command that took longest, and how much of that it was on a CPU.
fn add_commands(observed: &Observed, all: &mut Vec<Ranked>) {
    if let Some(elapsed) = longest(observed, SpanKind::CommandElapsed).filter(|span| span.ns > 0) {
        let beside = |kind| {
            let of_source = spans(observed, kind).filter(|span| span.quote.source == elapsed.quote.source);
            // Its lines stand together.
            of_source
                .min_by_key(|span| span.quote.line.abs_diff(elapsed.quote.line))
                .map(|span| span.ns)
        };
        let name = if elapsed.name.is_empty() {
            "the command"
        } else {
            elapsed.name.as_str()
        };
        let cpu = match (beside(SpanKind::CommandUser), beside(SpanKind::CommandSystem)) {
            (None, None) => beside(SpanKind::CommandCpu)
                .map_or_else(String::new, |cpu| format!(", {} of it on a CPU", duration(cpu))),
            (user, system) => {
                let cpu = user.unwrap_or(0).saturating_add(system.unwrap_or(0));
                format!(", {} of it on a CPU", duration(cpu))
            }
        };
        let text = format!("{name} took {}{cpu}", duration(elapsed.ns));
        all.push(Ranked::new(Rank::Largest, name, text, (observed, &elapsed.quote)).ns(elapsed.ns));
    }
    if let Some(requests) = longest(observed, SpanKind::Requests) {
        let text = format!("{} took {}", requests.name, duration(requests.ns));
        all.push(
            Ranked::new(Rank::Largest, &requests.name, text, (observed, &requests.quote)).ns(requests.ns),
        );
    }
}

/// The calls that took most of a trace.
fn add_calls(observed: &Observed, calls: &Calls, all: &mut Vec<Ranked>) {
    let sum: Ns = calls
        .calls
        .iter()
        .fold(0, |sum, call| sum.saturating_add(call.ns));
    let whole = calls.elapsed.unwrap_or(sum).max(1);
    let works = |call: &&CallTime| {
        !IDLE_CALLS
            .iter()
            .any(|kind| system_calls::is_named(Some(&call.call), *kind))
    };
    let most = calls.calls.iter().filter(works).max_by_key(|call| call.ns);
    let Some(most) = most
        .or_else(|| calls.calls.iter().max_by_key(|call| call.ns))
        .filter(|most| most.ns > 0)
    else {
        return;
    };
    let object = most
        .object
        .as_ref()
        .map_or_else(String::new, |object| format!(" on {object}"));
    let who = match most.thread.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let median = most.median.map_or_else(String::new, |median| {
        format!(", {} at the median", duration(median))
    });
    let slowest = match most.count {
        0 | 1 => String::new(),
        count => format!(" in {count} calls{median}, the longest {}", duration(most.max)),
    };
    let open = if most.open { " and had not come back" } else { "" };
    let text = format!(
        "{who}{}{object} took {}{open}{slowest}, {} of the traced time",
        most.call,
        duration(most.ns),
        percent(part(most.ns, whole))
    );
    let idle = !works(&most);
    let rank = if idle { Rank::Silence } else { Rank::Largest };
    let line = Ranked::new(rank, &most.call, text, (observed, &most.quote)).ns(most.ns);
    all.push(line.share(part(most.ns, whole)));
}

/// Where a profile has most of its samples: the function in which threads stood, and of which program most of that is.
fn add_profiles(observed: &Observed, all: &mut Vec<Ranked>) {
    for samples in &observed.samples {
        let waits = samples.waiting == Some(true);
        // The scheduler is where every wait ends, whatever it is for.
        let place = |stack| {
            let frames = observed.stacks.frames(stack);
            frames
                .skip_while(|frame| waits && profile::is_scheduler(frame))
                .collect::<Vec<_>>()
        };
        let mut tops: HashMap<&str, u64> = HashMap::new();
        let mut programs: HashMap<(&str, &str), u64> = HashMap::new();
        let mut heaviest: HashMap<&str, (u64, StackId)> = HashMap::new();
        for (stack, weight) in &samples.stacks {
            let frames = place(*stack);
            let Some((top, callers)) = frames.split_first() else {
                continue;
            };
            add_to(&mut tops, top, *weight);
            let known = heaviest.entry(top).or_insert((*weight, *stack));
            if known.0 < *weight {
                *known = (*weight, *stack);
            }
            if let Some(program) = callers.last() {
                add_to(&mut programs, (top, program), *weight);
            }
        }
        let most = tops
            .into_iter()
            .max_by_key(|(name, weight)| (*weight, Reverse(*name)));
        let Some((top, weight)) = most.filter(|_| samples.total > 0) else {
            continue;
        };
        let share = part(weight, samples.total);
        let what = match (waits, samples.weight) {
            (true, _) => "of the waiting time",
            (_, Weight::Count) => "of the samples",
            (_, Weight::Ns | Weight::Us) => "of the sampled time",
        };
        let amount = match samples.weight {
            Weight::Count => String::new(),
            Weight::Ns | Weight::Us => format!(" ({})", profile::amount(samples, weight)),
        };
        let frames = heaviest
            .get(top)
            .map(|(_, stack)| place(*stack))
            .unwrap_or_default();
        // The outermost is the program or thread.
        let inner = frames.get(1..frames.len().saturating_sub(1)).unwrap_or_default();
        let callers = inner.get(..inner.len().min(CALLERS)).unwrap_or_default();
        let called = match callers {
            [] => String::new(),
            callers => format!("; called by {}", callers.join(" < ")),
        };
        let of_top = programs.into_iter().filter(|((name, _), _)| *name == top);
        let program = of_top
            .max_by_key(|((_, program), weight)| (*weight, Reverse(*program)))
            .filter(|(_, of_program)| part(*of_program, weight) >= MIN_PROGRAM_SHARE)
            .map_or_else(String::new, |((_, program), _)| format!("; in {program}"));
        let text = format!(
            "{top} has {} {what}{amount}, the most of all functions{called}{program}",
            percent(share)
        );
        all.push(Ranked::new(Rank::Largest, top, text, (observed, &samples.quote)).share(share));
    }
}

fn add_to<K: std::hash::Hash + Eq>(sums: &mut HashMap<K, u64>, key: K, weight: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(weight);
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{CallTime, Calls, Quote, Samples, Span, SpanKind, Weight};

    const SECOND: u64 = 1_000_000_000;

    fn span(kind: SpanKind, name: &str, ns: u64) -> Span {
        Span {
            kind,
            name: name.to_owned(),
            began: None,
            ns,
            thread: None,
            usual: None,
            quote: Quote::default(),
            text: String::new(),
        }
    }

    fn texts(observed: &Observed) -> Vec<String> {
        account(observed).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_longest_unit_is_told_with_its_share() {
        let observed = Observed {
            spans: vec![
                span(SpanKind::BootPhase, "kernel", 3 * SECOND),
                span(SpanKind::BootPhase, "userspace", 66 * SECOND),
                span(SpanKind::UnitStart, "pacman-init.service", 34 * SECOND),
                span(SpanKind::UnitStart, "reflector-init.service", 40 * SECOND),
            ],
            ..Observed::default()
        };
        assert_eq!(
            texts(&observed),
            [
                "reflector-init.service took 40.00 s to start, 60.6 % of userspace's start; next pacman-init.service, 34.00 s"
            ]
        );
    }

    #[test]
    fn a_profile_of_waits_names_the_function_that_waits_and_whose_it_is() {
        let mut observed = Observed::default();
        let one = observed
            .stacks
            .intern(["finish_task_switch", "schedule", "down", "xfs_buf_lock", "tar"]);
        let other = observed.stacks.intern(["schedule", "futex_wait_queue", "sshd"]);
        observed.samples = vec![Samples {
            source: 0,
            weight: Weight::Us,
            waiting: Some(true),
            stacks: vec![(one, 3_000_000), (other, 1_000_000)],
            total: 4_000_000,
            quote: Quote::default(),
        }];
        let texts = texts(&observed);
        assert_eq!(
            texts,
            [
                "down has 75.0 % of the waiting time (3.00 s), the most of all functions; called by xfs_buf_lock; in tar"
            ]
        );
    }

    #[test]
    fn silence_comes_after_everything_that_says_something() {
        let observed = Observed {
            spans: vec![
                span(SpanKind::LogSilence, "GET /", 9000 * SECOND),
                span(SpanKind::LogGap, "`starting` to `started`", 12 * SECOND),
                span(
                    SpanKind::CommandElapsed,
                    "nslookup time.geekbang.org",
                    10 * SECOND,
                ),
            ],
            ..Observed::default()
        };
        let found = texts(&observed);
        assert!(
            found[0].starts_with("the log has nothing for 12.00 s, from `starting` to `started`"),
            "{found:?}"
        );
        assert_eq!(found[1], "nslookup time.geekbang.org took 10.00 s");
        assert!(found[2].contains("2 h 30 min"), "{found:?}");
    }

    #[test]
    fn the_call_with_most_time_is_told_and_not_the_one_that_waits_for_work() {
        let call = |call: &str, ns: u64, count: u64| CallTime {
            call: call.to_owned(),
            ns,
            max: ns / 2,
            count,
            ..CallTime::default()
        };
        let observed = Observed {
            calls: vec![Calls {
                elapsed: Some(20 * SECOND),
                calls: vec![call("epoll_wait", 15 * SECOND, 9), call("fsync", 4 * SECOND, 80)],
                ..Calls::default()
            }],
            ..Observed::default()
        };
        assert_eq!(
            texts(&observed),
            ["fsync took 4.00 s in 80 calls, the longest 2.00 s, 20.0 % of the traced time"]
        );
    }
}
