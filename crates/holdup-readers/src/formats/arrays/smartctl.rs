//! `smartctl`: what a disk counts of its own errors.
//!
//! In: the table of attributes in either form, lists of names and values, the log of self-tests; or lines of them. Out: one
//! statement if the disk has sectors that it could not read or had to replace, errors in its log, or failed tests.

use super::{NAME, cut, name, single};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("smartctl", Family::Host, recognise)
    .about("smartctl")
    .openings(&["smartctl 7.", "smartctl 6.", "smartctl 5."]);

/// Attributes that count what a sound disk does not have, by number: sectors replaced, starts of the motor tried again, errors
/// not corrected, sectors that wait to be read, sectors that cannot be.
const COUNTS: [u64; 5] = [5, 10, 187, 197, 198];

/// The same in the lists of SCSI and NVMe disks, and errors that are in a log.
const NAMED_COUNTS: [&str; 5] = [
    "Device Error Count",
    "ATA Error Count",
    "Media and Data Integrity Errors",
    "Elements in grown defect list",
    "Non-medium error count",
];

/// The attributes of [`COUNTS`] by name, for lists that leave the numbers out.
const NAMES: [(&str, u64); 5] = [
    ("Reallocated_Sector_Ct", 5),
    ("Spin_Retry_Count", 10),
    ("Reported_Uncorrect", 187),
    ("Current_Pending_Sector", 197),
    ("Offline_Uncorrectable", 198),
];

/// Numbers of rows without which the table is not taken for one.
const ROWS: usize = 3;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let lines = || head.lines().map(str::trim);
    let known = |line: &str| {
        line.starts_with("ID# ATTRIBUTE_NAME")
            || line.starts_with("=== START OF SMART DATA SECTION")
            || line.starts_with("SMART overall-health")
            || line.starts_with("SMART/Health Information (NVMe")
    };
    match lines().any(known) {
        true => Sureness::Certain,
        false if lines().filter(|line| Row::of(line).is_some()).count() >= ROWS => Sureness::Likely,
        false => Sureness::No,
    }
}

/// A row of the table of attributes.
#[derive(Debug)]
struct Row<'a> {
    number: u64,
    attribute: &'a str,
    /// The count, where the line has it: long rows are wrapped.
    count: Option<u64>,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Row<'a>> {
        let mut words = line.split_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number < 256)?;
        let attribute = words.next().filter(|attribute| attribute.contains('_'))?;
        let flag = words.next()?;
        let flags = flag.starts_with("0x")
            || flag.len() == 6 && flag.bytes().all(|byte| byte == b'-' || byte.is_ascii_uppercase());
        let mut three = words.by_ref().take(3);
        let values = three.all(|word| word == "---" || word.len() == 3 && word.parse::<u64>().is_ok());
        (flags && values).then(|| Row {
            number,
            attribute,
            count: count(words),
        })
    }
}

