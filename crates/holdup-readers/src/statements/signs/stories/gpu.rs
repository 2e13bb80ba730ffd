//! A graphics card that hangs or is gone: the driver tells which, on whose work, and how its reset went, in a line each.
//!
//! In: lines of amdgpu (`ring gfx_0.0.0 timeout, signaled seq=…`, `Process x pid 7 thread …`, `Ring gfx_0.0.0 reset failed`) and of NVIDIA's driver, whose
//! message goes on in lines without a time (`The NVIDIA GPU 0000:b3:00.0`, `fallen off the bus`). Out: one fact for each card.

use super::{Line, Span, times};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Cards that are followed, and bytes of a name.
const MAX_CARDS: usize = 64;
const MAX_NAME_BYTES: usize = 60;

/// Lines behind a card's hang in which the driver says whose work it was.
const NEAR: u64 = 6;

/// One card.
#[derive(Debug, Default)]
struct Card {
    name: String,
    ring: String,
    work_of: String,
    hangs: u64,
    gone: bool,
    /// How its reset went, as far as it is told.
    reset: Reset,
    last_hang: u64,
    span: Span,
}

/// How the reset of a card went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reset {
    #[default]
    Unknown,
    RingFailed,
    WholeBegun,
    Succeeded,
    WholeFailed,
}

/// The cards of one artefact.
#[derive(Debug, Default)]
pub(super) struct Cards {
    all: Vec<Card>,
    /// Of NVIDIA's: the card that the lines above named, and which line that was.
    named: Option<(String, u64)>,
}

/// The word behind some words, in bounds.
fn behind<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(words)?;
    let word = rest.split_whitespace().next()?.trim_end_matches([',', ':', '.']);
    (!word.is_empty() && word.len() <= MAX_NAME_BYTES).then_some(word)
}

/// `amdgpu 0000:03:00.0: amdgpu: …`: the card, and what is said of it.
fn of_amd(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("amdgpu ")?;
    let (card, said) = rest.split_once(": ")?;
    let is_address = card.len() >= 7
        && card.contains(':')
        && card
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    is_address.then_some((card, said.trim_start_matches("amdgpu:").trim()))
}

impl Cards {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some((card, said)) = of_amd(line.text) {
            self.amd(card, said, line);
        } else if line.text.contains("NVRM:") {
            self.nvidia(line);
        }
    }

    fn amd(&mut self, name: &str, said: &str, line: Line<'_>) {
        let small = said.to_ascii_lowercase();
        let hangs = small.contains("ring ") && small.contains(" timeout, signaled");
        if hangs && let Some(card) = self.card(name) {
            card.hangs += 1;
            card.last_hang = line.number;
            let at = small.find("ring ").map_or(0, |at| at + "ring ".len());
            card.ring = said
                .get(at..)
                .and_then(|rest| rest.split_whitespace().next())
                .unwrap_or_default()
                .to_owned();
            card.span.add(line);
            return;
        }
        let Some(card) = self.all.iter_mut().find(|card| card.name == name) else {
            return;
        };
        if line.number.saturating_sub(card.last_hang) <= NEAR
            && card.work_of.is_empty()
            && let Some(process) =
                behind(said, "rocess ").filter(|_| small.contains("process ") && small.contains(" pid "))
        {
            let pid = behind(said, " pid ").unwrap_or_default();
            card.work_of = format!("{process} (pid {pid})");
        }
        let reset = if small.contains("gpu reset(") && small.contains("succeeded") {
            Reset::Succeeded
        } else if small.contains("gpu reset") && small.contains("fail") {
            Reset::WholeFailed
        } else if small.contains("gpu reset begin") {
            Reset::WholeBegun
        } else if small.contains("ring ") && small.contains("reset failed") {
            Reset::RingFailed
        } else {
            return;
        };
        card.reset = card.reset.max(reset);
        card.span.add(line);
    }

    fn nvidia(&mut self, line: Line<'_>) {
        if let Some(card) = behind(line.text, "The NVIDIA GPU ") {
            self.named = Some((card.to_owned(), line.number));
        }
        if !line.text.contains("fallen off the bus") {
            return;
        }
        // In one line, `Xid (PCI:0000:b3:00): 79, … GPU has fallen off the bus`, it says all itself.
        let near = |(_, number): &(String, u64)| line.number.saturating_sub(*number) <= NEAR;
        if let Some((name, _)) = self.named.take().filter(near)
            && let Some(card) = self.card(&name)
        {
            card.gone = true;
            card.span.add(line);
        }
    }

    fn card(&mut self, name: &str) -> Option<&mut Card> {
        let place = self.all.iter().position(|card| card.name == name);
        let place = match place {
            Some(place) => place,
            None if self.all.len() < MAX_CARDS => {
                self.all.push(Card {
                    name: name.to_owned(),
                    ..Card::default()
                });
                self.all.len() - 1
            }
            None => return None,
        };
        self.all.get_mut(place)
    }

    pub(super) fn end(self, told: &mut Told) -> Vec<Fact> {
        self.all.into_iter().map(|card| card.fact(told)).collect()
    }
}

impl Card {
    fn fact(self, told: &mut Told) -> Fact {
        self.span.lines.iter().for_each(|line| told.add(*line));
        let line = self.span.lines.first().copied().unwrap_or_default();
        if self.gone {
            return Fact {
                kind: StatementKind::Failed,
                share: None,
                ns: None,
                line,
                text: format!(
                    "the NVIDIA GPU {} has fallen off the bus and does not answer: check its power, heat and slot",
                    self.name
                ),
            };
        }
        let work = match self.work_of.as_str() {
            "" => String::new(),
            work => format!(" on work of {work}"),
        };
        let reset = match self.reset {
            Reset::Unknown => "",
            Reset::RingFailed => "; the reset of the ring failed",
            Reset::WholeBegun => "; the reset of the ring did not help, so the whole GPU is reset",
            Reset::Succeeded => "; the reset of the GPU succeeded",
            Reset::WholeFailed => "; the reset of the GPU failed",
        };
        Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns: None,
            line,
            text: format!(
                "the GPU {} hung: its ring {} timed out{work}{}{reset}",
                self.name,
                self.ring,
                times(self.hangs)
            ),
        }
    }
}
