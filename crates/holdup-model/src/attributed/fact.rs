//! The types of the facts about a resource, and how each is written in a report.

use holdup_evidence::{Cause, Collector, DeviceNumber, Ns};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// A value that a report has as text.
pub(super) trait Text: Sized {
    /// As a report has it.
    fn text(&self) -> Cow<'_, str>;

    /// Reads it back; `None` where it is no such value.
    fn read(text: &str) -> Option<Self>;
}

/// Values of types that write and read themselves.
macro_rules! by_themselves {
    ($($type:ty),*) => {$(
        impl Text for $type {
            fn text(&self) -> Cow<'_, str> {
                self.to_string().into()
            }

            fn read(text: &str) -> Option<$type> {
                text.parse().ok()
            }
        }
    )*};
}

by_themselves!(u16, u32, u64, SocketAddr);

impl Text for String {
    fn text(&self) -> Cow<'_, str> {
        self.as_str().into()
    }

    fn read(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

impl Text for DeviceNumber {
    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }

    fn read(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.split_once(':')?;
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl Text for Cause {
    fn text(&self) -> Cow<'_, str> {
        self.id().into()
    }

    fn read(text: &str) -> Option<Cause> {
        Cause::from_id(text)
    }
}

impl Text for Collector {
    fn text(&self) -> Cow<'_, str> {
        self.name().into()
    }

    fn read(text: &str) -> Option<Collector> {
        const ALL: [Collector; 7] = [
            Collector::Serial,
            Collector::Parallel,
            Collector::Cms,
            Collector::G1,
            Collector::Z,
            Collector::Shenandoah,
            Collector::Epsilon,
        ];
        ALL.into_iter().find(|collector| collector.name() == text)
    }
}

/// A closed set, each value with its text in a report.
macro_rules! closed {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// As a report has it.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl Text for $name {
            fn text(&self) -> Cow<'_, str> {
                self.id().into()
            }

            fn read(text: &str) -> Option<$name> {
                match text {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

closed! {
    /// Of which kind a descriptor is.
    pub enum FdKind {
        /// A character device.
        CharacterDevice = "character device",
        /// A pipe without a name.
        Pipe = "pipe",
        /// A named pipe.
        Fifo = "fifo",
        /// A socket.
        Socket = "socket",
        /// An epoll instance.
        Epoll = "epoll",
        /// An eventfd.
        Eventfd = "eventfd",
        /// A timerfd.
        Timerfd = "timerfd",
        /// A signalfd.
        Signalfd = "signalfd",
        /// An inotify or fanotify instance.
        Inotify = "inotify",
        /// A pidfd.
        Pidfd = "pidfd",
        /// Another anonymous inode.
        Anonymous = "anonymous",
    }

    /// A database server that keeps a table of locks of its own.
    pub enum DatabaseServer {
        /// PostgreSQL.
        Postgresql = "postgresql",
        /// MySQL and MariaDB.
        Mysql = "mysql",
    }

    /// Kinds of locks of Java's.
    pub enum JavaLock {
        /// The monitor of an object.
        Monitor = "monitor",
        /// A lock of `java.util.concurrent`.
        Lock = "lock",
        /// A semaphore of `java.util.concurrent`.
        Semaphore = "semaphore",
        /// A class that is to be initialised.
        Class = "class",
        /// A connection of a pool.
        Pool = "pool",
    }

    /// What another thread of the same JVM does, and this one waits for.
    pub enum Awaits {
        /// It works on a task.
        Task = "task",
        /// It puts something into a queue.
        Queue = "queue",
        /// It takes something out of a queue that is full.
        Room = "room",
        /// It signals a condition.
        Signal = "signal",
    }

    /// Methods by which a thread sleeps that to the kernel waits for a futex with a time limit.
    pub enum SleepsBy {
        /// That of Java.
        ThreadSleep = "Thread.sleep",
        /// That of Ruby.
        KernelSleep = "Kernel#sleep",
    }

    /// What a call that makes a process copies for it.
    pub enum Copies {
        /// The tables of its memory.
        Memory = "its memory",
    }

    /// Signals that stop a process.
    pub enum StopSignal {
        /// By kill.
        Stop = "SIGSTOP",
        /// From the terminal.
        TerminalStop = "SIGTSTP",
        /// For reading from the terminal in the background.
        TerminalRead = "SIGTTIN",
        /// For writing to the terminal in the background.
        TerminalWrite = "SIGTTOU",
        /// One that has no name here.
        Other = "a stop signal",
    }
}

impl StopSignal {
    /// By its number.
    #[must_use]
    pub fn of(number: i32) -> StopSignal {
        match number {
            19 => StopSignal::Stop,
            20 => StopSignal::TerminalStop,
            21 => StopSignal::TerminalRead,
            22 => StopSignal::TerminalWrite,
            _ => StopSignal::Other,
        }
    }
}

/// In what CPU time passes with waiting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spin {
    /// A poll that does not wait.
    PollsWithoutWaiting,
    /// `sched_yield`.
    Yield,
    /// A library's loop in a function without a name.
    Loop(SpinningLibrary),
    /// A function.
    Function(String),
}

closed! {
    /// Libraries whose functions without a name are their waiting.
    pub enum SpinningLibrary {
        /// GNU OpenMP.
        Gomp = "libgomp's waiting loop",
    }
}

impl Spin {
    /// A function that does nothing but wait.
    #[must_use]
    pub fn of_function(name: &str) -> Spin {
        match Spin::Yield.id() == name {
            true => Spin::Yield,
            false => Spin::Function(name.to_owned()),
        }
    }

    /// As a report has it.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Spin::PollsWithoutWaiting => "a poll that does not wait",
            Spin::Yield => "sched_yield",
            Spin::Loop(library) => library.id(),
            Spin::Function(name) => name,
        }
    }
}

