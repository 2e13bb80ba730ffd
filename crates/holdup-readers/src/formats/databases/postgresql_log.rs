//! PostgreSQL's log, with any `log_line_prefix`.
//!
//! In: entries, that is a line with a level (`LOG:  `, `ERROR:  `), and below it lines that belong to it (`DETAIL:  `,
//! `STATEMENT:  `), written by the server in one piece. Out: sessions that waited for a lock (`log_lock_waits`), that gave up,
//! or that were refused. The words are those of an English `lc_messages`.

use super::{HOLDERS, ids, printable, put, seconds};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::Stamps;
use crate::gather::Out;
use crate::numbers::{decimal, words};
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing, When};
use memchr::memmem::find;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("postgresql-log", Family::Databases, recognise)
    .about("the log of a PostgreSQL server");

/// Levels, with what stands behind each: two blanks, which hardly anybody else has there.
const LEVELS: [&[u8]; 8] = [
    b"LOG:  ",
    b"ERROR:  ",
    b"FATAL:  ",
    b"WARNING:  ",
    b"NOTICE:  ",
    b"PANIC:  ",
    b"INFO:  ",
    b"DEBUG:  ",
];

/// What a copy leaves of a level, and how messages of sessions begin behind it: a page makes one blank of two.
const LEVEL: &[u8] = b"LOG: ";
const MESSAGES: [&[u8]; 2] = [b"process ", b"duration: "];

/// What belongs to the entry before it.
const PARTS: [&[u8]; 6] = [
    b"DETAIL:  ",
    b"STATEMENT:  ",
    b"CONTEXT:  ",
    b"HINT:  ",
    b"QUERY:  ",
    b"LOCATION:  ",
];

/// The same with one blank.
const SINGLE: [&[u8]; 3] = [b"DETAIL: ", b"STATEMENT: ", b"CONTEXT: "];

/// How far into a line its level is looked for: prefixes have names of users, databases and programs.
const WITHIN: usize = 240;

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 60;

/// Entries from which it is beyond doubt.
const MIN_ENTRIES: usize = 2;

fn recognise(head: &[u8]) -> Sureness {
    let mut stamps = Stamps::default();
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let entries = lines.filter(|line| stamps.of(line).is_some() && level(line).is_some());
    match entries.count() {
        0 => Sureness::No,
        MIN_ENTRIES.. => Sureness::Certain,
        _ => Sureness::Likely,
    }
}

/// What stands before one of `marks`, which mark it is, and what stands behind it.
fn marked<'l>(line: &'l [u8], marks: &[&[u8]]) -> Option<(&'l [u8], usize, &'l [u8])> {
    let near = line.get(..line.len().min(WITHIN))?;
    // The prefix ends with a blank; without one the mark is the beginning of the line.
    let at = marks.iter().enumerate().filter_map(|(number, mark)| {
        let at = find(near, mark)?;
        let apart = at == 0 || near.get(at - 1).is_some_and(|byte| !byte.is_ascii_alphanumeric());
        apart.then_some((at, number, mark.len()))
    });
    let (at, number, length) = at.min()?;
    Some((line.get(..at)?, number, line.get(at + length..)?))
}

/// Prefix and message of an entry's first line.
fn level(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let whole = marked(line, &LEVELS).map(|(prefix, _, message)| (prefix, message));
    whole.or_else(|| {
        let (prefix, _, message) = marked(line, &[LEVEL])?;
        let of_session = MESSAGES.iter().any(|begin| message.starts_with(begin));
        of_session.then_some((prefix, message))
    })
}

#[derive(Debug, Default)]
struct Reader {
    stamps: Stamps,
    /// Of the last entry, if it told something of a session.
    open: Option<Open>,
    entries: u64,
}

