//! Titles of PostgreSQL's processes (`update_process_title`): what each session does, in the server's own words.
//!
//! In: a process's name, and its title as the server has written it over its arguments. Out: what it says. Titles hold names of users and
//! databases, which are anybody's: only the beginning and the end, which the server writes, are believed.

use holdup_evidence::facts::SessionState;

/// Names of the server's program.
const PROGRAMS: [&str; 2] = ["postgres", "postmaster"];

/// How each title begins.
const BEGINS: &str = "postgres: ";

/// Words of processes that serve no client of their own, before anything that a client has chosen.
const SENDS_LOG: &str = "walsender ";
const RECEIVES_LOG: &str = "walreceiver";
const REPLAYS: &str = "startup";

/// How the title of a session ends. The longer ones first: each of the others is an end of one of them.
const ENDS: [(&str, SessionState); 4] = [
    (" idle in transaction (aborted)", SessionState::IdleInTransaction),
    (" idle in transaction", SessionState::IdleInTransaction),
    (" waiting", SessionState::Waiting),
    (" idle", SessionState::Idle),
];

/// What stands for the host of a client that has connected by a Unix socket.
const LOCAL: &str = "[local]";

/// Whether a process of this name may be one of the server's.
#[must_use]
pub fn is_server(process: &str) -> bool {
    PROGRAMS.contains(&process)
}

/// What a title says; `None` where it is none.
#[must_use]
pub fn state(title: &str) -> Option<SessionState> {
    let rest = title.strip_prefix(BEGINS)?.trim_end();
    // Before all else there may be the name that the cluster was given.
    let own = |rest: &str| {
        if rest.starts_with(SENDS_LOG) {
            Some(SessionState::SendsLog)
        } else if rest.starts_with(RECEIVES_LOG) {
            Some(SessionState::ReceivesLog)
        } else {
            None
        }
    };
    let after_name = rest.split_once(": ").map(|(_, rest)| rest);
    if let Some(state) = own(rest).or_else(|| after_name.and_then(own)) {
        return Some(state);
    }
    if !rest.split(' ').any(is_host) {
        return Some(SessionState::Background);
    }
    let known = ENDS.iter().find(|(end, _)| rest.ends_with(end));
    Some(known.map_or(SessionState::Works, |(_, state)| *state))
}

/// Whether a session waits for a standby to confirm what it commits: its title then ends with a place of the log (`COMMIT waiting for 0/3000148`).
#[must_use]
pub fn awaits_standby(title: &str) -> bool {
    /// What stands before the place.
    const AWAITS: &str = " waiting for ";
    let rest = title.strip_prefix(BEGINS).map(str::trim_end);
    let place = rest
        .and_then(|rest| rest.rsplit_once(AWAITS))
        .map(|(_, place)| place);
    let hexadecimal =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    place
        .and_then(|place| place.split_once('/'))
        .is_some_and(|(high, low)| hexadecimal(high) && hexadecimal(low))
}

/// Of the process that replays a log: whether it waits for sessions of its own server (`startup recovering 000000010000000000000003 waiting`);
/// `None` of any other one.
#[must_use]
pub fn replay_waits(title: &str) -> Option<bool> {
    let rest = title.strip_prefix(BEGINS)?.trim_end();
    let own = |rest: &str| rest.starts_with(REPLAYS).then(|| rest.ends_with(" waiting"));
    own(rest).or_else(|| own(rest.split_once(": ")?.1))
}

/// `[local]`, `127.0.0.1(48714)`, `host.example(48714)`.
fn is_host(word: &str) -> bool {
    let port = |word: &str| {
        let (_, port) = word.strip_suffix(')')?.rsplit_once('(')?;
        port.parse::<u16>().ok()
    };
    word == LOCAL || port(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::{awaits_standby, is_server, replay_waits, state};
    use holdup_evidence::facts::SessionState;

    #[test]
    fn who_waits_for_a_standby_and_who_replays_is_known() {
        assert!(awaits_standby(
            "postgres: bob shop 127.0.0.1(48714) COMMIT waiting for 0/3000148"
        ));
        assert!(awaits_standby(
            "postgres: 15/main: bob shop [local] INSERT waiting for 1A/3000148 "
        ));
        assert!(!awaits_standby("postgres: bob shop [local] UPDATE waiting"));
        assert!(!awaits_standby(
            "postgres: bob shop [local] COMMIT waiting for you"
        ));
        let replays = |rest: &str| replay_waits(&format!("postgres: {rest}"));
        assert_eq!(
            replays("startup recovering 000000010000000000000003 waiting"),
            Some(true)
        );
        assert_eq!(
            replays("15/main: startup recovering 000000010000000000000003"),
            Some(false)
        );
        assert_eq!(replays("bob startup [local] UPDATE waiting"), None);
    }

    #[test]
    fn titles_are_read_as_the_server_writes_them() {
        let expected = [
            (
                "postgres: bob shop [local] idle in transaction",
                SessionState::IdleInTransaction,
            ),
            (
                "postgres: bob shop 127.0.0.1(48714) idle in transaction (aborted)",
                SessionState::IdleInTransaction,
            ),
            (
                "postgres: 15/main: bob shop 127.0.0.1(48714) UPDATE waiting",
                SessionState::Waiting,
            ),
            ("postgres: bob shop [local] idle", SessionState::Idle),
            ("postgres: bob shop ::1(5001) SELECT", SessionState::Works),
            (
                "postgres: walsender copy 127.0.0.1(47022) streaming 0/3000148",
                SessionState::SendsLog,
            ),
            (
                "postgres: 15/main: walsender copy 127.0.0.1(47022) streaming 0/3000148",
                SessionState::SendsLog,
            ),
            (
                "postgres: walreceiver streaming 0/3000148",
                SessionState::ReceivesLog,
            ),
            ("postgres: checkpointer ", SessionState::Background),
            // A database that is called `idle in transaction`.
            (
                "postgres: bob idle in transaction [local] SELECT",
                SessionState::Works,
            ),
        ];
        for (title, one) in expected {
            assert_eq!(state(title), Some(one), "{title}");
        }
        assert_eq!(state("/usr/lib/postgresql/15/bin/postgres -D /data"), None);
        assert!(is_server("postgres") && !is_server("postgrest"));
    }
}