impl Text for Spin {
    fn text(&self) -> Cow<'_, str> {
        self.id().into()
    }

    fn read(text: &str) -> Option<Spin> {
        let known = [Spin::PollsWithoutWaiting, Spin::Yield]
            .into_iter()
            .find(|spin| spin.id() == text);
        Some(match (known, SpinningLibrary::read(text)) {
            (Some(known), _) => known,
            (None, Some(library)) => Spin::Loop(library),
            (None, None) => Spin::Function(text.to_owned()),
        })
    }
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Disk {
    /// By number.
    Number(DeviceNumber),
    /// By name.
    Name(String),
}

impl Disk {
    /// Its number, where it is known by that.
    #[must_use]
    pub fn number(&self) -> Option<DeviceNumber> {
        match self {
            Disk::Number(number) => Some(*number),
            Disk::Name(_) => None,
        }
    }
}

/// The other end of a socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Peer {
    /// By address and port.
    Address(SocketAddr),
    /// As an artefact names it.
    Name(String),
}

/// A name server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Server {
    /// By address.
    Address(IpAddr),
    /// As an artefact names it.
    Name(String),
}

/// Where a lock is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// In memory.
    Memory(u64),
    /// By the id that a dump gives it.
    Id(String),
}

impl Text for Address {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Address::Memory(address) => format!("{address:#x}").into(),
            Address::Id(id) => id.as_str().into(),
        }
    }

    fn read(text: &str) -> Option<Address> {
        let number = text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Address::Memory);
        let exact = number.filter(|address| address.text() == text);
        Some(exact.unwrap_or_else(|| Address::Id(text.to_owned())))
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Address {
        <Address as Text>::read(text).unwrap_or_else(|| Address::Id(text.to_owned()))
    }
}

/// Values that are of a type where they can be, and else a name.
macro_rules! or_a_name {
    ($($name:ident::$variant:ident of $type:ty),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $name::$variant(value) => value.fmt(f),
                    $name::Name(name) => f.write_str(name),
                }
            }
        }

        impl Text for $name {
            fn text(&self) -> Cow<'_, str> {
                match self {
                    $name::$variant(value) => value.to_string().into(),
                    $name::Name(name) => name.as_str().into(),
                }
            }

            fn read(text: &str) -> Option<$name> {
                let value = <$type as Text>::read(text).filter(|value| value.to_string() == text);
                Some(value.map_or_else(|| $name::Name(text.to_owned()), $name::$variant))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                <$name as Text>::read(text).unwrap_or_else(|| $name::Name(text.to_owned()))
            }
        }
    )*};
}

by_themselves!(IpAddr);
or_a_name!(Disk::Number of DeviceNumber, Peer::Address of SocketAddr, Server::Address of IpAddr);

/// How much time a kind of interrupt took. A report has it in milliseconds with one digit after the point, and what is read back
/// from there is no more exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InterruptTime(pub Ns);

impl Text for InterruptTime {
    fn text(&self) -> Cow<'_, str> {
        format!("{:.1} ms", self.0 as f64 / 1e6).into()
    }

    fn read(text: &str) -> Option<InterruptTime> {
        let (whole, tenth) = text.strip_suffix(" ms")?.split_once('.')?;
        let tenths = whole.parse::<Ns>().ok()?.checked_mul(10)?;
        let tenths = tenths.checked_add(tenth.parse().ok()?)?;
        Some(InterruptTime(tenths.checked_mul(100_000)?))
    }
}
