//! What the system calls are for that goroutines stand in.
//!
//! The problem: of a goroutine in a system call its runtime notes nothing; the thread that makes the call waits, and is told for itself. The
//! choice: the thread of its process that stands in the same line of the application. In: tasks and waits. Out: tasks whose cause and
//! resource are those of that wait.

use super::asker;
use holdup_evidence::{Cause, Frame, SystemFacts, TaskRuntime};
use holdup_model::attributed::{AttributedWait, HowKnown, Resource, Task, TaskState};

/// Tells of each goroutine in a system call what its thread waits for.
pub(super) fn tell(tasks: &mut [Task], waits: &[AttributedWait], facts: &SystemFacts) {
    let in_call = |task: &&mut Task| {
        task.runtime == TaskRuntime::Go && task.state == TaskState::Waiting && task.cause == Cause::Unknown
    };
    for task in tasks.iter_mut().filter(in_call) {
        let Some(place) = task.place.as_ref() else {
            continue;
        };
        let own = |wait: &&AttributedWait| {
            let stands = wait.open && wait.asker.name.pid == task.pid;
            stands
                && !rests(wait.cause)
                && asker::place(&wait.asker.stack).is_some_and(|at| is_same(&at, place))
        };
        let Some(wait) = waits.iter().filter(own).max_by_key(|wait| wait.ns) else {
            continue;
        };
        task.cause = wait.cause;
        task.resource = Resource::named(wait.resource.kind, words(wait, facts));
    }
}

fn is_same(one: &Frame, other: &Frame) -> bool {
    (&one.symbol, one.line) == (&other.symbol, other.line)
}

/// Whether a wait with this cause is none for something that somebody has.
fn rests(cause: Cause) -> bool {
    let waits_for_cpu = matches!(cause, Cause::SchedRunqueue | Cause::SchedThrottled);
    cause.on_cpu() || waits_for_cpu || matches!(cause, Cause::Idle | Cause::Unknown)
}

/// What the wait is for, as it follows "waiting for".
fn words(wait: &AttributedWait, facts: &SystemFacts) -> String {
    let name = wait.resource.name.as_str();
    let known = wait.holders.iter().find(|holder| {
        let has = holder.how_known.holds()
            || matches!(
                holder.how_known,
                HowKnown::SocketPeer | HowKnown::PipePeer | HowKnown::Child
            );
        has && holder.name.pid != 0 && holder.name.pid != wait.asker.name.pid
    });
    let who = known.map(|holder| {
        let script = facts.programs.iter().find(|one| one.pid == holder.name.pid);
        let process = script.map_or(holder.name.process.as_str(), |one| one.name.as_str());
        format!("{process} (pid {})", holder.name.pid)
    });
    let what = match wait.cause {
        Cause::IpcPipe => "a pipe",
        Cause::IpcUnix if name.is_empty() => "a Unix socket",
        Cause::ProcessChild => "the end of",
        Cause::LockFile => "a lock on",
        Cause::TimerSleep => "a timer",
        _ => "",
    };
    match (wait.cause, what, who) {
        (Cause::TimerSleep, ..) => what.to_owned(),
        // The kernel's name of a pipe says nothing.
        (Cause::IpcPipe, _, Some(who)) => format!("{what} of {who}"),
        (Cause::IpcPipe, _, None) if name.starts_with('/') => name.to_owned(),
        (Cause::IpcPipe, _, None) => what.to_owned(),
        (Cause::ProcessChild, _, Some(who)) => format!("{what} {who}"),
        (Cause::ProcessChild, _, None) if name.is_empty() => "a child process".to_owned(),
        (Cause::LockFile, _, Some(who)) => format!("{what} {name} that {who} has"),
        (_, _, Some(who)) if name.is_empty() => format!("{} of {who}", wait.cause),
        (_, _, Some(who)) => format!("{name} of {who}"),
        (_, "", None) if name.is_empty() => "a system call".to_owned(),
        (_, "", None) => name.to_owned(),
        (_, what, None) => format!("{what} {name}").trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::words;
    use holdup_evidence::{Cause, SystemFacts};
    use holdup_model::attributed::{AttributedWait, HowKnown, Resource, ResourceKind};

    fn wait(cause: Cause, resource: &str, holder: Option<(&str, HowKnown)>) -> String {
        let wait = serde_json::json!({"cause": cause, "ns": 1, "asker": {"name": {"pid": 7, "tid": 8}}});
        let mut wait: AttributedWait = serde_json::from_value(wait).unwrap();
        wait.resource = Resource::named(ResourceKind::Name, resource.to_owned());
        wait.holders = holder
            .map(|(process, how_known)| {
                let name = serde_json::json!({"pid": 9, "tid": 9, "process": process, "thread": process});
                let holder =
                    serde_json::json!({"name": name, "how_known": how_known, "doing": null, "ns": 1});
                serde_json::from_value(holder).unwrap()
            })
            .into_iter()
            .collect();
        words(&wait, &SystemFacts::default())
    }

    #[test]
    fn a_call_is_named_by_what_it_is_for_and_who_has_that() {
        let pipe = wait(Cause::IpcPipe, "pipe:[55]", Some(("logger", HowKnown::PipePeer)));
        assert_eq!(pipe, "a pipe of logger (pid 9)");
        assert_eq!(wait(Cause::IpcPipe, "pipe:[55]", None), "a pipe");
        let child = wait(Cause::ProcessChild, "tar (pid 9)", Some(("tar", HowKnown::Child)));
        assert_eq!(child, "the end of tar (pid 9)");
        assert_eq!(
            wait(Cause::ProcessChild, "tar (pid 9)", None),
            "the end of tar (pid 9)"
        );
        let lock = wait(
            Cause::LockFile,
            "/var/db.lck",
            Some(("backup", HowKnown::FileLock)),
        );
        assert_eq!(lock, "a lock on /var/db.lck that backup (pid 9) has");
        assert_eq!(wait(Cause::DiskSync, "/var/wal", None), "/var/wal");
    }

    #[test]
    fn who_only_woke_the_thread_has_nothing() {
        let released = wait(Cause::LockFutex, "futex 0x1", Some(("other", HowKnown::Waker)));
        assert_eq!(released, "futex 0x1");
    }
}
