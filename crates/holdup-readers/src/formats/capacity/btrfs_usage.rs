//! `btrfs filesystem usage`, `df` and `show`: btrfs gives space to data or to metadata in large pieces, and is out of space when one of both is full
//! and no piece is left, whatever `df` says.
//!
//! In: the lines of any of the three. Out: for each file system what is full and whether it can grow; else that there is room.

use super::size;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("btrfs-usage", Family::Host, recognise)
    .about("btrfs filesystem usage, df and show");

/// Bytes of a piece of data: with less that is unallocated nothing can grow.
const PIECE: f64 = 1_073_741_824.0;

/// The part of what is allocated from which it is full, and the bytes that are left then at most: the last some percent are reserves, of which
/// the largest has 512 MiB.
const FULL: f64 = 0.95;
const FULL_BESIDE_RESERVE: f64 = 0.9;
const RESERVE: f64 = 540_000_000.0;

/// The part of the pieces for data that is in use, below which they are worth being put together, and bytes that are then free in them.
const MAX_PART_IN_USE: f64 = 0.9;
const MIN_LEFT_BYTES: f64 = 8.0 * PIECE;

/// Kinds of space of one file system that are kept.
const MAX_KINDS: usize = 16;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let of_usage = |line: &str| line.starts_with("Device unallocated:") || kind(line).is_some();
    Sureness::certain_if(head.lines().any(|line| of_usage(line.trim())))
}

/// What of the space is used: `Metadata,DUP: Size:3.00GiB, Used:2.94GiB (98.00%)`, `Metadata, DUP: total=10.00GiB, used=9.97GiB`.
fn kind(line: &str) -> Option<(&str, &str, &str)> {
    let what = ["Data", "Metadata"].into_iter().find(|what| {
        let rest = line.strip_prefix(what);
        rest.is_some_and(|rest| rest.starts_with(','))
    })?;
    let (_, rest) = line.split_once(": ")?;
    let mut cells = rest.split(", ");
    let (size, used) = (cells.next()?, cells.next()?);
    let value = |cell: &'_ str| -> Option<usize> { cell.find(['=', ':']).map(|at| at + 1) };
    let size_of = size.get(value(size)?..)?;
    let used_of = used.get(value(used)?..)?.split(' ').next()?;
    let named = size.starts_with("Size:") || size.starts_with("total=");
    named.then_some((what, size_of, used_of))
}

/// Data or metadata.
#[derive(Debug)]
struct Kind {
    what: String,
    total: String,
    used: String,
    /// The part of it that is used, and bytes that are left.
    part: f64,
    left: f64,
    quote: Quote,
}

impl Kind {
    /// Whether pieces for data have much room in them, which only a balance gives back.
    fn is_half_empty(&self) -> bool {
        self.what == "Data" && self.part < MAX_PART_IN_USE && self.left >= MIN_LEFT_BYTES
    }

    fn is_full(&self) -> bool {
        // Of metadata the global reserve is counted as free, and is not for use.
        let full = if self.what == "Metadata" {
            FULL_BESIDE_RESERVE
        } else {
            FULL
        };
        self.part >= full && self.left <= RESERVE
    }
}

/// One file system.
#[derive(Debug, Default)]
struct Reader {
    unallocated: Option<(f64, String)>,
    kinds: Vec<Kind>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        // Another file system begins. Of `show` below `df` it is still the same one.
        let of_show = text.starts_with("Label:") && self.unallocated.is_some();
        let another = text == "Overall:" || text.starts_with("Device unallocated:") || of_show;
        if another && !self.kinds.is_empty() {
            self.tell(out);
        }
        if let Some(rest) = text.strip_prefix("Device unallocated:") {
            let told = rest.trim();
            self.unallocated = size(told, 1.0).map(|bytes| (bytes, told.to_owned()));
            return Understood::Evidence;
        }
        if let Some((what, total, used)) = kind(text) {
            let part = size(used, 1.0)
                .zip(size(total, 1.0))
                .filter(|(_, total)| *total > 0.0);
            if let Some((used_bytes, total_bytes)) = part
                && self.kinds.len() < MAX_KINDS
            {
                self.kinds.push(Kind {
                    what: what.to_owned(),
                    total: total.to_owned(),
                    used: used.to_owned(),
                    part: used_bytes / total_bytes,
                    left: total_bytes - used_bytes,
                    quote: out.here(),
                });
            }
            return Understood::Evidence;
        }
        // `devid    1 size 118.00GiB used 118.00GiB path /dev/sda2`.
        if text.starts_with("devid") {
            let words: Vec<&str> = text.split_whitespace().collect();
            let behind = |name: &str| {
                let at = words.iter().position(|word| *word == name)?;
                size(words.get(at + 1)?, 1.0)
            };
            if let Some((total, used)) = behind("size").zip(behind("used")) {
                let left = (total - used).max(0.0);
                let before = self.unallocated.as_ref().map_or(0.0, |(bytes, _)| *bytes);
                let all = before + left;
                self.unallocated = Some((all, format!("{:.2} GiB", all / PIECE)));
            }
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tell(out);
    }
}

