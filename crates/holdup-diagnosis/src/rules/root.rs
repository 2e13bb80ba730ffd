//! The end of a chain of waits: what is to be done is to be done there.
//!
//! In: waits that others are in the way of. Out: who stands at the end, in words, and a remedy with its process and a command.

use super::{Waits, say};
use crate::machine::path;
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::interpreters;
use holdup_model::attributed::{AttributedWait, Holder, Link, ThreadName};
use holdup_model::finding::Remedy;
use std::collections::BTreeSet;

/// Who is at the end of a chain, and what it does there, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root<'a> {
    name: &'a ThreadName,
    doing: Option<Cause>,
    /// The function that it was in.
    frame: Option<&'a Frame>,
    /// The one that had called it, of code that runs on a CPU.
    caller: Option<&'a Frame>,
    /// Of a stopped one: whose hold it is in.
    tracer: Option<&'a ThreadName>,
}

/// A chain up to whoever is stopped, and who holds that one: a tracer stands behind it in the chain, and is not what it waits for.
fn to_halted(chain: &[Link]) -> (&[Link], Option<&Link>) {
    match chain.iter().position(|link| path::is_halted(link.cause)) {
        Some(at) => (&chain[..=at], chain.get(at + 1)),
        None => (chain, None),
    }
}

/// The function on the CPU and its caller, of a process that spends its time there: the innermost one is often a small one of many
/// callers.
fn on_cpu(holder: &Holder) -> (Option<&Frame>, Option<&Frame>) {
    let Some(frame) = chosen_frame(&holder.stack) else {
        return (None, None);
    };
    let mut from = holder.stack.iter().skip_while(|one| *one != frame);
    let inner = from.next();
    let caller = from.next().filter(|caller| {
        let same = caller.language == frame.language && caller.module == frame.module;
        same && caller.symbol.is_some() && caller.symbol != frame.symbol
    });
    (inner, caller)
}

/// Whether a thread has something to compute.
fn computes(cause: Cause) -> bool {
    cause.on_cpu() || cause == Cause::SchedRunqueue
}

/// Of these waits that are about as long as the longest one, that whose chain leads furthest: they are for the same thing, and a thread
/// of the one in the way that waits for another thread of its own hides what all of them wait for.
fn furthest<'a>(waits: &Waits<'a>) -> &'a AttributedWait {
    let main = waits.main();
    let as_long = |wait: &&AttributedWait| {
        wait.max.saturating_mul(2) >= main.max && wait.ns.saturating_mul(2) >= main.ns
    };
    let ends = |wait: &AttributedWait| {
        let (chain, _) = to_halted(&wait.chain);
        let processes: BTreeSet<u32> = chain.iter().map(|link| link.name.pid).collect();
        let end = chain.last().filter(|link| link.ns.saturating_mul(2) >= wait.max);
        (end.is_some(), processes.len())
    };
    let mut found = main;
    for wait in waits.iter().filter(as_long) {
        if ends(wait) > ends(found) {
            found = wait;
        }
    }
    found
}

/// The end of the chain of the longest of these waits: another process than the one that waits, whose number is known. An end that
/// took less than half of that wait is one of many, and none to name: then it is who was directly in the way.
pub(super) fn of<'a>(waits: &Waits<'a>) -> Option<Root<'a>> {
    let main = furthest(waits);
    let took_most = |link: &&Link| link.ns.saturating_mul(2) >= main.max;
    let (chain, tracer) = to_halted(&main.chain);
    let end = chain.last().filter(took_most).map(|link| {
        let same = |holder: &&Holder| holder.name == link.name && holder.doing == Some(link.cause);
        let holder = main.holders.iter().find(same);
        let (frame, caller) = match holder.filter(|_| computes(link.cause)) {
            Some(holder) => on_cpu(holder),
            None => (None, None),
        };
        Root {
            name: &link.name,
            doing: Some(link.cause),
            frame: frame.or(link.frame.as_ref()),
            caller,
            tracer: tracer.map(|link| &link.name),
        }
    });
    let in_the_way = main.holders.iter().max_by_key(|holder| holder.ns);
    let holder = in_the_way.map(|holder| {
        let (frame, caller) = match holder.doing {
            Some(cause) if computes(cause) => on_cpu(holder),
            _ => (chosen_frame(&holder.stack), None),
        };
        Root {
            name: &holder.name,
            doing: holder.doing,
            frame,
            caller,
            tracer: None,
        }
    });
    let other = |root: &Root<'_>| root.name.pid != 0 && root.name.pid != main.asker.name.pid;
    end.filter(other).or(holder.filter(other))
}

impl Root<'_> {
    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.name.pid
    }

    /// Whether something stopped it from outside.
    pub(super) fn is_halted(&self) -> bool {
        self.doing.is_some_and(path::is_halted)
    }

    /// Its name and process id.
    pub(super) fn who(&self) -> String {
        say::who_with_pid(self.name)
    }

    /// What it does there, for the end of a title; empty where that is not known, or is no more than waiting for whatever comes.
    pub(super) fn stands(&self) -> String {
        let who = say::who_with_pid(self.name);
        match self.doing {
            Some(Cause::ProcessStopped) => match self.tracer {
                Some(tracer) => format!(": {who} is stopped by its tracer {}", say::who_with_pid(tracer)),
                None => format!(": {who} is stopped"),
            },
            Some(Cause::ProcessFrozen) => format!(": {who} is frozen"),
            // Of many threads that take in work only one was looked at.
            None | Some(Cause::Idle | Cause::NetAccept | Cause::PollWait | Cause::Unknown) => String::new(),
            Some(cause) if cause.on_cpu() => format!(": {who} was busy on a CPU{}", self.code()),
            // It computes, or would.
            Some(Cause::SchedRunqueue) if !self.code().is_empty() => {
                format!(": {who} was busy{}, and mostly queued for a CPU", self.code())
            }
            Some(cause) => format!(": {who} was {}{}", cause.phrase(), self.code()),
        }
    }

    /// Where in its code that was; empty where that is not known.
    fn code(&self) -> String {
        let named = |frame: &&Frame| frame.symbol.is_some() && !interpreters::is_own_code(frame);
        let Some(frame) = self.frame.filter(named) else {
            return String::new();
        };
        let place = say::place(frame);
        match self.caller {
            Some(caller) => format!(" in {place}, called by {}", say::place(caller)),
            None => format!(" in {place}"),
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> Remedy {
        let pid = self.name.pid;
        let who = say::who_with_pid(self.name);
        let had_a_reason = "it may have been stopped for a reason";
        if let Some(tracer) = self.tracer {
            return Remedy::changing(
                format!("detach the debugger or tracer {}", say::who_with_pid(tracer)),
                "it may be in use",
            )
            .with_command(format!("holdup attach -p {}", tracer.pid));
        }
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
            Some(Cause::TimerSleep) if !self.code().is_empty() => {
                Remedy::safe(format!("shorten the sleep{} of {who}", self.code()))
                    .with_command(format!("holdup attach -p {pid}"))
            }
            Some(cause) if computes(cause) && !self.code().is_empty() => Remedy::safe(format!(
                "find out what {who} computes{}, and for whom",
                self.code()
            ))
            .with_command(format!("holdup attach -p {pid}")),
            _ => Remedy::safe(format!("find out what {who} waits for or does instead"))
                .with_command(format!("holdup attach -p {pid}")),
        }
    }
}