/// An attribute that stands first on its line, as people and scripts list them: `Current_Pending_Sector val=99 raw=8`,
/// `Reallocated_Sector_Ct: 48`, `Reallocated_Sector_Ct 100 100 010 48`. The count is what is called so, else the last number.
fn of_name(text: &str) -> Option<(u64, &str, u64)> {
    let text = text.trim_start_matches(|char: char| char.is_ascii_digit() || char.is_whitespace());
    let (attribute, rest) = text.split_at(text.find([' ', ':', '=', '\t'])?);
    let (_, number) = NAMES.iter().find(|(name, _)| *name == attribute)?;
    let whole = |text: &str| {
        let digits = text.split(|char: char| !char.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let raw = rest
        .split_once("raw=")
        .or_else(|| rest.split_once("RAW_VALUE="))
        .and_then(|(_, raw)| whole(raw));
    let words = rest.split([' ', '\t', ':', '=']).filter(|word| !word.is_empty());
    let last = || {
        words
            .take_while(|word| !word.starts_with('('))
            .filter_map(whole)
            .last()
    };
    Some((*number, attribute, raw.or_else(last)?))
}

/// The first number behind the words for when the attribute failed.
fn count<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<u64> {
    words.find_map(|word| word.parse().ok())
}

#[derive(Debug, Default)]
struct Reader {
    disk: Option<String>,
    quote: Option<Quote>,
    /// The attribute whose count stands on the next line.
    wrapped: Option<(u64, String)>,
    bad: Vec<String>,
    failed_tests: u64,
    fails: bool,
    /// Whether it passes its own test, and whether sectors of it cannot be read.
    passes: bool,
    unreadable: bool,
    /// Whether it could once not correct what it read, which may have been put right since.
    uncorrected: bool,
}

/// The attributes of [`COUNTS`] that say that data cannot be read now, and the one that says that it once could not.
const UNREADABLE: [u64; 2] = [197, 198];
const UNCORRECTED: u64 = 187;

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some((number, attribute)) = self.wrapped.take()
            && let Some(count) = count(text.split_whitespace())
        {
            self.count(number, &attribute, count, out);
            return Understood::Evidence;
        }
        if let Some(row) = Row::of(text) {
            match row.count {
                Some(count) => self.count(row.number, row.attribute, count, out),
                None => self.wrapped = Some((row.number, cut(row.attribute, NAME))),
            }
            return Understood::Evidence;
        }
        if self.disk.is_none()
            && text.contains("smartctl")
            && let Some(path) = text.split([' ', '|', ';']).find(|word| word.starts_with("/dev/"))
        {
            self.disk = Some(cut(path, NAME));
            return Understood::Evidence;
        }
        // `# 1  Extended offline    Completed: read failure 90%`.
        if text.starts_with('#') && text.contains("offline") {
            let failed = text.contains("failure") || text.contains("Fatal");
            self.failed_tests += u64::from(failed);
            if failed {
                self.quote.get_or_insert_with(|| out.here());
            }
            return Understood::Evidence;
        }
        if let Some((number, attribute, count)) = of_name(text) {
            self.count(number, attribute, count, out);
            return Understood::Evidence;
        }
        let Some((key, value)) = text.split_once(':') else {
            return Understood::Ignorable;
        };
        let value = value.trim();
        match key {
            "Device Model" | "Model Number" | "Product" if self.disk.is_none() => {
                self.disk = Some(cut(value, NAME));
            }
            "SMART overall-health self-assessment test result" | "SMART Health Status" => {
                if value.starts_with("FAILED") || value.contains("FAILURE") {
                    self.fails = true;
                    self.quote.get_or_insert_with(|| out.here());
                }
                self.passes |= value.starts_with("PASSED") || value == "OK";
            }
            "Critical Warning" if !matches!(value, "0x00" | "0x0") => {
                name(&mut self.bad, &format!("critical warning {}", single(value)));
                self.quote.get_or_insert_with(|| out.here());
            }
            key if NAMED_COUNTS.contains(&key) => {
                if count(value.split_whitespace()).is_some_and(|count| count > 0) {
                    name(&mut self.bad, &single(text));
                    self.quote.get_or_insert_with(|| out.here());
                }
            }
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let disk = all.disk.as_deref().unwrap_or("the disk");
        let mut parts = all.bad;
        if all.fails {
            parts.insert(0, "it fails its own health test".to_owned());
        }
        if all.failed_tests > 0 {
            parts.push(format!(
                "{} self-tests ended with a read failure",
                all.failed_tests
            ));
        }
        let failing = all.fails || all.failed_tests > 0 || all.unreadable;
        let means = match (failing, all.passes) {
            (true, true) => ": it is failing, although it passes its health test, and has to be replaced",
            (true, false) => ": it is failing and has to be replaced",
            (false, true) => ", although it passes its health test",
            (false, false) => "",
        };
        let watch = match all.uncorrected && !failing {
            true => ": it could not read some data once, watch it",
            false => "",
        };
        let text = format!(
            "{disk} reports errors of its own: {}{means}{watch}",
            parts.join(", ")
        );
        out.statement(statements::one(StatementKind::Failed, None, quote, text));
    }
}

impl Reader {
    fn count(&mut self, number: u64, attribute: &str, count: u64, out: &Out<'_>) {
        if count > 0 && COUNTS.contains(&number) {
            name(&mut self.bad, &format!("{attribute} {count}"));
            self.unreadable |= UNREADABLE.contains(&number);
            self.uncorrected |= number == UNCORRECTED;
            self.quote.get_or_insert_with(|| out.here());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn counts_of_either_form_and_of_wrapped_rows() {
        let text = "# smartctl -a /dev/sdq\nID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE\n\
            \x20 1 Raw_Read_Error_Rate     0x000f   118   099   006    Pre-fail  Always       -       190284\n\
            \x20 5 Reallocated_Sector_Ct   PO--CK   100   100   036    -    48\n\
            197 Current_Pending_Sector  0x0012   100   100   000    Old_age   \nAlways       -       8\n\
            198 Offline_Uncorrectable   0x0010   100   100   000    Old_age   Offline      -       0\n\
            # 1  Extended offline    Completed: read failure       90%      4021         -\n";
        let reading = read_text("s", text.as_bytes());
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            one.text,
            "/dev/sdq reports errors of its own: Reallocated_Sector_Ct 48, Current_Pending_Sector 8, 1 self-tests ended with a \
             read failure: it is failing and has to be replaced"
        );
    }

    #[test]
    fn one_error_of_long_ago_is_watched_and_a_sector_that_cannot_be_read_is_a_failing_disk() {
        let told = |rows: &str| {
            let text = format!("=== START OF SMART DATA SECTION ===\n{rows}");
            read_text("s", text.as_bytes()).observed.statements[0]
                .text
                .clone()
        };
        let one =
            "187 Reported_Uncorrect      0x0032   099   099   000    Old_age   Always       -       1\n";
        let text = told(one);
        assert!(text.ends_with("watch it") && !text.contains("failing"), "{text}");
        let pending =
            "197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8\n";
        let text = told(&format!("{one}{pending}"));
        assert!(text.ends_with("it is failing and has to be replaced"), "{text}");
    }

    #[test]
    fn a_sound_disk_states_nothing() {
        let text = "=== START OF SMART DATA SECTION ===\nSMART overall-health self-assessment test result: PASSED\n\
            Critical Warning:                   0x00\nMedia and Data Integrity Errors:    0\n";
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "smartctl");
        assert_eq!(reading.observed.statements, []);
    }
}
