//! `perf report` and `perf top`: functions with their share of the samples.
//!
//! In: a heading, and rows with one percentage or two (with and without what a function called), a command where there is one,
//! an object and a function; long rows are wrapped. Out: [`Samples`] with a weight in hundredths of a percent.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::{Out, text_of};
use holdup_evidence::observed::{Quote, Samples, Weight};

pub(crate) static FORMAT: Format = Format {
    id: "perf-report",
    about: "perf report, perf top",
    family: Family::Profiles,
    recognise,
    openings: &[],
    shape: Shape::Lines(|| Box::<Reader>::default()),
};

/// Rows that are kept: of a share that is smaller nobody asks.
const ROWS: usize = 500;

/// Characters of a name that are kept.
const NAME: usize = 200;

/// Hundredths of a percent in a whole.
const WHOLE: u64 = 10_000;

fn recognise(head: &[u8]) -> Sureness {
    match text_of(head).lines().any(is_heading) {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

/// `# Overhead  Command  Shared Object  Symbol`.
fn is_heading(line: &str) -> bool {
    let mut words = line.trim_start_matches(['#', ' ']).split_whitespace();
    let first = words.next();
    let begins = first == Some("Overhead") || first == Some("Children") && words.next() == Some("Self");
    begins && line.contains("Shared Object")
}

/// `39.46%`, in hundredths.
fn share(word: &str) -> Option<u64> {
    let share = crate::numbers::decimal(word.strip_suffix('%')?.as_bytes())?;
    (0.0..=100.0)
        .contains(&share)
        .then(|| (share * 100.0).round() as u64)
}

/// The function behind `[k]` or `[.]`.
fn symbol(words: &[&str]) -> Option<String> {
    let at = words
        .iter()
        .position(|word| matches!(*word, "[k]" | "[.]" | "[g]" | "[u]"))?;
    let name = words.get(at + 1..)?.join(" ");
    (!name.is_empty()).then(|| name.chars().take(NAME).collect())
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    rows: Vec<(u64, String)>,
    /// The share of a row whose function stands on the next line.
    wrapped: Option<u64>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim().trim_start_matches(['+', '-']).trim_start();
        if is_heading(text) {
            self.quote.get_or_insert_with(|| out.here());
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().take(40).collect();
        // The last percentage is that of the function itself.
        let own = words.iter().map_while(|word| share(word)).last();
        if let Some(own) = own {
            match symbol(&words) {
                Some(symbol) => self.row(own, symbol),
                None => self.wrapped = Some(own),
            }
            return Understood::Evidence;
        }
        match (self.wrapped.take(), words.as_slice()) {
            (Some(own), ["[k]" | "[.]", ..]) => {
                if let Some(symbol) = symbol(&words) {
                    self.row(own, symbol);
                }
                Understood::Evidence
            }
            (Some(own), [name]) => {
                self.row(own, name.chars().take(NAME).collect());
                Understood::Evidence
            }
            // Chains of calls below a row.
            _ => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some(quote) = self.quote.take() else { return };
        let mut rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
        let sum = rows
            .iter()
            .fold(0, |sum: u64, (share, _)| sum.saturating_add(*share));
        let stacks = rows
            .iter()
            .map(|(share, symbol)| (out.stack([symbol.as_str()]), *share))
            .collect();
        out.samples(Samples {
            source: 0,
            weight: Weight::Count,
            waiting: None,
            stacks,
            total: sum.max(WHOLE),
            quote,
        });
    }
}

impl Reader {
    fn row(&mut self, share: u64, symbol: String) {
        if share > 0 && self.rows.len() < ROWS {
            self.rows.push((share, symbol));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn functions_with_their_own_share_and_wrapped_rows() {
        let text = "# Overhead  Command  Shared Object      Symbol\n    31.50%  store    [kernel.kallsyms]  [k] copy_page\n\
            \x20    9.25%  store    [kernel.kallsyms]  [k]\nclear_page_erms\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "perf-report");
        let [profile] = reading.observed.samples.as_slice() else {
            panic!("{reading:?}")
        };
        let stacks = &reading.observed.stacks;
        let told: Vec<_> = profile
            .stacks
            .iter()
            .map(|(stack, share)| (stacks.frames(*stack).next_back(), *share))
            .collect();
        assert_eq!(told, [(Some("copy_page"), 3150), (Some("clear_page_erms"), 925)]);
        assert_eq!(profile.total, 10_000);
        let text = "  Children      Self  Command  Shared Object  Symbol\n+   80.00%     2.50%  store  libc.so.6  [.] read\n";
        assert_eq!(
            read_text("p", text.as_bytes()).observed.samples[0].stacks[0].1,
            250
        );
    }
}
