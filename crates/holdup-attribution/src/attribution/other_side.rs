//! Of a wait that nobody has ended, or that a signal or a time limit broke off: which process could end it.
//!
//! In: a wait that goes on, who has the other ends of pipes and sockets, and whose child each process is. Out: processes.

use super::blocker::Scene;
use super::ended_wait::EndedWait;
use crate::classify::may_await_room;
use holdup_evidence::{Cause, Ns, ObjectId, PolledFd, ThreadId, Wait, Waker};
use holdup_knowledge::system_calls::{self, Child};

/// Processes that are remembered of one wait: a program that polls more of them waits for whichever comes first.
const MAX_SIDES: usize = 8;

impl Scene<'_> {
    /// Of a wait that nobody has ended, or not the one who was waited for: the processes that could, as far as descriptors and
    /// parentage show; first the one that is most likely meant.
    pub(super) fn other_sides(&self, ended: &EndedWait, cause: Cause) -> Vec<u32> {
        let wait = ended.wait;
        // Who comes here with a wait for a child that is over has been interrupted: a key or `timeout` ended it, and no child. So has
        // one that waits for the signal by which its child ends, and gets another.
        // Who looks now and then sees nobody end a wait, and only the one at the other end can have.
        let unseen = matches!(wait.waker, Waker::Unknown);
        // A timer ended it: who was to answer has not, and is still there.
        let expired = matches!(
            wait.waker,
            Waker::Interrupt {
                soft: false,
                socket: None
            }
        ) && matches!(
            cause,
            Cause::NetReceive | Cause::NetSend | Cause::NetConnect | Cause::IpcUnix | Cause::IpcPipe
        );
        if !ended.open
            && ended.for_answer.is_none()
            && !unseen
            && !expired
            && !matches!(cause, Cause::ProcessChild | Cause::IpcSignal)
        {
            return Vec::new();
        }
        let polled = wait.asked.iter().flat_map(|asked| &asked.polled);
        // A server does not wait for its clients when it waits for somebody else, too; and who waits for room waits for nobody but who
        // is to make it, whoever else holds an end of what it listens to.
        let clients = |id: &ObjectId| self.served.is_clients(self.objects.object(Some(*id)));
        let awaited = |fd: &PolledFd| match (cause, fd.object) {
            (Cause::NetSend, _) => may_await_room(fd),
            (_, object) => !object.is_some_and(|id| clients(&id)),
        };
        let polled = polled
            .filter(|fd| !fd.own && awaited(fd))
            .filter_map(|fd| fd.object);
        let ends = wait.object.into_iter().chain(wait.ready).chain(polled);
        let mut found: Vec<u32> = Vec::new();
        let own = self.threads.get(&wait.thread);
        let own = own.map(|thread| self.tasks.pid(thread.identity.process));
        let end = |object: ObjectId| {
            let only = self.tasks.other_end(object, own);
            only.or_else(|| self.worker(object, own, (wait.start, wait.end)))
        };
        for pid in ends.filter_map(end) {
            if found.len() < MAX_SIDES && !found.contains(&pid) {
                found.push(pid);
            }
        }
        if found.is_empty() && matches!(cause, Cause::ProcessChild | Cause::IpcSignal) {
            found.extend(self.awaited_child(wait));
        }
        found
    }

    /// Of several processes of one program each of which may accept a connection that stands in a queue: the one that did something else for longest
    /// meanwhile, as far as that is known by now, for any of them that ends what it does can take the connection. `None` where one of them
    /// was free.
    fn worker(&self, object: ObjectId, own: Option<u32>, (from, to): (Ns, Ns)) -> Option<u32> {
        if !self.tasks.is_in_queue(object) {
            return None;
        }
        let ends = self.tasks.other_ends(object);
        let mut others = ends.iter().copied().filter(|pid| Some(*pid) != own);
        let first = others.next()?;
        let mut longest: Option<(Ns, u32)> = None;
        for pid in std::iter::once(first).chain(others) {
            if self.tasks.differ_by_program(first, pid) {
                return None;
            }
            // Of one that has slept all the time nothing is known before the end.
            let thread = self.tasks.living(pid).and_then(|id| self.threads.get(&id));
            let doing = thread.and_then(|thread| thread.recent.doing(from, to));
            let ns = match doing {
                Some(doing) if matches!(doing.cause, Cause::Idle | Cause::NetAccept) => return None,
                Some(doing) => doing.ns,
                None => 0,
            };
            if longest.is_none_or(|(most, _)| ns > most) {
                longest = Some((ns, pid));
            }
        }
        longest.map(|(_, pid)| pid)
    }

    /// The child whose end a wait is for.
    fn awaited_child(&self, wait: &Wait) -> Option<u32> {
        // The call names the child, or waits for any.
        let known = match system_calls::awaited_child(&wait.call) {
            Some(Child::Process(pid)) => Some(pid),
            Some(Child::Any) | None => None,
        };
        let parent = self.threads.get(&wait.thread)?;
        // The call names it as the waiter's pid namespace has it.
        let known = match (known, parent.identity.inside) {
            (Some(named), Some(_)) => {
                let child = self.tasks.as_seen_by(&parent.identity, named, wait.end)?;
                let child = self.threads.get(&child)?;
                Some(self.tasks.pid(child.identity.process))
            }
            (known, _) => known,
        };
        let found = || self.tasks.only_child(self.tasks.pid(parent.identity.process));
        known.or_else(found).or_else(|| self.only_child_of_run(wait))
    }

    /// The only child of a thread's process that was seen to be born, and lived in the middle of this wait.
    fn only_child_of_run(&self, wait: &Wait) -> Option<u32> {
        let middle = wait.start.midpoint(wait.end);
        let process = |id: &ThreadId| self.threads.get(id).map(|thread| thread.identity.process);
        let parent = process(&wait.thread)?;
        let mut children = self.threads.values().filter(|child| {
            let lived = child.born <= middle && (!child.ended || child.at > middle);
            let of_it = child.creator.as_ref().and_then(process) == Some(parent);
            lived && of_it && child.identity.process != parent
        });
        let child = children.next()?;
        let pid = self.tasks.pid(child.identity.process);
        children.next().is_none().then_some(pid)
    }
}
