//! `perf report` and `perf top`: functions with their share of the samples.
//!
//! In: a heading, and rows with one percentage or two (with and without what a function called), a command where there is one,
//! an object and a function; long rows are wrapped. Out: [`Samples`] with a weight in hundredths of a percent, and a statement
//! about the command that has most of them, with the function below which most of that falls.

use super::kernel_work;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Samples, Statement, StatementKind, Weight};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("perf-report", Family::Profiles, recognise)
    .about("perf report, perf top")
    .openings(&["samples  pcnt function", "samples  pcnt  function"]);

/// Rows that are kept: of a share that is smaller nobody asks.
const ROWS: usize = 500;

/// Characters of a name that are kept.
const NAME: usize = 200;

/// Hundredths of a percent in a whole.
const WHOLE: u64 = 10_000;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    if head.lines().any(is_heading) {
        return Sureness::Certain;
    }
    // Copies begin below the heading.
    match head.lines().filter(|line| is_row(line)).count() {
        0..MIN_ROWS => Sureness::No,
        _ => Sureness::Certain,
    }
}

/// Rows without a heading from which it is no chance.
const MIN_ROWS: usize = 2;

/// A row as the interactive view prints it, before its sign that it can be opened: `+  14.36%  web  [kernel]  [k] copy`.
fn bare(line: &str) -> &str {
    line.trim().trim_start_matches(['+', '-']).trim_start()
}

fn is_row(line: &str) -> bool {
    let words: Vec<&str> = bare(line).split_whitespace().take(40).collect();
    words.first().is_some_and(|word| share(word).is_some()) && symbol(&words).is_some()
}

/// `# Overhead  Command  Shared Object  Symbol`.
fn is_heading(line: &str) -> bool {
    let mut words = line.trim_start_matches(['#', ' ']).split_whitespace();
    let first = words.next();
    let begins = first == Some("Overhead") || first == Some("Children") && words.next() == Some("Self");
    begins && line.contains("Shared Object") || is_old_heading(line)
}

/// `samples  pcnt function  DSO`: what `perf top` printed before 3.4.
fn is_old_heading(line: &str) -> bool {
    let names: Vec<&str> = line.split_whitespace().take(4).collect();
    matches!(names.as_slice(), ["samples", "pcnt", "function", ..])
}

/// `120249.00 74.6% do_raw_spin_lock  [kernel.kallsyms]`: the share and the function of such a row.
fn old_row<'a>(words: &[&'a str]) -> Option<(u64, &'a str)> {
    let [samples, part, function, ..] = words else {
        return None;
    };
    crate::numbers::decimal(samples.as_bytes())?;
    Some((share(part)?, function))
}

/// `39.46%`, in hundredths.
fn share(word: &str) -> Option<u64> {
    let share = crate::numbers::decimal(word.strip_suffix('%')?.as_bytes())?;
    (0.0..=100.0)
        .contains(&share)
        .then(|| (share * 100.0).round() as u64)
}

/// Where a function runs: the kernel, a program, those of a guest.
fn is_marker(word: &str) -> bool {
    matches!(word, "[k]" | "[.]" | "[g]" | "[u]")
}

/// Whether the function of a row is one of the kernel.
fn is_kernel(words: &[&str]) -> bool {
    words.iter().copied().find(|word| is_marker(word)) == Some("[k]")
}

/// The function behind `[k]` or `[.]`.
fn symbol(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| is_marker(word))?;
    let name = words.get(at + 1..)?.join(" ");
    (!name.is_empty()).then(|| name.chars().take(NAME).collect())
}

/// One row.
#[derive(Debug, Default)]
struct Shares {
    own: u64,
    /// With what the function called; as the own share where the table has only that.
    all: u64,
    command: String,
    /// Whether it is a function of the kernel: programs have functions of the same names.
    kernel: bool,
}

