//! Who waits for whose lock in Oracle: the tree that `utllockt.sql` prints, and the rows of `DBA_WAITERS`.
//!
//! In: a heading that begins with `WAITING_SESSION`. In the tree a session stands below the one that it waits for, and one that waits for nobody has
//! `None` for a lock; in the rows the holder is the second column. Out: of each session that waits for nobody who waits for it, directly or not.
//! Source: `utllockt.sql` in `$ORACLE_HOME/rdbms/admin`, and the reference of Oracle, "DBA_WAITERS".

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("oracle-waiters", Family::Databases, recognise)
    .about("utllockt.sql and DBA_WAITERS of Oracle")
    .openings(&["WAITING_SESSION"]);

const HEADING: &str = "WAITING_SESSION";

/// Sessions that are kept, roots and waiters that are told, and bytes of a line.
const MAX_SESSIONS: usize = 5_000;
const MAX_ROOTS: usize = 5;
const MAX_NAMED: usize = 5;
const LINE_BYTES: usize = 400;

/// Modes of locks, the longer ones first.
const MODES: [&str; 8] = [
    "S/Row-X (SSX)",
    "Row-S (SS)",
    "Row-X (SX)",
    "Exclusive",
    "Share",
    "Null",
    "None",
    "Invalid",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let is_heading = |line: &[u8]| line.trim_ascii().starts_with(HEADING.as_bytes());
    Sureness::certain_if(lines.any(is_heading))
}

#[derive(Debug)]
struct Session {
    id: String,
    /// How far it is set in.
    indent: usize,
    /// Whom it waits for, and what for; `None` of one that waits for nobody.
    waits: Option<(String, String)>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// Whether the second column names the holder.
    of_rows: bool,
    heading: bool,
    all: Vec<Session>,
}

/// A text without a mode at its end, and that mode.
fn without_mode(text: &str) -> Option<(&str, &'static str)> {
    let text = text.trim_end();
    MODES
        .iter()
        .find_map(|mode| Some((text.strip_suffix(mode)?.trim_end(), *mode)))
}

/// `Transaction  Exclusive  Exclusive  524308  17836`: the lock, in words.
fn lock(rest: &str, requested_first: bool) -> Option<String> {
    let mut words = rest.split_whitespace().rev();
    let (second, first) = (words.next()?, words.next()?);
    let rest = rest.trim_end().strip_suffix(second)?.trim_end();
    let is_id = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_id(first) || !is_id(second) {
        return None;
    }
    let (rest, ids) = (
        rest.strip_suffix(first)?.trim_end(),
        format!(" ({first}, {second})"),
    );
    let (rest, last) = without_mode(rest)?;
    let (kind, before) = without_mode(rest)?;
    let wanted = if requested_first { before } else { last };
    let kind: String = kind.trim().chars().take(40).collect();
    Some(format!("{kind} lock in mode {wanted}{ids}"))
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let trimmed = text.trim();
        if trimmed.starts_with(HEADING) {
            self.end(out);
            self.heading = true;
            self.of_rows = trimmed.split_whitespace().nth(1) == Some("HOLDING_SESSION");
            return Understood::Evidence;
        }
        if trimmed.is_empty() || trimmed.starts_with("---") {
            return Understood::Ignorable;
        }
        let (id, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        let is_id = id.bytes().all(|byte| byte.is_ascii_digit());
        if !self.heading || !is_id || self.all.len() >= MAX_SESSIONS {
            return Understood::No;
        }
        let indent = text.len() - text.trim_start().len();
        let rest = rest.trim();
        let waits = match self.of_rows {
            true => {
                let (holder, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                if holder.is_empty() || !holder.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Understood::No;
                }
                let lock = lock(rest, false).unwrap_or_else(|| "lock".to_owned());
                Some((holder.to_owned(), lock))
            }
            false if rest == "None" => None,
            false => {
                let Some(lock) = lock(rest, true) else {
                    return Understood::No;
                };
                self.above(indent).map(|holder| (holder, lock))
            }
        };
        self.all.push(Session {
            id: id.to_owned(),
            indent,
            waits,
            quote: out.here(),
        });
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(&mut self.all);
        let waiting = |id: &str| all.iter().any(|one| one.id == id && one.waits.is_some());
        let mut roots: Vec<&str> = Vec::new();
        for holder in all
            .iter()
            .filter_map(|one| one.waits.as_ref().map(|(holder, _)| holder.as_str()))
        {
            if !waiting(holder) && !roots.contains(&holder) && roots.len() < MAX_ROOTS {
                roots.push(holder);
            }
        }
        for root in roots {
            tell(root, &all, out);
        }
    }
}

