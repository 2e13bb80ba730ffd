//! `ceph daemon … dump_historic_ops`, `dump_historic_slow_ops`, `dump_ops_in_flight`, `dump_blocked_ops`: requests of a daemon of Ceph with
//! the steps that each went through.
//!
//! In: JSON as the daemon prints it, a name a line, whole or an excerpt. Out: one statement about the slowest request: how long it took or
//! has been going on, and the longest of its steps. Source: Ceph's documentation, "Troubleshooting OSDs".

use crate::find::find;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::{counted, duration};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ceph-ops", Family::Host, recognise).about("requests of Ceph's daemons");

/// Bytes of a request's description and of a step's name.
const DESCRIPTION_BYTES: usize = 160;
const STEP_BYTES: usize = 80;

/// Seconds that are believed.
const MAX_SECONDS: f64 = 1e9;

/// A day, for requests that go on over midnight.
const DAY_NS: Ns = 86_400_000_000_000;

/// From this age on Ceph itself complains of a request (`osd_op_complaint_time`, by default).
const COMPLAINT_NS: Ns = 30_000_000_000;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &[u8]| find(head, name).is_some();
    let steps = has(b"\"event\":") && has(b"\"time\":");
    // Records of many programs have a description and events; when a request came is called so by Ceph.
    let came = has(b"\"initiated_at\":") || has(b"\"received_at\":");
    Sureness::certain_if(has(b"\"description\":") && (has(b"\"flag_point\":") || steps && came))
}

/// `"duration": 5.213,`, `{ "time": "…",`: a name and its value; several may stand on a line.
fn pairs(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, name) = rest.split_once('"')?;
        let (name, behind) = name.split_once('"')?;
        let behind = behind.trim_start().strip_prefix(':')?.trim_start();
        let (value, behind) = match behind.strip_prefix('"') {
            // A description may have quotes of its own, escaped.
            Some(text) => {
                let end = text.char_indices().find(|(at, char)| {
                    *char == '"' && !text.get(..*at).is_some_and(|before| before.ends_with('\\'))
                });
                let (at, _) = end?;
                (text.get(..at)?, text.get(at + 1..)?)
            }
            None => {
                let end = behind.find([',', '}', ' ']).unwrap_or(behind.len());
                behind.split_at_checked(end)?
            }
        };
        rest = behind;
        Some((name, value))
    })
}

/// Nanoseconds of the day of `2026-02-13T22:11:00.200261+0000`, `2026-02-13 22:11:00.200261`.
fn of_day(text: &str) -> Option<Ns> {
    let at = text.find(['T', ' '])?;
    let clock = text.get(at + 1..)?;
    let end = clock.find(['+', '-', 'Z']).unwrap_or(clock.len());
    let mut parts = clock.get(..end)?.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (hours, minutes) = (whole(hours.as_bytes())?, whole(minutes.as_bytes())?);
    let seconds = decimal(seconds.as_bytes()).filter(|seconds| (0.0..=60.0).contains(seconds))?;
    (hours < 24 && minutes < 60)
        .then(|| (hours * 3_600 + minutes * 60) * 1_000_000_000 + (seconds * 1e9) as Ns)
}

/// A request.
#[derive(Debug, Clone, Default)]
struct Request {
    description: String,
    quote: Option<Quote>,
    /// How long it took, or has been going on.
    took: Option<Ns>,
    age: Option<Ns>,
    /// Where it stands now.
    flag: String,
    /// The step before: its name and its time of the day.
    last: Option<(String, Ns)>,
    /// A time whose step is still to be named, and the other way round.
    time: Option<Ns>,
    event: Option<String>,
    /// The longest step: how long, from what to what.
    longest: Option<(Ns, String, String)>,
    /// Whether its steps have begun: what follows is of them.
    steps: bool,
}

impl Request {
    /// How long it took; of a request that goes on its age tells, which older versions count on beside.
    fn length(&self, goes_on: bool) -> Ns {
        let (first, second) = match goes_on {
            true => (self.age, self.took),
            false => (self.took, self.age),
        };
        first.or(second).unwrap_or(0)
    }

    /// A step, once its name and its time are there.
    fn step(&mut self) {
        let (Some(at), true) = (self.time, self.event.is_some()) else {
            return;
        };
        let event = self.event.take().unwrap_or_default();
        self.time = None;
        if let Some((from, before)) = self.last.take() {
            // A step back is of a clock, a large one of midnight.
            let took = match at.checked_sub(before) {
                Some(took) => took,
                None => (at + DAY_NS).saturating_sub(before),
            };
            let took = if took > DAY_NS / 2 { 0 } else { took };
            if took > 0 && self.longest.as_ref().is_none_or(|(longest, ..)| took > *longest) {
                self.longest = Some((took, from, event.clone()));
            }
        }
        self.last = Some((event, at));
    }
}

#[derive(Debug, Default)]
struct Reader {
    current: Request,
    slowest: Option<Request>,
    requests: u64,
    /// Whether the list is of requests that have not ended.
    in_flight: bool,
}

fn seconds(value: &str) -> Option<Ns> {
    let value = decimal(value.as_bytes()).filter(|value| (0.0..MAX_SECONDS).contains(value))?;
    Some((value * 1e9) as Ns)
}

impl Reader {
    fn close(&mut self) {
        let request = std::mem::take(&mut self.current);
        if request.description.is_empty() {
            return;
        }
        self.requests += 1;
        let goes_on = self.in_flight;
        if self
            .slowest
            .as_ref()
            .is_none_or(|slowest| request.length(goes_on) > slowest.length(goes_on))
        {
            self.slowest = Some(request);
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let mut known = false;
        for (name, value) in pairs(text) {
            known = true;
            match name {
                "description" => {
                    self.close();
                    self.current.description = value.chars().take(DESCRIPTION_BYTES).collect();
                    self.current.quote = Some(out.here());
                }
                "duration" if !self.current.steps => self.current.took = seconds(value),
                "age" if !self.current.steps => self.current.age = seconds(value),
                "flag_point" => self.current.flag = value.chars().take(STEP_BYTES).collect(),
                "num_ops" => self.in_flight = true,
                "time" => {
                    self.current.steps = true;
                    self.current.time = of_day(value);
                    self.current.step();
                }
                "event" => {
                    self.current.steps = true;
                    self.current.event = Some(value.chars().take(STEP_BYTES).collect());
                    self.current.step();
                }
                _ => {}
            }
        }
        let brackets = text.bytes().all(|byte| b"{}[], ".contains(&byte)) || text.starts_with('"');
        match known {
            true => Understood::Evidence,
            false if brackets => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let all = std::mem::take(self);
        let Some(request) = all.slowest else { return };
        let Some(quote) = request.quote.clone() else {
            return;
        };
        let goes_on = all.in_flight || request.took.is_none();
        let took = request.length(goes_on);
        if took == 0 {
            return;
        }
        let verb = if goes_on { "has been going on for" } else { "took" };
        let mut text = format!(
            "{} {verb} {}, the slowest of {}",
            request.description,
            duration(took),
            counted(all.requests, "request", "requests")
        );
        if let Some((step, from, to)) = &request.longest {
            text.push_str(&format!(
                "; its longest step took {}, from \"{from}\" to \"{to}\"",
                duration(*step)
            ));
        }
        if !request.flag.is_empty() {
            text.push_str(&format!("; it is at \"{}\"", request.flag));
        }
        let kind = match took >= COMPLAINT_NS {
            true => StatementKind::Stalled,
            false => StatementKind::Took,
        };
        out.statement(statements::one(kind, Some(took), quote, text));
    }
}

#[cfg(test)]
mod tests;
