//! `conntrack -S`: what the kernel's tracking of connections could not do.
//!
//! In: a line for each CPU, `cpu=0 found=12 insert_failed=3 drop=3 …`, counted since boot. Out: one statement about the connections that
//! were dropped, on all CPUs together. Source: the manual conntrack(8).

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::whole;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("conntrack-stats", Family::Host, recognise)
    .about("conntrack -S")
    .openings(&["cpu=0 found="]);

/// Words of a line.
const MAX_WORDS: usize = 40;

/// What is counted of connections that could not be tracked.
const NAMES: [&str; 6] = [
    "drop",
    "early_drop",
    "insert_failed",
    "chaintoolong",
    "error",
    "search_restart",
];
const DROP: usize = 0;
const EARLY_DROP: usize = 1;
const INSERT_FAILED: usize = 2;
const CHAIN_TOO_LONG: usize = 3;
const ERROR: usize = 4;

/// A part of all from which on a loss is no longer within what a network does: TCP's rate falls with the root of the loss (Mathis et al.,
/// 1997).
const MIN_LOSS_SHARE: f64 = 0.001;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut lines = text.lines().map(str::trim);
    let is_it = |line: &str| {
        line.starts_with("cpu=") && pairs(line).any(|(name, _)| name == "found" || name == "invalid")
    };
    Sureness::certain_if(
        lines.any(is_it) && (text.contains("insert_failed=") || text.contains("early_drop=")),
    )
}

/// `drop=3`.
fn pairs(line: &str) -> impl Iterator<Item = (&str, u64)> {
    line.split_whitespace().take(MAX_WORDS).filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name, whole(value.as_bytes())?))
    })
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    cpus: u64,
    cpu: u64,
    sums: [u64; NAMES.len()],
    /// Connections that began and that were put in, where the kernel counts them: kernels of today count what went wrong alone.
    begun: u64,
    inserted: u64,
    /// The CPU that dropped most, and how many.
    most: Option<(u64, u64)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let mut known = false;
        for (name, value) in pairs(text) {
            known = true;
            if name == "cpu" {
                self.cpu = value;
                self.cpus += 1;
                self.quote.get_or_insert_with(|| out.here());
            }
            match name {
                "new" => self.begun = self.begun.saturating_add(value),
                "insert" => self.inserted = self.inserted.saturating_add(value),
                _ => {}
            }
            let place = NAMES.iter().position(|known| *known == name);
            if let Some(sum) = place.and_then(|at| self.sums.get_mut(at)) {
                *sum = sum.saturating_add(value);
            }
            let dropped = matches!(name, "drop" | "insert_failed") && value > 0;
            if dropped && self.most.is_none_or(|(_, most)| value > most) {
                self.most = Some((self.cpu, value));
                self.quote = Some(out.here());
            }
        }
        match known {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let of = |at: usize| all.sums.get(at).copied().unwrap_or(0);
        let told: Vec<String> = NAMES
            .iter()
            .enumerate()
            .filter(|(at, _)| of(*at) > 0)
            .map(|(at, name)| format!("{name} {}", of(at)))
            .collect();
        let lost = of(DROP).max(of(INSERT_FAILED));
        let whole = all.begun.max(all.inserted);
        let share = (whole > 0).then(|| lost as f64 / whole as f64);
        let most = match all.most {
            Some((cpu, most)) if all.cpus > 1 => format!("; most on CPU {cpu}, {most}"),
            _ => String::new(),
        };
        let told = told.join(", ");
        let (kind, text) = match () {
            () if of(EARLY_DROP) > 0 => (
                StatementKind::Exhausted,
                format!("the table of tracked connections was full: {told}{most}"),
            ),
            () if of(CHAIN_TOO_LONG) > 0 => (
                StatementKind::Exhausted,
                format!("chains of the table of tracked connections were too long: {told}{most}"),
            ),
            () if lost > 0 => match share {
                Some(share) if share < MIN_LOSS_SHARE => (
                    StatementKind::Took,
                    format!(
                        "few connections could not be tracked: {told}{most} (from {} % of all on it is much)",
                        MIN_LOSS_SHARE * 100.0
                    ),
                ),
                Some(_) => (
                    StatementKind::Failed,
                    format!("connections could not be tracked, and their packets were dropped: {told}{most}"),
                ),
                None => (
                    StatementKind::Took,
                    format!(
                        "connections could not be tracked, and their packets were dropped: {told}{most} (counted since boot; how many were \
                         tracked in all is not known)"
                    ),
                ),
            },
            () if of(ERROR) > 0 => (
                StatementKind::Took,
                format!("packets could not be tracked: {told}{most}"),
            ),
            () => (
                StatementKind::WithinNorm,
                format!(
                    "connections are tracked without a drop (drop 0, insert_failed 0, early_drop 0) on {} CPUs",
                    all.cpus
                ),
            ),
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn one(text: &str) -> Statement {
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "conntrack-stats");
        assert_eq!(reading.accounts[0].not_understood, 0);
        reading.observed.statements[0].clone()
    }

    const TEXT: &str = "cpu=0   \tfound=10 invalid=412 insert=0 insert_failed=233 drop=233 early_drop=0 error=0 search_restart=31\n\
        cpu=1   \tfound=0 invalid=388 insert=0 insert_failed=904 drop=904 early_drop=0 error=0 search_restart=27\n";

    #[test]
    fn what_was_dropped_on_all_cpus() {
        let found = one(TEXT);
        assert_eq!(found.kind, StatementKind::Took);
        assert_eq!(
            found.text,
            "connections could not be tracked, and their packets were dropped: drop 1137, insert_failed 1137, search_restart 58; most on \
             CPU 1, 904 (counted since boot; how many were tracked in all is not known)"
        );
        let share = one(&TEXT.replace("found=10", "found=10 new=20000"));
        assert_eq!(share.kind, StatementKind::Failed);
        let full = one(&TEXT.replace("early_drop=0", "early_drop=7"));
        assert_eq!(full.kind, StatementKind::Exhausted);
    }

    #[test]
    fn few_of_many_and_none() {
        let few = TEXT.replace("found=10", "found=10 new=90000000");
        assert_eq!(one(&few).kind, StatementKind::Took);
        let none = TEXT.replace("=233", "=0").replace("=904", "=0");
        assert_eq!(one(&none).kind, StatementKind::WithinNorm);
        for other in ["cpu=0 mhz=2000\n", "cpu=1 drop=x\n", "drop=3 insert_failed=2\n"] {
            let reading = read_text("c", other.as_bytes());
            assert_ne!(reading.observed.sources[0].format, "conntrack-stats", "{other}");
        }
    }
}
