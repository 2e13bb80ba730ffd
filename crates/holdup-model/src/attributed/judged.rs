//! Who decided what a wait was for, and by what evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A judge of waits: one kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// The kernel: the stack, the system call and its object.
    Kernel,
    /// The state of a connection's TLS handshake.
    Tls,
    /// A runtime that names the lock.
    RuntimeLock,
    /// The state of a Java virtual machine.
    Jvm,
    /// A request that its server answers when a timer expires.
    ServerTimer,
    /// Whether the thread waited for work.
    Idle,
    /// The user stack that asked. It is known only at the end.
    UserStack,
    /// The thread's other waits. They are known only at the end.
    OtherWaits,
}

impl Judge {
    /// Its name in a report.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Judge::Kernel => "kernel",
            Judge::Tls => "TLS",
            Judge::RuntimeLock => "runtime lock",
            Judge::Jvm => "JVM",
            Judge::ServerTimer => "server timer",
            Judge::Idle => "idle",
            Judge::UserStack => "user stack",
            Judge::OtherWaits => "other waits",
        }
    }
}

/// How much the evidence shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// What the wait was for.
    Purpose,
    /// Only how the thread waited. Any judge that knows the purpose knows better.
    Mechanism,
}

/// The evidence that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The kernel stack of the wait.
    KernelStack,
    /// The kernel stack of a longer wait in the same call on the same object.
    SimilarKernelStack,
    /// The system call and its object. No kernel stack was taken.
    SystemCall,
    /// The connection is in a TLS handshake.
    TlsHandshake,
    /// The runtime names the lock.
    LockNamed,
    /// The JVM had stopped its threads.
    JvmStopped,
    /// A thread of the JVM itself has no work.
    JvmAtRest,
    /// No tool asks the JVM.
    NoToolAsks,
    /// The server answers requests when this timer expires.
    AnsweredByTimer,
    /// Only a client can end the wait.
    NoClient,
    /// The thread has no request in flight and no work.
    NoWork,
    /// The functions on the user stack.
    Functions,
    /// The thread's other waits are for this.
    SameThread,
}

impl Reason {
    /// The same in a few words.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Reason::KernelStack => "kernel stack",
            Reason::SimilarKernelStack => "kernel stack of a longer wait in the same call",
            Reason::SystemCall => "system call and object, no kernel stack",
            Reason::TlsHandshake => "the connection is in a TLS handshake",
            Reason::LockNamed => "the runtime names the lock",
            Reason::JvmStopped => "the JVM had stopped its threads",
            Reason::JvmAtRest => "a thread of the JVM itself has no work",
            Reason::NoToolAsks => "no tool asks the JVM",
            Reason::AnsweredByTimer => "the server answers requests when this timer expires",
            Reason::NoClient => "only a client can end the wait",
            Reason::NoWork => "no request in flight and no work",
            Reason::Functions => "functions on the user stack",
            Reason::SameThread => "the thread's other waits are for this",
        }
    }
}

/// Who judged a wait, and why so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct JudgedBy {
    /// The judge that decided.
    pub judge: Judge,
    /// By what evidence.
    pub reason: Reason,
    /// How much that evidence shows.
    pub certainty: Certainty,
}

impl JudgedBy {
    /// The functions on the user stack decided.
    pub const USER_STACK: JudgedBy = JudgedBy {
        judge: Judge::UserStack,
        reason: Reason::Functions,
        certainty: Certainty::Purpose,
    };
    /// The other waits of the thread decided.
    pub const OTHER_WAITS: JudgedBy = JudgedBy {
        judge: Judge::OtherWaits,
        reason: Reason::SameThread,
        certainty: Certainty::Purpose,
    };
}