#[derive(Debug, Default)]
struct Reader {
    quote: Option<Quote>,
    /// Whether a heading told of the columns, and whether it was that of old versions.
    headed: bool,
    old: bool,
    /// Whether a share has what the function called in it, and whether commands are reported.
    children: bool,
    commands: bool,
    rows: Vec<(Shares, String)>,
    /// The shares of a row whose function stands on the next line.
    wrapped: Option<Shares>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = bare(&text);
        if is_heading(text) {
            self.quote.get_or_insert_with(|| out.here());
            self.headed = true;
            self.old = is_old_heading(text);
            self.children = text.contains("Children");
            self.commands = text.contains("Command");
            return Understood::Evidence;
        }
        // The bar at the side of the view.
        let bar = |word: &&str| !matches!(*word, "▒" | "◆" | "█");
        let words: Vec<&str> = text.split_whitespace().filter(bar).take(40).collect();
        if let Some((own, function)) = old_row(&words).filter(|_| self.old) {
            let shares = Shares {
                own,
                all: own,
                command: String::new(),
                kernel: words.get(3).is_some_and(|object| object.starts_with("[kernel")),
            };
            self.row(shares, function.chars().take(NAME).collect());
            return Understood::Evidence;
        }
        // The last percentage is that of the function itself.
        let values: Vec<u64> = words.iter().map_while(|word| share(word)).take(3).collect();
        if let (Some(all), Some(own)) = (values.first(), values.last()) {
            self.quote.get_or_insert_with(|| out.here());
            if !self.headed {
                // Two shares are those with and without what was called; a command stands in front of an object.
                let marker = words.iter().position(|word| is_marker(word));
                self.children |= values.len() == 2;
                self.commands |= marker.is_some_and(|at| at >= values.len() + 2);
            }
            let command = words.get(values.len()).filter(|_| self.commands);
            let shares = Shares {
                own: *own,
                all: *all,
                command: command.map_or_else(String::new, |name| name.chars().take(NAME).collect()),
                kernel: is_kernel(&words),
            };
            match symbol(&words) {
                Some(symbol) => self.row(shares, symbol),
                // Below a row stand its callers, with shares of it.
                None if words.len() < values.len() + 2 => return Understood::Ignorable,
                None => self.wrapped = Some(shares),
            }
            return Understood::Evidence;
        }
        match (self.wrapped.take(), words.as_slice()) {
            (Some(mut own), ["[k]" | "[.]", ..]) => {
                own.kernel = is_kernel(&words);
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
        rows.sort_by_key(|(shares, _)| std::cmp::Reverse(shares.own));
        if let Some(statement) = self.command(&rows, &quote) {
            out.statement(statement);
        }
        rows.retain(|(shares, _)| shares.own > 0);
        // Those of programs count as what is larger only.
        let own = rows.iter().map(|(shares, symbol)| {
            let function = Some(symbol.as_str()).filter(|_| shares.kernel);
            (function, shares.own as f64 / WHOLE as f64)
        });
        if let Some((share, told)) = kernel_work::most(own) {
            let text = match self.one_command(&rows) {
                Some(command) => format!("{command}: {told}"),
                None => told,
            };
            out.statement(Statement {
                share: Some(share),
                ..statements::one(StatementKind::Stalled, None, quote.clone(), text)
            });
        }
        let sum = rows
            .iter()
            .fold(0, |sum: u64, (shares, _)| sum.saturating_add(shares.own));
        let stacks = rows
            .iter()
            .map(|(shares, symbol)| (out.stack([symbol.as_str()]), shares.own))
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
    fn row(&mut self, shares: Shares, symbol: String) {
        if shares.all > 0 && self.rows.len() < ROWS {
            self.rows.push((shares, symbol));
        }
    }

    /// The command of all rows, where there is one.
    fn one_command<'a>(&self, rows: &'a [(Shares, String)]) -> Option<&'a str> {
        let (first, _) = rows.first().filter(|_| self.commands)?;
        let same = rows.iter().all(|(shares, _)| shares.command == first.command);
        (same && !first.command.is_empty()).then_some(first.command.as_str())
    }

