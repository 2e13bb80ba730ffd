//! Swap areas that are switched on: `/proc/swaps`, `swapon -s`, `swapon --show`.
//!
//! In: a head and a line for each area; or nothing but the head or the command, which is a fact, too: none is switched on.
//! Out: a [`SwapList`], and the areas as facts of the machine.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use crate::prompt::{self, Prompt};
use crate::sizes;
use holdup_evidence::facts::SwapArea;
use holdup_evidence::observed::{Metric, Quote, SeenSwap, SwapList};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("swaps", Family::Host, recognise)
    .about("swapon, /proc/swaps")
    .openings(&["Filename Type Size Used Priority", "NAME TYPE SIZE USED PRIO"]);

/// Areas of one list: the kernel has room for 32.
const MAX_AREAS: usize = 32;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut filled = lines.clone().filter(|line| !line.trim_ascii().is_empty());
    if lines.any(|line| Head::of(line).is_some()) {
        return Sureness::Certain;
    }
    // The command alone, or with areas but without a head.
    match filled.next() {
        Some(first) if is_command(first) => Sureness::Certain,
        Some(first) if area(first, Head::Show).is_some() => Sureness::Likely,
        _ => Sureness::No,
    }
}

/// `swapon -s` without a prompt.
fn is_command(line: &[u8]) -> bool {
    let short = words(line).count() <= 4;
    short && prompt::command(line).is_some_and(|format| format.id == FORMAT.id)
}

/// The two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// KiB without a unit.
    Kernel,
    /// Amounts with units, bytes without.
    Show,
}

impl Head {
    fn of(line: &[u8]) -> Option<Head> {
        let mut words = words(line);
        match words.next()? {
            b"Filename" if words.clone().eq([&b"Type"[..], b"Size", b"Used", b"Priority"]) => {
                Some(Head::Kernel)
            }
            b"NAME" if words.clone().take(3).eq([&b"TYPE"[..], b"SIZE", b"USED"]) => Some(Head::Show),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct Reader {
    head: Option<Head>,
    begun: Option<Quote>,
    areas: Vec<SeenSwap>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(head) = Head::of(line) {
            self.flush(out);
            self.head = Some(head);
            self.begun = Some(out.here());
            return Understood::Evidence;
        }
        if is_command(line) {
            self.flush(out);
            self.begun = Some(out.here());
            return Understood::Evidence;
        }
        let Some(area) = area(line, self.head.unwrap_or(Head::Show)) else {
            return Understood::No;
        };
        if self.areas.len() < MAX_AREAS {
            self.areas.push(SeenSwap {
                quote: out.here(),
                ..area
            });
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let prompted = out.source().tool.clone();
        let by_prompt = prompted.is_some_and(|line| matches!(prompt::of(line.as_bytes()), Prompt::Of(_)));
        if by_prompt && self.begun.is_none() {
            self.begun = Some(out.here());
        }
        self.flush(out);
    }
}

impl Reader {
    fn flush(&mut self, out: &mut Out<'_>) {
        let areas = std::mem::take(&mut self.areas);
        let begun = self.begun.take();
        let Some(quote) = begun.or_else(|| areas.first().map(|area| area.quote.clone())) else {
            return;
        };
        let known = &mut out.facts().swaps;
        for area in &areas {
            let fact = SwapArea {
                path: area.path.clone(),
                size: area.size_kib.saturating_mul(1024),
                priority: area.priority.unwrap_or(0),
            };
            known.retain(|known| known.path != fact.path);
            if known.len() < MAX_AREAS {
                known.push(fact);
            }
        }
        let sum = |of: fn(&SeenSwap) -> Option<u64>| {
            areas
                .iter()
                .map(of)
                .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
        };
        if !areas.is_empty() {
            out.report(None, None, false);
            if let Some(total) = sum(|area| Some(area.size_kib)) {
                out.figure(Metric::SwapTotalKib, "", total as f64);
            }
            if let Some(used) = sum(|area| area.used_kib) {
                out.figure(Metric::SwapUsedKib, "", used as f64);
            }
        }
        out.swap_list(SwapList { areas, quote });
    }
}

/// A line of a table.
fn area(line: &[u8], head: Head) -> Option<SeenSwap> {
    let mut words = words(line);
    let path = words.next().filter(|path| path.starts_with(b"/"))?;
    let mut kind = words.next()?;
    // A file that was deleted since.
    if kind == b"(deleted)" {
        kind = words.next()?;
    }
    if !matches!(kind, b"partition" | b"file") {
        return None;
    }
    let amount = |word: &[u8]| match head {
        Head::Kernel => whole(word),
        Head::Show => {
            let bytes = whole(word)
                .map(|bytes| bytes as f64)
                .or_else(|| sizes::with_unit(word))?;
            Some((bytes / 1024.0) as u64)
        }
    };
    let size_kib = words.next().and_then(amount)?;
    let used_kib = words.next().and_then(amount);
    let priority = words
        .next()
        .and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    Some(SeenSwap {
        path: String::from_utf8_lossy(path).into_owned(),
        size_kib,
        used_kib,
        priority,
        quote: Quote::default(),
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TABLE: &str = "Filename                                Type            Size    Used    Priority
/dev/sdb1                               partition       2096120 945552  -1
/swapfile\\040(deleted)                 file            1024    0       -2
";

    #[test]
    fn areas_with_their_sizes() {
        let reading = read_text("s", TABLE.as_bytes());
        let [list] = reading.observed.swap_lists.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(list.areas[0].used_kib, Some(945_552));
        assert_eq!(list.areas[1].priority, Some(-2));
        assert_eq!(reading.facts.swaps[0].size, 2_096_120 * 1024);
        assert_eq!(reading.accounts[0].not_understood, 0);
        let shown = "NAME      TYPE      SIZE   USED PRIO\n/dev/sdb1 partition   2G 923,4M   -2\n";
        let reading = read_text("s", shown.as_bytes());
        assert_eq!(reading.observed.swap_lists[0].areas[0].size_kib, 2 << 20);
        assert_eq!(reading.observed.swap_lists[0].areas[0].used_kib, Some(945_561));
    }

    #[test]
    fn an_empty_list_is_a_fact() {
        let head = TABLE.lines().next().unwrap();
        let texts = [
            head,
            "swapon --show",
            "$ swapon -s\n",
            "root@host:~# swapon\nroot@host:~# \n",
        ];
        for text in texts {
            let reading = read_text("s", text.as_bytes());
            assert_eq!(reading.observed.swap_lists.len(), 1, "{text}: {reading:?}");
            assert_eq!(reading.observed.swap_lists[0].areas, [], "{text}");
            let missed: u64 = reading
                .accounts
                .iter()
                .map(|account| account.not_understood)
                .sum();
            assert_eq!(missed, 0, "{text}");
        }
    }

    #[test]
    fn rubbish_and_cut_lines() {
        for cut in 0..TABLE.len() {
            let mut text = TABLE.as_bytes()[..cut].to_vec();
            text.extend_from_slice(
                b"\n\x00\xff\n/dev/x partition 99999999999999999999999 -1 x\n/ file 1e99E 5\n",
            );
            let reading = read_text("s", &text);
            assert!(reading.accounts.iter().map(|account| account.lines).sum::<u64>() >= 3);
        }
    }
}
