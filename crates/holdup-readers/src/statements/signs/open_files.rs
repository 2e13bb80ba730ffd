//! A process that has as many open files as it may, where the limit and the count stand in two outputs of one text.
//!
//! In: `Max open files  1024  4096  files` of `/proc/PID/limits` or `ulimit -n` with its number below, and a command that counts the descriptors of a
//! process (`ls /proc/881/fd | wc -l`, `lsof -p 881 | wc -l`) with its number below. Out: a fact where the count has reached the limit.

use super::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// The part of the limit from which it is reached: lsof counts a heading, and files that are no descriptors.
const REACHED: f64 = 0.97;

/// The part of the limit above which the count is of another process, or the limit was raised.
const PAST: f64 = 1.05;

/// Bytes of a path or a command that name the process.
const MAX_NAME_BYTES: usize = 40;

/// What the number in the next line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Limit,
    Count,
}

/// What one artefact says.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    next: Option<(Next, u64)>,
    limit: Option<f64>,
    /// The process whose limits were asked for last, and the one that the limit is of, where a command names it.
    asked: Option<String>,
    limit_of: Option<String>,
    count: Option<(f64, u64)>,
    of: String,
}

/// What names a process behind some words.
fn process<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = text.split_once(words)?.1.trim_start();
    let end = rest.find(|char: char| !char.is_alphanumeric() && char != '$');
    let pid = rest.get(..end.unwrap_or(rest.len()))?;
    (!pid.is_empty() && pid.len() <= MAX_NAME_BYTES).then_some(pid)
}

/// The process whose descriptors a command counts: `/proc/881/fd`, `lsof -p 881`.
fn counted(text: &str) -> Option<&str> {
    if !text.contains("wc -l") {
        return None;
    }
    let behind = |words: &str| process(text, words);
    match text.contains("/fd") {
        true => behind("/proc/"),
        false => behind("lsof -p").or_else(|| behind("lsof -n -p")),
    }
}

impl OpenFiles {
    /// Whether the next line is wanted, whatever its words are.
    pub(super) fn wants(&self, number: u64) -> bool {
        self.next.is_some_and(|(_, line)| line + 1 == number)
    }

    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        if let Some((next, line)) = self.next.take()
            && line + 1 == number
            && let Ok(value) = text.trim().parse::<f64>()
        {
            match next {
                Next::Limit => (self.limit, self.limit_of) = (Some(value), None),
                Next::Count => self.count = Some((value, number)),
            }
            return;
        }
        if let Some(rest) = text.strip_prefix("Max open files") {
            self.limit = rest.split_whitespace().next().and_then(|soft| soft.parse().ok());
            self.limit_of = self.asked.take();
        } else if let Some(of) = process(text, "/proc/").filter(|_| text.contains("/limits")) {
            self.asked = Some(of.to_owned());
        } else if let Some(of) = counted(text) {
            of.clone_into(&mut self.of);
            self.next = Some((Next::Count, number));
        } else if text.trim_end().ends_with("ulimit -n") {
            self.next = Some((Next::Limit, number));
        }
    }

    /// What they say together.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let read = std::mem::take(self);
        let (limit, (count, line)) = (read.limit?, read.count?);
        let reached = limit > 0.0 && (REACHED * limit..=PAST * limit).contains(&count);
        if !reached || read.limit_of.is_some_and(|of| of != read.of) {
            return None;
        }
        told.add(line);
        Some(Fact {
            kind: StatementKind::Exhausted,
            share: Some(count / limit),
            ns: None,
            line,
            text: format!(
                "process {} has {count:.0} open files, and may have {limit:.0} (max open files, ulimit -n): the next one fails",
                read.of
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| one.text).collect()
    }

    #[test]
    fn a_count_that_has_reached_its_limit() {
        for text in [
            "$ cat /proc/712/limits\nLimit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 4096                 files\n\
             $ ls /proc/712/fd | wc -l\n1024\n",
            "$ ulimit -n\n1024\n$ lsof -p 712 | wc -l\n1031\n",
        ] {
            let all = said(text);
            assert!(
                all.iter()
                    .any(|text| text.starts_with("process 712 has 10") && text.contains("may have 1024")),
                "{all:?}"
            );
        }
    }

    #[test]
    fn a_count_with_room_or_without_limit_says_nothing() {
        for text in [
            "$ ulimit -n\n1024\n$ lsof -p 712 | wc -l\n131\n",
            "$ ls /proc/712/fd | wc -l\n1024\n",
            "$ ulimit -n\nunlimited\n$ ls /proc/712/fd | wc -l\n1024\n",
            "$ ulimit -n\n1024\n$ cat log | wc -l\n5000\n",
            "$ ulimit -n\n1024\n$ ls /proc/881/fd | wc -l\n3120\n",
            "$ cat /proc/1/limits\nMax open files            1024                 4096                 files\n$ ls /proc/881/fd | wc -l\n1024\n",
        ] {
            let all = said(text);
            assert!(
                !all.iter().any(|text| text.contains("the next one fails")),
                "{all:?}"
            );
        }
    }
}
