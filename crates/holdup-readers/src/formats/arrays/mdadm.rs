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

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let has = |key: &str| {
        head.lines()
            .any(|line| value(line).is_some_and(|(known, _)| known == key))
    };
    Sureness::certain_if(has("Raid Level") && has("State") && has("Total Devices"))
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
    quote: Quote,
    state: String,
    wanted: Option<u64>,
    active: Option<u64>,
    work: Option<String>,
    members: Vec<String>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(path) = heading(text) {
            self.end(out);
            self.name = cut(path, NAME);
            self.quote = out.here();
            return Understood::Evidence;
        }
        if let Some((key, value)) = value(text) {
            match key {
                "State" => self.state = cut(value, WORDS),
                "Raid Devices" => self.wanted = value.parse().ok(),
                "Active Devices" => self.active = value.parse().ok(),
                // `Rebuild Status : 20% complete`.
                key if key.ends_with(" Status") => self.work = Some(cut(&single(text), WORDS)),
                _ => return Understood::Ignorable,
            }
            return Understood::Evidence;
        }
        if text.starts_with("Number") && text.ends_with("State") {
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
        } else if has("recovering") || has("resyncing") || has("reshaping") {
            StatementKind::Warned
        } else {
            return;
        };
        let name = if all.name.is_empty() {
            "the array"
        } else {
            &all.name
        };
        let mut text = format!("{name} is {}", all.state);
        if let Some((wanted, active)) = all.wanted.zip(all.active) {
            text.push_str(&format!(": {active} of {wanted} devices active"));
        }
        for more in all.members.iter().chain(&all.work) {
            text.push_str("; ");
            text.push_str(more);
        }
        out.statement(statements::one(kind, None, all.quote, text));
    }
}

impl Reader {
    /// A row of the table: four numbers, what the member is, its path.
    fn member(&mut self, line: &str) -> Understood {
        let mut words = line.split_whitespace();
        let numbers = words
            .by_ref()
            .take(4)
            .filter(|word| *word == "-" || word.parse::<u64>().is_ok())
            .count();
        if numbers < 4 {
            return Understood::No;
        }
        let rest: Vec<&str> = words.take(8).collect();
        let Some((path, state)) = rest.split_last().filter(|(path, _)| path.starts_with("/dev/")) else {
            return Understood::Evidence;
        };
        if state.iter().any(|word| matches!(*word, "faulty" | "rebuilding")) {
            name(&mut self.members, &format!("{path} is {}", state.join(" ")));
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
}
