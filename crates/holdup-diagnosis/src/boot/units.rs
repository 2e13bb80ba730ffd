//! Starts of units, as a log tells them: from "Starting" to what became of it.
//!
//! In: unit events of [`Observed`]. Out: [`Start`]s. Old logs name a unit in some lines and describe it in others; that
//! the two are one is known from where both are said to have failed, one line after the other.

use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, Span, SpanKind, UnitEvent, What, When};
use holdup_evidence::{Ns, Observed};
use std::collections::HashMap;

/// Lines between those in which a unit that failed is named and described: systemd writes them one after the other.
const TOGETHER: u64 = 3;

/// How soon a unit begins once what it waited for has come, nanoseconds: logs have whole seconds, and a busy manager takes some
/// of them.
const AT_ONCE: Ns = 2_000_000_000;

/// How soon a unit is tried again, nanoseconds: killing the old try and `RestartSec=` take some seconds.
const AGAIN: Ns = 10_000_000_000;
/// Starts among which the one is looked for whose process says that it listens: it says so soon after.
const RECENT: usize = 1_000;

/// How far two tellings of one length may be apart, nanoseconds: logs of whole seconds cut each end off.
const CUT_OFF: Ns = 1_000_000_000;

/// One try to start a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// By its name where that is known, else by its description.
    pub(crate) unit: &'a str,
    pub(crate) began: Option<&'a Happening>,
    /// That it ran out of time, and in which step.
    pub(crate) timed_out: Option<(&'a Happening, &'a str)>,
    /// That it was up: the manager's word, or its own that it listens.
    pub(crate) up: Option<&'a Happening>,
    /// Its own word that it listens.
    pub(crate) listens: Option<&'a Happening>,
    /// That it failed, for whatever reason.
    pub(crate) failed: Option<&'a Happening>,
    /// That it will be tried again.
    pub(crate) again: Option<&'a Happening>,
}

impl<'a> Start<'a> {
    /// Whether the other is of the same unit, log and boot.
    pub(crate) fn same_boot(&self, other: &Start<'_>, clock: &Clock<'_>) -> bool {
        let place = |start: &Start<'_>| {
            start
                .began
                .or(start.timed_out.map(|(one, _)| one))
                .map(|one| one.quote.clone())
        };
        self.unit == other.unit
            && place(self).zip(place(other)).is_some_and(|(one, other)| {
                one.source == other.source && clock.same_boot(&one, &other) == Some(true)
            })
    }

    /// What ended it: that its time ran out, that it was up, or that it failed.
    pub(crate) fn ended(&self) -> Option<&'a Happening> {
        let timed_out = self.timed_out.map(|(one, _)| one);
        timed_out.or(self.listens).or(self.up).or(self.failed)
    }

    /// From its beginning to its end, where the log has both.
    pub(crate) fn took(&self, clock: &Clock<'_>) -> Option<Ns> {
        let began = self.began?;
        between(clock, began, self.ended()?)
    }
}

/// How much later the second is; `None` where that is not known, or it is earlier.
pub(crate) fn between(clock: &Clock<'_>, first: &Happening, second: &Happening) -> Option<Ns> {
    Ns::try_from(clock.between(first, second)?).ok()
}

/// All starts, in order.
pub(crate) fn starts(observed: &Observed) -> Vec<Start<'_>> {
    let names = names(observed);
    let name = |source: u32, said: &'_ str| names.get(&(source, said)).copied();
    let mut all: Vec<(u32, Start<'_>)> = Vec::new();
    // The last try of each unit.
    let mut last: HashMap<(u32, &str), usize> = HashMap::new();
    for one in &observed.happenings {
        let source = one.quote.source;
        if matches!(one.what, What::Kernel(KernelEvent::Boot { .. })) {
            last.retain(|(of, _), _| *of != source);
        }
        let What::Unit(event) = &one.what else { continue };
        let said = match event {
            UnitEvent::Starting { unit }
            | UnitEvent::Started { unit }
            | UnitEvent::TimedOut { unit, .. }
            | UnitEvent::Failed { unit }
            | UnitEvent::DependencyFailed { unit }
            | UnitEvent::Restarting { unit, .. } => unit.as_str(),
            UnitEvent::ManagerStarted => continue,
            UnitEvent::Listening { process, .. } => {
                let of_it =
                    all.iter_mut().rev().take(RECENT).find(|(of, start)| {
                        *of == source && start.timed_out.is_none() && is_of(process, start)
                    });
                if let Some((_, start)) = of_it {
                    start.listens = start.listens.or(Some(one));
                }
                continue;
            }
        };
        let unit = name(source, said).unwrap_or(said);
        let known = last.get(&(source, unit)).copied();
        let begins = matches!(event, UnitEvent::Starting { .. });
        let fresh = matches!(event, UnitEvent::TimedOut { .. }) && known.is_none();
        if begins || fresh {
            last.insert((source, unit), all.len());
            all.push((
                source,
                Start {
                    unit,
                    began: begins.then_some(one),
                    timed_out: None,
                    up: None,
                    listens: None,
                    failed: None,
                    again: None,
                },
            ));
        }
        let place = last.get(&(source, unit)).copied();
        let Some((_, start)) = place.and_then(|place| all.get_mut(place)) else {
            continue;
        };
        match event {
            UnitEvent::TimedOut { step, .. } if start.up.is_none() => {
                start.timed_out = start.timed_out.or(Some((one, step)));
            }
            UnitEvent::Started { .. } => start.up = start.up.or(Some(one)),
            UnitEvent::Failed { .. } if start.up.is_none() => start.failed = start.failed.or(Some(one)),
            UnitEvent::Restarting { .. } => start.again = start.again.or(Some(one)),
            _ => {}
        }
    }
    all.into_iter().map(|(_, start)| start).collect()
}

