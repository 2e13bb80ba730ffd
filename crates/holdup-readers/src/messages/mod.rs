//! What well-known messages of well-known programs mean, where their words alone do not say so.
//!
//! In: a line. Out: the message that says most of those that stand in it: of which kind it is, whether it is a cause or a sign, and what it means.
//! The tables are beside this file, one row for each message; docs/read.md says how to add one. All are looked for at once, by the first
//! fixed words of each. The cost is one pass over the line, and a bounded number of further ones where words were found.

mod filled;

use crate::find::find;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use holdup_evidence::observed::{Known, MessageRole, StatementKind};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

/// The tables.
const TABLES: [&str; 7] = [
    include_str!("kernel.tsv"),
    include_str!("data.tsv"),
    include_str!("runtimes.tsv"),
    include_str!("infra.tsv"),
    include_str!("storage.tsv"),
    include_str!("devices.tsv"),
    include_str!("services.tsv"),
];

/// What stands between pieces of a message that the program fills in.
const GAP: &str = " … ";

/// First pieces in one line that are tried. A line of a log has one or two; more are a list of messages, as in documentation.
const MAX_TRIED_PIECES: usize = 16;

/// A message that a program prints.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    /// Its fixed words, in order, with anything between.
    pieces: Vec<&'static str>,
    /// What it says; `None` of one that looks alarming and is ordinary.
    kind: Option<StatementKind>,
    role: MessageRole,
    program: &'static str,
    means: &'static str,
}

impl Message {
    /// Of which kind its statement is; `None` where it is ordinary and states no trouble.
    pub(crate) fn kind(&self) -> Option<StatementKind> {
        self.kind
    }

    /// What is known of it, as evidence: what it means, with what the program filled in. Its first words stand in the line there.
    pub(crate) fn known(&self, line: &[u8], at: usize) -> Known {
        Known {
            role: self.role,
            program: self.program.to_owned(),
            means: match self.means.contains(['{', '[']) {
                true => filled::fill(self.means, &self.gaps(line, at)),
                false => self.means.to_owned(),
            },
        }
    }

    /// A number of whom it speaks of: of lines that name others it is another one, and 0 where its meaning names nobody.
    pub(crate) fn names(&self, line: &[u8], at: usize) -> u64 {
        if !self.means.contains('{') {
            return 0;
        }
        let names = filled::names(self.means, &self.gaps(line, at));
        match names.is_empty() {
            true => 0,
            false => {
                let mut hasher = DefaultHasher::new();
                names.hash(&mut hasher);
                hasher.finish()
            }
        }
    }

    /// What stands around its fixed words.
    fn gaps<'a>(&self, line: &'a [u8], at: usize) -> filled::Gaps<'a> {
        let first = self.pieces.first().map_or(0, |piece| piece.len());
        let mut behind = line.get(at + first..).unwrap_or_default();
        let mut between = Vec::new();
        for piece in self.pieces.iter().skip(1) {
            let Some(end) = find(behind, piece.as_bytes()) else {
                break;
            };
            between.push(behind.get(..end).unwrap_or_default());
            behind = behind.get(end + piece.len()..).unwrap_or_default();
        }
        filled::Gaps {
            before: line.get(..at).unwrap_or_default(),
            between,
            behind,
        }
    }

    /// Whether it names what others suffer from.
    pub(crate) fn is_cause(&self) -> bool {
        self.kind.is_some() && self.role == MessageRole::Cause
    }

    /// Bytes that must stand in a line.
    fn length(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Whether the pieces behind the first stand in this order in what follows it.
    fn goes_on(&self, mut rest: &[u8]) -> bool {
        self.pieces.iter().skip(1).all(|piece| {
            let Some(at) = find(rest, piece.as_bytes()) else {
                return false;
            };
            rest = rest.get(at + piece.len()..).unwrap_or_default();
            true
        })
    }
}

/// A message in a line, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) message: &'static Message,
    pub(crate) at: usize,
}

