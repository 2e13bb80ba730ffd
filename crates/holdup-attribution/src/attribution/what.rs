//! The dictionary of what time was spent on.
//!
//! Threads wait for the same few things over and over: each is described once and counted by number. The
//! dictionary is bounded, whatever names the observed programs invent: beyond its size, and beyond a
//! thread's share of it, things are distinguished by cause, call and kind alone.

use crate::classify::Classified;
use holdup_evidence::Cause;
use holdup_model::attributed::{Detail, Facts};
use holdup_model::attributed::{Resource, ResourceKind};
use std::collections::HashMap;
use std::sync::Arc;

/// Entries distinguished by name. At some 400 bytes each this is 7 MB.
const MAX_NAMED: usize = 16_384;

/// What a runtime stops all its threads for is distinguished however much else there is, for a program with many threads is the one that
/// it hurts most: so many, which is more than there are.
const MAX_STOPS: usize = 64;

/// Which of a thread's counters it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// All time on a CPU: exact, to be split by the classes.
    Cpu,
    /// One class of CPU time: holds samples and no time of its own until the end.
    CpuClass,
    /// Time runnable.
    Queue,
    /// Time whose records were lost.
    Lost,
    /// Time on a CPU that interrupts took.
    Interrupt,
    /// Time runnable with a spent quota.
    Throttled,
    /// Waits.
    Wait,
}

/// What time was spent on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct What {
    /// Which counter.
    pub(super) role: Role,
    /// The cause; for all CPU time that which it has when nothing more is known.
    pub(super) cause: Cause,
    /// The system call by name.
    pub(super) call: Option<&'static str>,
    /// What was waited for.
    pub(super) resource: Resource,
    /// For `unknown`: why.
    pub(super) why_unknown: Option<String>,
}

/// Number of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WhatId(u32);

impl WhatId {
    /// All CPU time of a thread.
    pub(super) const CPU: WhatId = WhatId(0);
    /// All its time runnable.
    pub(super) const QUEUE: WhatId = WhatId(1);
    /// Its lost time.
    pub(super) const LOST: WhatId = WhatId(2);
    /// What interrupts took of its CPU time.
    pub(super) const INTERRUPT: WhatId = WhatId(3);
    /// Its time runnable with a spent quota.
    pub(super) const THROTTLED: WhatId = WhatId(4);
}

/// The dictionary.
#[derive(Debug, Clone)]
pub(super) struct Whats {
    list: Vec<Arc<What>>,
    ids: HashMap<Arc<What>, WhatId>,
    /// How many of them are what a runtime stops all its threads for.
    stops: usize,
}

impl Whats {
    /// With the entries that every thread has.
    pub(super) fn new() -> Whats {
        let mut whats = Whats {
            list: Vec::new(),
            ids: HashMap::new(),
            stops: 0,
        };
        let plain = |role, cause, why: Option<&str>| What {
            role,
            cause,
            call: None,
            resource: Resource::default(),
            why_unknown: why.map(str::to_owned),
        };
        whats.insert(plain(Role::Cpu, Cause::CpuUser, None));
        whats.insert(plain(Role::Queue, Cause::SchedRunqueue, None));
        whats.insert(plain(
            Role::Lost,
            Cause::Unknown,
            Some("the records of these waits were dropped"),
        ));
        whats.insert(plain(Role::Interrupt, Cause::CpuInterrupt, None));
        whats.insert(plain(Role::Throttled, Cause::SchedThrottled, None));
        whats
    }

    fn insert(&mut self, what: What) -> WhatId {
        if let Some(id) = self.ids.get(&what) {
            return *id;
        }
        let id = WhatId(u32::try_from(self.list.len()).expect("the dictionary is bounded"));
        let what = Arc::new(what);
        self.list.push(Arc::clone(&what));
        self.ids.insert(what, id);
        id
    }

    /// The entry for what a classification says.
    pub(super) fn classified(&mut self, role: Role, classified: Classified) -> WhatId {
        self.named(What {
            role,
            cause: classified.cause,
            call: classified.call,
            resource: classified.resource,
            why_unknown: classified.why_unknown,
        })
    }

    /// The same for a TLS handshake: one thing with all connections to a peer, of which each has its own end here.
    pub(super) fn of_handshake(&mut self, id: WhatId) -> WhatId {
        let mut what = self.get(id).clone();
        what.cause = Cause::NetTls;
        what.resource.detail.local = None;
        self.named(what)
    }

    fn named(&mut self, what: What) -> WhatId {
        if let Some(id) = self.ids.get(&what) {
            return *id;
        }
        let room = match stops_all(what.cause) {
            true => self.stops < MAX_STOPS,
            false => self.list.len() < MAX_NAMED,
        };
        if !room {
            return self.insert(coarse(&what));
        }
        self.stops += usize::from(stops_all(what.cause));
        self.insert(what)
    }

    /// The entry that this one is counted under where there are too many.
    pub(super) fn coarse(&mut self, id: WhatId) -> WhatId {
        match self.get(id).role {
            Role::Cpu | Role::Queue | Role::Lost | Role::Interrupt | Role::Throttled => id,
            Role::Wait if stops_all(self.get(id).cause) => id,
            Role::CpuClass | Role::Wait => {
                let what = coarse(self.get(id));
                self.insert(what)
            }
        }
    }

    /// An entry.
    pub(super) fn get(&self, id: WhatId) -> &What {
        &self.list[id.0 as usize]
    }
}

fn stops_all(cause: Cause) -> bool {
    matches!(cause, Cause::RuntimeGc | Cause::RuntimeSafepoint)
}

/// What many things have in common: of files also the device, of which there are few, and a program can't
/// invent any.
fn coarse(what: &What) -> What {
    let detail = &what.resource.detail;
    What {
        role: what.role,
        cause: what.cause,
        call: what.call,
        resource: Resource {
            kind: what.resource.kind,
            name: what.resource.kind.many().to_owned(),
            detail: Detail::from(Facts {
                device: detail.device.clone(),
                file_system: detail.file_system.clone(),
                ..Facts::default()
            }),
        },
        why_unknown: (what.cause == Cause::Unknown).then(|| "several reasons".to_owned()),
    }
}

/// What of an entry a shared path key is distinguished by.
pub(super) type Class = (Role, Cause, Option<&'static str>, ResourceKind);

impl What {
    /// Its class.
    pub(super) fn class(&self) -> Class {
        (self.role, self.cause, self.call, self.resource.kind)
    }
}
