//! The objects and kernel stacks that events refer to, and what such evidence was told to mean.
//!
//! Most waits are like one just before: the same call on the same object, ended by a thread of the run in
//! the same call. What those were for is remembered, so their length and who that thread was must not
//! matter to the judgement. A wait that ended otherwise is judged anew each time, because its length says
//! whether its time ran out, and so is one whose memory was read.

use super::numbers::{NumberHasher, NumberMap};
use super::what::WhatId;
use crate::classify::{Classified, Site};
use holdup_evidence::network::NameAsked;
use holdup_evidence::{
    Call, Cause, KernelLock, KernelStackId, LockHolder, Object, ObjectId, ObjectKind, SocketAddress,
    TaskState, Wait, WaitMemory, Waker,
};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

/// Objects kept. The half that nobody has used for longest is forgotten when there are more: some 300 bytes
/// each.
const MAX_OBJECTS: usize = 65_536;

/// Sockets whose last question is kept: more than a program has resolvers at work.
const MAX_NAMES: usize = 4096;

/// Remembered classifications, some 150 bytes each.
const CACHE: usize = 4096;

/// What the kernel shows of a wait, as classification reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) what: WhatId,
    pub(super) cause: Cause,
    pub(super) timed_out: bool,
    pub(super) bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Evidence {
    call: Call,
    state: TaskState,
    iowait: bool,
    object: Option<ObjectId>,
    ready: Option<ObjectId>,
    stack: Option<KernelStackId>,
    /// The number of the call that the waker was in.
    waker: i32,
}

/// What was described so far.
#[derive(Debug, Clone)]
pub(super) struct ObjectCache {
    objects: NumberMap<ObjectId, (Object, u64)>,
    /// Counts uses of objects, to know which are old.
    uses: u64,
    kernel_stacks: NumberMap<KernelStackId, Vec<String>>,
    cache: Vec<Option<(Evidence, Reading)>>,
    /// The last question to a name server by the socket's inode number.
    names: HashMap<u64, NameAsked>,
}

impl ObjectCache {
    /// With nothing seen.
    pub(super) fn new() -> ObjectCache {
        ObjectCache {
            objects: NumberMap::default(),
            uses: 0,
            kernel_stacks: NumberMap::default(),
            cache: vec![None; CACHE],
            names: HashMap::new(),
        }
    }

    /// An object is described.
    pub(super) fn object_seen(&mut self, id: ObjectId, mut object: Object) {
        if let Some(asked) = self.names.get(&object.inode) {
            name_server_of(&mut object, asked);
        }
        if self.objects.len() >= MAX_OBJECTS {
            let mut uses: Vec<u64> = self.objects.values().map(|entry| entry.1).collect();
            let (_, middle, _) = uses.select_nth_unstable(MAX_OBJECTS / 2);
            let middle = *middle;
            self.objects.retain(|_, entry| entry.1 > middle);
        }
        self.uses += 1;
        self.objects.insert(id, (object, self.uses));
    }

    /// A name was asked for.
    pub(super) fn name_asked(&mut self, asked: &NameAsked) {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(&asked.socket) {
            self.names.clear();
        }
        self.names.insert(asked.socket, asked.clone());
    }

    /// A kernel stack is described.
    pub(super) fn kernel_stack_seen(&mut self, id: KernelStackId, frames: Vec<String>) {
        self.kernel_stacks.insert(id, frames);
    }

    /// The frames of a kernel stack.
    pub(super) fn kernel_stack(&self, id: KernelStackId) -> Option<&[String]> {
        self.kernel_stacks.get(&id).map(Vec::as_slice)
    }

    /// An object by id.
    pub(super) fn object(&self, id: Option<ObjectId>) -> Option<&Object> {
        self.objects.get(&id?).map(|entry| &entry.0)
    }

    /// Notes that objects are in use.
    pub(super) fn used(&mut self, ids: impl IntoIterator<Item = ObjectId>) {
        for id in ids {
            if let Some(entry) = self.objects.get_mut(&id) {
                self.uses += 1;
                entry.1 = self.uses;
            }
        }
    }

