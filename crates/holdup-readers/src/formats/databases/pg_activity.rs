//! Screens of `pg_activity`: sessions of PostgreSQL, and those that block others.
//!
//! In: a heading, a row for each session: number, names, figures, time, what it waits for, state, statement. Out: sessions. Those of the part
//! about blocking ones hold what the others wait for.

use super::{printable, put};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use holdup_evidence::Ns;
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("pg-activity", Family::Databases, recognise).about("pg_activity");

/// Sessions of one screen that are kept.
const SESSIONS: usize = 2_000;

/// Locks by the names of wait events.
const LOCKS: [&str; 10] = [
    "transactionid",
    "tuple",
    "relation",
    "virtualxid",
    "advisory",
    "page",
    "extend",
    "object",
    "frozenid",
    "spectoken",
];

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(text_of(head).lines().any(is_heading))
}

fn is_heading(line: &str) -> bool {
    let has = |name: &str| line.split_whitespace().any(|word| word == name);
    line.trim_start().starts_with("PID") && has("DATABASE") && has("TIME+") && has("state") && has("Query")
}

/// `01:45.79` or `2.345678`, of the column of times.
fn time(word: &str) -> Option<Ns> {
    let mut seconds = 0.0;
    word.contains(':').then_some(())?;
    for part in word.split(':') {
        seconds = seconds * 60.0 + decimal(part.as_bytes())?;
    }
    (0.0..1e9)
        .contains(&seconds)
        .then_some((seconds * 1e9).round() as Ns)
}

/// A row; the first word is the session's number.
fn row(line: &str) -> Option<SeenSession> {
    let words: Vec<&str> = line.split_whitespace().take(200).collect();
    let id = words
        .first()
        .filter(|word| word.len() <= 10 && word.bytes().all(|byte| byte.is_ascii_digit()))?;
    let at = words.iter().position(|word| time(word).is_some())?;
    let behind = words.get(at + 1..)?;
    // What it waits for, and whether the system waits for a disk for it; either may be missing.
    let flag = |word: &&str| matches!(*word, "N" | "Y");
    let begin = behind
        .iter()
        .take(3)
        .position(|word| matches!(*word, "active" | "idle" | "fastpath"))?;
    let waiting = behind
        .iter()
        .take(begin)
        .find(|word| !flag(word))
        .copied()
        .unwrap_or_default();
    let lock = LOCKS.contains(&waiting);
    let rest = behind.get(begin..)?;
    let (doing, words_of_state) = match rest {
        ["idle", "in", "trans" | "transaction", "(a)" | "(aborted)", ..] => {
            (SessionDoing::IdleInTransaction, 4)
        }
        ["idle", "in", ..] => (SessionDoing::IdleInTransaction, 3),
        ["idle", ..] => (SessionDoing::Idle, 1),
        _ if lock => (SessionDoing::Waits, 1),
        _ => (SessionDoing::Works, 1),
    };
    let statement = rest.get(words_of_state..).unwrap_or_default().join(" ");
    Some(SeenSession {
        server: DatabaseServer::Postgresql,
        id: (*id).to_owned(),
        client: words
            .get(1)
            .map(|name| printable(name.as_bytes()))
            .unwrap_or_default(),
        doing,
        doing_ns: words.get(at).and_then(|word| time(word)),
        lock: if lock { waiting.to_owned() } else { String::new() },
        held_by: Vec::new(),
        statement: printable(statement.as_bytes()),
    })
}

#[derive(Debug, Default)]
struct Reader {
    /// Sessions and their lines.
    all: Vec<(SeenSession, u64)>,
    /// Numbers of those that block others.
    blocking: Vec<String>,
    in_blocking: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..2_000).unwrap_or(line));
        let text = text.trim();
        if text.ends_with("QUERIES") {
            self.in_blocking = text.starts_with("BLOCKING");
            return Understood::Evidence;
        }
        if text.is_empty() || is_heading(text) {
            return Understood::Ignorable;
        }
        let Some(session) = row(text) else {
            return Understood::Ignorable;
        };
        if self.in_blocking && !self.blocking.contains(&session.id) && self.blocking.len() < super::HOLDERS {
            self.blocking.push(session.id.clone());
        }
        if self.all.iter().any(|(known, _)| known.id == session.id) {
            return Understood::Evidence;
        }
        match self.all.len() < SESSIONS {
            true => self.all.push((session, out.here().line)),
            false => out.account().left_out += 1,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        for (mut session, line) in std::mem::take(&mut self.all) {
            if session.doing == SessionDoing::Waits {
                session.held_by = self
                    .blocking
                    .iter()
                    .filter(|id| **id != session.id)
                    .cloned()
                    .collect();
            }
            let words = session.statement.clone();
            out.at_line(line);
            put(session, None, words.as_bytes(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{SeenSession, SessionDoing, What};

    #[test]
    fn who_waits_for_whom() {
        let text = "PID    DATABASE  APP  USER  CLIENT  CPU% MEM%  READ/s  WRITE/s  TIME+  Waiting  IOW  state  Query\n\
            2652 tests  postgres  127.0.0.1/32  0.0  0.1  0B  0B  01:45.79  ClientRead  N  idle in trans  UPDATE t SET s = 'a'\n\
            2653 tests  postgres  127.0.0.1/32  0.0  0.1  0B  0B  01:40.00  transactionid  N  active  UPDATE t SET s = 'b'\n\n\
            \x20      BLOCKING QUERIES\nPID    DATABASE  APP  USER  CLIENT  RELATION  TYPE  MODE  TIME+  Waiting  state  Query\n\
            2652 tests  postgres  127.0.0.1/32  None  transactionid  ExclusiveLock  02:26.65  ClientRead  idle in trans  UPDATE t SET s = 'a'\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "pg-activity");
        let sessions: Vec<&SeenSession> = reading
            .observed
            .happenings
            .iter()
            .filter_map(|one| match &one.what {
                What::Session(session) => Some(session),
                _ => None,
            })
            .collect();
        let [blocking, waiting] = sessions.as_slice() else {
            panic!("{sessions:?}")
        };
        assert_eq!(
            (blocking.doing, blocking.doing_ns),
            (SessionDoing::IdleInTransaction, Some(105_790_000_000))
        );
        assert_eq!(
            (waiting.doing, waiting.lock.as_str()),
            (SessionDoing::Waits, "transactionid")
        );
        assert_eq!(waiting.held_by, ["2652"]);
        assert_eq!(waiting.statement, "UPDATE t SET s = 'b'");
    }
}