/// All messages, and the automaton of their first pieces, in the same order.
struct Messages {
    all: Vec<Message>,
    firsts: AhoCorasick,
}

static MESSAGES: LazyLock<Option<Messages>> = LazyLock::new(|| {
    let all: Vec<Message> = TABLES.iter().flat_map(|table| rows(table)).collect();
    let firsts = all.iter().filter_map(|message| message.pieces.first());
    // A table of each state for each byte would be some 10 MB; this automaton is a tenth of that.
    let firsts = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(firsts)
        .ok()?;
    Some(Messages { all, firsts })
});

/// The rows of a table; a test holds that each line is one.
fn rows(table: &'static str) -> impl Iterator<Item = Message> {
    let rows = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.filter_map(row)
}

/// The message of a row: words, kind, role, program, meaning.
fn row(line: &'static str) -> Option<Message> {
    let mut columns = line.split('\t');
    let pieces: Vec<&str> = columns.next()?.split(GAP).collect();
    let kind = columns.next()?;
    let role = columns.next()?;
    let program = columns.next()?;
    let means = columns.next()?;
    let whole = columns.next().is_none() && pieces.iter().all(|piece| !piece.is_empty());
    let (kind, role) = match (kind, role) {
        ("usual", "-") => (None, MessageRole::Sign),
        (kind, "cause") => (Some(kind_of(kind)?), MessageRole::Cause),
        (kind, "sign") => (Some(kind_of(kind)?), MessageRole::Sign),
        _ => return None,
    };
    whole.then_some(Message {
        pieces,
        kind,
        role,
        program,
        means,
    })
}

/// The kind of statement that a row names.
pub(crate) fn kind_of(name: &str) -> Option<StatementKind> {
    Some(match name {
        "deadlock" => StatementKind::Deadlock,
        "ended" => StatementKind::Ended,
        "exhausted" => StatementKind::Exhausted,
        "timed-out" => StatementKind::TimedOut,
        "unreachable" => StatementKind::Unreachable,
        "stalled" => StatementKind::Stalled,
        "failed" => StatementKind::Failed,
        "warned" => StatementKind::Warned,
        _ => return None,
    })
}

/// The message of a line that says most: of several a cause before a sign, then the one with the most fixed words, then the first. Where
/// one is a part of another, the longer one is meant.
pub(crate) fn of(line: &[u8]) -> Option<Found> {
    let messages = MESSAGES.as_ref()?;
    let hits = messages.firsts.try_find_overlapping_iter(line).ok()?;
    let mut best: Option<Hit> = None;
    for hit in hits.take(MAX_TRIED_PIECES) {
        let Some(message) = messages.all.get(hit.pattern().as_usize()) else {
            continue;
        };
        let new = Hit {
            message,
            first: hit.range(),
        };
        if best.as_ref().is_none_or(|best| new.says_more_than(best))
            && stands_alone(line, &new.first)
            && message.goes_on(line.get(hit.end()..).unwrap_or_default())
        {
            best = Some(new);
        }
    }
    let Hit { message, first } = best?;
    Some(Found {
        message,
        at: first.start,
    })
}

/// A message, and where its first piece stands.
struct Hit {
    message: &'static Message,
    first: Range<usize>,
}

impl Hit {
    fn says_more_than(&self, other: &Hit) -> bool {
        let (own, others) = (self.message, other.message);
        match self.first.start < other.first.end && other.first.start < self.first.end {
            true => own.length() > others.length(),
            false => (own.is_cause(), own.length()) > (others.is_cause(), others.length()),
        }
    }
}

/// Whether words do not begin or end within a longer word.
fn stands_alone(line: &[u8], at: &Range<usize>) -> bool {
    let of_word = |at: usize| {
        line.get(at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let letter = |at: usize| line.get(at).is_some_and(u8::is_ascii_alphabetic);
    let before = at.start.checked_sub(1).is_some_and(of_word);
    !(before && of_word(at.start) || letter(at.end) && letter(at.end.wrapping_sub(1)))
}

#[cfg(test)]
pub(crate) mod tests;