impl Reader {
    /// The session below which a row of the tree stands: the last one that is set in less, and of a tree that lost its blanks the last root.
    fn above(&self, indent: usize) -> Option<String> {
        let less = self.all.iter().rev().find(|one| one.indent < indent);
        let root = || self.all.iter().rev().find(|one| one.waits.is_none());
        less.or_else(root).map(|one| one.id.clone())
    }
}

/// Tells who waits for a session that waits for nobody itself.
fn tell(root: &str, all: &[Session], out: &mut Out<'_>) {
    let mut reached: Vec<&str> = vec![root];
    let mut waiters: Vec<&Session> = Vec::new();
    let mut at = 0;
    while let Some(holder) = reached.get(at).copied() {
        let direct = all
            .iter()
            .filter(|one| one.waits.as_ref().is_some_and(|(of, _)| of == holder));
        for one in direct {
            if !reached.contains(&one.id.as_str()) {
                reached.push(&one.id);
                waiters.push(one);
            }
        }
        at += 1;
    }
    let Some(first) = waiters.first() else { return };
    let said = waiters.iter().take(MAX_NAMED).filter_map(|one| {
        let (holder, lock) = one.waits.as_ref()?;
        Some(format!(
            "session {} waits for a {lock} that session {holder} holds",
            one.id
        ))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    let more = match waiters.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("; {more} more wait"),
    };
    let text = format!("{said}{more}; session {root} blocks them and waits for nobody itself");
    out.statement(statements::one(
        StatementKind::Stalled,
        None,
        first.quote.clone(),
        text,
    ));
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<String> {
        let observed = read_text("o", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "oracle-waiters");
        let all = observed.statements.into_iter().filter(|one| one.of_reader);
        all.inspect(|one| assert_eq!(one.kind, StatementKind::Stalled))
            .map(|one| one.text)
            .collect()
    }

    #[test]
    fn a_tree_of_sessions() {
        let text = "WAITING_SESSION   LOCK_TYPE         MODE_REQUESTED MODE_HELD  LOCK_ID1  LOCK_ID2\n----------------- ----------------- -------------- ---------- --------- ---------\n\
            21                None\n   34             Transaction       Exclusive      Exclusive  65549     1201\n      57          DML               Row-X (SX)     Share      7001      0\n";
        assert_eq!(
            said(text),
            [
                "session 34 waits for a Transaction lock in mode Exclusive (65549, 1201) that session 21 holds; session 57 waits for a DML lock in \
                 mode Row-X (SX) (7001, 0) that session 34 holds; session 21 blocks them and waits for nobody itself"
            ]
        );
    }

    #[test]
    fn rows_with_the_holder_beside() {
        let text = "WAITING_SESSION HOLDING_SESSION LOCK_TYPE   MODE_HELD MODE_REQUESTED LOCK_ID1 LOCK_ID2\n--------------- --------------- ----------- --------- -------------- -------- --------\n\
            \x20            12              99 Transaction Exclusive Exclusive        131091     4411\n             13              99 Transaction Exclusive Exclusive        131091     4411\n";
        let all = said(text);
        assert!(all[0].contains("session 12 waits for a Transaction lock in mode Exclusive (131091, 4411) that session 99 holds"), "{all:?}");
        assert!(all[0].contains("session 99 blocks them"), "{all:?}");
    }

    #[test]
    fn nobody_waits_and_rubbish() {
        let heading = "WAITING_SESSION LOCK_TYPE MODE_REQUESTED MODE_HELD LOCK_ID1 LOCK_ID2\n";
        assert_eq!(
            said(&format!("{heading}----\n\nno rows selected\n")),
            Vec::<String>::new()
        );
        assert_eq!(
            said(&format!("{heading}1 None\n2 None\n3 Transaction\n4 x y z 1 2\n")),
            Vec::<String>::new()
        );
        // A tree that lost the blanks in front of its rows.
        let flat = format!("{heading}5 None\n6 Transaction Exclusive Exclusive 1 2\n");
        assert!(said(&flat)[0].contains("that session 5 holds"));
    }
}
