//! Waits: what they were for, who ended them, who was in the way.

use super::{call, clock, optional_object, state, task};
use crate::decode::RawEvent;
use crate::skeleton::types as wire;
use holdup_evidence::{Call, KernelLock, KernelLockKind, LockHolder, LockOwner, ThreadId, Wait, Waker};

/// Most bytes that are left out of a stack: 4,096 events of an epoll.
const LEFT_OUT_MAX: usize = 4096 * 12;

pub(super) fn wait(raw: &wire::holdup_wait) -> RawEvent {
    let wait = Box::new(wait_of(raw));
    if wire::holdup_waker(u32::from(raw.waker_kind)) == wire::holdup_waker::HOLDUP_WAKER_NOT_YET {
        RawEvent::OpenWait(wait)
    } else {
        RawEvent::Wait(wait)
    }
}

pub(super) fn wait_of(raw: &wire::holdup_wait) -> Wait {
    let waker = match wire::holdup_waker(u32::from(raw.waker_kind)) {
        wire::holdup_waker::HOLDUP_WAKER_THREAD => Waker::Thread {
            thread: ThreadId(raw.waker_thread),
            clock: clock(raw.waker_clock),
            call: waker_call(raw),
        },
        wire::holdup_waker::HOLDUP_WAKER_OUTSIDE => Waker::Outside {
            task: task(raw.waker),
            call: waker_call(raw),
        },
        wire::holdup_waker::HOLDUP_WAKER_SOFTIRQ => Waker::Interrupt {
            soft: true,
            socket: optional_object(raw.socket),
        },
        wire::holdup_waker::HOLDUP_WAKER_HARDIRQ => Waker::Interrupt {
            soft: false,
            socket: None,
        },
        _ => Waker::Unknown,
    };
    let holder = match wire::holdup_holder(u32::from(raw.holder_kind)) {
        wire::holdup_holder::HOLDUP_HOLDER_FUTEX => Some(LockHolder::FutexWords(raw.holder)),
        wire::holdup_holder::HOLDUP_HOLDER_FILE_LOCK => Some(LockHolder::FileLock { pid: raw.holder[0] }),
        wire::holdup_holder::HOLDUP_HOLDER_PI => owner(raw).map(LockHolder::PiFutex),
        wire::holdup_holder::HOLDUP_HOLDER_TRACER => owner(raw).map(LockHolder::Tracer),
        wire::holdup_holder::HOLDUP_HOLDER_KERNEL_LOCK => Some(LockHolder::KernelLock(kernel_lock(raw))),
        wire::holdup_holder::HOLDUP_HOLDER_NOBODY_ASKED => Some(LockHolder::NobodyAsked),
        _ => None,
    };
    Wait {
        thread: ThreadId(raw.head.thread),
        seq: raw.seq,
        start: raw.start,
        end: raw.end,
        clock: clock(raw.clock),
        state: state(raw.state),
        iowait: raw.iowait != 0,
        call: call(raw.call),
        object: optional_object(raw.object),
        ready: optional_object(raw.ready),
        waker,
        holder,
        kernel_stack: None,
        serves: raw.serves != 0,
        unanswered: optional_object(raw.unanswered),
        memory_follows: raw.memory_follows != 0,
        asked: None,
    }
}

/// One of the places in a record's words on who is in the way.
fn owner_word(raw: &wire::holdup_wait, at: wire::holdup_owner) -> u32 {
    raw.holder.get(at.0 as usize).copied().unwrap_or(0)
}

/// The owner that the kernel names.
fn owner(raw: &wire::holdup_wait) -> Option<LockOwner> {
    let owner = LockOwner {
        tid: owner_word(raw, wire::holdup_owner::HOLDUP_OWNER_TID),
        pid: owner_word(raw, wire::holdup_owner::HOLDUP_OWNER_PID),
    };
    (owner.tid != 0 && owner.pid != 0).then_some(owner)
}

fn kernel_lock(raw: &wire::holdup_wait) -> KernelLock {
    // As the kernel's contention tracepoints have them, `LCB_F_…`.
    const READ: u32 = 1 << 1;
    const RT: u32 = 1 << 3;
    const PERCPU: u32 = 1 << 4;
    const MUTEX: u32 = 1 << 5;
    let flags = owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_FLAGS);
    let space = owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_SPACE);
    KernelLock {
        owner: owner(raw),
        kind: match flags {
            flags if flags & PERCPU != 0 => KernelLockKind::PerCpu,
            flags if flags & (MUTEX | RT) != 0 => KernelLockKind::Mutex,
            _ => KernelLockKind::Semaphore,
        },
        shared: flags & READ != 0,
        address_space: (space != 0).then_some(space),
        object: optional_object(owner_word(raw, wire::holdup_owner::HOLDUP_LOCK_OBJECT)),
    }
}

fn waker_call(raw: &wire::holdup_wait) -> Call {
    if raw.waker_call < 0 {
        Call::none()
    } else {
        Call {
            number: raw.waker_call,
            args: [raw.waker_arg, 0, 0, 0],
        }
    }
}

/// The memory of a stack; zeros stand for what was left out of it.
pub(super) fn stack_of(raw: &wire::holdup_memory) -> Vec<u8> {
    let mut stack: Vec<u8> = raw.stack.iter().take(raw.stack_len as usize).copied().collect();
    let (at, bytes) = (raw.left_out_at as usize, raw.left_out as usize);
    if at <= stack.len() && bytes <= LEFT_OUT_MAX {
        stack.splice(at..at, std::iter::repeat_n(0, bytes));
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::stack_of;
    use crate::skeleton::types as wire;

    #[test]
    fn zeros_stand_for_what_was_left_out_of_a_stack() {
        let mut raw = wire::holdup_memory {
            stack_len: 4,
            left_out_at: 2,
            left_out: 3,
            ..wire::holdup_memory::default()
        };
        raw.stack[..4].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(stack_of(&raw), [1, 2, 0, 0, 0, 3, 4]);
        raw.left_out = u32::MAX;
        assert_eq!(stack_of(&raw), [1, 2, 3, 4], "no array is that large");
        (raw.left_out, raw.left_out_at) = (3, 5);
        assert_eq!(stack_of(&raw), [1, 2, 3, 4], "it is behind the end");
    }
}
