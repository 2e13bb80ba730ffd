//! Sessions of a database: who waits for whose lock, and which statement has run longest.

use super::{Rank, Ranked};
use holdup_evidence::Observed;
use holdup_evidence::observed::{Happening, SeenSession, SessionDoing, What};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

/// Characters of a statement that are quoted.
const QUOTED: usize = 160;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let sessions: Vec<(&Happening, &SeenSession)> = observed
        .happenings
        .iter()
        .filter_map(|happening| match &happening.what {
            What::Session(session) => Some((happening, session)),
            _ => None,
        })
        .collect();
    add_waiting(observed, &sessions, all);
    add_working(observed, &sessions, all);
}

/// The session behind which most wait, or the one that has waited longest.
fn add_waiting(observed: &Observed, sessions: &[(&Happening, &SeenSession)], all: &mut Vec<Ranked>) {
    let waits = |session: &SeenSession| {
        matches!(
            session.doing,
            SessionDoing::Waits | SessionDoing::Waited | SessionDoing::GaveUp | SessionDoing::Deadlocked
        )
    };
    let waiting: Vec<_> = sessions.iter().filter(|(_, session)| waits(session)).collect();
    let Some((happening, longest)) = waiting.iter().max_by_key(|(_, session)| session.doing_ns) else {
        return;
    };
    let mut behind: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, session) in &waiting {
        for holder in &session.held_by {
            *behind.entry(holder).or_default() += 1;
        }
    }
    let root = behind.iter().max_by_key(|(_, count)| **count);
    let held = root.map(|(holder, count)| {
        let mut of_id = sessions.iter().filter(|(_, session)| session.id == **holder);
        let does = of_id
            .next()
            .map(|(_, session)| format!(", which {}", does(session)));
        format!(
            "; session {holder} holds what {count} wait for{}",
            does.unwrap_or_default()
        )
    });
    let held = held.or_else(|| {
        // Who holds it is not known. Who keeps a transaction open for longer than that may.
        let open = sessions
            .iter()
            .filter(|(_, session)| session.doing == SessionDoing::IdleInTransaction);
        let (_, oldest) = open.max_by_key(|(_, session)| session.doing_ns)?;
        Some(format!(
            "; session {} {}, and may hold it",
            oldest.id,
            does(oldest)
        ))
    });
    let lock = if longest.lock.is_empty() {
        "a lock"
    } else {
        longest.lock.as_str()
    };
    let how_long = longest
        .doing_ns
        .map(|ns| format!(" for {}", duration(ns)))
        .unwrap_or_default();
    let text = format!(
        "session {} of {} waits for {lock}{how_long}{}{}",
        longest.id,
        longest.server.name(),
        statement(longest),
        held.unwrap_or_default()
    );
    let rank = match longest.doing {
        SessionDoing::Deadlocked => Rank::Stops,
        _ => Rank::Waits,
    };
    let line = Ranked::new(
        rank,
        format!("session {}", longest.id),
        text,
        (observed, &happening.quote),
    );
    all.push(match longest.doing_ns {
        Some(ns) => line.ns(ns),
        None => line,
    });
}

fn add_working(observed: &Observed, sessions: &[(&Happening, &SeenSession)], all: &mut Vec<Ranked>) {
    for doing in [SessionDoing::Works, SessionDoing::IdleInTransaction] {
        let of_kind = sessions.iter().filter(|(_, session)| session.doing == doing);
        let longest = of_kind.filter(|(_, session)| session.doing_ns.is_some_and(|ns| ns > 0));
        let Some((happening, session)) = longest.max_by_key(|(_, session)| session.doing_ns) else {
            continue;
        };
        let text = format!(
            "session {} of {} {}",
            session.id,
            session.server.name(),
            does(session)
        );
        let line = Ranked::new(
            Rank::Largest,
            format!("session {}", session.id),
            text,
            (observed, &happening.quote),
        );
        all.push(line.ns(session.doing_ns.unwrap_or(0)));
    }
}

/// `works on `select 1` for 12 s`.
fn does(session: &SeenSession) -> String {
    let verb = match session.doing {
        SessionDoing::Works => "works on a statement",
        SessionDoing::Waits => "waits for a lock",
        SessionDoing::Waited => "waited for a lock",
        SessionDoing::GaveUp => "gave up waiting for a lock",
        SessionDoing::Deadlocked => "was ended in a deadlock",
        SessionDoing::IdleInTransaction => "is idle in a transaction",
        SessionDoing::Idle => "is idle",
        SessionDoing::Refused => "was refused",
    };
    let how_long = session
        .doing_ns
        .map(|ns| format!(" for {}", duration(ns)))
        .unwrap_or_default();
    format!("{verb}{how_long}{}", statement(session))
}

fn statement(session: &SeenSession) -> String {
    let words: String = session.statement.chars().take(QUOTED).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(": `{}`", words.trim()),
    }
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Happening, Quote, SeenSession, SessionDoing, What};

    fn observed(sessions: Vec<SeenSession>) -> Observed {
        let happening = |session| Happening {
            what: What::Session(session),
            at: None,
            since_boot: None,
            quote: Quote::default(),
            text: String::new(),
        };
        Observed {
            happenings: sessions.into_iter().map(happening).collect(),
            ..Observed::default()
        }
    }

    fn session(id: &str, doing: SessionDoing, seconds: u64, statement: &str) -> SeenSession {
        SeenSession {
            id: id.to_owned(),
            doing,
            doing_ns: Some(seconds * 1_000_000_000),
            statement: statement.to_owned(),
            ..SeenSession::default()
        }
    }

    #[test]
    fn the_statement_that_has_run_longest_is_told() {
        let observed = observed(vec![
            session("7", SessionDoing::Works, 1, "select 1"),
            session("28", SessionDoing::Works, 12, "select * from products"),
        ]);
        let texts: Vec<String> = account(&observed).into_iter().map(|line| line.text).collect();
        assert_eq!(
            texts,
            ["session 28 of PostgreSQL works on a statement for 12.00 s: `select * from products`"]
        );
    }

    #[test]
    fn a_transaction_that_stays_open_may_hold_what_is_waited_for() {
        let observed = observed(vec![
            session("9", SessionDoing::Waits, 30, "update a"),
            session("4", SessionDoing::IdleInTransaction, 60, "update b"),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "session 9 of PostgreSQL waits for a lock for 30.00 s: `update a`; session 4 is idle in a transaction for 1 min 0 s: \
             `update b`, and may hold it"
        );
    }

    #[test]
    fn the_session_that_holds_what_others_wait_for_is_named() {
        let mut waits = session("641586", SessionDoing::Waits, 30, "update table1");
        waits.held_by = vec!["641449".to_owned()];
        let observed = observed(vec![
            waits,
            session(
                "641449",
                SessionDoing::IdleInTransaction,
                60,
                "update table1 set a = 1",
            ),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "session 641586 of PostgreSQL waits for a lock for 30.00 s: `update table1`; session 641449 holds what 1 wait for, \
             which is idle in a transaction for 1 min 0 s: `update table1 set a = 1`"
        );
    }
}
