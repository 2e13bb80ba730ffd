//! What is known about a resource beside its name, each fact with its type.
//!
//! Reports and recordings have it as a map from keys to texts. That map is made in this file and read back in this file, and nowhere
//! else: [`Detail::texts`] and [`Detail::read`]. A text that has no type here, of an unknown key or with a value that its type does
//! not know, is kept as it is and written again: another version of holdup may have written it.

use super::fact::{
    Address, Awaits, Copies, DatabaseServer, Disk, FdKind, InterruptTime, JavaLock, Peer, Server, SleepsBy,
    Spin, StopSignal, Text,
};
use holdup_evidence::{Cause, Collector, DeviceNumber};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

/// Declares the facts: each with its key in the map, its field and its type.
macro_rules! facts {
    ($($(#[$doc:meta])* $key:literal $field:ident: $type:ty,)*) => {
        /// The facts. All are optional; which ones there are depends on the kind of the resource and on what was waited for.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Facts {
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// What has no type here, by key.
            pub other: BTreeMap<String, String>,
        }

        impl Facts {
            /// No facts.
            const NONE: Facts = Facts { $($field: None,)* other: BTreeMap::new() };

            /// Takes what `key` says; `None` where it is not known here.
            fn take(&mut self, key: &str, text: &str) -> Option<()> {
                match key {
                    $($key => self.$field = Some(canonical(text)?),)*
                    _ => return None,
                }
                Some(())
            }

            /// All facts as texts.
            fn texts(&self) -> BTreeMap<String, String> {
                let mut all = self.other.clone();
                $(if let Some(value) = &self.$field {
                    all.insert($key.to_owned(), value.text().into_owned());
                })*
                all
            }

            /// Fills in what is not known yet from `others`.
            fn add(&mut self, others: Facts) {
                $(if self.$field.is_none() {
                    self.$field = others.$field;
                })*
                for (key, text) in others.other {
                    self.other.entry(key).or_insert(text);
                }
            }
        }

        impl Hash for Facts {
            fn hash<H: Hasher>(&self, state: &mut H) {
                $(if let Some(value) = &self.$field {
                    $key.hash(state);
                    value.hash(state);
                })*
                self.other.hash(state);
            }
        }
    };
}

facts! {
    /// The address of a futex; of a lock in a dump its id there.
    "address" address: Address,
    /// Whose address space is locked: its process.
    "address_space_of" address_space_of: u32,
    /// The time limit of a poll without descriptors.
    "asked_ms" asked_ms: u32,
    /// How many threads of the process stand in a library for what the wait of that library's thread is for: the frames of who asked are theirs.
    "asks_for_threads" asks_for_threads: u32,
    /// What another thread of the same JVM does, and this one waits for.
    "awaits" awaits: Awaits,
    /// The file behind a loop device.
    "backing_file" backing_file: String,
    /// The call, by name.
    "call" call: String,
    /// The cgroup whose limit it is.
    "cgroup" cgroup: String,
    /// The number of a character device.
    "character_device" character_device: DeviceNumber,
    /// The collector that works beside the program and has not freed memory yet.
    "collector_behind" collector_behind: Collector,
    /// What a call that makes a process copies for it.
    "copies" copies: Copies,
    /// The database server whose own table of locks is waited for.
    "database_lock" database_lock: DatabaseServer,
    /// The descriptors of a poll.
    "descriptors" descriptors: String,
    /// The disk.
    "device" device: Disk,
    /// The device by name.
    "device_name" device_name: String,
    /// The disk of a partition.
    "disk" disk: String,
    /// Of which kind a descriptor is.
    "fd_kind" fd_kind: FdKind,
    /// The file that was waited for, where the resource is what slows it.
    "file" file: String,
    /// The type of its file system, by the kernel's name.
    "file_system" file_system: String,
    /// The kernel's function that waits.
    "function" function: String,
    /// Why a JVM collected, by its own word.
    "gc_cause" gc_cause: String,
    /// The inode of a pipe or a Unix socket.
    "inode" inode: u64,
    /// Of which kind a lock of Java's is.
    "java_lock" java_lock: JavaLock,
    /// A cgroup's memory limit, bytes.
    "limit" limit: u64,
    /// The own end of a socket.
    "local" local: SocketAddr,
    /// The work on memory that is short, done on a CPU, by the cause that a wait for it has.
    "memory_work" memory_work: Cause,
    /// The file that holds a function.
    "module" module: String,
    /// Where its file system is mounted.
    "mount" mount: String,
    /// The host name that was asked for.
    "name" name: String,
    /// What a lock in the kernel belongs to.
    "object" object: String,
    /// What the call was about that spins for a lock in the kernel.
    "of" of: String,
    /// What a JVM stops its threads for, by its own word.
    "operation" operation: String,
    /// The other end of a socket.
    "peer" peer: Peer,
    /// The process at the other end of a Unix socket.
    "peer_pid" peer_pid: u32,
    /// Its name.
    "peer_process" peer_process: String,
    /// The period of a CPU quota, microseconds.
    "period_us" period_us: u64,
    /// The process that is waited for.
    "pid" pid: u32,
    /// The port of the other end of a socket, else of its own.
    "port" port: u16,
    /// The protocol of a socket.
    "protocol" protocol: String,
    /// The quota of CPU time in a period, microseconds.
    "quota_us" quota_us: u64,
    /// Who ran instead.
    "ran" ran: String,
    /// The System V semaphore set, by id.
    "semaphore_set" semaphore_set: u64,
    /// The name server that was asked.
    "server" server: Server,
    /// The kernel's file that sets a limit.
    "setting" setting: String,
    /// The signal that stopped it.
    "signal" signal: StopSignal,
    /// By which method a thread sleeps that to the kernel waits for a futex with a time limit.
    "sleeps" sleeps: SleepsBy,
    /// The kernel's function that takes the spinning lock.
    "spinlock" spinlock: String,
    /// The function or call in which CPU time passes with waiting.
    "spins" spins: Spin,
    /// The variable that holds a lock, by the program's symbols.
    "symbol" symbol: String,
    /// The value of `setting`.
    "value" value: u64,
    /// How many clients stand in the queue of a listener.
    "waiting" waiting: u32,
    /// What was waited for before the limit took its place.
    "was_for" was_for: String,
    /// Time that interrupts of devices took.
    "devices" of_devices: InterruptTime,
    /// Time that timers took.
    "timers" of_timers: InterruptTime,
    /// Time that network packets took.
    "network packets" of_packets: InterruptTime,
    /// Time that completions of disk requests took.
    "disk completions" of_disks: InterruptTime,
    /// Time that calls from other CPUs took.
    "calls from other CPUs" of_calls: InterruptTime,
    /// Time that the kernel's own soft interrupts took.
    "the kernel's own soft interrupts" of_kernel: InterruptTime,
}

/// A value whose text is exactly this one.
fn canonical<T: Text>(text: &str) -> Option<T> {
    T::read(text).filter(|value| value.text() == text)
}

/// What is known about a resource beside its name. It derefs to [`Facts`], and takes no room where there are none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Detail(Option<Box<Facts>>);

impl Detail {
    /// The facts as the report has them.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.0.as_deref().map_or_else(BTreeMap::new, Facts::texts)
    }

    /// The same without the call, which stands elsewhere.
    #[must_use]
    pub fn without_call(&self) -> Detail {
        let mut detail = self.clone();
        detail.call = None;
        detail
    }

    /// Takes one fact as a report has it.
    pub fn read(&mut self, key: String, text: String) {
        if self.take(&key, &text).is_none() {
            self.other.insert(key, text);
        }
    }

    /// Fills in what is not known yet.
    pub fn add(&mut self, others: Facts) {
        Facts::add(self, others);
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        **self == Facts::NONE
    }

    /// How much of the time each kind of interrupt took, where that is known, in the order of the kinds' names.
    #[must_use]
    pub fn interrupts(&self) -> Vec<(&'static str, String)> {
        let mut kinds = self.clone();
        let known = kinds.interrupts_mut().map(|time| *time);
        let mut all: Vec<(&str, String)> = holdup_evidence::INTERRUPTS
            .into_iter()
            .zip(known)
            .filter_map(|(kind, time)| Some((kind, time?.text().into_owned())))
            .collect();
        all.sort_unstable();
        all
    }

    /// The same, in the order of [`holdup_evidence::INTERRUPTS`].
    pub fn interrupts_mut(&mut self) -> [&mut Option<InterruptTime>; holdup_evidence::INTERRUPTS.len()] {
        let facts: &mut Facts = self;
        [
            &mut facts.of_devices,
            &mut facts.of_timers,
            &mut facts.of_packets,
            &mut facts.of_disks,
            &mut facts.of_calls,
            &mut facts.of_kernel,
        ]
    }
}

