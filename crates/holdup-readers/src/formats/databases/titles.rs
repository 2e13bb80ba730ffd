//! The titles that PostgreSQL gives its processes, as lists of processes show them.
//!
//! In: `postgres: shop-user shop 10.0.0.7(51234) UPDATE waiting`. Out: which sessions wait for a lock, and which are idle in
//! their transactions. Who has the lock, and since when, titles do not tell.

use super::printable;
use crate::numbers::words;
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing};

/// The session of a process, if its title is one of a session that waits, or that is idle in its transaction.
pub(crate) fn session(pid: u32, title: &[u8]) -> Option<SeenSession> {
    let rest = title.strip_prefix(b"postgres: ")?;
    // `cluster_name` stands before the user, with a colon.
    let rest = match words(rest).next()?.ends_with(b":") {
        true => rest.get(memchr::memchr(b' ', rest)? + 1..)?,
        false => rest,
    };
    let mut parts = words(rest);
    let (user, database, _client) = (parts.next()?, parts.next()?, parts.next()?);
    let activity: Vec<&[u8]> = parts.collect();
    let (doing, statement) = match activity.as_slice() {
        [command @ .., b"waiting"] if !command.is_empty() => (SessionDoing::Waits, command.join(&b' ')),
        [b"idle", b"in", b"transaction", ..] => (SessionDoing::IdleInTransaction, Vec::new()),
        _ => return None,
    };
    Some(SeenSession {
        server: DatabaseServer::Postgresql,
        id: pid.to_string(),
        client: format!("{}@{}", printable(user), printable(database)),
        doing,
        statement: printable(&statement),
        ..SeenSession::default()
    })
}

#[cfg(test)]
mod tests {
    use super::session;
    use holdup_evidence::observed::SessionDoing;

    #[test]
    fn titles_tell_who_waits_and_who_is_idle_in_a_transaction() {
        let waits =
            session(7, b"postgres: shop orders 10.0.0.7(51234) ALTER TABLE waiting").expect("it waits");
        assert_eq!(waits.doing, SessionDoing::Waits);
        assert_eq!((waits.id.as_str(), waits.client.as_str()), ("7", "shop@orders"));
        assert_eq!(waits.statement, "ALTER TABLE");
        let named = session(
            8,
            b"postgres: 15/main: shop orders [local] idle in transaction (aborted)",
        );
        assert_eq!(
            named.map(|session| session.doing),
            Some(SessionDoing::IdleInTransaction)
        );
        for other in [
            &b"postgres: checkpointer "[..],
            b"postgres: shop orders [local] SELECT",
            b"postgres: shop orders [local] idle",
            b"postgres: shop orders [local] waiting",
            b"postgres -D /data",
            b"sshd: waiting",
        ] {
            assert_eq!(session(9, other), None);
        }
    }
}
