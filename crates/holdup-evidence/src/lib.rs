//! The model of what holdup saw.
//!
//! A live source (BPF today; `/proc` sampling later) turns what it observes into a stream of
//! [`Event`]s and a set of [`SystemFacts`]; artefacts become [`Observed`]. Evidence holds what was seen and never what we think of it:
//! causes are assigned by `holdup-attribution`, which reads nothing but these types. Everything here is
//! plain data, so that a recording is the same stream written down.

pub mod arch;
mod attached;
pub mod budget;
pub mod call;
pub mod cause;
pub mod churn;
mod datagrams;
pub mod event;
mod event_loop;
pub mod facts;
mod finish;
pub mod frame;
pub mod host;
mod host_counters;
mod interpreter_lock;
pub mod jvm;
pub mod loss;
pub mod network;
pub mod object;
pub mod observed;
mod ran_instead;
pub mod randomness;
mod runtime_lock;
mod runtime_task;
mod shared_word;
mod type_layout;
pub mod units;
mod wait;
mod worker_pool;

pub use attached::{
    Adopted, Earlier, GoesOn, OtherEnd, Request, RequestStep, Role, SaidSince, Serving, UntoldRequests,
    Upstream, Words,
};
pub use call::Call;
pub use cause::Cause;
pub use datagrams::{DatagramPeer, Datagrams};
pub use event::{
    Account, AskerSample, Clock, CpuSample, End, Estimated, Event, FUTEX_AT, FUTEX_WORDS, INTERRUPTS, Inside,
    KernelLock, KernelLockKind, LockHolder, LockOwner, OpenState, PolledFd, Seq, SignalSent, Start, TaskName,
    TaskState, ThreadId, Wait, WaitMemory, Waker,
};
pub use event_loop::EventLoop;
pub use facts::SystemFacts;
pub use finish::Finish;
pub use frame::{Frame, KernelStackId, Language, UserStackId};
pub use host_counters::{CpuTicks, HostCounters};
pub use interpreter_lock::{InterpreterLock, InterpreterLockHolder};
pub use jvm::{Collector, Jvm, JvmCounters, JvmDump, JvmPause, JvmStop, PauseWork};
pub use loss::{Loss, LossClass, NotMeasured};
pub use object::{DeviceNumber, Object, ObjectId, ObjectKind, SocketAddress};
pub use observed::Observed;
pub use ran_instead::{Allowed, RanInstead, Scheduling};
pub use runtime_lock::{RuntimeLock, RuntimeLockKind, RuntimeLockSource};
pub use runtime_task::{AwaitedDescriptor, RuntimeTask, TaskChannels, TaskDoes, TaskLook, TaskRuntime};
pub use shared_word::{SharedUser, SharedWord};
pub use type_layout::{BlockingCode, Member, TaskHead, TaskKind, TypeLayout, TypeLayouts, Variant, Variants};
pub use worker_pool::WorkerPool;

/// A duration, or an instant on `CLOCK_MONOTONIC`, in nanoseconds.
pub type Ns = u64;
