//! Resources that have no name of their own: holdup names them, and knows them again by the names here.
//!
//! A report and a recording have the name alone. So the names stand in this file, and who wants to know whether a resource is one of
//! these asks [`Resource::common`]. A name that is worded anew keeps the one before it in [`EARLIER`]: recordings of earlier versions
//! have that.

use super::{Address, Facts, Resource, ResourceKind};
use holdup_evidence::INTERRUPTS;

/// Declares the resources with their kinds and names.
macro_rules! common {
    ($($(#[$doc:meta])* $variant:ident = $kind:ident $name:literal,)*) => {
        /// A resource that holdup names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Common {
            $($(#[$doc])* $variant,)*
        }

        impl Common {
            /// All of them.
            pub const ALL: &'static [Common] = &[$(Common::$variant),*];

            /// Of which kind it is.
            #[must_use]
            pub const fn kind(self) -> ResourceKind {
                match self {
                    $(Common::$variant => ResourceKind::$kind,)*
                }
            }

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Common::$variant => $name,)*
                }
            }
        }
    };
}

common! {
    /// A clock that a thread sleeps by.
    Timer = Kernel "timer",
    /// A signal that a thread waits for.
    Signal = Kernel "a signal",
    /// A child of which no more is known.
    Child = Process "a child",
    /// A program that is started, without its path.
    Program = Kernel "a program",
    /// A pipe or pair of sockets with both ends in the process that waits: one of its threads wakes another by it.
    OwnWakeup = Name "a wakeup by another thread of the process",
    /// A connection that a pool of the program has none of at the moment.
    PooledConnection = Lock "a free connection of a pool",
    /// A socket of which not even the family was seen: it was in no table of the kernel's when they were read.
    UnseenSocket = Socket "a socket whose ends were not seen",
    /// What threads of a JVM wait for until all have stopped.
    JvmReaching = Name "all threads to come to a safepoint",
    /// What a JVM stops its threads for, where it shares no figures: nobody knows whether it collects.
    JvmMayCollect = Name "an operation of its VM thread, which may be a collection",
    /// What threads of a JVM's own wait for.
    JvmOwnWork = Name "work for the virtual machine itself",
    /// Whoever a session of a database answers: the stack says that it is sent to, and not who it is.
    SessionsClient = Socket "its client",
    /// The server that has to have a database's log before a commit is answered.
    Standby = Socket "a synchronous standby",
    /// A row of a table, of which the name says already that another has it.
    LockedRow = Lock "a row that another transaction has locked",
}

/// Names that earlier versions gave to the same.
const EARLIER: [(ResourceKind, &str, Common); 0] = [];

impl Common {
    /// By what a report has.
    fn read(kind: ResourceKind, name: &str) -> Option<Common> {
        let own = Common::ALL.iter().copied();
        let mut own = own.filter(|one| one.kind() == kind && one.name() == name);
        let earlier = EARLIER.iter().find(|(of, text, _)| *of == kind && *text == name);
        own.next().or(earlier.map(|(.., one)| *one))
    }
}

/// Kinds of interrupts, in the order of [`INTERRUPTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interrupt {
    /// Of devices.
    Devices,
    /// Of timers.
    Timers,
    /// Packets that came or left.
    NetworkPackets,
    /// Disk requests that were done.
    DiskCompletions,
    /// Other CPUs asked for something.
    Calls,
    /// The kernel's own.
    Soft,
}

impl Interrupt {
    /// All of them, in that order.
    pub const ALL: [Interrupt; INTERRUPTS.len()] = [
        Interrupt::Devices,
        Interrupt::Timers,
        Interrupt::NetworkPackets,
        Interrupt::DiskCompletions,
        Interrupt::Calls,
        Interrupt::Soft,
    ];

    /// As a report has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        INTERRUPTS[self as usize]
    }
}

impl Resource {
    /// One that holdup names.
    #[must_use]
    pub fn of(common: Common) -> Resource {
        Resource::named(common.kind(), common.name())
    }

    /// A lock of which nothing but its address is known.
    #[must_use]
    pub fn futex(address: u64) -> Resource {
        Resource::named(ResourceKind::Lock, futex_name(address))
            .with(|facts: &mut Facts| facts.address = Some(Address::Memory(address)))
    }

    /// Whether its name is no more than the address of a futex.
    #[must_use]
    pub fn is_futex_alone(&self) -> bool {
        match self.detail.address {
            Some(Address::Memory(address)) => self.name == futex_name(address),
            _ => false,
        }
    }

    /// Which one it is of those that holdup names.
    #[must_use]
    pub fn common(&self) -> Option<Common> {
        Common::read(self.kind, &self.name)
    }

    /// What interrupted most, of time that went to interrupts.
    #[must_use]
    pub fn interrupt(&self) -> Option<Interrupt> {
        let kernel = self.kind == ResourceKind::Kernel;
        let mut all = Interrupt::ALL.into_iter();
        all.find(|kind| kernel && kind.name() == self.name)
    }
}

fn futex_name(address: u64) -> String {
    format!("futex {address:#x}")
}

#[cfg(test)]
mod tests {
    use super::{Common, Interrupt};
    use crate::attributed::{InterruptTime, Resource, ResourceKind};
    use holdup_evidence::INTERRUPTS;

    #[test]
    fn each_is_known_again_by_its_name_and_kind() {
        for common in Common::ALL {
            assert_eq!(Resource::of(*common).common(), Some(*common));
        }
        let file = Resource::named(ResourceKind::File, Common::Timer.name());
        assert_eq!(file.common(), None, "a file may be called so");
    }

    #[test]
    fn each_kind_of_interrupt_has_its_own_time() {
        for (at, kind) in Interrupt::ALL.into_iter().enumerate() {
            let mut resource = Resource::named(ResourceKind::Kernel, kind.name());
            assert_eq!(resource.interrupt(), Some(kind));
            *resource.detail.interrupts_mut()[at] = Some(InterruptTime(1));
            assert!(resource.detail.texts().contains_key(INTERRUPTS[at]));
        }
    }

    #[test]
    fn a_lock_with_another_name_is_more_than_its_address() {
        let futex = Resource::futex(0x7f00);
        assert!(futex.is_futex_alone());
        let named = Resource {
            name: "accounts".to_owned(),
            ..futex
        };
        assert!(!named.is_futex_alone());
    }
}