/// What an entry has reported so far.
#[derive(Debug)]
struct Open {
    session: SeenSession,
    at: Option<When>,
    /// The number of its line, and the line.
    number: u64,
    line: Vec<u8>,
    /// In the DETAIL of a deadlock, which goes on in lines of its own.
    circle: bool,
    /// The others of that deadlock.
    others: Vec<SeenSession>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some((prefix, message)) = level(line) {
            self.close(out);
            self.entries += 1;
            let at = self.stamps.of(line).and_then(|stamp| stamp.when());
            let Some(session) = session(prefix, message) else {
                return Understood::Ignorable;
            };
            self.open = Some(Open {
                session,
                at,
                number: out.here().line,
                line: line.to_vec(),
                circle: false,
                others: Vec::new(),
            });
            return Understood::Evidence;
        }
        let part = marked(line, &PARTS).or_else(|| marked(line, &SINGLE));
        let known = part.is_some() || self.entries > 0;
        let Some(open) = &mut self.open else {
            return match known {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        match part {
            Some((_, 0, detail)) => open.detail(detail),
            Some((_, 1, statement)) => {
                open.circle = false;
                open.session.statement = printable(statement);
            }
            Some((_, 2, context)) => {
                open.circle = false;
                open.context(context);
            }
            Some(_) => open.circle = false,
            None if open.circle => open.blocked(line.trim_ascii()),
            None => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let now = out.here().line;
        out.at_line(open.number);
        for session in std::iter::once(open.session).chain(open.others) {
            put(session, open.at, &open.line, out);
        }
        out.at_line(now);
    }
}

impl Open {
    /// `Process holding the lock: 15914. Wait queue: 15917.`, or `Process 1 waits for …; blocked by process 2.`
    fn detail(&mut self, detail: &[u8]) {
        // A page may have put signs around the word.
        let holds = [&b"Process holding the "[..], b"Processes holding the "];
        let holders = holds
            .iter()
            .find_map(|begin| detail.strip_prefix(*begin))
            .and_then(|rest| rest.get(find(rest, b": ")? + 2..));
        match holders {
            Some(holders) => {
                let end = find(holders, b".").unwrap_or(holders.len());
                self.session.held_by = ids(holders.get(..end).unwrap_or_default());
            }
            None => {
                self.circle = self.session.doing == SessionDoing::Deadlocked;
                self.blocked(detail);
            }
        }
    }

    /// `Process 15988 waits for ShareLock on transaction 729; blocked by process 15987.`, of each that is in the circle.
    fn blocked(&mut self, line: &[u8]) {
        let inner = || {
            let rest = line.strip_prefix(b"Process ")?;
            let at = find(rest, b" waits for ")?;
            let (id, rest) = (rest.get(..at)?, rest.get(at + b" waits for ".len()..)?);
            let end = find(rest, b"; blocked by process ")?;
            Some((printable(id), printable(rest.get(..end)?), ids(rest.get(end..)?)))
        };
        let Some((id, lock, held_by)) = inner().filter(|_| self.circle) else {
            return;
        };
        if self.session.id == id {
            (self.session.lock, self.session.held_by) = (lock, held_by);
        } else if self.others.len() < HOLDERS {
            self.others.push(SeenSession {
                id,
                lock,
                held_by,
                doing: SessionDoing::Deadlocked,
                ..SeenSession::default()
            });
        }
    }

    /// `while updating tuple (0,7) in relation "orders"`: what the lock on a transaction is about.
    fn context(&mut self, context: &[u8]) {
        let relation = find(context, b" in relation \"")
            .and_then(|at| context.get(at + 1..))
            .filter(|_| self.session.lock.contains("transaction"));
        if let Some(relation) = relation {
            self.session.lock = format!("{} {}", self.session.lock, printable(relation));
        }
    }
}

/// What an entry tells of a session.
fn session(prefix: &[u8], message: &[u8]) -> Option<SeenSession> {
    let of_prefix = |doing| SeenSession {
        server: DatabaseServer::Postgresql,
        id: own(prefix).map(printable).unwrap_or_default(),
        doing,
        ..SeenSession::default()
    };
    if let Some(rest) = message.strip_prefix(b"process ") {
        return waited(rest);
    }
    let starts = |text: &str| message.starts_with(text.as_bytes());
    if starts("deadlock detected") {
        return Some(of_prefix(SessionDoing::Deadlocked));
    }
    if starts("canceling statement due to lock timeout") {
        return Some(of_prefix(SessionDoing::GaveUp));
    }
    let refused = starts("sorry, too many clients already")
        || starts("remaining connection slots are reserved")
        || starts("too many connections for ");
    refused.then(|| of_prefix(SessionDoing::Refused))
}

/// The process id in `2026-11-23 11:26:36.478 UTC [15917] postgres@shop `.
fn own(prefix: &[u8]) -> Option<&[u8]> {
    let open = find(prefix, b"[")?;
    let rest = prefix.get(open + 1..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    rest.get(..end).filter(|id| !id.is_empty())
}

/// `15917 still waiting for ShareLock on transaction 725 after 1000.187 ms`, and how that ends: `acquired`, `detected deadlock
/// while waiting for`.
fn waited(rest: &[u8]) -> Option<SeenSession> {
    const ENDS: [(&[u8], SessionDoing); 4] = [
        (b" still waiting for ", SessionDoing::Waits),
        (b" acquired ", SessionDoing::Waited),
        (b" detected deadlock while waiting for ", SessionDoing::Deadlocked),
        (b" avoided deadlock for ", SessionDoing::Waited),
    ];
    let (at, length, doing) = ENDS
        .iter()
        .find_map(|(words, doing)| Some((find(rest, words)?, words.len(), *doing)))?;
    let (id, rest) = (rest.get(..at)?, rest.get(at + length..)?);
    let end = find(rest, b" after ").or_else(|| find(rest, b" by rearranging queue order after "))?;
    let (lock, time) = (rest.get(..end)?, rest.get(end + b" after ".len()..)?);
    let ms = words(time).next().and_then(decimal)?;
    let digits = !id.is_empty() && id.iter().all(u8::is_ascii_digit);
    digits.then(|| SeenSession {
        server: DatabaseServer::Postgresql,
        id: printable(id),
        doing,
        doing_ns: seconds(ms / 1e3),
        lock: printable(lock),
        ..SeenSession::default()
    })
}