impl Deref for Detail {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        static NONE: Facts = Facts::NONE;
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Detail {
    fn deref_mut(&mut self) -> &mut Facts {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Detail {
    fn eq(&self, other: &Detail) -> bool {
        **self == **other
    }
}

impl Eq for Detail {}

impl Hash for Detail {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl From<Facts> for Detail {
    fn from(facts: Facts) -> Detail {
        Detail(Some(Box::new(facts)))
    }
}

impl FromIterator<(String, String)> for Detail {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(texts: I) -> Detail {
        let mut detail = Detail::default();
        for (key, text) in texts {
            detail.read(key, text);
        }
        detail
    }
}

impl From<BTreeMap<String, String>> for Detail {
    fn from(texts: BTreeMap<String, String>) -> Detail {
        texts.into_iter().collect()
    }
}

impl From<Detail> for BTreeMap<String, String> {
    fn from(detail: Detail) -> BTreeMap<String, String> {
        detail.texts()
    }
}

impl JsonSchema for Detail {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        <BTreeMap<String, String>>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <BTreeMap<String, String>>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::{Disk, JavaLock, Peer, Spin};
    use super::{Detail, Facts};
    use holdup_evidence::DeviceNumber;
    use std::collections::BTreeMap;

    fn map(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        texts.iter().map(own).collect()
    }

    #[test]
    fn what_a_report_has_is_read_with_its_types_and_written_again() {
        let texts = map(&[
            ("address", "0x7f00"),
            ("asked_ms", "20"),
            ("call", "poll"),
            ("collector_behind", "ZGC"),
            ("device", "8:1"),
            ("fd_kind", "character device"),
            ("java_lock", "monitor"),
            ("memory_work", "mem.reclaim"),
            ("network packets", "2900.0 ms"),
            ("peer", "[2001:db8::2]:443"),
            ("server", "192.0.2.53"),
            ("signal", "SIGTTIN"),
            ("spins", "a poll that does not wait"),
        ]);
        let detail = Detail::from(texts.clone());
        assert!(detail.other.is_empty(), "{:?}", detail.other);
        let device = DeviceNumber { major: 8, minor: 1 };
        assert_eq!(detail.device, Some(Disk::Number(device)));
        assert_eq!(detail.java_lock, Some(JavaLock::Monitor));
        assert!(matches!(detail.peer, Some(Peer::Address(address)) if address.port() == 443));
        assert_eq!(detail.spins, Some(Spin::PollsWithoutWaiting));
        assert_eq!(detail.texts(), texts);
    }

    #[test]
    fn what_has_no_type_is_kept_as_it_is() {
        let texts = map(&[
            ("address", "0x00ff"),
            ("colour", "green"),
            ("device", "sda1"),
            ("fd_kind", "memfd"),
            ("pid", "007"),
            ("port", "70000"),
            ("signal", ""),
            ("timers", "1.25 ms"),
        ]);
        let detail = Detail::from(texts.clone());
        let other: Vec<&str> = detail.other.keys().map(String::as_str).collect();
        assert_eq!(other, ["colour", "fd_kind", "pid", "port", "signal", "timers"]);
        assert_eq!(detail.pid, None);
        assert_eq!(detail.texts(), texts);
    }

    #[test]
    fn facts_that_are_gone_leave_nothing() {
        let mut detail = Detail::from(Facts {
            pid: Some(1),
            ..Facts::default()
        });
        assert_ne!(detail, Detail::default());
        detail.pid = None;
        assert_eq!(detail, Detail::default());
        assert!(detail.is_empty());
    }
}