    /// What a wait was for: remembered, or asked of `classify` and given a number by `enter`.
    pub(super) fn tell(
        &mut self,
        wait: &Wait,
        memory: Option<&WaitMemory>,
        stack: Option<KernelStackId>,
        classify: fn(&Site) -> Classified,
        enter: impl FnOnce(Classified) -> WhatId,
    ) -> Reading {
        let evidence = match &wait.waker {
            Waker::Thread { call, .. } if memory.is_none() && kernel_lock(wait).is_none() => Some(Evidence {
                call: wait.call,
                state: wait.state,
                iowait: wait.iowait,
                object: wait.object,
                ready: wait.ready,
                stack,
                waker: call.number,
            }),
            _ => None,
        };
        let slot = evidence.map(|evidence| ObjectCache::slot(&evidence));
        if let (Some(slot), Some(evidence)) = (slot, &evidence)
            && let Some((known, reading)) = &self.cache[slot]
            && known == evidence
        {
            return *reading;
        }
        let polled = memory.into_iter().flat_map(|memory| &memory.polled);
        self.used(
            wait.object
                .into_iter()
                .chain(wait.ready)
                .chain(kernel_lock(wait).and_then(|lock| lock.object))
                .chain(polled.filter_map(|fd| fd.object)),
        );
        let classified = self.classify(wait, memory, stack, classify);
        let reading = Reading {
            cause: classified.cause,
            timed_out: classified.timed_out,
            bytes: classified.bytes,
            what: enter(classified),
        };
        // Which name was asked for is not part of what is remembered.
        if let (Some(slot), Some(evidence)) = (slot, evidence)
            && reading.cause != Cause::NetDns
        {
            self.cache[slot] = Some((evidence, reading));
        }
        reading
    }

    fn classify(
        &self,
        wait: &Wait,
        memory: Option<&WaitMemory>,
        stack: Option<KernelStackId>,
        classify: fn(&Site) -> Classified,
    ) -> Classified {
        let socket = match &wait.waker {
            Waker::Interrupt { socket, .. } => *socket,
            _ => None,
        };
        let objects = |id: ObjectId| self.object(Some(id));
        let mut classified = classify(&Site {
            call: wait.call,
            state: wait.state,
            iowait: wait.iowait,
            object: self.object(wait.object),
            ready: self.object(wait.ready),
            woken_by_socket: self.object(socket),
            kernel_stack: stack.and_then(|stack| self.kernel_stack(stack)),
            kernel_lock: kernel_lock(wait),
            nobody_asked: matches!(wait.holder, Some(LockHolder::NobodyAsked)),
            memory,
            objects: &objects,
            waker: &wait.waker,
            duration: wait.end.saturating_sub(wait.start),
        });
        if classified.cause == Cause::NetDns {
            let polled = memory.into_iter().flat_map(|memory| &memory.polled);
            let ids = [wait.object, wait.ready, socket].into_iter();
            let asked = ids
                .chain(polled.map(|fd| fd.object))
                .find_map(|id| self.names.get(&self.object(id)?.inode));
            if let Some(name) = asked.and_then(|asked| asked.name.as_ref()) {
                classified.resource.detail.name = Some(name.clone());
            }
        }
        classified
    }

    fn slot(evidence: &Evidence) -> usize {
        // The remainder of a number below the cache's size fits a usize.
        (BuildHasherDefault::<NumberHasher>::default().hash_one(evidence) % CACHE as u64) as usize
    }
}

/// What an epoll awaited is not in the thread's memory, and what it returned is nowhere else.
pub(super) fn joined(memory: Option<&WaitMemory>, asked: Option<&WaitMemory>) -> Option<WaitMemory> {
    let (memory, asked) = (memory.filter(|memory| memory.polled.is_empty())?, asked?);
    Some(WaitMemory {
        polled: asked.polled.clone(),
        polled_truncated: asked.polled_truncated,
        ..memory.clone()
    })
}

/// The lock in the kernel that a wait was for.
fn kernel_lock(wait: &Wait) -> Option<&KernelLock> {
    match &wait.holder {
        Some(LockHolder::KernelLock(lock)) => Some(lock),
        _ => None,
    }
}

/// A UDP socket that was never connected has no peer; the one that it asked is.
fn name_server_of(object: &mut Object, asked: &NameAsked) {
    const UDP: u16 = 17;
    let ObjectKind::Socket {
        protocol: UDP, peer, ..
    } = &mut object.kind
    else {
        return;
    };
    if matches!(peer, SocketAddress::Inet(peer) if peer.port() == 0) {
        *peer = SocketAddress::Inet(asked.server);
    }
}
