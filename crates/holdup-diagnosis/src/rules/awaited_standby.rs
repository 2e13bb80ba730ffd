//! Commits that wait for a synchronous standby which does not confirm them: who is in the way there, and what to do.
//!
//! In: a root, and what is known of the standby. Out: its title, evidence and remedies.

use super::awaited_said::{client, sentence, who};
use super::{duration, say};
use crate::machine::seen::Root;
use holdup_evidence::observed::{SeenProcess, SeenStandby, SeenWait};
use holdup_model::finding::Remedy;
use holdup_model::title::Title;

/// A session of the standby with its client.
fn session(holder: &SeenProcess) -> String {
    match &holder.client {
        Some(one) => format!("{}, a session of {},", who(holder), client(one)),
        None => who(holder),
    }
}

/// Whether the one in the way is a session, and not the replay itself.
fn is_session(holder: &SeenProcess, one: &SeenStandby) -> bool {
    holder.pid != one.replay.pid
}

pub(super) fn title(root: &Root<'_>, one: &SeenStandby, long: &str) -> Title {
    let behind = sentence(&root.behind);
    let main = match root.holder {
        Some(holder) if is_session(holder, one) => format!(
            "{} keeps the standby's replay waiting (recovery conflict), and commits wait for that standby (synchronous replication)",
            session(holder)
        ),
        Some(holder) if one.waits => format!(
            "The standby's replay, {}, waits for one of {} there, and commits wait for that standby (synchronous replication)",
            who(holder),
            say::several(u64::from(one.sessions), "session")
        ),
        Some(holder) => format!(
            "Commits wait for a synchronous standby that does not confirm them; its replay is {}",
            who(holder)
        ),
        None => "Commits wait for a synchronous standby that does not confirm them".to_owned(),
    };
    Title::from(main).with(format!(": {behind} behind it, {long}"))
}

pub(super) fn evidence(has: &SeenWait, one: &SeenStandby) -> String {
    let replay = match (one.replay.pid, one.waits) {
        (0, _) if has.name.is_empty() => {
            "several receive the log, and which of them has to confirm is not known".to_owned()
        }
        (0, _) => format!("the standby is on another machine, at {}", has.name),
        (_, true) => format!(
            "{}, which replays the log there, says in its title that it waits for a session of its own server",
            client(&one.replay)
        ),
        (_, false) => format!(
            "{}, which replays the log there, does not say that it waits for a session",
            client(&one.replay)
        ),
    };
    format!(
        "{} waits for {} for a place of the log to be confirmed, by its title; {replay}",
        who(&has.waiter),
        duration(has.ns)
    )
}

/// What is not known of commits that wait for replay.
pub(super) const NOT_MEASURED: &str =
    "not measured: whether commits wait for replay (synchronous_commit = remote_apply)";

pub(super) fn remedies(holder: &SeenProcess, one: &SeenStandby) -> Vec<Remedy> {
    let look = Remedy::safe("on the primary: see which standby is behind, and by how much").with_command(
        "psql -c \"select application_name, sync_state, sent_lsn, replay_lsn, replay_lag from pg_stat_replication\"",
    );
    let on_time = Remedy::changing(
        "let replay end such sessions after some time (max_standby_streaming_delay), or do not wait for replay (synchronous_commit = on)",
        "long queries on the standby are cancelled, or readers there see older data",
    );
    match is_session(holder, one) {
        true => vec![
            Remedy::changing(
                format!("on the standby: end the session {}", who(holder)),
                "what it reads has to be read again",
            )
            .with_command(format!("psql -c \"select pg_terminate_backend({})\"", holder.pid)),
            on_time,
            look,
        ],
        false => vec![look, on_time],
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::seen;
    use crate::rules::awaited_said;
    use holdup_evidence::observed::{Awaited, SeenClient, SeenProcess, SeenStandby, SeenWait, Short};

    const S: u64 = 1_000_000_000;

    fn process(pid: u32, name: &str) -> SeenProcess {
        SeenProcess {
            pid,
            name: name.to_owned(),
            ..SeenProcess::default()
        }
    }

    /// What is said of two commits that wait for a standby, one of them for shop.
    fn title(holder: Option<SeenProcess>, one: SeenStandby) -> String {
        let commit = |pid: u32| SeenWait {
            waiter: process(pid, "postgres"),
            on: Awaited::Standby,
            holder: holder.clone(),
            ns: 20 * S,
            short: Short::Standby(one.clone()),
            ..SeenWait::default()
        };
        let waits = [
            commit(5),
            commit(6),
            SeenWait {
                waiter: process(9, "shop"),
                holder: Some(process(5, "postgres")),
                ns: 20 * S,
                ..SeenWait::default()
            },
        ];
        let roots = seen::of(&waits);
        assert_eq!(roots.len(), 1);
        awaited_said::title(&roots[0]).to_string()
    }

    fn standby(pid: u32, waits: bool, sessions: u32) -> SeenStandby {
        SeenStandby {
            replay: SeenClient {
                pid,
                name: "postgres".to_owned(),
            },
            waits,
            sessions,
        }
    }

    #[test]
    fn the_session_that_replay_waits_for_is_in_the_way() {
        let session = SeenProcess {
            client: Some(SeenClient {
                pid: 70,
                name: "psql".to_owned(),
            }),
            ..process(60, "postgres")
        };
        assert_eq!(
            title(Some(session), standby(50, true, 1)),
            "postgres (pid 60), a session of psql (pid 70), keeps the standby's replay waiting (recovery conflict), and commits wait for that standby \
             (synchronous replication): 2 processes of postgres and shop wait behind it, for at least 20.00 s"
        );
    }

    #[test]
    fn of_several_sessions_none_is_named_and_a_standby_may_be_elsewhere() {
        let several = title(Some(process(50, "postgres")), standby(50, true, 3));
        assert!(several.starts_with("The standby's replay, postgres (pid 50), waits for one of 3 sessions"));
        let silent = title(Some(process(50, "postgres")), standby(50, false, 0));
        assert!(
            silent.starts_with(
                "Commits wait for a synchronous standby that does not confirm them; its replay is"
            )
        );
        let elsewhere = title(None, standby(0, false, 0));
        assert!(
            elsewhere.contains("the synchronous standby to replay what it commits"),
            "{elsewhere}"
        );
    }
}
