//! Tables of functions as profilers print them: cProfile and pstats, `summaryRprof` of R, stackprof and ruby-prof, gprof, dprofpp,
//! `go tool pprof -top`, callgrind_annotate, zprof.
//!
//! In: a heading that names the columns, and a row for each function; the whole may stand above or below. Out: a statement about the function
//! that took most time itself, with its share and the next, and about the one that took most with all that it called.
//! Source: `pstats.py` of CPython, `summaryRprof.R`, `report.rb` of stackprof, `flat_printer.rb` of ruby-prof, the manual of gprof.

mod table;

use self::table::{Row, Table};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, holds, ns_of, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("function-table", Family::Profiles, recognise)
    .about("a profiler's table of functions");

/// What stands in one of the headings.
const MARKS: [&str; 9] = [
    "tottime",
    "self.time",
    "SAMPLES",
    "%self",
    "cumulative",
    "ExclSec",
    "flat%",
    "file:function",
    "self            name",
];

/// Functions that have all of the time because everything is within them.
const ROOTS: [&str; 11] = [
    "<module>",
    "exec}",
    "<main>",
    "[No method]",
    "runpy.py",
    "(main)",
    "<top (required)>",
    "(block)",
    "main.main",
    "runtime.main",
    "runtime.goexit",
];

/// Rows of one table; of more, the rest is not looked at.
const MAX_ROWS: u64 = 100_000;

fn recognise(head: &[u8]) -> Sureness {
    if !MARKS.iter().any(|mark| holds(head, mark)) {
        return Sureness::No;
    }
    let mut table = None;
    for line in head.split(|byte| *byte == b'\n') {
        let text = text_in(line);
        // The fence may be glued to the heading.
        let text = text.trim_start_matches('`');
        table = Table::of(text).or(table);
        if table.is_some_and(|table| table.row(text).is_some()) {
            return Sureness::Certain;
        }
    }
    Sureness::No
}

#[derive(Debug, Default)]
struct Reader {
    table: Option<Table>,
    whole: Option<f64>,
    /// Whether the next line is the whole: below `$sampling.time`.
    whole_follows: bool,
    own: Largest,
    /// Of the function that took most itself.
    percent: Option<f64>,
    calls: String,
    total: Largest,
    /// Of one function with all that it calls, the greatest time, also where everything is within it.
    greatest_total: f64,
    /// Whether lines of source follow, with figures of their own.
    has_ended: bool,
}

impl Reader {
    fn row(&mut self, row: &Row, out: &Out<'_>) {
        // The table by total comes second and has the same functions.
        if self.table != Some(Table::RprofTotal) && self.own.take(row.own, &row.name, out.here()) {
            self.percent = row.own_percent;
            self.calls.clone_from(&row.calls);
        }
        self.greatest_total = self.greatest_total.max(row.total.unwrap_or(0.0));
        if let Some(total) = row.total
            && !ROOTS.iter().any(|root| row.name.contains(root))
        {
            self.total.take(total, &row.name, out.here());
        }
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(table), Some((own, name, quote))) = (read.table, &read.own.first) else {
            return;
        };
        if *own <= 0.0 {
            return;
        }
        let of_samples = matches!(table, Table::Stackprof | Table::Callgrind);
        let told = |value: f64| match table {
            Table::Stackprof => format!("{value:.0} samples"),
            Table::Callgrind => format!("{value:.0} instructions"),
            _ => duration(ns_of(value)),
        };
        // Where no line names the whole, it is the function that everything is within.
        let whole = read.whole.filter(|whole| *whole >= *own).or_else(|| {
            let greatest = Some(read.greatest_total).filter(|total| *total >= read.own.sum);
            greatest.filter(|_| read.percent.is_none())
        });
        let share = read
            .percent
            .map_or_else(|| own / whole.unwrap_or(read.own.sum), |percent| percent / 100.0);
        let mut text = format!("{name} took {} itself, {} %", told(*own), rounded(share * 100.0));
        match (whole, read.percent) {
            (Some(whole), _) => text.push_str(&format!(" of {}", told(whole))),
            (None, Some(_)) => text.push_str(" of the whole"),
            (None, None) => text.push_str(&format!(" of the {} functions listed", read.own.count)),
        }
        if !read.calls.is_empty() {
            text.push_str(&format!(", in {} calls", read.calls));
        }
        if !of_samples && is_busy_loop(name, *own, &read.calls, share) {
            text.push_str(
                ": a busy loop, that asks again and again whether something has happened and does not wait for it",
            );
        }
        text.push_str(&read.own.and_next(told));
        if let Some((total, longest, _)) = read.total.first.as_ref().filter(|(total, ..)| total > own) {
            text.push_str(&format!(
                "; with all that it calls {longest} took {}",
                told(*total)
            ));
        }
        let ns = (!of_samples).then(|| ns_of(*own));
        out.statement(Statement {
            share: Some(share).filter(|share| (0.0..=1.0).contains(share)),
            ..statements::one(StatementKind::Took, ns, quote.clone(), text)
        });
    }
}