    /// The command that has most samples, from rows with the largest own share first.
    fn command(&self, rows: &[(Shares, String)], quote: &Quote) -> Option<Statement> {
        // Without what functions called, the function that has most is the answer.
        if !self.children {
            return None;
        }
        let mut commands: Vec<(&str, u64)> = Vec::new();
        for (shares, _) in rows.iter().filter(|(shares, _)| !shares.command.is_empty()) {
            let known = commands.iter_mut().find(|(name, _)| *name == shares.command);
            match known {
                // What a function has with its callees its caller has too.
                Some((_, sum)) => *sum = shares.all.max(*sum),
                None => commands.push((&shares.command, shares.all)),
            }
        }
        let (command, most) = commands.into_iter().max_by_key(|(_, sum)| *sum)?;
        let most = most.min(WHOLE);
        let of_command = || rows.iter().filter(|(shares, _)| shares.command == command);
        let (own, function) = of_command().next()?;
        let percent = |hundredths: u64| format!("{:.1} %", hundredths as f64 / 100.0);
        let mut text = format!("{command} has {} of the samples", percent(most));
        // The innermost function that still has half of it.
        let inner = of_command()
            .filter(|(shares, _)| shares.all * 2 >= most)
            .min_by_key(|(shares, _)| shares.all);
        if let Some((shares, symbol)) = inner {
            text.push_str(&format!(
                ", {} of them in {symbol} and what it calls",
                percent(shares.all)
            ));
        }
        text.push_str(&format!(
            "; {function} has {} of its own, the most of all functions",
            percent(own.own)
        ));
        Some(Statement {
            share: Some(most as f64 / WHOLE as f64),
            ..statements::one(StatementKind::Took, None, quote.clone(), text)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_command_that_has_most_and_where() {
        let text = "  Children      Self  Command  Shared Object  Symbol\n+   90.00%     0.00%  sync  [kernel]  [k] kthread\n\
            +   61.00%     4.00%  sync  [kernel]  [k] flush_all\n+   40.00%    33.00%  sync  [kernel]  [k] copy\n\
            +    9.00%     9.00%  web  libc.so.6  [.] read\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(
            reading.observed.statements[0].text,
            "sync has 90.0 % of the samples, 61.0 % of them in flush_all and what it calls; copy has 33.0 % of its own, the most \
             of all functions"
        );
        assert_eq!(reading.observed.samples[0].stacks.len(), 3);
    }

    #[test]
    fn functions_of_one_kind_of_work_are_told_together() {
        let text = "+  24.50%  web  [kernel.kallsyms]  [k] futex_wake\n+  21.25%  web  [kernel.kallsyms]  [k] get_futex_key\n\
            +   9.00%  web  web  [.] parse\n";
        let reading = read_text("p", text.as_bytes());
        let told = &reading.observed.statements[0].text;
        assert!(
            told.starts_with("web: 2 functions of the kernel for futexes have 45.8 %"),
            "{told}"
        );
    }

    #[test]
    fn functions_of_a_program_are_none_of_the_kernel() {
        let rows = |marker: &str| {
            let row = |share: &str, name: &str| format!("+  {share}%  store  object  [{marker}] {name}\n");
            let text =
                row("24.50", "compact_range") + &row("21.25", "compact_memtable") + &row("3.00", "idle");
            read_text("p", text.as_bytes()).observed.statements.len()
        };
        assert_eq!((rows("."), rows("k")), (0, 1));
        let old = |object: &str| {
            let text = format!(
                "  samples  pcnt function      DSO\n 812.00 30.5% compact_zone  {object}\n 633.00 22.9% compact_range  {object}\n"
            );
            read_text("p", text.as_bytes()).observed.statements.len()
        };
        assert_eq!((old("/srv/store"), old("[kernel.kallsyms]")), (0, 1));
    }

    #[test]
    fn rows_of_the_interactive_view_need_no_heading() {
        let text = "Samples: 2K of event 'cycles', Event count (approx.): 99\n+  24.50%  web  [kernel.kallsyms]  [k] futex_wake\n\
            +  11.25%  web  web  [.] parse\n   3.00%  [kernel]  [k] idle\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "perf-report");
        let values: Vec<u64> = reading.observed.samples[0]
            .stacks
            .iter()
            .map(|(_, share)| *share)
            .collect();
        assert_eq!(values, [2450, 1125, 300]);
        assert!(reading.observed.statements.is_empty());
    }

    #[test]
    fn the_table_of_old_versions() {
        let text = "   PerfTop:  99 irqs/sec\n\n  samples  pcnt function      DSO\n  _______ _____ _______ ____\n\n\
            \x20 812.00 70.5% spin_lock    [kernel.kallsyms]\n   33.00  2.9% parse        /srv/app\n";
        let reading = read_text("p", text.as_bytes());
        let observed = &reading.observed;
        let [profile] = observed.samples.as_slice() else {
            panic!("{reading:?}")
        };
        let listed: Vec<_> = profile
            .stacks
            .iter()
            .map(|(stack, share)| (observed.stacks.frames(*stack).next_back(), *share))
            .collect();
        assert_eq!(listed, [(Some("spin_lock"), 7050), (Some("parse"), 290)]);
    }

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
        let listed: Vec<_> = profile
            .stacks
            .iter()
            .map(|(stack, share)| (stacks.frames(*stack).next_back(), *share))
            .collect();
        assert_eq!(
            listed,
            [(Some("copy_page"), 3150), (Some("clear_page_erms"), 925)]
        );
        assert_eq!(profile.total, 10_000);
        let text = "  Children      Self  Command  Shared Object  Symbol\n+   80.00%     2.50%  store  libc.so.6  [.] read\n";
        assert_eq!(
            read_text("p", text.as_bytes()).observed.samples[0].stacks[0].1,
            250
        );
    }
}
