//! Which locks Java threads wait for, and who has them.
//!
//! In: the machine's list of threads, while they wait. Out: for each that waits for a lock with an owner, what the lock is,
//! and the owner. Two kinds of locks have one: monitors (`synchronized`), of which a thread names the one that it wants to
//! enter; and locks of `java.util.concurrent`, which a parked thread names as what blocks it, and which name their owner
//! themselves. A class that another thread initialises is one too (`classes.rs`). What a thread waits for otherwise (a condition, a
//! semaphore, an empty queue) has no owner, and is left out.
//!
//! A monitor names its owner in one of four ways: by the address of its thread, by a place on its stack (up to JDK 21), by
//! a number that Java gives threads (JDK 24 and later), or not at all, where a thread had locked the object before others
//! came: then it is in that thread's own short list of locks.

use crate::classes;
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::oops::Oops;
use crate::structures::Structures;
use crate::threads::Fields as Threads;
use std::collections::HashMap;

/// Places of a thread's list of locks.
const LOCKS_MAX: u64 = 16;

/// What a monitor has for an owner that is not known to it.
const ANONYMOUS: u64 = 1;

/// The class under all locks of `java.util.concurrent` that have one owner.
const OWNED: &str = "java.util.concurrent.locks.AbstractOwnableSynchronizer";

/// Classes above a class that are looked at.
const SUPERS_MAX: usize = 16;

/// Bits of an object's first word that say how it is locked, and what they are where nobody has locked it.
const LOCK_BITS: u64 = 3;
const UNLOCKED: u64 = 1;

/// Where everything is.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pending: u64,
    /// The monitor whose notification a thread waits for, where the tables tell.
    waiting: Option<u64>,
    stack_base: u64,
    stack_size: u64,
    /// The number that Java gives a thread.
    number: Option<u64>,
    /// A thread's own list of locks: where it ends (bytes from the thread's beginning), and where it begins.
    locks: Option<(u64, u64)>,
    monitor_object: u64,
    monitor_owner: u64,
    /// In `java.lang.Thread`: what blocks it, and the address of its structure.
    blocker: u64,
    thread: u64,
    super_class: u64,
    hash: Option<(u32, u64)>,
    classes: Option<classes::Fields>,
}

/// Which kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// A monitor.
    Monitor,
    /// A lock of `java.util.concurrent`.
    Lock,
    /// A class, until it is initialised.
    Class,
}

/// How a lock was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum How {
    /// In the machine's structures, from outside.
    Structures,
    /// The machine said so.
    Dump,
}

/// A lock that a thread waited for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sighting {
    /// How it was seen.
    pub how: How,
    /// Which kind.
    pub kind: Kind,
    /// Who waited: the thread's id in its own pid namespace.
    pub tid: u32,
    /// The class of the lock's object. Hostile text.
    pub class: String,
    /// What tells the object from others of its class; 0 where nothing does that stays.
    pub identity: u64,
    /// Who had it: a thread's id in that pid namespace; `None` where that could not be determined.
    pub owner: Option<u32>,
}

/// What threads wait for, as a look found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    /// Locks with an owner.
    pub locks: Vec<Sighting>,
    /// Who waits for whose end: ids in their pid namespace.
    pub joins: Vec<(u32, u32)>,
}

/// Who is who among the threads that were looked at.
struct Everyone<'a> {
    threads: &'a [u64],
    /// How far into the objects of a class their owner is; none: they have none. Of a lock that several may read also the one of these that
    /// began.
    owned: HashMap<u64, Vec<u64>>,
    /// Who has monitors that were looked at: of a thousand that wait for one, each would look through all threads.
    owners: HashMap<u64, Option<u64>>,
}

impl Fields {
    pub(crate) fn read<S: Source>(
        memory: &mut Memory<S>,
        tables: &Structures,
        layout: &Layout,
        oops: &Oops,
        threads: &Threads,
    ) -> Option<Fields> {
        let of = |field| tables.of_thread(field);
        let locks = of("_lock_stack").and_then(|stack| {
            Some((
                stack + tables.offset("LockStack", "_top")?,
                stack + tables.offset("LockStack", "_base[0]")?,
            ))
        });
        let hash = || {
            let shift = u32::try_from(tables.constant("markWord::hash_shift")?).ok()?;
            let mask = tables.constant("markWord::hash_mask")?.cast_unsigned();
            (shift < 64).then_some((shift, mask))
        };
        Some(Fields {
            pending: of("_current_pending_monitor")?,
            waiting: of("_current_waiting_monitor"),
            stack_base: of("_stack_base")?,
            stack_size: of("_stack_size")?,
            number: of("_monitor_owner_id"),
            locks,
            monitor_object: tables.offset("ObjectMonitor", "_object")?,
            monitor_owner: tables.offset("ObjectMonitor", "_owner")?,
            blocker: oops.field(memory, layout, oops.thread, "parkBlocker")?,
            thread: oops.field(memory, layout, oops.thread, "eetop")?,
            super_class: tables.offset("Klass", "_super")?,
            hash: hash(),
            classes: classes::Fields::read(memory, tables, layout, oops, threads),
        })
    }

