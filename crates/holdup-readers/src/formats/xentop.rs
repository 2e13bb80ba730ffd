//! `xentop -b`: what each domain of a Xen host uses.
//!
//! In: a heading and rows, once or again and again. Out: one statement about the domain that uses most CPU time, beside what its virtual
//! CPUs may use. Source: the manual xentop(1).

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("xentop", Family::Host, recognise)
    .about("xentop")
    .openings(&["NAME STATE CPU(sec)"]);

/// Bytes of a name, and columns of a row.
const NAME_BYTES: usize = 80;
const MAX_COLUMNS: usize = 32;

/// Letters of a domain's state: `--b---`.
const STATE_LETTERS: usize = 6;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(text_of(head).lines().any(|line| Columns::of(line).is_some()))
}

/// Where the columns are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    percent: usize,
    cpus: Option<usize>,
    count: usize,
}

impl Columns {
    fn of(heading: &str) -> Option<Columns> {
        let names: Vec<&str> = heading.split_whitespace().take(MAX_COLUMNS).collect();
        if names.first() != Some(&"NAME") || names.get(1) != Some(&"STATE") {
            return None;
        }
        let place = |name: &str| names.iter().position(|known| *known == name);
        Some(Columns {
            percent: place("CPU(%)")?,
            cpus: place("VCPUS"),
            count: names.len(),
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    /// The domain that used most in any report: its share of one CPU, how many it has, its name.
    most: Option<(f64, Option<u64>, String, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(columns) = Columns::of(text) {
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        let Some(columns) = self.columns else {
            return Understood::No;
        };
        // A domain without a limit has two words there.
        let text = text.replace("no limit", "no-limit");
        let words: Vec<&str> = text.split_whitespace().take(MAX_COLUMNS).collect();
        let percent = words
            .get(columns.percent)
            .and_then(|word| decimal(word.as_bytes()));
        let state = words.get(1).copied().unwrap_or_default();
        let is_row = words.len() == columns.count
            && state.len() == STATE_LETTERS
            && state
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_lowercase());
        let Some(percent) = percent.filter(|percent| is_row && (0.0..1e7).contains(percent)) else {
            return Understood::No;
        };
        if self.most.as_ref().is_none_or(|(most, ..)| percent > *most) {
            let cpus = columns.cpus.and_then(|at| whole(words.get(at)?.as_bytes()));
            let name = words.first().copied().unwrap_or_default();
            let name = name.chars().take(NAME_BYTES).collect();
            self.most = Some((percent, cpus, name, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        // The first report has no time to compare with, and tells 0 of each.
        let Some((percent, cpus, name, quote)) = self.most.take().filter(|(most, ..)| *most > 0.0) else {
            return;
        };
        let share = cpus
            .filter(|cpus| *cpus > 0)
            .map(|cpus| percent / 100.0 / cpus as f64);
        let of = match (cpus, share) {
            (Some(cpus), Some(share)) => format!(", {:.0} % of its {cpus} virtual CPUs", share * 100.0),
            _ => String::new(),
        };
        let text = format!("the domain {name} uses most CPU time: {percent} % of one CPU{of}");
        out.statement(Statement {
            share: share.map(|share| share.clamp(0.0, 1.0)),
            ..statements::one(StatementKind::Took, None, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_domain_that_uses_most() {
        let text = "      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS NETTX(k) NETRX(k) VBDS   VBD_OO\n  \
            Domain-0 -----r     123456   45.2    2097152   12.5   no limit       n/a     4    0        0        0    0        0\n      \
            shop --b---       9001  387.5    8388608   25.0    8388608      25.0     4    1       77      120    2       40\n";
        let reading = read_text("x", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "xentop");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            ["the domain shop uses most CPU time: 387.5 % of one CPU, 97 % of its 4 virtual CPUs"]
        );
    }

    #[test]
    fn rubbish_is_no_domain() {
        for text in [
            "NAME STATE CPU(sec) CPU(%)\n",
            "NAME STATE CPU(%)\na b c\nx ------ 1e999\n",
        ] {
            assert_eq!(read_text("x", text.as_bytes()).observed.statements, [], "{text}");
        }
        assert_ne!(
            read_text("x", b"NAME STATE AGE\na up 3\n").observed.sources[0].format,
            "xentop"
        );
    }
}
