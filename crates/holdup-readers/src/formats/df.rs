//! `df` with any options: blocks or inodes, any unit, with or without types, in any language.
//!
//! In: its heading and a row for each file system; old versions put a long name of a device on a line of its own. Out:
//! [`SeenFileSystem`]s. The columns are known by the percent sign in front of the mount point.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, words};
use crate::sizes;
use holdup_evidence::observed::SeenFileSystem;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("df", Family::Host, recognise)
    .about("df")
    .openings(&[
        "Filesystem 1K-blocks",
        "Filesystem 1024-blocks",
        "Filesystem Size",
        "Filesystem Type",
        "Filesystem Inodes",
        "Filesystem 1B-blocks",
        "Filesystem 1M-blocks",
        "Filesystem 512-blocks",
    ]);

/// Words of a row at most: names may have blanks in them.
const WORDS: usize = 64;

/// Rows without a heading from which it is no chance.
const ROWS: usize = 2;
const LOOKED_AT: usize = 40;

/// Bytes of a path that are kept.
const PATH: usize = 400;

fn recognise(head: &[u8]) -> Sureness {
    let mut rows = 0;
    let mut best = Sureness::No;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        let known = line.starts_with(b"Filesystem ") && line.windows(7).any(|seven| seven == b"Mounted");
        if known && Head::of(line).is_some() {
            return Sureness::Certain;
        }
        rows += usize::from(row(line, false).is_some());
        if rows >= ROWS {
            best = Sureness::Likely;
        }
    }
    best
}

/// What the heading says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Head {
    inodes: bool,
    types: bool,
    /// KiB of one; `None` where amounts have units of their own, or it is not known.
    unit: Option<f64>,
}

impl Head {
    /// A line without figures that has a column of percent.
    fn of(line: &[u8]) -> Option<Head> {
        let text = text_of(line);
        if text.contains('/') {
            return None;
        }
        let words: Vec<&str> = text.split_whitespace().take(WORDS).collect();
        let percent = words.iter().any(|word| {
            word.ends_with('%') && word.len() > 1 && !word.starts_with(|c: char| c.is_ascii_digit())
        });
        let capacity = words.contains(&"Capacity");
        if !(percent || capacity) || words.len() < 5 {
            return None;
        }
        let inodes = words.iter().any(|word| {
            let word = word.to_lowercase();
            word.starts_with("inode")
                || word.starts_with("inœud")
                || word.starts_with("i-node")
                || word == "iuse%"
        });
        let types = words
            .iter()
            .take(5)
            .any(|word| matches!(*word, "Type" | "Typ" | "Tipo" | "Тип"));
        let unit = words.iter().find_map(|word| unit(word));
        Some(Head { inodes, types, unit })
    }
}

/// KiB of `1K-blocks`, `1024-blocks`, `512-blocks`, `1M-Blöcke`.
fn unit(word: &str) -> Option<f64> {
    let (size, _) = word.split_once('-')?;
    let bytes = match sizes::with_unit(size.as_bytes()) {
        Some(bytes) => bytes,
        None => decimal(size.as_bytes())?,
    };
    (bytes >= 1.0).then_some(bytes / 1024.0)
}

/// A row in parts. `source` may end with the type.
#[derive(Debug)]
struct Row<'a> {
    source: Vec<&'a [u8]>,
    amounts: [&'a [u8]; 3],
    percent: Option<f64>,
    mount: &'a [u8],
}

fn is_amount(word: &[u8]) -> bool {
    decimal(word).is_some() || sizes::with_unit(word).is_some() || word == b"-"
}

/// Three amounts, a percentage and a path; in front of them the name, unless it was on the line before.
fn row(line: &[u8], continued: bool) -> Option<Row<'_>> {
    let fields: Vec<&[u8]> = words(line).take(WORDS).collect();
    let mut amounts = 0;
    for (at, field) in fields.iter().enumerate() {
        let percent = match *field {
            b"-" => Some(None),
            word => word.strip_suffix(b"%").and_then(decimal).map(Some),
        };
        if let Some(percent) = percent.filter(|_| amounts >= 3)
            && let Some(next) = fields.get(at + 1)
            && next.starts_with(b"/")
            && (at > 3 || continued)
        {
            let from = next.as_ptr() as usize - line.as_ptr() as usize;
            let three = fields.get(at.checked_sub(3)?..at)?;
            return Some(Row {
                source: fields.get(..at - 3)?.to_vec(),
                amounts: [three.first()?, three.get(1)?, three.get(2)?],
                percent: percent.filter(|percent| (0.0..=1000.0).contains(percent)),
                mount: line.get(from..)?.trim_ascii_end(),
            });
        }
        amounts = if is_amount(field) { amounts + 1 } else { 0 };
    }
    None
}

#[derive(Debug, Default)]
struct Reader {
    head: Option<Head>,
    /// A name that stood on a line of its own.
    name: Option<Vec<u8>>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(head) = Head::of(line) {
            self.head = Some(head);
            self.name = None;
            return Understood::Evidence;
        }
        let name = self.name.take();
        if let Some(row) = row(line, name.is_some()) {
            self.file_system(&row, name, out);
            return Understood::Evidence;
        }
        if line.starts_with(b"total ") || line.starts_with(b"df: ") {
            return Understood::Ignorable;
        }
        if self.head.is_some() && words(line).count() == 1 {
            self.name = Some(line.get(..PATH).unwrap_or(line).trim_ascii().to_vec());
            return Understood::Evidence;
        }
        Understood::No
    }
}

