//! What InnoDB says of its transactions: `SHOW ENGINE INNODB STATUS` of MySQL and MariaDB.
//!
//! In: the whole report, plain or behind `Status: ` of `\G`. Out: sessions that wait for a row's lock, for how long and of which
//! table; and those that have locks and wait for none. Who has the lock that another waits for the report does not say. Of
//! threads that wait for a semaphore inside the server: a statement about the one that has waited longest, with its holder.

use super::semaphores::Semaphores;
use super::{printable, put, seconds};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing};
use memchr::memmem::find;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("innodb-status", Family::Databases, recognise).about("SHOW ENGINE INNODB STATUS");

/// The head of the report.
const HEAD: &[u8] = b" INNODB MONITOR OUTPUT";

/// What a transaction begins with.
const TRANSACTION: &[u8] = b"---TRANSACTION ";

fn recognise(head: &[u8]) -> Sureness {
    let excerpt = || {
        let transaction = find(head, TRANSACTION)?;
        find(head.get(transaction..)?, b" lock struct(s)")
    };
    match (find(head, HEAD), excerpt()) {
        (Some(_), _) => Sureness::Certain,
        // Some transactions of the list, as people paste them.
        (None, Some(_)) => Sureness::Certain,
        (None, None) => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// In the list of transactions, and not in what is reported of a deadlock that was.
    listed: bool,
    /// Whether the report has its head: without it what stands there is a part of the list.
    whole: bool,
    open: Option<Transaction>,
    semaphores: Semaphores,
}

/// What was reported of a transaction so far.
#[derive(Debug, Default)]
struct Transaction {
    line: u64,
    /// `None` where it has not started.
    active: Option<Ns>,
    /// It has locks.
    locks: bool,
    waits: bool,
    waited: Option<Ns>,
    session: SeenSession,
    /// The next line is the statement.
    statement_follows: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii_end();
        if line == b"LIST OF TRANSACTIONS FOR EACH SESSION:" {
            self.listed = true;
            return Understood::Evidence;
        }
        if find(line, HEAD).is_some() {
            self.whole = true;
            return Understood::Evidence;
        }
        let listed = self.listed || !self.whole;
        if let Some(rest) = line.strip_prefix(TRANSACTION).filter(|_| listed) {
            self.close(out);
            self.open = Some(Transaction {
                line: out.here().line,
                active: active(rest),
                ..Transaction::default()
            });
            return Understood::Evidence;
        }
        // A line of dashes, and the name of the next section.
        let section = line.len() > 2 && line.iter().all(|byte| *byte == b'-');
        let rows = find(line, b"TRX HAS BEEN WAITING").is_some() || line == b"------------------";
        if section && !rows && self.open.is_some() {
            self.close(out);
            self.listed = false;
        }
        match &mut self.open {
            Some(open) => open.line(line),
            None if self.semaphores.line(line, out) => Understood::Evidence,
            // Threads of the server's own, of which each says what it waits for: idle ones too.
            None if line.starts_with(b"I/O thread ") => Understood::Evidence,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        self.semaphores.end(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let Some(active) = open.active.filter(|_| !open.session.id.is_empty()) else {
            return;
        };
        // Who asks for the report has no other statement that runs.
        let asks = open
            .session
            .statement
            .get(..5)
            .is_some_and(|word| word.eq_ignore_ascii_case("show "));
        let (doing, ns) = match (open.waits, open.session.statement.is_empty() || asks) {
            (true, _) => (SessionDoing::Waits, open.waited),
            (false, true) if open.locks => (SessionDoing::IdleInTransaction, Some(active)),
            (false, true) => return,
            (false, false) => (SessionDoing::Works, Some(active)),
        };
        open.session.server = DatabaseServer::Mysql;
        (open.session.doing, open.session.doing_ns) = (doing, ns);
        let (line, now) = (open.session.statement.clone(), out.here().line);
        out.at_line(open.line);
        put(open.session, None, line.as_bytes(), out);
        out.at_line(now);
    }
}

impl Transaction {
    fn line(&mut self, line: &[u8]) -> Understood {
        if std::mem::take(&mut self.statement_follows)
            && !line.starts_with(b"-")
            && !line.starts_with(b"Trx ")
        {
            self.session.statement = printable(line);
            return Understood::Evidence;
        }
        if let Some(time) = waited(line) {
            self.waited = Some(time);
            return Understood::Evidence;
        }
        if find(line, b" lock struct(s)").is_some() {
            self.waits = line.starts_with(b"LOCK WAIT ");
            self.locks = !line.starts_with(b"0 lock struct(s)");
            return Understood::Evidence;
        }
        if let Some((id, user)) = thread(line) {
            self.session.id = printable(id);
            self.session.client = printable(user);
            self.statement_follows = true;
            return Understood::Evidence;
        }
        if self.waits
            && self.session.lock.is_empty()
            && let Some(table) = table(line)
        {
            self.session.lock = format!("a lock on {}", printable(table));
            return Understood::Evidence;
        }
        Understood::Ignorable
    }
}

/// `23, ACTIVE 12 sec` or `24, ACTIVE (PREPARED) 3 sec`; `None` of one that has not started.
fn active(rest: &[u8]) -> Option<Ns> {
    let at = find(rest, b", ACTIVE ")?;
    let mut after = words(rest.get(at + b", ACTIVE ".len()..)?);
    after.find_map(decimal).and_then(seconds)
}

/// `------- TRX HAS BEEN WAITING 11571517 us FOR THIS LOCK TO BE GRANTED:`, of MySQL in `SEC`.
fn waited(line: &[u8]) -> Option<Ns> {
    let at = find(line, b"TRX HAS BEEN WAITING ")?;
    let mut after = words(line.get(at + b"TRX HAS BEEN WAITING ".len()..)?);
    let count = after.next().and_then(decimal)?;
    match after.next()? {
        b"us" => seconds(count / 1e6),
        _ => seconds(count),
    }
}

/// The connection's id and its user of `MariaDB thread id 6, OS thread handle 14, query id 8 localhost root Updating`.
fn thread(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line
        .strip_prefix(b"MySQL thread id ")
        .or_else(|| line.strip_prefix(b"MariaDB thread id "))?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let query = find(rest, b"query id ").and_then(|at| rest.get(at + b"query id ".len()..))?;
    let user = words(query).nth(2).unwrap_or_default();
    Some((rest.get(..end)?, user))
}

/// `` `shop`.`orders` `` of `RECORD LOCKS … index PRIMARY of table `shop`.`orders` trx id 24 lock_mode X … waiting`.
fn table(line: &[u8]) -> Option<&[u8]> {
    let rest = line
        .strip_prefix(b"RECORD LOCKS ")
        .or_else(|| line.strip_prefix(b"TABLE LOCK "))?;
    let at = find(rest, b"table ")?;
    let name = rest.get(at + b"table ".len()..)?;
    name.get(..find(name, b" trx id ")?)
}
