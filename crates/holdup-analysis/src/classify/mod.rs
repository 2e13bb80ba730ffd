//! What one wait, or one look at a running thread, was for.
//!
//! In: what the source knows of it, with the objects and stacks it refers to. Out: cause, resource, call.

use crate::attributed::Resource;
use holdup_evidence::facts::SystemFacts;
use holdup_evidence::{Call, Cause, Ns, Object, ObjectId, TaskState, WaitMemory, Waker};

/// What is known of a wait.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The system call the thread was in.
    pub call: Call,
    /// Kind of sleep.
    pub state: TaskState,
    /// Whether the kernel counted it as waiting for I/O.
    pub iowait: bool,
    /// What the call was about.
    pub object: Option<&'a Object>,
    /// epoll: the first descriptor that was ready.
    pub ready: Option<&'a Object>,
    /// The socket that an interrupt had made ready.
    pub woken_by_socket: Option<&'a Object>,
    /// Kernel stack while it slept, innermost first.
    pub kernel_stack: Option<&'a [String]>,
    /// What its memory said afterwards.
    pub memory: Option<&'a WaitMemory>,
    /// Objects by id, for what `memory` refers to.
    pub objects: &'a dyn Fn(ObjectId) -> Option<&'a Object>,
    /// Who or what ended it.
    pub waker: &'a Waker,
    /// How long it was.
    pub duration: Ns,
}

/// What it was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// The cause.
    pub cause: Cause,
    /// What was waited for.
    pub resource: Resource,
    /// Whether it ended because its time ran out.
    pub timed_out: bool,
    /// Bytes asked for, where the call has a length.
    pub bytes: Option<u64>,
    /// The system call by name.
    pub call: Option<&'static str>,
    /// For `unknown`: why.
    pub why_unknown: Option<String>,
}

/// What a wait was for.
#[must_use]
pub fn wait(site: &Site) -> Classified {
    Classified {
        cause: Cause::Unknown,
        resource: Resource::default(),
        timed_out: false,
        bytes: None,
        call: site.call.name(),
        why_unknown: Some("waits are not told apart yet".to_owned()),
    }
}

/// What a running thread was doing.
#[must_use]
pub fn on_cpu(
    call: Call,
    user: bool,
    _object: Option<&Object>,
    _kernel_stack: Option<&[String]>,
) -> Classified {
    Classified {
        cause: if user { Cause::CpuUser } else { Cause::CpuKernel },
        resource: Resource::default(),
        timed_out: false,
        bytes: None,
        call: call.name(),
        why_unknown: None,
    }
}

/// Names what only the machine's facts can name.
pub fn name_resource(_resource: &mut Resource, _cause: Cause, _facts: &SystemFacts) {}
