//! What the tools of RAID controllers list: `megacli -LDInfo` and `-PDList`, `storcli show`, `ssacli … show config`.
//!
//! In: names and values of each drive, or rows of tables. Out: one statement that names the volumes that are degraded and the drives that
//! failed, are rebuilt, or say that they will fail; or that all are well. Sources: the manuals of the three tools.

mod states;

use super::{NAME, NAMED, WORDS, cut, name, single};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::whole;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use states::{Worth, offline, worth};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("raid-controller", Family::Host, recognise).about("megacli, storcli, ssacli");

/// Bytes of a line, and words of one.
const LINE_BYTES: usize = 400;
const MAX_WORDS: usize = 40;

/// Columns of a row of a drive, at least.
const MIN_DRIVE_COLUMNS: usize = 6;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut lines = text.lines().map(str::trim);
    Sureness::certain_if(lines.any(|line| {
        line.starts_with("Firmware state:")
            || line.starts_with("Virtual Drive:") && line.contains("(Target Id:")
            || is_heading(line)
            || of_ssacli(line).is_some()
    }))
}

/// Headings of storcli's tables: of volumes, of drives, of the topology.
fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("DG/VD"), Some("TYPE")) | (Some("EID:Slt"), Some("DID")) => true,
        (Some("DG"), Some("Arr")) => words.any(|word| word == "EID:Slot"),
        _ => false,
    }
}

/// `logicaldrive 1 (279.4 GB, RAID 1, OK)`, `physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS, 300 GB, Failed)`: what it is, and its parts.
/// Of `show status` its state alone: `physicaldrive 1I:1:2 (port 1I:box 1:bay 2, 300 GB): Failed`.
fn of_ssacli(line: &str) -> Option<(&str, &str)> {
    if !(line.starts_with("logicaldrive ") || line.starts_with("physicaldrive ")) {
        return None;
    }
    let (what, parts) = line.split_once(" (")?;
    if let Some((_, state)) = parts.split_once("): ") {
        return Some((what, state));
    }
    let parts = parts.strip_suffix(')')?;
    parts.contains(", ").then_some((what, parts))
}

/// `32:3`, and `:3` of a controller without an enclosure.
fn is_slot(word: &str) -> bool {
    let Some((enclosure, slot)) = word.split_once(':') else {
        return false;
    };
    enclosure.bytes().all(|byte| byte.is_ascii_digit()) && whole(slot.as_bytes()).is_some()
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    worst: Option<(Worth, Quote)>,
    told: Vec<String>,
    /// Whether there are more than are named.
    more: bool,
    volumes: u64,
    drives: u64,
    /// The volume or drive that a list of names and values is of, and the enclosure of the next one.
    current: String,
    enclosure: String,
    /// The drive with the most errors of its medium.
    errors: Option<(u64, String, Quote)>,
}

impl Reader {
    fn put(&mut self, what: &str, state: &str, worth: Worth, out: &Out<'_>) {
        self.quote.get_or_insert_with(|| out.here());
        if worth == Worth::Well {
            return;
        }
        // A drive stands in the topology and in the list of drives.
        let said = cut(&format!("{what} is {}", cut(state.trim(), WORDS)), NAME);
        if !self.told.contains(&said) {
            self.more |= self.told.len() >= NAMED;
            name(&mut self.told, &said);
        }
        if self.worst.as_ref().is_none_or(|(worst, _)| worth > *worst) {
            self.worst = Some((worth, out.here()));
        }
    }

    /// A row of storcli's tables; `None` where it is none.
    fn row(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
        let first = *words.first()?;
        let volume = first.split_once('/').is_some_and(|(group, volume)| {
            (group == "-" || whole(group.as_bytes()).is_some()) && whole(volume.as_bytes()).is_some()
        });
        if volume && words.get(1)?.starts_with("RAID") {
            let state = words.get(2)?;
            self.volumes += 1;
            self.put(&format!("volume {first}"), state, worth(state), out);
            return Some(());
        }
        if is_slot(first) && words.len() >= MIN_DRIVE_COLUMNS {
            let state = words.get(2)?;
            self.drives += 1;
            self.put(&format!("drive {first}"), state, worth(state), out);
            return Some(());
        }
        // The topology: group, array, row, slot, id, what it is, its state.
        let [group, array, row, slot, _, kind, state, ..] = words.as_slice() else {
            return None;
        };
        let numbers = [group, array, row];
        let fits = numbers
            .iter()
            .all(|word| **word == "-" || whole(word.as_bytes()).is_some());
        if !fits || !(*kind == "DRIVE" || kind.starts_with("RAID")) {
            return None;
        }
        if *kind == "DRIVE" && worth(state) != Worth::Well {
            let what = match is_slot(slot) {
                true => format!("drive {slot}"),
                false => format!("drive {row} of group {group}"),
            };
            self.put(&what, state, worth(state), out);
        }
        Some(())
    }

