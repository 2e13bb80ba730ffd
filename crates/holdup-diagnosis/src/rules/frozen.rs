//! What is said of a frozen file system: who may have frozen it, and how it is thawed.
//!
//! In: processes that use it and do not wait. Out: a part of a title, evidence and a remedy. A process that was started with the mount point or the
//! device in its arguments is the one that a person would ask; one that only has files open there may be anybody.

use super::{duration, say};
use holdup_evidence::observed::{SeenClient, SeenWait, VolumeUser};
use holdup_model::finding::{Evidence, Remedy};
use std::collections::HashSet;

/// Users that evidence names.
const USERS_MAX: usize = 3;

/// Who waits for something else behind it works on nothing there.
pub(super) fn without_waiters(waits: &mut [SeenWait]) {
    let waiters: HashSet<u32> = waits.iter().map(|wait| wait.waiter.pid).collect();
    for wait in waits {
        wait.users
            .retain(|one| one.waits || !waiters.contains(&one.process.pid));
    }
}

fn who(client: &SeenClient) -> String {
    format!("{} (pid {})", say::name_or(&client.name, "a process"), client.pid)
}

/// A process, with the child that works for it: `nightly (pid 7), which runs rsync (pid 8)`.
fn user(one: &VolumeUser) -> String {
    let name = who(&one.process);
    match &one.runs {
        Some(child) => format!("{name}, which runs {}", who(child)),
        None => name,
    }
}

/// Who was started for it and does not wait: `, while nightly (pid 7), which runs rsync (pid 8), works on it`.
pub(super) fn by(users: &[VolumeUser]) -> String {
    let others = users.iter().filter(|one| one.named).count();
    match users.first() {
        // Of several that wait and were started with its name, each may be a service that stores there.
        Some(one) if one.waits && others > 1 => String::new(),
        Some(one) if one.waits => format!(
            ", and {}, which was started with its name, waits there itself",
            who(&one.process)
        ),
        Some(one) if one.named && one.runs.is_some() => format!(", while {}, works on it", user(one)),
        // A shell that was only given the place may do anything.
        Some(one) if one.named => format!(
            ", while {}, which was started with its name, does not wait there",
            who(&one.process)
        ),
        _ => String::new(),
    }
}

/// How that is known.
pub(super) fn evidence(users: &[VolumeUser]) -> Option<Evidence> {
    let list: Vec<String> = (users.iter().take(USERS_MAX))
        .map(|one| {
            let how = match (one.named, one.waits) {
                (true, true) => "started with its name, and waits itself",
                (true, false) => "started with its name",
                (false, _) => "has files open there, or works in it",
            };
            format!("{} ({how}, began {} before)", user(one), duration(one.lived))
        })
        .collect();
    (!list.is_empty()).then(|| {
        Evidence::new(
            format!("these use it: {}", list.join("; ")),
            "/proc/PID/cmdline, /proc/PID/fd, /proc/PID/cwd",
        )
    })
}

/// What to do.
pub(super) fn remedy(mount: &str, users: &[VolumeUser]) -> Remedy {
    let by = users.first().filter(|one| one.named);
    let ask = match by {
        // Whoever waits for its own thaw cannot make it.
        Some(one) if one.waits => format!(
            "find out whether {} froze it: it waits there itself",
            who(&one.process)
        ),
        Some(one) => format!("see whether {} froze it and will thaw it", who(&one.process)),
        None => "find out what froze it (a backup, a snapshot)".to_owned(),
    };
    match mount {
        "" => Remedy::safe(format!(
            "{ask}; thaw it if that was forgotten (fsfreeze --unfreeze)"
        ))
        .with_command("findmnt --real"),
        mount => Remedy::changing(
            format!("{ask}; thaw it if nobody needs that any more"),
            "a copy that is made of it meanwhile is not consistent",
        )
        .with_command(format!("fsfreeze --unfreeze {}", say::quoted(mount))),
    }
}

#[cfg(test)]
mod tests {
    use super::{by, evidence, remedy};
    use holdup_evidence::observed::{SeenClient, VolumeUser};

    fn client(pid: u32, name: &str) -> SeenClient {
        SeenClient {
            pid,
            name: name.to_owned(),
        }
    }

    #[test]
    fn who_was_started_for_it_is_named_and_who_has_files_there_is_not() {
        let job = VolumeUser {
            process: client(7, "nightly"),
            runs: Some(client(8, "rsync")),
            named: true,
            waits: false,
            lived: 30_000_000_000,
        };
        let reader = VolumeUser {
            process: client(9, "indexd"),
            ..VolumeUser::default()
        };
        assert_eq!(
            by(std::slice::from_ref(&job)),
            ", while nightly (pid 7), which runs rsync (pid 8), works on it"
        );
        assert_eq!(by(std::slice::from_ref(&reader)), "");
        assert_eq!(by(&[]), "");
        // A service that stores there, and its own child.
        let service = VolumeUser {
            runs: Some(client(10, "worker")),
            ..reader.clone()
        };
        assert_eq!(by(std::slice::from_ref(&service)), "");
        assert!(!remedy("/srv/nas", &[service]).text.contains("indexd"));
        let shell = VolumeUser {
            process: client(11, "bash"),
            named: true,
            ..VolumeUser::default()
        };
        assert_eq!(
            by(&[shell]),
            ", while bash (pid 11), which was started with its name, does not wait there"
        );
        let own = VolumeUser {
            process: client(5, "agent"),
            named: true,
            waits: true,
            ..VolumeUser::default()
        };
        assert_eq!(
            by(std::slice::from_ref(&own)),
            ", and agent (pid 5), which was started with its name, waits there itself"
        );
        assert_eq!(by(&[own.clone(), own]), "", "services that store there");
        assert!(
            evidence(&[reader])
                .unwrap()
                .text
                .contains("indexd (pid 9) (has files open there")
        );
        let thaw = remedy("/srv/nas vol", &[job]);
        assert_eq!(
            thaw.command.as_deref(),
            Some("fsfreeze --unfreeze '/srv/nas vol'")
        );
    }
}
