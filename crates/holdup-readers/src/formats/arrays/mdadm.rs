//! `mdadm --detail`: one array of the kernel's RAID, or several.
//!
//! In: a heading with the array's path, a list of names and values, and a table of members. Out: a statement for each array that
//! is degraded or at a repair.

use super::{NAME, WORDS, cut, name, single};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mdadm", Family::Host, recognise).about("mdadm --detail");

/// Counts of an array's members; two of them are no other tool's.
const COUNTS: [&str; 6] = [
    "Raid Devices",
    "Total Devices",
    "Active Devices",
    "Working Devices",
    "Failed Devices",
    "Spare Devices",
];

/// Words of a row of the table, and numbers that it begins with, at least.
const MAX_WORDS: usize = 12;
const MIN_NUMBERS: usize = 4;

/// What a row of the table says of a member that is none, or none yet.
const NOT_IN_USE: [&str; 3] = ["faulty", "rebuilding", "removed"];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let mut counts = 0;
    let mut state = false;
    for line in head.lines() {
        if is_table(line) {
            return Sureness::Certain;
        }
        let key = value(line).map_or("", |(key, _)| key);
        counts += usize::from(COUNTS.contains(&key));
        state |= matches!(key, "State" | "Raid Level");
    }
    Sureness::certain_if(counts >= 2 || counts >= 1 && state)
}

/// The heading of the members: `Number   Major   Minor   RaidDevice State`.
fn is_table(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("Number") && words.any(|word| word == "RaidDevice")
}

/// `Raid Level : raid5`.
fn value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(" :")?;
    let key = key.trim();
    let plain = key.starts_with(|first: char| first.is_ascii_alphabetic()) && !key.contains('/');
    plain.then(|| (key, value.trim()))
}

/// The heading: `/dev/md127:`.
fn heading(line: &str) -> Option<&str> {
    line.strip_suffix(':')
        .filter(|name| name.starts_with("/dev/") && !name.contains(' '))
}

#[derive(Debug, Default)]
struct Reader {
    name: String,
    /// `Name : filer:5`: what the array is called in its own superblock, for an excerpt without the heading.
    label: String,
    quote: Option<Quote>,
    state: String,
    wanted: Option<u64>,
    active: Option<u64>,
    /// Members that failed.
    failed: u64,
    work: Option<String>,
    members: Vec<String>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(path) = heading(text) {
            self.end(out);
            self.name = cut(path, NAME);
            self.quote = Some(out.here());
            return Understood::Evidence;
        }
        self.quote.get_or_insert_with(|| out.here());
        if let Some((key, value)) = value(text) {
            match key {
                "Name" => {
                    let label = value.split_whitespace().next().unwrap_or_default();
                    self.label = cut(label, NAME);
                }
                "Failed Devices" => self.failed = value.parse().unwrap_or(0),
                "State" => self.state = cut(value, WORDS),
                "Raid Devices" => self.wanted = value.parse().ok(),
                "Active Devices" => self.active = value.parse().ok(),
                // `Rebuild Status : 20% complete`.
                key if key.ends_with(" Status") => self.work = Some(cut(&single(text), WORDS)),
                _ => return Understood::Ignorable,
            }
            return Understood::Evidence;
        }
        if is_table(text) {
            return Understood::Evidence;
        }
        self.member(text)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let has = |word: &str| {
            all.state
                .split([',', ' '])
                .any(|known| known.eq_ignore_ascii_case(word))
        };
        let short = all
            .wanted
            .zip(all.active)
            .filter(|(wanted, active)| active < wanted);
        let kind = if has("failed") || has("inactive") {
            StatementKind::Unreachable
        } else if has("degraded") || short.is_some() {
            StatementKind::Stalled
        } else if has("recovering") || has("resyncing") || has("reshaping") || all.failed > 0 {
            StatementKind::Warned
        } else if all.state.is_empty() && !all.members.is_empty() {
            StatementKind::Stalled
        } else {
            return;
        };
        let name = match (all.name.as_str(), all.label.as_str()) {
            ("", "") => "the array".to_owned(),
            ("", label) => format!("the array {label}"),
            (name, _) => name.to_owned(),
        };
        let state = match all.state.as_str() {
            "" => "not whole",
            state => state,
        };
        let mut text = format!("{name} is {state}");
        if let Some((wanted, active)) = all.wanted.zip(all.active) {
            text.push_str(&format!(": {active} of {wanted} devices active"));
        }
        if all.failed > 0 {
            text.push_str(&format!(", {} failed", all.failed));
        }
        for more in all.members.iter().chain(&all.work) {
            text.push_str("; ");
            text.push_str(more);
        }
        let quote = all.quote.unwrap_or_default();
        out.statement(statements::one(kind, None, quote, text));
    }
}