impl Reader {
    fn file_system(&self, row: &Row<'_>, name: Option<Vec<u8>>, out: &mut Out<'_>) {
        let head = self.head.unwrap_or_default();
        let mut source = row.source.clone();
        let kind = match head.types {
            true if name.is_some() || source.len() > 1 => source.pop().map(text_of),
            _ => None,
        };
        let source = match name {
            Some(name) => text_of(&name),
            None => text_of(&source.join(&b' ')),
        };
        let [size, _, available] = row.amounts;
        let cut = |bytes: &[u8]| text_of(bytes.get(..PATH).unwrap_or(bytes));
        let mut seen = SeenFileSystem {
            source: source.chars().take(PATH).collect(),
            kind,
            mount: cut(row.mount),
            quote: out.here(),
            ..SeenFileSystem::default()
        };
        if head.inodes {
            let number = |word: &[u8]| decimal(word).or_else(|| sizes::with_unit(word));
            // File systems that make inodes as they need them say 0 of 0.
            let some = number(size).is_some_and(|all| all > 0.0);
            seen.inodes_used_percent = row.percent.filter(|_| some);
            seen.inodes_free = number(available).filter(|_| some);
            seen.inodes = number(size).filter(|_| some);
        } else {
            let kib = |word: &[u8]| {
                let bare = decimal(word).filter(|amount| *amount >= 0.0);
                let bare = bare.and_then(|amount| match amount == 0.0 {
                    true => Some(0.0),
                    false => head.unit.map(|unit| amount * unit),
                });
                bare.or_else(|| sizes::with_unit(word).map(|bytes| bytes / 1024.0))
            };
            let is_zero = |word: &[u8]| decimal(word) == Some(0.0);
            if is_zero(size) {
                return;
            }
            seen.used_percent = row.percent;
            seen.size_kib = kib(size);
            seen.available_kib = kib(available);
        }
        out.file_system(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, row, unit};
    use crate::{Reading, read_text};
    use holdup_evidence::observed::SeenFileSystem;

    fn all(text: &str) -> Vec<SeenFileSystem> {
        let reading: Reading = read_text("d", text.as_bytes());
        assert_eq!(reading.accounts[0].not_understood, 0, "{reading:?}");
        assert_eq!(reading.observed.sources[0].format, "df");
        reading.observed.file_systems
    }

    #[test]
    fn blocks_in_any_unit_and_language() {
        let seen = all("Filesystem     1K-blocks     Used Available Use% Mounted on\n\
            /dev/sda1       20511312 20511312         0 100% /\ntmpfs 100 1 99 1% /run/a b\n");
        assert_eq!(
            (seen[0].used_percent, seen[0].available_kib),
            (Some(100.0), Some(0.0))
        );
        assert_eq!(
            (seen[1].mount.as_str(), seen[1].size_kib),
            ("/run/a b", Some(100.0))
        );
        let seen = all(
            "Dateisystem    Typ   Gr\u{f6}\u{df}e Benutzt Verf. Verw% Eingeh\u{e4}ngt auf\n\
            /dev/sda1      ext4   20G     15G  5,0G   75% /\n//server/a b   cifs  1,0T  0,9T 100G 90% /mnt\n",
        );
        assert_eq!(
            (seen[0].kind.as_deref(), seen[0].available_kib),
            (Some("ext4"), Some(5.0 * 1_048_576.0))
        );
        assert_eq!(seen[1].source, "//server/a b");
    }

    #[test]
    fn inodes_and_a_name_on_its_own_line() {
        let seen = all("Filesystem            Inodes   IUsed   IFree IUse% Mounted on\n\
            /dev/mapper/a-very-long-name-of-a-volume\n                     1000000 1000000       0  100% /var\n\
            /dev/sdb1 0 0 0 - /btrfs\n");
        assert_eq!(seen[0].source, "/dev/mapper/a-very-long-name-of-a-volume");
        assert_eq!(
            (seen[0].inodes_used_percent, seen[0].used_percent),
            (Some(100.0), None)
        );
        assert_eq!(seen[1].inodes_used_percent, None);
    }

    #[test]
    fn headings_and_rubbish() {
        assert_eq!(unit("1K-blocks"), Some(1.0));
        assert_eq!(unit("512-blocks"), Some(0.5));
        assert_eq!(unit("x-blocks"), None);
        assert_eq!(Head::of(b"a b c d"), None);
        for text in [
            "",
            "%",
            "a 1 2 3 % /",
            "a - - - - /x",
            "1 2 3 4% /",
            "\u{0} 9e999 9e999 9e999 5% /a",
        ] {
            let _ = row(text.as_bytes(), false);
            let _ = row(text.as_bytes(), true);
        }
        let text = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 99999999999999999999999 -5 1e400 101% /\n\0\0\n/dev/s";
        let reading = read_text("d", text.as_bytes());
        assert!(reading.observed.file_systems.len() <= 1);
    }
}
