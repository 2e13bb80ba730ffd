//! `zpool status`: pools of ZFS.
//!
//! In: for each pool names and values (`pool:`, `state:`, `status:`, `scan:`, `errors:`), of which some go on over several lines,
//! and a table of its devices. Out: a statement for each pool that is not whole, has errors, or is at a repair.

use super::{NAME, WORDS, cut, name, single};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("zpool-status", Family::Host, recognise).about("zpool status");

/// States of a device that is in use.
const IN_ORDER: [&str; 3] = ["ONLINE", "AVAIL", "INUSE"];

/// States of a device that is not.
const NOT_IN_ORDER: [&str; 6] = [
    "DEGRADED",
    "FAULTED",
    "UNAVAIL",
    "OFFLINE",
    "REMOVED",
    "SUSPENDED",
];

/// What the columns of a device count.
const COLUMNS: [&str; 3] = ["read errors", "write errors", "checksum errors"];

/// Names of [`GROUPS`] of which each device can be put right from the others.
const REDUNDANT: [&str; 3] = ["mirror-", "raidz", "draid"];

/// Names that the tool gives to what it makes of several devices.
const GROUPS: [&str; 9] = [
    "mirror",
    "raidz",
    "draid",
    "replacing",
    "spare",
    "logs",
    "log",
    "cache",
    "special",
];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let has = |key: &str| head.lines().any(|line| line.trim_start().starts_with(key));
    Sureness::certain_if(has("pool: ") && has("state: ") && has("config:"))
}

#[derive(Debug, Default)]
struct Reader {
    pool: String,
    quote: Quote,
    state: String,
    status: String,
    scan: String,
    errors: String,
    /// Which of them the next line may go on with.
    at: Part,
    devices: Vec<String>,
    groups: Vec<String>,
    /// Whether several devices hold the same data.
    redundant: bool,
    /// Errors that the pool itself has: what could not be put right from its other disks.
    own: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Nothing,
    Status,
    Scan,
    Table,
    Errors,
    /// What to do, and where to read more.
    Other,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let keyed = text
            .split_once(':')
            .filter(|(_, value)| value.is_empty() || value.starts_with(' '));
        if let Some((key, value)) = keyed {
            let value = cut(value.trim(), WORDS);
            let part = match key {
                "pool" => {
                    self.end(out);
                    self.quote = out.here();
                    self.pool = cut(&value, NAME);
                    Part::Other
                }
                "state" => {
                    self.state = value;
                    Part::Other
                }
                "status" => {
                    self.status = value;
                    Part::Status
                }
                "scan" | "scrub" => {
                    self.scan = value;
                    Part::Scan
                }
                "config" => Part::Table,
                "errors" => {
                    self.errors = value;
                    Part::Errors
                }
                "action" | "see" => Part::Other,
                _ => Part::Nothing,
            };
            if part != Part::Nothing {
                self.at = part;
                return Understood::Evidence;
            }
        }
        match self.at {
            Part::Nothing => return Understood::No,
            Part::Status => go_on(&mut self.status, text),
            Part::Scan => go_on(&mut self.scan, text),
            Part::Table => return self.device(text),
            Part::Errors | Part::Other => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        if all.pool.is_empty() {
            return;
        }
        let whole = all.state == "ONLINE" || all.state.is_empty();
        let clean = all.errors.is_empty() || all.errors.starts_with("No known data errors");
        let runs = all.scan.contains("in progress");
        let devices = if all.devices.is_empty() {
            all.groups
        } else {
            all.devices
        };
        let kind = match all.state.as_str() {
            "FAULTED" | "UNAVAIL" | "SUSPENDED" | "REMOVED" => StatementKind::Unreachable,
            _ if !whole => StatementKind::Stalled,
            _ if !devices.is_empty() || !clean => StatementKind::Failed,
            _ if runs => StatementKind::Warned,
            _ => return,
        };
        let mut text = format!("pool {} is {}", all.pool, all.state);
        if !devices.is_empty() {
            text.push_str(&format!(": {}", devices.join(", ")));
        }
        if !all.own.is_empty() {
            let why = match all.redundant {
                true => "several of its disks gave damaged data or none, which could not be put right",
                false => "no good copy of the data was left",
            };
            text.push_str(&format!("; the pool itself has {}: {why}", all.own.join(", ")));
        }
        let errors = Some(&all.errors).filter(|_| !clean);
        let scan = Some(&all.scan).filter(|_| runs);
        let status = Some(&all.status).filter(|status| !status.is_empty());
        for more in errors.into_iter().chain(scan).chain(status) {
            text.push_str("; ");
            text.push_str(more);
        }
        out.statement(statements::one(kind, None, all.quote, text));
    }
}