    /// What threads wait for now.
    pub(crate) fn look<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        fields: &Threads,
    ) -> Found {
        let threads = fields.all(memory).unwrap_or_default();
        self.ahead(memory, oops, fields, &threads);
        let mut everyone = Everyone {
            threads: &threads,
            owned: HashMap::new(),
            owners: HashMap::new(),
        };
        let mut found = Found::default();
        for thread in &threads {
            let sighting = self
                .monitor(memory, layout, oops, fields, &mut everyone, *thread)
                .or_else(|| self.lock(memory, layout, oops, fields, &mut everyone, *thread))
                .or_else(|| self.class(memory, layout, oops, fields, &everyone, *thread));
            if sighting.is_none() {
                let joined = self.joined(memory, oops, fields, &threads, *thread);
                found.joins.extend(joined);
            }
            found.locks.extend(sighting);
        }
        found
    }

    /// Copies together what is going to be read of each thread: its structure, its handle, its object.
    fn ahead<S: Source>(&self, memory: &mut Memory<S>, oops: &Oops, fields: &Threads, threads: &[u64]) {
        let parts = |thread: &u64| [thread.checked_add(self.pending), fields.handle(*thread)];
        memory.ahead(threads.iter().flat_map(parts).flatten());
        let handles = threads
            .iter()
            .filter_map(|thread| memory.pointer(fields.handle(*thread)?));
        let handles: Vec<u64> = handles.collect();
        memory.ahead(handles.iter().copied());
        let objects = handles
            .iter()
            .filter_map(|slot| oops.of_handle(memory, *slot)?.checked_add(self.blocker));
        let objects: Vec<u64> = objects.collect();
        memory.ahead(objects);
    }

    /// The monitor that a thread wants to enter.
    fn monitor<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        fields: &Threads,
        everyone: &mut Everyone<'_>,
        thread: u64,
    ) -> Option<Sighting> {
        let monitor = memory.pointer(thread.checked_add(self.pending)?)?;
        let slot = memory.pointer(monitor.checked_add(self.monitor_object)?)?;
        let object = oops.of_handle(memory, slot)?;
        let class = oops.class_name(memory, layout, object)?;
        let owner = match everyone.owners.get(&monitor) {
            Some(known) => *known,
            None => {
                let word = memory.word(monitor.checked_add(self.monitor_owner)?)?;
                let owner = everyone.owner(self, memory, word, object);
                everyone.owners.insert(monitor, owner);
                owner
            }
        };
        Some(Sighting {
            how: How::Structures,
            kind: Kind::Monitor,
            tid: fields.tid(memory, thread)?,
            class,
            identity: monitor,
            owner: fields.tid_of_other(memory, owner, thread),
        })
    }

    /// Whose end a thread waits for: a thread that ends notifies those that wait at its own object, and `join` is to wait there.
    fn joined<S: Source>(
        &self,
        memory: &mut Memory<S>,
        oops: &Oops,
        fields: &Threads,
        threads: &[u64],
        thread: u64,
    ) -> Option<(u32, u32)> {
        let monitor = memory.pointer(thread.checked_add(self.waiting?)?)?;
        let slot = memory.pointer(monitor.checked_add(self.monitor_object)?)?;
        let object = oops.of_handle(memory, slot)?;
        let mut class = oops.class(memory, object)?;
        for _ in 0..SUPERS_MAX {
            if class == oops.thread {
                let other = memory.pointer(object.checked_add(self.thread)?)?;
                let lives = threads.contains(&other) && other != thread;
                return lives.then_some((fields.tid(memory, thread)?, fields.tid(memory, other)?));
            }
            class = memory.pointer(class.checked_add(self.super_class)?)?;
        }
        None
    }

    /// The lock of `java.util.concurrent` that a parked thread waits for.
    fn lock<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        fields: &Threads,
        everyone: &mut Everyone<'_>,
        thread: u64,
    ) -> Option<Sighting> {
        let object = fields.object(memory, oops, thread)?;
        let blocker = oops.reference(memory, object.checked_add(self.blocker)?)?;
        let class = oops.class(memory, blocker)?;
        let places = everyone.owned.entry(class).or_insert_with(|| {
            let Some(owned) = self.owned(memory, layout, class) else {
                return Vec::new();
            };
            let alone = oops.field(memory, layout, owned, "exclusiveOwnerThread");
            let reads = oops.field(memory, layout, class, "firstReader");
            alone.into_iter().chain(reads).collect()
        });
        // Without an owner it is no lock, or in nobody's hands.
        let owner = places
            .iter()
            .find_map(|field| oops.reference(memory, blocker.checked_add(*field)?))?;
        let owner = memory.pointer(owner.checked_add(self.thread)?);
        let owner = owner.filter(|owner| everyone.threads.contains(owner));
        let name = oops.class_name(memory, layout, blocker)?;
        Some(Sighting {
            how: How::Structures,
            kind: Kind::Lock,
            tid: fields.tid(memory, thread)?,
            class: lock_class(&name),
            identity: self.hash(memory, blocker).unwrap_or(0),
            owner: fields.tid_of_other(memory, owner, thread),
        })
    }

    /// The class that a thread waits for until another has initialised it.
    fn class<S: Source>(
        &self,
        memory: &mut Memory<S>,
        layout: &Layout,
        oops: &Oops,
        fields: &Threads,
        everyone: &Everyone<'_>,
        thread: u64,
    ) -> Option<Sighting> {
        let object = fields.object(memory, oops, thread)?;
        let classes = self.classes.as_ref()?;
        let awaited = classes.awaited(memory, layout, oops, everyone.threads, (thread, object))?;
        Some(Sighting {
            kind: Kind::Class,
            tid: fields.tid(memory, thread)?,
            class: awaited.name,
            identity: awaited.class,
            owner: fields.tid(memory, awaited.by),
            how: How::Structures,
        })
    }

    /// The class with an owner, at or above a class.
    fn owned<S: Source>(&self, memory: &mut Memory<S>, layout: &Layout, mut class: u64) -> Option<u64> {
        for _ in 0..SUPERS_MAX {
            if crate::methods::class_name(memory, layout, class)? == OWNED {
                return Some(class);
            }
            class = memory.pointer(class.checked_add(self.super_class)?)?;
        }
        None
    }

    /// The number that Java tells an object from others by, where it was ever asked for.
    fn hash<S: Source>(&self, memory: &mut Memory<S>, object: u64) -> Option<u64> {
        let (shift, mask) = self.hash?;
        let mark = memory.word(object)?;
        (mark & LOCK_BITS == UNLOCKED).then_some(mark >> shift & mask)
    }

    /// Whether an object is in a thread's own list of locks.
    fn has_locked<S: Source>(&self, memory: &mut Memory<S>, thread: u64, object: u64) -> Option<bool> {
        let (end, begin) = self.locks?;
        let end = u64::from(memory.int(thread.checked_add(end)?)?);
        let count = (end.checked_sub(begin)? / 8).min(LOCKS_MAX);
        for index in 0..count {
            if memory.word(thread.checked_add(begin + index * 8)?)? == object {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether an address is on a thread's stack.
    fn on_stack<S: Source>(&self, memory: &mut Memory<S>, thread: u64, address: u64) -> Option<bool> {
        let base = memory.word(thread.checked_add(self.stack_base)?)?;
        let size = memory.word(thread.checked_add(self.stack_size)?)?;
        Some((base.checked_sub(size)?..base).contains(&address))
    }
}

impl Everyone<'_> {
    /// The thread that a monitor's word for its owner means.
    fn owner<S: Source>(
        &self,
        fields: &Fields,
        memory: &mut Memory<S>,
        owner: u64,
        object: u64,
    ) -> Option<u64> {
        if owner == 0 {
            return None;
        }
        if self.threads.contains(&owner) {
            return Some(owner);
        }
        let is = |memory: &mut Memory<S>, thread: u64| {
            if owner == ANONYMOUS && fields.locks.is_some() {
                return fields.has_locked(memory, thread, object);
            }
            match fields.number {
                Some(number) => Some(memory.word(thread.checked_add(number)?)? == owner),
                None => fields.on_stack(memory, thread, owner),
            }
        };
        self.threads
            .iter()
            .copied()
            .find(|thread| is(memory, *thread) == Some(true))
    }
}

/// What programs call a lock: not the part of it that does the work.
fn lock_class(name: &str) -> String {
    let parts = ["$NonfairSync", "$FairSync", "$Sync"];
    let whole = parts.into_iter().find_map(|part| name.strip_suffix(part));
    whole.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::lock_class;

    #[test]
    fn locks_are_called_what_programs_call_them() {
        let lock = "java.util.concurrent.locks.ReentrantLock";
        assert_eq!(lock_class(&format!("{lock}$NonfairSync")), lock);
        assert_eq!(lock_class("com.shop.Latch$Inner"), "com.shop.Latch$Inner");
    }
}
