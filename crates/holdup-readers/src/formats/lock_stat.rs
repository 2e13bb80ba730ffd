//! `/proc/lock_stat`: how long the kernel's locks were waited for and held.
//!
//! In: a row for each class of locks, in microseconds, and below it where it is waited for and where it is held. Out: a statement for
//! each of the classes that were waited for longest. Source: the kernel's documentation, "Lock Statistics".

use crate::find::find;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("lock-stat", Family::Host, recognise)
    .about("/proc/lock_stat")
    .openings(&["lock_stat version"]);

/// What the numbers of a row are: counts (`#`) and lengths of time (`.`), which the kernel prints with two decimals. Since version 0.4 with
/// averages, before without. Rows of other tools have as many numbers, of which others are whole.
const NUMBERS: [&[u8]; 2] = [b"##....##....", b"##...##..."];

/// As many as a row can have.
const MAX_NUMBERS: usize = 12;

/// Classes that are told.
const MAX_CLASSES_TOLD: usize = 3;

/// Bytes of a name that are kept.
const NAME: usize = 100;

/// One wait for a lock of the kernel's that is this long is felt by whoever asked; ordinary ones take microseconds.
pub(super) const MIN_LONG_WAIT_NS: Ns = 10_000_000;

/// All waits together from which they are worth a word.
const MIN_WAITED_NS: Ns = 1_000_000;

fn recognise(head: &[u8]) -> Sureness {
    if find(head, b"waittime-total").is_some() {
        return Sureness::Certain;
    }
    let head = text_of(head);
    let rows = head.lines().filter(|line| Row::of(line.trim()).is_some()).count();
    Sureness::certain_if(rows >= 2)
}

/// What a row says of a class.
#[derive(Debug, Default)]
struct Row {
    name: String,
    contentions: u64,
    longest: Ns,
    total: Ns,
    held_longest: Ns,
}

impl Row {
    fn of(text: &str) -> Option<Row> {
        let (name, rest) = text.rsplit_once(": ")?;
        let name = name.trim();
        let mut numbers = Vec::new();
        let mut kinds = Vec::new();
        for word in rest.split_whitespace().take(MAX_NUMBERS + 1) {
            numbers.push(crate::numbers::decimal(word.as_bytes())?);
            kinds.push(kind_of(word)?);
        }
        if name.is_empty() || !NUMBERS.contains(&kinds.as_slice()) {
            return None;
        }
        let us = |at: usize| (numbers.get(at).copied().unwrap_or(0.0).clamp(0.0, 1e15) * 1e3) as Ns;
        let with_averages = numbers.len() == 12;
        Some(Row {
            name: name.chars().take(NAME).collect(),
            contentions: numbers.get(1).copied().unwrap_or(0.0).max(0.0) as u64,
            longest: us(3),
            total: us(4),
            held_longest: us(if with_averages { 9 } else { 8 }),
        })
    }
}

/// Whether a number is a count or a length of time.
fn kind_of(word: &str) -> Option<u8> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('.') {
        None => digits(word).then_some(b'#'),
        Some((whole, part)) => (digits(whole) && digits(part) && part.len() == 2).then_some(b'.'),
    }
}

/// A place in the kernel, and how often it was there.
type Place = Option<(u64, String)>;

#[derive(Debug, Default)]
struct Class {
    row: Row,
    quote: Quote,
    /// Where it was waited for most often, and where it was held while others waited.
    places: [Place; 2],
}

#[derive(Debug, Default)]
struct Reader {
    /// Longest wait first.
    classes: Vec<Class>,
    current: Option<Class>,
    /// Lines of dashes since the row.
    rules: usize,
}

impl Reader {
    fn close(&mut self) {
        let Some(class) = self.current.take() else { return };
        let at = self
            .classes
            .partition_point(|known| known.row.total >= class.row.total);
        self.classes.insert(at, class);
        self.classes.truncate(MAX_CLASSES_TOLD);
    }

