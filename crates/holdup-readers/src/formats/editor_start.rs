//! `vim --startuptime` and `nvim --startuptime`: what an editor did while it started, with its times in milliseconds.
//!
//! In: rows `2783.951  2760.021  2760.021: sourcing …/plugin/x.vim` (clock, with what it sourced, by itself) and `000.008  000.008: --- VIM STARTING ---`
//! (clock, elapsed). Out: the row that took longest by itself, its part of the whole, and the next. Source: `:help --startuptime`.

use super::report::{Largest, name_of, ns_of, number, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("editor-startup", Family::Times, recognise).about("the start-up times of vim");

/// Rows from which it is no chance: a person copies the two that matter.
const MIN_ROWS: usize = 2;

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 200;

/// A figure has three digits before its point at least, and three behind it.
fn figure(word: &str) -> Option<f64> {
    let (whole, part) = word.split_once('.')?;
    let fits = (3..=9).contains(&whole.len()) && part.len() == 3;
    let digits = whole
        .bytes()
        .chain(part.bytes())
        .all(|byte| byte.is_ascii_digit());
    (fits && digits).then(|| number(word)).flatten()
}

/// The clock, the time that it took by itself, and what it was; times in milliseconds.
fn row(text: &str) -> Option<(f64, f64, &str)> {
    let (figures, what) = text.split_once(": ")?;
    let all: Vec<f64> = figures.split_whitespace().map(figure).collect::<Option<_>>()?;
    let (clock, own) = match all.as_slice() {
        [clock, own] | [clock, _, own] => (*clock, *own),
        _ => return None,
    };
    Some((clock, own, what))
}

/// A line without the marks of code that a page puts around it.
fn bare(text: &str) -> &str {
    text.trim().trim_matches('`').trim()
}

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let rows = lines.filter(|line| row(bare(&text_in(line))).is_some());
    Sureness::certain_if(rows.take(MIN_ROWS).count() >= MIN_ROWS)
}

#[derive(Debug, Default)]
struct Reader {
    all: Largest,
    clock: f64,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        let Some((clock, own, what)) = row(bare(&text)) else {
            return Understood::Ignorable;
        };
        self.clock = self.clock.max(clock);
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        self.all.take(own, &name_of(&what), out.here());
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((own, what, quote)) = &read.all.first else {
            return;
        };
        let ns = |ms: f64| ns_of(ms / 1e3);
        let whole = read.clock.max(*own);
        let text = format!(
            "{what} took {}, {} of the {} until then that the editor needed to start{}",
            duration(ns(*own)),
            whole_percent(ns(*own), ns(whole)),
            duration(ns(whole)),
            read.all.and_next(|ms| duration(ns(ms)))
        );
        out.statement(Statement {
            share: (whole > 0.0).then(|| own / whole),
            ..statements::one(StatementKind::Took, Some(ns(*own)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn what_took_longest_by_itself() {
        let text = "times in msec\n clock   self+sourced   self:  sourced script\n clock   elapsed:              other lines\n\n\
            000.008  000.008: --- VIM STARTING ---\n012.301  011.900  000.400: sourcing /home/a/.vimrc\n\
            412.512  400.100  399.800: sourcing /home/a/.vim/pack/x/start/tags/plugin/tags.vim\n420.113  007.601: first screen update\n";
        let found = read_text("v", text.as_bytes());
        assert_eq!(found.observed.sources[0].format, "editor-startup");
        assert_eq!(
            found.texts(),
            [
                "sourcing /home/a/.vim/pack/x/start/tags/plugin/tags.vim took 400 ms, 95 % of the 420 ms until then that the editor needed to \
              start; next first screen update, 7.6 ms"
            ]
        );
    }

    #[test]
    fn lines_that_are_marked_as_code_are_rows_too() {
        let text = "`023.785  000.052  000.052: sourcing /a/b.vim`\n \n`2783.951  2760.021  2760.021: sourcing /a/slow.vim`\n";
        assert!(read_text("v", text.as_bytes()).texts()[0].starts_with("sourcing /a/slow.vim took 2.76 s"));
    }

    #[test]
    fn clocks_and_logs_are_no_rows() {
        for text in [
            "12:00:01.123: a",
            "1.5 2.5: a",
            "000.1 000.2: a",
            "100.200: a",
            "000.008  x: a",
        ] {
            assert!(super::row(text).is_none(), "{text}");
        }
    }
}
