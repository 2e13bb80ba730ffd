//! The end of a chain of waits: what is to be done is to be done there.
//!
//! In: waits that others are in the way of. Out: who stands at the end, in words, and a remedy with its process and a command.

use super::{Run, Waits, say};
use crate::machine::path;
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::interpreters;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, Link, ThreadName};
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
    /// Its own wait, where that was most of the time.
    wait: Option<&'a AttributedWait>,
    /// Who waits for it by a child process.
    parent: Option<&'a ThreadName>,
    /// Who stands before it, where what it does itself says nothing: a server of which only the thread that takes in clients is known.
    before: Option<(&'a ThreadName, &'a AttributedWait)>,
    /// The same as the chain has it: of a process that is only followed no wait is kept.
    link: Option<&'a Link>,
    run: Run<'a>,
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
    let run = waits.run;
    // Of others no more is known than was observed.
    let took_most = |link: &Link| link.ns.saturating_mul(2) >= main.max.min(main.ns.max(1));
    let (chain, tracer) = to_halted(&main.chain);
    let most = chain.iter().take_while(|link| took_most(link)).count();
    // Behind whoever has others waiting behind it, too, the way goes in several directions.
    let (chain, tracer) = (&chain[..most], tracer.filter(|_| most == chain.len()));
    let end = chain.last().map(|link| {
        let same = |holder: &&Holder| holder.name == link.name && holder.doing == Some(link.cause);
        let holder = main.holders.iter().find(same);
        let (frame, caller) = match holder.filter(|_| computes(link.cause)) {
            Some(holder) => on_cpu(holder),
            None => (None, None),
        };
        let before = chain.iter().rev().nth(1);
        let away = before.filter(|link| link.name.pid != main.asker.name.pid);
        Root {
            name: &link.name,
            doing: Some(link.cause),
            frame: frame.or(link.frame.as_ref()),
            caller,
            tracer: tracer.map(|link| &link.name),
            wait: most_of(run, main, &link.name, link.cause),
            parent: away
                .filter(|link| link.cause == Cause::ProcessChild)
                .map(|link| &link.name),
            before: away.and_then(|link| Some((&link.name, most_of(run, main, &link.name, link.cause)?))),
            link: away,
            run,
        }
    });
    let in_the_way = main.holders.iter().max_by_key(|holder| holder.ns);
    let holder = in_the_way.map(|holder| of_holder(run, main, holder));
    let other = |root: &Root<'_>| root.name.pid != 0 && root.name.pid != main.asker.name.pid;
    end.filter(other).or(holder.filter(other))
}

/// One of those that are in the way of a wait, where no chain is known.
pub(super) fn of_holder<'a>(run: Run<'a>, main: &AttributedWait, holder: &'a Holder) -> Root<'a> {
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
        wait: holder
            .doing
            .and_then(|cause| most_of(run, main, &holder.name, cause)),
        parent: None,
        before: None,
        link: None,
        run,
    }
}