    /// A name and a value of megacli's lists; `None` where it is none.
    fn value(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (key, value) = text.split_once(':')?;
        let (key, value) = (key.trim(), value.trim());
        match key {
            "Virtual Drive" | "CacheCade Virtual Drive" => {
                let number = value.split_whitespace().next().unwrap_or_default();
                self.current = format!("virtual drive {}", cut(number, NAME));
                self.volumes += 1;
            }
            "State" if self.current.starts_with("virtual") => {
                let current = self.current.clone();
                self.put(&current, value, offline(value), out);
            }
            "Enclosure Device ID" => self.enclosure = cut(value, NAME),
            "Slot Number" => {
                self.current = format!("drive {}:{}", self.enclosure, cut(value, NAME));
                self.drives += 1;
            }
            "Firmware state" => {
                let current = self.current.clone();
                let state = value.split(',').next().unwrap_or_default();
                self.put(&current, value, worth(state), out);
            }
            "Predictive Failure Count" if whole(value.as_bytes()).is_some_and(|count| count > 0) => {
                let current = self.current.clone();
                let state = format!("about to fail (Predictive Failure Count {})", cut(value, NAME));
                self.put(&current, &state, Worth::Warned, out);
            }
            "Media Error Count" => {
                let count = whole(value.as_bytes())?;
                if count > 0 && self.errors.as_ref().is_none_or(|(most, ..)| count > *most) {
                    self.errors = Some((count, self.current.clone(), out.here()));
                }
            }
            "Drive has flagged a S.M.A.R.T alert" => {
                if value == "Yes" {
                    let current = self.current.clone();
                    self.put(
                        &current,
                        "about to fail (it has flagged a S.M.A.R.T alert)",
                        Worth::Warned,
                        out,
                    );
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// What the tools print beside states: names and values, headings, rules, legends and what they call the lists.
fn says_nothing(text: &str) -> bool {
    const LISTS: [&str; 4] = ["Adapter ", "Internal Drive Cage ", "Port", "array "];
    // What a log says has numbers in front of its colon.
    let named = text.split_once(':').is_some_and(|(name, _)| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_uppercase())
            && !bytes.any(|byte| byte.is_ascii_digit())
    });
    named
        || text.contains(" = ")
        || text.contains('|')
        || text.bytes().all(|byte| matches!(byte, b'-' | b'='))
        || is_heading(text)
        || LISTS.iter().any(|list| text.starts_with(list))
        || text.split_once(" (").is_some_and(|(_, rest)| rest.ends_with(')'))
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text: String = text.chars().take(LINE_BYTES).collect();
        if let Some((what, parts)) = of_ssacli(&text) {
            let volume = what.starts_with("logical");
            match volume {
                true => self.volumes += 1,
                false => self.drives += 1,
            }
            let parts: Vec<&str> = parts.split(", ").map(str::trim).collect();
            let of = |part: &str| if volume { offline(part) } else { worth(part) };
            let worst = parts
                .iter()
                .max_by_key(|part| of(part))
                .copied()
                .unwrap_or_default();
            self.put(&cut(what, NAME), worst, of(worst), out);
            return Understood::Evidence;
        }
        match self.row(&text, out).or_else(|| self.value(&text, out)) {
            Some(()) => Understood::Evidence,
            None if says_nothing(&text) => Understood::Ignorable,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        if let Some((worst, quote)) = all.worst {
            let kind = match worst {
                Worth::Offline => StatementKind::Unreachable,
                Worth::Degraded => StatementKind::Stalled,
                Worth::Warned | Worth::Well => StatementKind::Warned,
            };
            let end = if all.more { "; and more" } else { "" };
            let text = format!("{}{end}", single(&all.told.join("; ")));
            out.statement(statements::one(kind, None, quote, text));
        } else if all.errors.is_none() && all.volumes + all.drives > 0 {
            let text = format!(
                "the controller's {} volumes and {} drives that are listed are well (none degraded, failed or rebuilt)",
                all.volumes, all.drives
            );
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
        if let Some((count, drive, quote)) = all.errors {
            let text = format!("{drive} has had most errors of its medium: {count} (Media Error Count)");
            out.statement(statements::one(StatementKind::Took, None, quote, text));
        }
    }
}

#[cfg(test)]
mod tests;