impl Reader {
    /// Tells a file system, and begins anew.
    fn tell(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let by_part = |one: &&Kind, other: &&Kind| {
            let full = one.is_full().cmp(&other.is_full());
            full.then(one.part.total_cmp(&other.part))
        };
        let Some(fullest) = all.kinds.iter().max_by(by_part) else {
            return;
        };
        let Kind {
            total, used, part, ..
        } = fullest;
        let what = fullest.what.to_lowercase();
        let cannot_grow = all
            .unallocated
            .as_ref()
            .map(|(bytes, told)| (*bytes < PIECE, told));
        let (kind, text) = match cannot_grow {
            Some((true, told)) if fullest.is_full() => (
                StatementKind::Exhausted,
                format!(
                    "btrfs has no space left for {what}: {used} of {total} are used and {told} are unallocated, so it cannot grow; writes fail with \
                     `No space left on device`, whatever df says"
                ),
            ),
            Some((true, told)) if all.kinds.iter().any(Kind::is_half_empty) => {
                return out.statement(all_allocated(&all.kinds, told));
            }
            None if fullest.is_full() => (
                StatementKind::Warned,
                format!(
                    "btrfs uses {used} of the {total} that are allocated for {what}; this output does not say whether more can be allocated"
                ),
            ),
            _ => (
                StatementKind::WithinNorm,
                format!("btrfs has room: {used} of {total} that are allocated for {what} are used"),
            ),
        };
        out.statement(Statement {
            share: (kind == StatementKind::Exhausted).then_some(*part),
            ..statements::one(kind, None, fullest.quote.clone(), text)
        });
    }
}

/// Says that nothing is left that could be given to data or metadata, while pieces of data are half empty.
fn all_allocated(kinds: &[Kind], unallocated: &str) -> Statement {
    let data = kinds.iter().find(|kind| kind.is_half_empty());
    let left = data.map_or(0.0, |data| data.left / PIECE);
    let metadata = kinds.iter().find(|kind| kind.what == "Metadata");
    let metadata = metadata.map_or_else(String::new, |kind| {
        format!(
            " (its metadata uses {} of the {} that it has)",
            kind.used, kind.total
        )
    });
    let quote = data.map_or_else(Quote::default, |data| data.quote.clone());
    let text = format!(
        "btrfs has allocated all of its space: only {unallocated} are unallocated, although {left:.1} GiB within the pieces (chunks) for data are \
         free: no new piece can be allocated, so that metadata{metadata} cannot grow, and a conversion fails with `No space left on device`; a \
         balance of the half-empty pieces gives them back (btrfs balance start -dusage=50)"
    );
    statements::one(StatementKind::Warned, None, quote, text)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let observed = read_text("b", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "btrfs-usage");
        let one = &observed.statements[0];
        (one.kind, one.text.clone())
    }

    fn usage(unallocated: &str) -> String {
        format!(
            "Overall:\n    Device size:\t\t 118.00GiB\n    Device unallocated:\t\t   {unallocated}\n    Free (estimated):\t\t  22.31GiB\n\n\
             Data,single: Size:112.00GiB, Used:89.70GiB (80.09%)\n   /dev/sda2\t 112.00GiB\n\nMetadata,DUP: Size:3.00GiB, Used:2.94GiB (98.00%)\n"
        )
    }

    #[test]
    fn full_metadata_that_cannot_grow() {
        let (kind, text) = said(&usage("1.00MiB"));
        assert_eq!(kind, StatementKind::Exhausted);
        assert!(text.starts_with("btrfs has no space left for metadata: 2.94GiB of 3.00GiB are used and 1.00MiB are unallocated"), "{text}");
        assert_eq!(said(&usage("30.00GiB")).0, StatementKind::WithinNorm);
    }

    #[test]
    fn of_df_it_is_not_known_whether_it_can_grow_and_of_show_it_is() {
        let df = "Data, single: total=1.50TiB, used=1.20TiB\nSystem, DUP: total=8.00MiB, used=208.00KiB\nMetadata, DUP: total=10.00GiB, used=9.97GiB\n";
        assert_eq!(said(df).0, StatementKind::Warned);
        let show = format!("{df}\tdevid    1 size 118.00GiB used 118.00GiB path /dev/sda2\n");
        assert_eq!(said(&show).0, StatementKind::Exhausted);
        assert_eq!(said(&df.replace("9.97", "4.10")).0, StatementKind::WithinNorm);
    }

    #[test]
    fn all_is_allocated_and_data_is_half_empty() {
        let text = usage("1.00MiB").replace("Used:2.94GiB (98.00%)", "Used:1.94GiB (64.00%)");
        let (kind, told) = said(&text);
        assert_eq!(kind, StatementKind::Warned);
        assert!(
            told.starts_with(
                "btrfs has allocated all of its space: only 1.00MiB are unallocated, although 22.3 GiB"
            ),
            "{told}"
        );
        // With a piece left it can grow, and full data has nothing to give back.
        assert_eq!(
            said(&text.replace("1.00MiB", "9.00GiB")).0,
            StatementKind::WithinNorm
        );
        let full = text.replace("Used:89.70GiB", "Used:110.70GiB");
        assert_ne!(said(&full).0, StatementKind::Warned);
    }

    #[test]
    fn the_last_percent_of_a_large_file_system_are_room() {
        let text = usage("1.00MiB")
            .replace("Size:112.00GiB, Used:89.70GiB", "Size:1.00TiB, Used:978.00GiB")
            .replace("Used:2.94GiB", "Used:1.10GiB");
        assert_eq!(said(&text).0, StatementKind::WithinNorm);
    }

    #[test]
    fn each_file_system_has_its_own_room() {
        let kinds = |text: &str| {
            let all = read_text("b", text.as_bytes()).observed.statements.into_iter();
            all.map(|one| one.kind).collect::<Vec<_>>()
        };
        let (full, room) = (usage("1.00MiB"), usage("30.00GiB"));
        let both = [StatementKind::Exhausted, StatementKind::WithinNorm];
        assert_eq!(kinds(&format!("{full}\n{room}")), both);
        let both = [StatementKind::WithinNorm, StatementKind::Exhausted];
        assert_eq!(kinds(&format!("{room}\n{full}")), both);
    }
}
