//! Starts of units, as a log tells them: from "Starting" to what became of it.
//!
//! In: unit events of [`Observed`]. Out: [`Start`]s. Old logs name a unit in some lines and describe it in others; that
//! the two are one is known from where both are said to have failed, one line after the other.

use crate::artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, UnitEvent, What};
use holdup_evidence::{Ns, Observed};
use std::collections::HashMap;

/// Lines between those in which a unit that failed is named and described: systemd writes them one after the other.
const TOGETHER: u64 = 3;

/// One try to start a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    /// By its name where that is known, else by its description.
    pub(super) unit: &'a str,
    pub(super) began: Option<&'a Happening>,
    /// That it ran out of time, and in which step.
    pub(super) timed_out: Option<(&'a Happening, &'a str)>,
    /// That it was up: the manager's word, or its own that it listens.
    pub(super) up: Option<&'a Happening>,
    /// Its own word that it listens.
    pub(super) listens: Option<&'a Happening>,
    /// That it will be tried again.
    pub(super) again: Option<&'a Happening>,
}

impl Start<'_> {
    /// Whether the other is of the same unit, log and boot.
    pub(super) fn same_boot(&self, other: &Start<'_>, clock: &Clock<'_>) -> bool {
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

    /// From its beginning to its end, where the log has both.
    pub(super) fn took(&self, clock: &Clock<'_>) -> Option<Ns> {
        let began = self.began?;
        let ended = self.timed_out.map(|(one, _)| one).or(self.listens).or(self.up)?;
        between(clock, began, ended)
    }
}

/// How much later the second is; `None` where that is not known, or it is earlier.
pub(super) fn between(clock: &Clock<'_>, first: &Happening, second: &Happening) -> Option<Ns> {
    let apart = clock.apart((&first.quote, first.at?), (&second.quote, second.at?))?;
    Ns::try_from(apart).ok()
}

/// All starts, in order.
pub(super) fn starts(observed: &Observed) -> Vec<Start<'_>> {
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
            | UnitEvent::Restarting { unit, .. } => unit.as_str(),
            UnitEvent::Listening { process, .. } => {
                let of_it = all
                    .iter_mut()
                    .rev()
                    .find(|(of, start)| *of == source && start.timed_out.is_none() && is_of(process, start));
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
            UnitEvent::Restarting { .. } => start.again = start.again.or(Some(one)),
            _ => {}
        }
    }
    all.into_iter().map(|(_, start)| start).collect()
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