/// The device that a unit stands for: `/dev/sdb1` of `dev-sdb1.device`, and of the path itself.
pub(crate) fn device(unit: &str) -> Option<String> {
    let name = match unit.strip_suffix(".device") {
        Some(name) => name,
        None => return unit.starts_with("/dev/").then(|| unit.to_owned()),
    };
    let mut path = String::from("/");
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        // `\x2d` is a character that would mean something else.
        let escaped = rest.strip_prefix("\\x").and_then(|code| code.get(..2));
        let code = escaped.and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(u8::is_ascii_graphic) {
            Some(code) => {
                path.push(char::from(code));
                rest = rest.get(4..).unwrap_or_default();
            }
            None => {
                path.push(if next == '-' { '/' } else { next });
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
            }
        }
    }
    Some(path)
}

/// The start that a hole in the critical chain was waiting for, where a log of the same boot shows it: it went on for at least half
/// of the hole, and was over when the unit behind the hole began. An earlier try of that unit itself counts too.
pub(crate) fn behind<'s, 'a>(
    observed: &'a Observed,
    clock: &Clock<'_>,
    starts: &'s [Start<'a>],
    hole: &Span,
) -> Option<&'s Start<'a>> {
    let of_it = |one: &&Happening| match &one.what {
        What::Unit(UnitEvent::Starting { unit } | UnitEvent::Started { unit }) => *unit == hole.name,
        _ => false,
    };
    if is_of_another_boot(observed, clock, starts, hole) {
        return None;
    }
    // A chain is of the last boot. What is there before it has begun begins with its last start; a target is only reached.
    let start = starts
        .iter()
        .rfind(|start| start.unit == hole.name && start.timed_out.is_none());
    let began = match start.and_then(|start| start.began) {
        Some(began) => began,
        None => observed.happenings.iter().rfind(of_it)?,
    };
    let fits = |start: &&Start<'_>| {
        let own = start.unit == hole.name;
        let end = start.timed_out.map(|(one, _)| one);
        let end = end.or(if own { None } else { start.up.or(start.listens) });
        let limit = if own { AGAIN } else { AT_ONCE };
        let before = end.and_then(|end| between(clock, end, began));
        let took = start
            .began
            .zip(end)
            .and_then(|(began, end)| between(clock, began, end));
        before.is_some_and(|ns| ns <= limit) && took.is_some_and(|ns| ns >= hole.ns / 2)
    };
    let took = |start: &&Start<'_>| start.took(clock);
    starts.iter().filter(fits).max_by_key(took)
}

/// Whether the chain of a hole is of another boot than these starts: two boots of a machine look alike, but for how long each
/// unit took.
fn is_of_another_boot(observed: &Observed, clock: &Clock<'_>, starts: &[Start<'_>], hole: &Span) -> bool {
    let of_chain = |span: &&Span| {
        span.kind == SpanKind::UnitStart
            && span.quote.source == hole.quote.source
            && matches!(span.began, Some(When::SinceStart(_)))
    };
    observed.spans.iter().filter(of_chain).any(|span| {
        let tries = starts.iter().filter(|start| start.unit == span.name);
        let last = tries
            .rev()
            .find(|start| start.timed_out.is_none() && start.up.is_some());
        let began_late = |start: &Start<'_>| start.began.is_some_and(|began| clock.was_taken_late(began));
        let took = last.filter(|start| !began_late(start)).and_then(|start| {
            // Until the manager's word: that is what the chain counts.
            between(clock, start.began?, start.up?)
        });
        took.is_some_and(|took| took.abs_diff(span.ns) > CUT_OFF)
    })
}

/// Whether a process is the one of a unit: `sshd` is of `ssh.service`.
fn is_of(process: &str, start: &Start<'_>) -> bool {
    let stem = start.unit.split('.').next().unwrap_or_default();
    !stem.is_empty() && (process.starts_with(stem) || stem.starts_with(process))
}

/// Names of units by source and description.
fn names(observed: &Observed) -> HashMap<(u32, &str), &str> {
    let mut names = HashMap::new();
    let mut named: Option<(&Happening, &str)> = None;
    for one in &observed.happenings {
        let What::Unit(UnitEvent::Failed { unit }) = &one.what else {
            continue;
        };
        if !unit.contains(' ') && unit.contains('.') {
            named = Some((one, unit));
        } else if let Some((by, name)) = named.take() {
            let near = one.quote.line.saturating_sub(by.quote.line) <= TOGETHER;
            if near && by.quote.source == one.quote.source && by.at == one.at {
                names.insert((one.quote.source, unit.as_str()), name);
            }
        }
    }
    names
}
