//! Event loops with requests to answer: what they wait for.
//!
//! In: a wait in a call of the epoll family, and what is known of requests and of questions to others. Out: the same wait, as one
//! for whom the loop has asked; and who has the requests that were read before anybody looked.

use super::ended_wait::EndedWait;
use super::object_cache::ObjectCache;
use super::outstanding::{Asked, Outstanding};
use super::requests::RequestState;
use super::task_table::TaskTable;
use super::thread::Threads;
use crate::classify::is_connecting;
use holdup_evidence::{Call, Ns, Object, ObjectId, Wait, WaitMemory, Waker};
use holdup_knowledge::system_calls::{self, Kind as Does};

impl RequestState {
    /// Where an event loop has the connection of a request that came in before anybody looked, and a socket on which somebody
    /// was asked since, or a connection that it is making, it has that request.
    pub(super) fn take_up_in_loop(
        &mut self,
        ended: &EndedWait,
        threads: &mut Threads,
        tasks: &TaskTable,
        objects: &ObjectCache,
    ) {
        let wait = ended.wait;
        if self.earlier.untaken() == 0 || !is_epoll(&wait.call) {
            return;
        }
        let object = |id| objects.object(Some(id));
        for set in [ended.memory, wait.asked.as_deref()] {
            let Some(thread) = threads.get_mut(&wait.thread) else {
                return;
            };
            let pid = tasks.pid(thread.identity.process);
            if let Some(set) = set {
                let of_clients = |object: &Object| self.served.is_clients(Some(object));
                self.earlier.polled_by_loop(pid, set, object, of_clients);
            }
            let connects = || set.is_some_and(|set| connecting_in(set, objects).next().is_some());
            if self.earlier.asked_of(set, object).is_none() && !connects() {
                continue;
            }
            let requests = self.earlier.taken_in_set(pid, set, object);
            self.take_up(&requests, thread);
        }
    }

    /// An event loop with a request to answer, which has asked somebody else and got no answer, waits for that: whatever
    /// else is in its set, and whichever of its clients stirs it meanwhile. With how long that is outstanding, over all its waits.
    pub(super) fn unanswered(
        &self,
        ended: &EndedWait,
        threads: &mut Threads,
        objects: &ObjectCache,
    ) -> Option<(Wait, Ns)> {
        let wait = ended.wait;
        if !is_epoll(&wait.call) {
            return None;
        }
        let thread = threads.get_mut(&wait.thread)?;
        if !wait.serves && thread.earlier == 0 {
            thread.outstanding = Outstanding::default();
            return None;
        }
        let sets = [ended.memory, wait.asked.as_deref()];
        let sets = || sets.into_iter().flatten();
        let of_others = |set| self.earlier.asked_of(Some(set), |id| objects.object(Some(id)));
        let question = match wait.unanswered {
            Some(asked) if wait.serves => Some(asked),
            _ if thread.earlier > 0 => sets().find_map(of_others),
            _ => None,
        };
        let connecting: Vec<ObjectId> = sets().flat_map(|set| connecting_in(set, objects)).collect();
        let of = |id: ObjectId| {
            let object = objects.object(Some(id))?;
            Some(Asked {
                inode: object.inode,
                connecting: is_connecting(object),
            })
        };
        let now: Vec<Asked> = question
            .into_iter()
            .chain(connecting.iter().copied())
            .filter_map(of)
            .collect();
        let all = sets().any(|set| !set.polled.is_empty() && !set.polled_truncated);
        thread.outstanding.renew(wait.start, &now, all);
        let since = |id: ObjectId| thread.outstanding.since(of(id)?.inode);
        // Of several connections the oldest stands for them.
        let oldest = || {
            connecting
                .iter()
                .copied()
                .min_by_key(|id| since(*id).unwrap_or(wait.start))
        };
        let asked = question.or_else(oldest)?;
        let outstanding = wait.end.saturating_sub(since(asked).unwrap_or(wait.start));
        let ready = wait.ready.and_then(|ready| objects.object(Some(ready)));
        if let Some(ready) = ready {
            thread.outstanding.over(ready.inode);
        }
        let by_client = wait.ready.is_none() || self.served.is_clients(ready);
        let waits = Wait {
            ready: Some(asked),
            asked: None,
            // Whoever stirred it is not in its way.
            waker: Waker::Unknown,
            ..wait.clone()
        };
        by_client.then_some((waits, outstanding))
    }
}

/// Connections that the loop is making, of what it polls: nothing can be asked on them before they are made.
fn connecting_in(set: &WaitMemory, objects: &ObjectCache) -> impl Iterator<Item = ObjectId> {
    let polled = set.polled.iter().filter_map(|fd| fd.object);
    polled.filter(|id| objects.object(Some(*id)).is_some_and(is_connecting))
}

/// Whether a call waits for several things, for so long at most.
pub(super) fn polls(call: &Call) -> bool {
    system_calls::is(call, Does::Polls | Does::WaitsForEpoll)
}

/// Whether a call is one of an event loop.
fn is_epoll(call: &Call) -> bool {
    system_calls::is(call, Does::WaitsForEpoll)
}
