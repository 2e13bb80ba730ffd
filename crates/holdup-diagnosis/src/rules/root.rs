//! The end of a chain of waits: what is to be done is to be done there.
//!
//! In: waits that others are in the way of. Out: who stands at the end, in words, and a remedy with its process and a command.

use super::{Waits, say};
use holdup_evidence::Cause;
use holdup_model::attributed::{Link, ThreadName};
use holdup_model::finding::Remedy;

/// Who is at the end of a chain, and what it does there, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root<'a> {
    name: &'a ThreadName,
    doing: Option<Cause>,
}

/// The end of the chain of the longest of these waits: another process than the one that waits, whose number is known. An end that
/// took less than half of that wait is one of many, and none to name: then it is who was directly in the way.
pub(super) fn of<'a>(waits: &Waits<'a>) -> Option<Root<'a>> {
    let main = waits.main();
    let took_most = |link: &&Link| link.ns.saturating_mul(2) >= main.max;
    let end = main.chain.last().filter(took_most).map(|link| Root {
        name: &link.name,
        doing: Some(link.cause),
    });
    let in_the_way = main.holders.iter().max_by_key(|holder| holder.ns);
    let holder = in_the_way.map(|holder| Root {
        name: &holder.name,
        doing: holder.doing,
    });
    let other = |root: &Root<'_>| root.name.pid != 0 && root.name.pid != main.asker.name.pid;
    end.filter(other).or(holder.filter(other))
}

impl Root<'_> {
    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.name.pid
    }

    /// Its name and process id.
    pub(super) fn who(&self) -> String {
        say::who_with_pid(self.name)
    }

    /// What it does there, for the end of a title; empty where that is not known, or is no more than waiting for whatever comes.
    pub(super) fn stands(&self) -> String {
        let who = say::who_with_pid(self.name);
        match self.doing {
            Some(Cause::ProcessStopped) => format!(": {who} is stopped"),
            Some(Cause::ProcessFrozen) => format!(": {who} is frozen"),
            // Of many threads that take in work only one was looked at.
            None | Some(Cause::Idle | Cause::NetAccept | Cause::PollWait | Cause::Unknown) => String::new(),
            Some(cause) if cause.on_cpu() => format!(": {who} was busy on a CPU"),
            Some(cause) => format!(": {who} was {}", cause.phrase()),
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> Remedy {
        let pid = self.name.pid;
        let who = say::who_with_pid(self.name);
        let had_a_reason = "it may have been stopped for a reason";
        match self.doing {
            Some(Cause::ProcessStopped) => Remedy::changing(
                format!("find out why {who} is stopped, and continue it"),
                had_a_reason,
            )
            .with_command(format!("kill -CONT {pid}")),
            Some(Cause::ProcessFrozen) => Remedy::changing(
                format!("find out what froze the cgroup of {who} (a paused container?), and thaw it"),
                had_a_reason,
            )
            .with_command(format!("cat /proc/{pid}/cgroup")),
            _ => Remedy::safe(format!("find out what {who} waits for or does instead"))
                .with_command(format!("holdup attach -p {pid}")),
        }
    }
}
