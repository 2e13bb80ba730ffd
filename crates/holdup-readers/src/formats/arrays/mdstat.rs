//! `/proc/mdstat`: the arrays of the kernel's own RAID.
//!
//! In: for each array a heading with its members, a line with `[2/1] [U_]`, and while it repairs itself a line with how far it
//! is. Out: a statement for each array that lacks a member, is not running, or is at a repair.

use super::{NAME, WORDS, cut, name, single};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("mdstat", Family::Host, recognise)
    .about("/proc/mdstat")
    .openings(&["Personalities : ["]);

/// Works that an array does beside its own: the first four make it whole, the last only looks.
const WORKS: [&str; 5] = ["resync", "recovery", "reshape", "rebuild", "check"];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let lines = || head.lines().map(str::trim);
    let array = lines().any(|line| Array::begin(line).is_some());
    let blocks = lines().any(|line| line.contains(" blocks"));
    match (array, blocks) {
        (true, _) if lines().any(|line| line.starts_with("Personalities :")) => Sureness::Certain,
        (true, true) => Sureness::Certain,
        _ => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Array {
    name: String,
    quote: Quote,
    inactive: bool,
    failed: Vec<String>,
    /// Devices that it should have, and that it has.
    devices: Option<(u64, u64)>,
    /// What it does beside its work, in the kernel's words.
    work: Option<String>,
}

impl Array {
    /// The heading of an array: `md0 : active raid1 sdb1[1](F) sda1[0]`.
    fn begin(line: &str) -> Option<Array> {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| name.starts_with("md"))?;
        if words.next() != Some(":") {
            return None;
        }
        let inactive = match words.next()? {
            "active" => false,
            "inactive" => true,
            _ => return None,
        };
        let mut array = Array {
            name: cut(name, NAME),
            inactive,
            ..Array::default()
        };
        array.members(line);
        Some(array)
    }

    fn members(&mut self, line: &str) {
        for word in line.split_whitespace().filter(|word| word.contains("(F)")) {
            let member = word.split('[').next().unwrap_or(word);
            name(&mut self.failed, member);
        }
    }

    /// A line below the heading; whether it says anything of the array.
    fn line(&mut self, line: &str) -> bool {
        let mut known = line.contains(" blocks") || line.starts_with("bitmap:");
        for word in line.split_whitespace() {
            let Some(inside) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) else {
                continue;
            };
            let numbers = inside
                .split_once('/')
                .and_then(|(all, some)| Some((all.parse().ok()?, some.parse().ok()?)));
            let map = !inside.is_empty() && inside.bytes().all(|byte| matches!(byte, b'U' | b'_'));
            match numbers {
                Some(numbers) => self.devices = Some(numbers),
                None if map => {
                    // Of a member that has just failed, the map knows first.
                    let used = inside.bytes().filter(|byte| *byte == b'U').count() as u64;
                    let (all, some) = self.devices.unwrap_or((inside.len() as u64, used));
                    self.devices = Some((all, some.min(used)));
                }
                None => continue,
            }
            known = true;
        }
        let work = WORKS
            .iter()
            .find_map(|work| {
                line.find(work)
                    .map(|at| (at, line.get(at + work.len()..).unwrap_or_default()))
            })
            .filter(|(_, behind)| behind.trim_start().starts_with('='));
        if let Some((at, _)) = work {
            let words = single(line.get(at..).unwrap_or_default());
            self.work = Some(cut(&words, WORDS));
            known = true;
        }
        self.members(line);
        known || line.contains("](")
    }

    fn end(self, out: &mut Out<'_>) {
        let missing = self.devices.filter(|(all, some)| some < all);
        let failed = match self.failed.as_slice() {
            [] => String::new(),
            failed => format!(", {} failed", failed.join(", ")),
        };
        let devices = self.devices.map_or_else(String::new, |(all, some)| {
            format!(": {some} of {all} devices in use")
        });
        let work = self
            .work
            .as_ref()
            .map_or_else(String::new, |work| format!("; {work}"));
        let stands = self
            .work
            .as_ref()
            .is_some_and(|work| work.ends_with("speed=0K/sec"));
        let name = self.name;
        let (kind, text) = if self.inactive {
            (
                StatementKind::Unreachable,
                format!("{name} is inactive{failed}{work}"),
            )
        } else if missing.is_some() || !failed.is_empty() {
            (
                StatementKind::Stalled,
                format!("{name} is degraded{devices}{failed}{work}"),
            )
        } else if stands {
            (StatementKind::Stalled, format!("{name} makes no progress{work}"))
        } else if self.work.is_some() {
            (
                StatementKind::Warned,
                format!("{name} is whole and works on its disks{work}"),
            )
        } else {
            return;
        };
        out.statement(statements::one(kind, None, self.quote, text));
    }
}

#[derive(Debug, Default)]
struct Reader {
    array: Option<Array>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim();
        if text.is_empty() || text.starts_with("Personalities") || text.starts_with("unused devices") {
            return Understood::Ignorable;
        }
        if let Some(array) = Array::begin(text) {
            self.end(out);
            self.array = Some(Array {
                quote: out.here(),
                ..array
            });
            return Understood::Evidence;
        }
        match self.array.as_mut().is_some_and(|array| array.line(text)) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(array) = self.array.take() {
            array.end(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn what_is_missing_and_how_far_the_repair_is() {
        let text = "Personalities : [raid1] [raid6]\n\
            md1 : active raid1 sdf1[2] sde1[0](F)\n      524224 blocks super 1.2 [2/1] [_U]\n\
            \x20     [==>..................]  recovery = 12.6% (66048/524224) finish=2.1min speed=3302K/sec\n\n\
            md2 : active raid6 sda[0] sdb[1] sdc[2] sdd[3]\n      1000 blocks [4/4] [UUUU]\n\
            md3 : inactive sdg1[1](S)\n      1000 blocks\n\nunused devices: <none>\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mdstat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let listed: Vec<_> = reading
            .observed
            .statements
            .iter()
            .map(|one| (one.kind, one.text.as_str()))
            .collect();
        assert_eq!(
            listed,
            [
                (
                    StatementKind::Stalled,
                    "md1 is degraded: 1 of 2 devices in use, sde1 failed; recovery = 12.6% (66048/524224) finish=2.1min \
                     speed=3302K/sec"
                ),
                (StatementKind::Unreachable, "md3 is inactive"),
            ]
        );
    }

    #[test]
    fn rubbish_is_no_array() {
        for text in [
            "md0 :",
            "md0 : active",
            "md : inactive [/] [999999999999999999999999/1] [] [_",
            "\u{0}",
        ] {
            let reading = read_text("m", text.as_bytes());
            assert!(reading.observed.statements.len() <= 1, "{text}");
        }
    }
}