    /// `&mm->mmap_sem   96   [<ffffffff815351c4>] __do_page_fault+0x1d4/0x510`.
    fn place(&mut self, text: &str) -> bool {
        let Some((before, behind)) = text.split_once("[<") else {
            return false;
        };
        let Some((_, function)) = behind.split_once(">]") else {
            return false;
        };
        let count = before
            .split_whitespace()
            .next_back()
            .and_then(|word| word.parse().ok());
        let function = function.trim().split('+').next().unwrap_or_default();
        let place = self.rules.checked_sub(1);
        let place = place.zip(self.current.as_mut());
        if let Some((at, class)) = place
            && let Some(known) = class.places.get_mut(at)
            && let Some(count) = count
            && known.as_ref().is_none_or(|(most, _)| count > *most)
        {
            *known = Some((count, function.chars().take(NAME).collect()));
        }
        true
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(row) = Row::of(text) {
            // A reader and a writer of one lock have a row each, and their places stand below the second.
            self.close();
            self.rules = 0;
            self.current = Some(Class {
                row,
                quote: out.here(),
                places: [None, None],
            });
            return Understood::Evidence;
        }
        if text.bytes().all(|byte| byte == b'-') {
            self.rules += 1;
            return Understood::Ignorable;
        }
        if self.place(text) {
            return Understood::Evidence;
        }
        match text.starts_with("lock_stat version")
            || text.starts_with("class name")
            || text.starts_with("..")
        {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        for class in std::mem::take(&mut self.classes) {
            out.statement(told(&class));
        }
    }
}

fn told(class: &Class) -> Statement {
    let row = &class.row;
    let kind = match () {
        () if row.longest >= MIN_LONG_WAIT_NS => StatementKind::Stalled,
        () if row.total >= MIN_WAITED_NS => StatementKind::Took,
        () => StatementKind::WithinNorm,
    };
    let place = |place: &Place, says: &str| match place {
        Some((_, function)) => format!(", {says} {function}"),
        None => String::new(),
    };
    let [waits, holds] = &class.places;
    let text = format!(
        "the kernel's lock {} was waited for {} in {} waits, the longest {}{}{}; it was held for at most {} (from {} for one wait on \
         it is long)",
        row.name,
        duration(row.total),
        row.contentions,
        duration(row.longest),
        place(waits, "mostly in"),
        place(holds, "held mostly in"),
        duration(row.held_longest),
        duration(MIN_LONG_WAIT_NS)
    );
    statements::one(kind, Some(row.total), class.quote.clone(), text)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TEXT: &str = "lock_stat version 0.4\n----------\n   class name    con-bounces    contentions   waittime-min   waittime-max waittime-total   \
        waittime-avg    acq-bounces   acquisitions   holdtime-min   holdtime-max holdtime-total   holdtime-avg\n----------\n\n\
        &mm->mmap_sem-R:   37   100   1.31   299502.61   325629.52   3256.30   212344   34316685   0.10   7744.91   95016910.20   2.77\n\
        ---------------\n&mm->mmap_sem   1   [<ffffffff811502a7>] khugepaged_scan_mm_slot+0x57/0x280\n\
        &mm->mmap_sem   96   [<ffffffff815351c4>] __do_page_fault+0x1d4/0x510\n---------------\n\
        &mm->mmap_sem   60   [<ffffffff81129e29>] SyS_mprotect+0xe9/0x250\n\n....\n\n\
        unix_table_lock:   110   112   0.21   49.24   163.91   1.46   21094   66312   0.12   624.42   31589.81   0.48\n";

    #[test]
    fn the_lock_that_was_waited_for_longest_is_first_with_its_places() {
        let reading = read_text("l", TEXT.as_bytes());
        let found = &reading.observed.statements;
        assert_eq!(found[0].kind, StatementKind::Stalled);
        assert_eq!(
            found[0].text,
            "the kernel's lock &mm->mmap_sem-R was waited for 326 ms in 100 waits, the longest 300 ms, mostly in __do_page_fault, held \
             mostly in SyS_mprotect; it was held for at most 7.7 ms (from 10.0 ms for one wait on it is long)"
        );
        assert_eq!(found[1].kind, StatementKind::WithinNorm);
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn averages_of_other_tools_are_no_locks() {
        let text = "Average:       3   12.00    0.00    4.00    1.00    0.00    0.50    0.00    0.00    0.00   82.50    0.00\n\
            Average:   812044   1920332   7100221   81.20   90211   2100331   8102211   71.00   4100211   2100441   812\n\
            Average:   81204   192033   81.20   90211   21003   81022   71.00   41002   21004   812\n";
        let reading = read_text("l", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "lock-stat");
    }

    #[test]
    fn rows_without_a_heading_and_rubbish() {
        let rows = TEXT
            .lines()
            .filter(|line| line.contains(":  "))
            .collect::<Vec<_>>();
        let text = rows.join("\n");
        assert_eq!(read_text("l", text.as_bytes()).observed.statements.len(), 2);
        for text in [
            "waittime-total\n: 1 2\n[<\n>]\n",
            "waittime-total\na: 1 2 3 4 5 6 7 8 9 10 11 1e400\n",
        ] {
            let _ = read_text("l", text.as_bytes());
        }
    }
}