/// Adds a line to a value that goes on.
fn go_on(value: &mut String, line: &str) {
    if value.len() < WORDS {
        value.push(' ');
        value.push_str(&cut(&single(line), WORDS));
    }
}

impl Reader {
    /// A row of the table: name, state, errors of reads, of writes and of checksums, and a remark.
    fn device(&mut self, line: &str) -> Understood {
        let mut words = line.split_whitespace();
        let Some(device) = words.next() else {
            return Understood::Ignorable;
        };
        let Some(state) = words.next() else {
            // `logs`, `spares`: a heading within the table.
            return Understood::Evidence;
        };
        if (device, state) == ("NAME", "STATE") {
            return Understood::Evidence;
        }
        let bad = NOT_IN_ORDER.contains(&state);
        if !bad && !IN_ORDER.contains(&state) {
            return Understood::No;
        }
        let counts: Vec<&str> = words.by_ref().take(3).collect();
        let errors: Vec<String> = counts
            .iter()
            .zip(COLUMNS)
            .filter(|(count, _)| count.starts_with(|first: char| matches!(first, '1'..='9')))
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        self.redundant |= REDUNDANT.iter().any(|group| device.starts_with(group));
        if device == self.pool {
            self.own = errors;
            return Understood::Evidence;
        }
        if !bad && errors.is_empty() {
            return Understood::Evidence;
        }
        let remark = words.collect::<Vec<_>>().join(" ");
        let mut parts = errors;
        if !remark.is_empty() {
            parts.push(cut(&remark, NAME));
        }
        let found = match parts.as_slice() {
            [] => format!("{device} {state}"),
            parts => format!("{device} {state} ({})", parts.join(", ")),
        };
        let group = GROUPS.iter().any(|group| {
            let rest = device.strip_prefix(group);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(|next: char| next == '-' || next.is_ascii_digit())
            })
        });
        let list = if group {
            &mut self.groups
        } else {
            &mut self.devices
        };
        name(list, &found);
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TEXT: &str = "  pool: store\n state: DEGRADED\nstatus: One or more devices has been removed.\n\
        action: Online the device using 'zpool online'.\n  scan: resilver in progress since Mon Mar  2 10:00:00 2026\n\
        \x20       1.20T scanned, 300G issued, 2.00T total\n        31.50% done, 01:10:00 to go\nconfig:\n\n\
        \x20       NAME        STATE     READ WRITE CKSUM\n        store       DEGRADED     0     0     0\n\
        \x20         mirror-0  DEGRADED     0     0     0\n            nvme1n1 REMOVED      0     0     0\n\
        \x20           nvme2n1 ONLINE       0     0     4\n\nerrors: No known data errors\n";

    #[test]
    fn a_pool_with_its_devices_and_how_far_the_repair_is() {
        let reading = read_text("z", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "zpool-status");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(one.kind, StatementKind::Stalled);
        assert!(
            one.text.starts_with(
                "pool store is DEGRADED: nvme1n1 REMOVED, nvme2n1 ONLINE (4 checksum errors); resilver in progress since"
            ),
            "{}",
            one.text
        );
        assert!(one.text.contains("31.50% done"), "{}", one.text);
    }

    #[test]
    fn errors_of_the_pool_itself_are_told() {
        let text = TEXT.replace(
            "store       DEGRADED     0     0     0",
            "store       DEGRADED     0     0 13.4M",
        );
        let reading = read_text("z", text.as_bytes());
        let told = &reading.observed.statements[0].text;
        assert!(
            told.contains("the pool itself has 13.4M checksum errors: several of its disks"),
            "{told}"
        );
        let alone = "  pool: store\n state: ONLINE\nconfig:\n\n\tNAME      STATE READ WRITE CKSUM\n\tstore ONLINE 0 0 4\n\t  sda ONLINE 0 0 8\n\n\
            errors: 2 data errors, use '-v' for a list\n";
        let reading = read_text("z", alone.as_bytes());
        let told = &reading.observed.statements[0].text;
        assert!(
            told.contains("checksum errors: no good copy of the data was left"),
            "{told}"
        );
    }

    #[test]
    fn a_whole_pool_states_nothing() {
        let text = "  pool: store\n state: ONLINE\n  scan: scrub repaired 0B in 01:00:00 with 0 errors\nconfig:\n\n\
            \tNAME      STATE READ WRITE CKSUM\n\tstore ONLINE 0 0 0\n\t  sda ONLINE 0 0 0\n\nerrors: No known data errors\n";
        let reading = read_text("z", text.as_bytes());
        assert_eq!(reading.observed.statements, []);
        assert_eq!(reading.observed.sources[0].format, "zpool-status");
    }
}
