//! Event loops with requests to answer: what they wait for.
//!
//! In: a wait in a call of the epoll family, and what is known of requests and of questions to others. Out: the same wait, as one
//! for whom the loop has asked; and who has the requests that were read before anybody looked.

use super::ended_wait::EndedWait;
use super::object_cache::ObjectCache;
use super::requests::RequestState;
use super::task_table::TaskTable;
use super::thread::Threads;
use crate::classify::is_connecting;
use holdup_evidence::{Call, ObjectId, Wait, WaitMemory, Waker};
use holdup_knowledge::system_calls::{self, Kind as Does};

impl RequestState {
    /// Where an event loop has the connection of a request that came in before anybody looked, and a socket on which somebody
    /// was asked since, it has that request.
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
            if self.earlier.asked_of(set, object).is_none() {
                continue;
            }
            let pid = tasks.pid(thread.identity.process);
            let requests = self.earlier.taken_in_set(pid, set, object);
            self.take_up(&requests, thread);
        }
    }

    /// An event loop with a request to answer, which has asked somebody else and got no answer, waits for that: whatever
    /// else is in its set, and whichever of its clients stirs it meanwhile.
    pub(super) fn unanswered(
        &self,
        ended: &EndedWait,
        threads: &Threads,
        objects: &ObjectCache,
    ) -> Option<Wait> {
        let wait = ended.wait;
        if !is_epoll(&wait.call) {
            return None;
        }
        let sets = [ended.memory, wait.asked.as_deref()];
        let connecting = || sets.into_iter().find_map(|set| connecting_in(set?, objects));
        let has_earlier = || threads.get(&wait.thread).is_some_and(|thread| thread.earlier > 0);
        let asked = match wait.unanswered {
            Some(asked) if wait.serves => asked,
            _ if has_earlier() => {
                let asked = |set| self.earlier.asked_of(set, |id| objects.object(Some(id)));
                sets.into_iter().find_map(asked).or_else(connecting)?
            }
            _ if wait.serves => connecting()?,
            _ => return None,
        };
        let by_client = wait
            .ready
            .is_none_or(|ready| self.served.is_clients(objects.object(Some(ready))));
        by_client.then(|| Wait {
            ready: Some(asked),
            asked: None,
            // Whoever stirred it is not in its way.
            waker: Waker::Unknown,
            ..wait.clone()
        })
    }
}

/// A connection that the loop is making, of what it polls: nothing can be asked on it before it is made.
fn connecting_in(set: &WaitMemory, objects: &ObjectCache) -> Option<ObjectId> {
    let mut polled = set.polled.iter().filter_map(|fd| fd.object);
    polled.find(|id| objects.object(Some(*id)).is_some_and(is_connecting))
}

/// Whether a call waits for several things, for so long at most.
pub(super) fn polls(call: &Call) -> bool {
    system_calls::is(call, Does::Polls | Does::WaitsForEpoll)
}

/// Whether a call is one of an event loop.
fn is_epoll(call: &Call) -> bool {
    system_calls::is(call, Does::WaitsForEpoll)
}