impl Reader {
    /// A row of the table: four numbers, of `--examine` five, what the member is, its path.
    fn member(&mut self, line: &str) -> Understood {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let number = |word: &&&str| **word == "-" || word.parse::<u64>().is_ok();
        let count = words.iter().take_while(number).count();
        let (Some((numbers, rest)), true) = (words.split_at_checked(count), count >= MIN_NUMBERS) else {
            return Understood::No;
        };
        let lost = |state: &[&str]| state.iter().any(|word| NOT_IN_USE.contains(word));
        match rest.split_last() {
            Some((path, state)) if path.starts_with("/dev/") && lost(state) => {
                name(&mut self.members, &format!("{path} is {}", state.join(" ")));
            }
            // What was removed has no path: its place in the array is known.
            _ if lost(rest) => {
                let slot = numbers.last().copied().unwrap_or_default();
                name(&mut self.members, &format!("member {slot} is {}", rest.join(" ")));
            }
            _ => {}
        }
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn a_degraded_array_with_its_members() {
        let text = "/dev/md5:\n           Version : 1.2\n        Raid Level : raid5\n      Raid Devices : 4\n\
            \x20    Total Devices : 4\n             State : active, degraded, recovering \n    Active Devices : 3\n\
            \x20   Rebuild Status : 41% complete\n\n    Number   Major   Minor   RaidDevice State\n\
            \x20      0       8        1        0      active sync   /dev/sda1\n\
            \x20      4       8       49        1      spare rebuilding   /dev/sdd1\n\
            \x20      2       8       33        -      faulty   /dev/sdc1\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mdadm");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            one.text,
            "/dev/md5 is active, degraded, recovering: 3 of 4 devices active; /dev/sdd1 is spare rebuilding; /dev/sdc1 is \
             faulty; Rebuild Status : 41% complete"
        );
        let whole = text
            .replace("active, degraded, recovering", "clean")
            .replace(": 3\n", ": 4\n");
        assert_eq!(read_text("m", whole.as_bytes()).observed.statements, []);
    }

    #[test]
    fn an_excerpt_has_its_name_below_and_names_who_is_gone() {
        let text = "             State : clean, degraded\n    Active Devices : 1\n   Working Devices : 1\n    Failed Devices : 1\n\
            \x20             Name : filer:7  (local to host filer)\n\n    Number   Major   Minor   RaidDevice State\n\
            \x20      0       8       17        0      active sync   /dev/sdb1\n       -       0        0        1      removed\n\n\
            \x20      2       8       33        -      faulty   /dev/sdc1\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mdadm");
        assert_eq!(
            reading.texts(),
            ["the array filer:7 is clean, degraded, 1 failed; member 1 is removed; /dev/sdc1 is faulty"]
        );
        // The table alone.
        let table = "Number   Major   Minor   RaidDevice State\n   0   8   17   0   active sync   /dev/sdb1\n   1   0   0   1   removed\n";
        assert_eq!(
            read_text("m", table.as_bytes()).texts(),
            ["the array is not whole; member 1 is removed"]
        );
        let whole = table.replace(
            "1   0   0   1   removed",
            "1   8   33   1   active sync   /dev/sdc1",
        );
        assert_eq!(read_text("m", whole.as_bytes()).observed.statements, []);
    }

    #[test]
    fn other_lists_of_states_are_none() {
        for text in ["State : degraded\nTotal : 3\n", "Raid Devices : 4\n"] {
            let found = read_text("m", text.as_bytes());
            assert_ne!(found.observed.sources[0].format, "mdadm", "{text}");
        }
    }
}