/// Calls of a function that waits for events from which it may spin, what one takes at most then, seconds, and the share that is much.
const MIN_POLLS: f64 = 1e6;
const MAX_POLL_SECONDS: f64 = 1e-5;
const MIN_POLL_SHARE: f64 = 0.2;

/// Whether a function that is there to wait for events came back at once, millions of times.
fn is_busy_loop(name: &str, own: f64, calls: &str, share: f64) -> bool {
    let of_polls = |word: &str| {
        word.ends_with("poll") || word.starts_with("epoll") || word == "select" || word == "kqueue"
    };
    let waits = name
        .split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .any(of_polls);
    let calls = number(calls.split('/').next().unwrap_or_default()).unwrap_or(0.0);
    waits && calls >= MIN_POLLS && own / calls <= MAX_POLL_SECONDS && share >= MIN_POLL_SHARE
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(table) = Table::of(&text) {
            let goes_on = self.table == Some(Table::RprofSelf) && table == Table::RprofTotal;
            if self.table.is_some() && !goes_on {
                self.close(out);
            }
            self.table = Some(table);
            return Understood::Evidence;
        }
        if let Some(whole) = Table::whole(&text) {
            if self.own.count > 0 {
                self.close(out);
            }
            self.whole = Some(whole);
            return Understood::Evidence;
        }
        if text == "$sampling.time" {
            self.whole_follows = true;
            return Understood::Evidence;
        }
        if std::mem::take(&mut self.whole_follows) {
            self.whole = text.strip_prefix("[1]").and_then(|rest| number(rest.trim()));
            return Understood::Evidence;
        }
        if self.own.count >= MAX_ROWS {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        self.has_ended |= text.starts_with("-- Auto-annotated source");
        let table = self.table.filter(|_| !self.has_ended);
        match table.and_then(|table| table.row(&text)) {
            Some(row) => {
                self.row(&row, out);
                Understood::Evidence
            }
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "function-table", "{text}");
        reading
            .observed
            .statements
            .into_iter()
            .map(|one| one.text)
            .collect()
    }

    #[test]
    fn a_loop_that_asks_for_events_and_never_waits() {
        let table = |calls: &str, own: &str| {
            format!(
                "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n\
                \x20       1    0.001    0.001  200.000  200.000 broker.py:1(<module>)\n\
                \x20{calls}  {own}    0.000  {own}    0.000 {{method 'poll' of 'select.epoll' objects}}\n\
                \x20   91    0.001    0.000    1.392    0.015 link.py:127(send)\n"
            )
        };
        let told = said(&table("60789078", "112.203"));
        assert!(told[0].contains("a busy loop"), "{told:?}");
        // A server that waits for its events is idle, and one that has many of them works.
        assert!(!said(&table("812", "190.203"))[0].contains("a busy loop"));
        assert!(!said(&table("2000000", "2.203"))[0].contains("a busy loop"));
    }

    #[test]
    fn pstats() {
        let text = "         9120 function calls (9001 primitive calls) in 10.000 seconds\n\n   Ordered by: cumulative time\n\n\
            \x20  ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n\
            \x20       1    0.001    0.001   10.000   10.000 shop.py:1(<module>)\n\
            \x20    12/3    0.500    0.042    9.500    3.167 shop.py:40(load all)\n\
            \x20     812    8.400    0.010    8.400    0.010 {method 'recv_into' of '_socket.socket' objects}\n";
        assert_eq!(
            said(text),
            [
                "{method 'recv_into' of '_socket.socket' objects} took 8.40 s itself, 84 % of 10.00 s, in 812 calls; next shop.py:40(load \
                 all), 500 ms; with all that it calls shop.py:40(load all) took 9.50 s"
            ]
        );
    }

    #[test]
    fn without_a_whole_it_is_the_function_that_all_is_within() {
        let text = "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n\
            \x20       1    0.002    0.002   10.000   10.000 /a/run.py:1(run)\n     1204    8.000    0.007    8.000    0.007 fetch\n";
        assert!(
            said(text)[0].starts_with("fetch took 8.00 s itself, 80 % of 10.00 s, in 1204 calls"),
            "{:?}",
            said(text)
        );
    }

    #[test]
    fn of_r_and_of_ruby() {
        let text = "$by.self\n              self.time self.pct total.time total.pct\n\"paste0\"           6.00    60.00       6.00     60.00\n\
            \"read csv\"         1.00    10.00       9.00     90.00\n\n$by.total\n              total.time total.pct self.time self.pct\n\
            \"read csv\"          9.00     90.00      1.00    10.00\n\n$sample.interval\n[1] 0.02\n\n$sampling.time\n[1] 10\n";
        assert_eq!(
            said(text),
            [
                "paste0 took 6.00 s itself, 60 % of 10.00 s; next read csv, 1.00 s; with all that it calls read csv took 9.00 s"
            ]
        );
        let text = "==================================\n  Mode: cpu(1000)\n  Samples: 200 (0.00% miss rate)\n  GC: 20 (10.00%)\n\
            ==================================\n     TOTAL    (pct)     SAMPLES    (pct)     FRAME\n\
            \x20      150  (75.0%)         120  (60.0%)     Shop::Cart#total\n       190  (95.0%)          10   (5.0%)     block in Shop#run\n";
        assert_eq!(
            said(text),
            [
                "Shop::Cart#total took 120 samples itself, 60 % of 200 samples; next block in Shop#run, 10 samples; with all that it calls \
                 block in Shop#run took 190 samples"
            ]
        );
    }

    #[test]
    fn of_ruby_prof_and_gprof_without_a_whole() {
        let text = " %self      total      self      wait     child     calls  name\n 46.50      5.10      4.65      0.00      0.45      900  *Cart#sum\n";
        assert!(
            said(text)[0].starts_with("Cart#sum took 4.65 s itself, 46.5 % of the whole, in 900 calls"),
            "{text}"
        );
        let text = "  %   cumulative   self              self     total\n time   seconds   seconds    calls  ms/call  ms/call  name\n\
            \x2070.10      7.01     7.01      100    70.10    70.10  sort_rows\n 10.00      8.01     1.00                             frob\n";
        assert!(said(text)[0].starts_with(
            "sort_rows took 7.01 s itself, 70.1 % of the whole, in 100 calls; next frob, 1.00 s"
        ));
    }

    #[test]
    fn of_go() {
        let text = "File: main\nType: cpu\nDuration: 30.10s, Total samples = 10s (33.2%)\n\
            Showing nodes accounting for 9s, 90% of 10s total\n      flat  flat%   sum%        cum   cum%\n\
            \x20    4.80s 48.00% 48.00%      6.20s 62.00%  sort.partition_func\n     500ms  5.00% 53.00%      600ms  6.00%  main.compare (inline)\n\
            \x20        0     0% 53.00%     10s   100%  main.main\n         0     0% 53.00%      9.60s 96.00%  sort.Slice\n";
        assert_eq!(
            said(text),
            [
                "sort.partition_func took 4.80 s itself, 48 % of 10.00 s; next main.compare (inline), 500 ms; with all that it calls sort.Slice \
                 took 9.60 s"
            ]
        );
    }

    #[test]
    fn of_callgrind_and_of_zsh() {
        let text = "Ir\n34,000,000 (100.0%)  PROGRAM TOTALS\n\nIr                   file:function\n\
            32,300,000 (95.00%)  cg.c:sum_digits [/srv/cg]\n 1,360,000 ( 4.00%)  cg.c:main [/srv/cg]\n\n\
            -- Auto-annotated source: cg.c\n33,999,000 (99.99%)  x = y ? a:b;\n";
        assert_eq!(
            said(text),
            [
                "cg.c:sum_digits [/srv/cg] took 32300000 instructions itself, 95 % of 34000000 instructions; next cg.c:main [/srv/cg], 1360000 \
                 instructions"
            ]
        );
        let text = "num  calls                time                       self            name\n\
            -----------------------------------------------------------------------------------\n\
            \x201)    2         400.00   200.00   80.00%    300.00   150.00   60.00%  compinit\n\
            \x202)    1         100.00   100.00   20.00%    100.00   100.00   20.00%  compdump\n";
        assert_eq!(
            said(text),
            [
                "compinit took 300 ms itself, 60 % of the whole, in 2 calls; next compdump, 100 ms; with all that it calls compinit took 400 ms"
            ]
        );
    }

    #[test]
    fn other_tables_are_none() {
        for text in [
            "name self.time\na 1\n",
            "ncalls tottime\n1 2\n",
            "time seconds seconds name\na b c d\n",
        ] {
            assert_ne!(
                read_text("p", text.as_bytes()).observed.sources[0].format,
                "function-table"
            );
        }
    }
}