/// The wait of a thread that took most of the time for which `main` waited.
fn most_of<'a>(
    run: Run<'a>,
    main: &AttributedWait,
    name: &ThreadName,
    cause: Cause,
) -> Option<&'a AttributedWait> {
    let own = |wait: &&AttributedWait| {
        (wait.asker.name.pid, wait.asker.name.tid) == (name.pid, name.tid) && wait.cause == cause
    };
    let longest = run
        .attributed
        .waits
        .iter()
        .filter(own)
        .max_by_key(|wait| wait.ns)?;
    (longest.ns.saturating_mul(2) >= main.ns && !longest.resource.is_many()).then_some(longest)
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

    /// Whether it computes, or would, or works with a disk: what it does goes on.
    pub(super) fn works(&self) -> bool {
        let disk = |cause| {
            matches!(
                cause,
                Cause::DiskRead
                    | Cause::DiskWrite
                    | Cause::DiskSync
                    | Cause::DiskJournal
                    | Cause::DiskWriteback
                    | Cause::MemPagefault
            )
        };
        self.doing.is_some_and(|cause| computes(cause) || disk(cause))
    }

    /// Whether it waits for what no thread is left to give: that is told of itself.
    pub(super) fn is_orphaned(&self) -> bool {
        self.wait.is_some_and(|wait| wait.orphaned.is_some())
    }

    /// Its name and process id.
    pub(super) fn who(&self) -> String {
        program(self.run, self.name)
    }

    /// Who is at the other end of what it waits for: its name and address in words, and its process.
    fn other_end(&self, wait: &AttributedWait) -> Option<(String, Option<u32>)> {
        let peer = peer(wait);
        let address = wait.resource.detail.peer.as_ref().map(ToString::to_string);
        let pid = peer.map(|holder| holder.name.pid);
        let name = peer.map(|holder| program(self.run, &holder.name));
        match (name, address) {
            (Some(name), Some(address)) => Some((format!("{name} at {address}"), pid)),
            (Some(name), None) => Some((name, pid)),
            (None, Some(address)) => Some((address, None)),
            (None, None) => None,
        }
    }

    /// How the one before it waits for it: `: php-fpm waits for python3 rates.py (pid 7) to answer in rates (i.php:1)`.
    fn awaited_by(&self, link: &Link) -> String {
        let does = match link.cause {
            Cause::NetReceive | Cause::NetTls | Cause::IpcUnix => "to answer",
            Cause::NetDns => "to answer for a name",
            Cause::NetConnect => "to accept its connection",
            Cause::NetSend => "to read what it sends",
            _ => return String::new(),
        };
        if link.name.pid == self.name.pid {
            return String::new();
        }
        let named = |frame: &&Frame| frame.symbol.is_some() && frame.line.is_some();
        let place = link.frame.as_ref().filter(named);
        let place = place.map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
        format!(
            ": {} waits for {} {does}{place}",
            program(self.run, &link.name),
            self.who()
        )
    }

    /// What somebody waits for, for the end of a sentence that begins with its name; `None` where nothing is known but the kind of wait.
    fn awaits(&self, wait: &AttributedWait) -> Option<String> {
        let gives = |kinds| system_calls::is_named(wait.call.as_deref(), kinds);
        let does = match wait.cause {
            Cause::NetReceive | Cause::NetTls => "to answer",
            Cause::NetDns => "to answer for a name",
            Cause::NetConnect => "to accept its connection",
            Cause::NetSend => "to read what it sends",
            Cause::IpcUnix if gives(Kind::Sends | Kind::Writes) => "to read what it sends",
            Cause::IpcUnix => "to answer",
            Cause::IpcPipe if gives(Kind::Writes | Kind::MovesData) => "to read from a pipe",
            Cause::IpcPipe if gives(Kind::Reads.into()) => "to write to a pipe",
            Cause::LockFile if wait.resource.name.starts_with('/') => {
                return Some(format!("waits for a lock on {}", wait.resource.name));
            }
            _ => return None,
        };
        let (peer, _) = self.other_end(wait)?;
        Some(format!("waits for {peer} {does}"))
    }

    /// What it does there, for the end of a title; empty where that is not known, or is no more than waiting for whatever comes.
    pub(super) fn stands(&self) -> String {
        let who = match self.parent {
            Some(parent) => format!(
                "{}, a child of {},",
                self.who(),
                say::name_or(&parent.process, "a process")
            ),
            None => self.who(),
        };
        let awaits = self.wait.and_then(|wait| self.awaits(wait));
        match self.doing {
            Some(Cause::ProcessStopped) => match self.tracer {
                Some(tracer) => format!(": {who} is stopped by its tracer {}", say::who_with_pid(tracer)),
                None => format!(": {who} is stopped"),
            },
            Some(Cause::ProcessFrozen) => format!(": {who} is frozen"),
            // Of many threads that take in work only one was looked at.
            None | Some(Cause::Idle | Cause::NetAccept | Cause::PollWait | Cause::Unknown) => {
                let before = self
                    .before
                    .and_then(|(name, wait)| Some((name, self.awaits(wait)?)));
                match before {
                    Some((name, awaits)) => format!(": {} {awaits}", program(self.run, name)),
                    None => self.link.map_or_else(String::new, |link| self.awaited_by(link)),
                }
            }
            Some(_) if awaits.is_some() => {
                format!(": {who} {}{}", awaits.unwrap_or_default(), self.code())
            }
            Some(cause) if cause.on_cpu() => format!(": {who} was busy on a CPU{}", self.code()),
            // It computes, or would.
            Some(Cause::SchedRunqueue) if !self.code().is_empty() => {
                format!(": {who} was busy{}, and mostly queued for a CPU", self.code())
            }
            Some(cause) => format!(": {who} was {}{}{}", cause.phrase(), self.code(), self.file()),
        }
    }

    /// The same where the sentence has just named the process with this number.
    pub(super) fn stands_of(&self, named: u32) -> String {
        let stands = self.stands();
        match stands.strip_prefix(&format!(": {} ", self.who())) {
            Some(does) if self.name.pid == named => format!(", which {does}"),
            _ => stands,
        }
    }

    /// The file that its own wait is for.
    fn file(&self) -> String {
        let name = self.wait.map_or("", |wait| wait.resource.name.as_str());
        match name.starts_with('/') {
            true => format!(": {name}"),
            false => String::new(),
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
        let who = self.who();
        let had_a_reason = "it may have been stopped for a reason";
        if let Some(tracer) = self.tracer {
            return Remedy::changing(
                format!("detach the debugger or tracer {}", say::who_with_pid(tracer)),
                "it may be in use",
            )
            .with_command(format!("ps -o pid,ppid,user,lstart,args -p {}", tracer.pid));
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
            // It stands in a wait itself: who is at its other end is to be looked at.
            Some(_) if let Some((peer, Some(pid))) = self.wait.and_then(|wait| self.other_end(wait)) => {
                Remedy::safe(format!("find out what {peer} waits for or does instead"))
                    .with_command(format!("holdup attach -p {pid}"))
            }
            _ => Remedy::safe(format!("find out what {who} waits for or does instead"))
                .with_command(format!("holdup attach -p {pid}")),
        }
    }
}

/// Who is at the other end of the connection of a wait, for a sentence that has the address already.
pub(super) fn peer_beside(run: &Run<'_>, wait: &AttributedWait) -> Option<String> {
    let of_unix = wait.cause == Cause::IpcUnix;
    let has_address = (wait.resource.detail.peer.is_some() || of_unix) && !wait.resource.name.is_empty();
    let peer = peer(wait).filter(|_| has_address)?;
    Some(program(*run, &peer.name))
}

/// Who has the other end of what a wait is for, if that is another process.
fn peer(wait: &AttributedWait) -> Option<&Holder> {
    let ends = |holder: &&Holder| {
        let peer = matches!(holder.how_known, HowKnown::SocketPeer | HowKnown::PipePeer);
        peer && holder.name.pid != 0 && holder.name.pid != wait.asker.name.pid
    };
    wait.holders.iter().filter(ends).max_by_key(|holder| holder.ns)
}

/// A process by what a person knows, with its process id.
fn program(run: Run<'_>, name: &ThreadName) -> String {
    match say::script(&run, name.pid) {
        Some(script) => format!("{script} (pid {})", name.pid),
        None => say::who_with_pid(name),
    }
}
