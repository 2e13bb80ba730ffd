//! What a wait of a Go program's thread was for, where it is the runtime's own: threads that have no goroutine to run are
//! parked, and one looks after the others. Neither is a wait of the program.
//!
//! In: the cause that the kernel's side showed, its call, and the user stack. Out: `idle`, where the stack proves it. What
//! goroutines wait for has no thread, and is not seen here.

use super::objects::named;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::{Resource, ResourceKind};

/// Functions below which a thread of the runtime has nothing to do, and what it then waits for.
const IDLE: [(&str, &str); 3] = [
    ("runtime.stopm", "a goroutine to run"),
    ("runtime.sysmon", "its next look at the other threads"),
    ("runtime.templateThread", "a thread to start"),
];

/// The world is stopped for the collector: such a thread is held up, and has nothing to do only by the way.
const STOPPED: &str = "runtime.gcstopm";

/// Frames from the innermost within which one of these is.
const NEAR: usize = 8;

/// What a thread of Go's runtime waited for; `None` where the stack shows no more than the kernel did, or is of another program.
pub(super) fn of_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    let call = call.filter(|call| system_calls::is_named(Some(call), Does::WaitsForFutex | Does::Sleeps))?;
    if !matches!(cause, Cause::LockFutex | Cause::TimerSleep) {
        return None;
    }
    let near = || {
        stack
            .iter()
            .take(NEAR)
            .filter_map(|frame| frame.symbol.as_deref())
    };
    if near().any(|name| name == STOPPED) {
        return None;
    }
    let known = |name: &str| IDLE.iter().find(|(function, _)| *function == name);
    let (_, work) = near().find_map(known)?;
    Some((Cause::Idle, named(ResourceKind::Name, *work).in_call(call)))
}

#[cfg(test)]
mod tests {
    use super::of_stack;
    use holdup_evidence::{Cause, Frame};

    fn stack(symbols: &[&str]) -> Vec<Frame> {
        let frame = |symbol: &&str| Frame {
            module: Some("app".to_owned()),
            symbol: Some((*symbol).to_owned()),
            ..Frame::default()
        };
        symbols.iter().map(frame).collect()
    }

    #[test]
    fn a_thread_of_the_runtime_without_a_goroutine_is_idle() {
        // Go 1.25, a program whose goroutines all wait.
        let parked = [
            "runtime.futex.abi0",
            "runtime.futexsleep",
            "runtime.notesleep",
            "runtime.stopm",
            "runtime.findRunnable",
            "runtime.schedule",
        ];
        let (cause, resource) = of_stack(Cause::LockFutex, Some("futex"), &stack(&parked)).unwrap();
        assert_eq!(
            (cause, resource.name.as_str()),
            (Cause::Idle, "a goroutine to run")
        );
        let looks = ["runtime.usleep.abi0", "runtime.sysmon", "runtime.mstart1"];
        assert!(of_stack(Cause::TimerSleep, Some("nanosleep"), &stack(&looks)).is_some());
    }

    #[test]
    fn a_stop_for_the_collector_and_a_lock_are_no_idleness() {
        let stopped = ["runtime.notesleep", "runtime.stopm", "runtime.gcstopm"];
        let locked = ["runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2"];
        let sleeps = ["runtime.netpoll", "runtime.findRunnable"];
        assert_eq!(of_stack(Cause::LockFutex, Some("futex"), &stack(&stopped)), None);
        assert_eq!(of_stack(Cause::LockFutex, Some("futex"), &stack(&locked)), None);
        assert_eq!(
            of_stack(Cause::TimerSleep, Some("epoll_pwait"), &stack(&sleeps)),
            None
        );
        let other = ["runtime.stopm"];
        assert_eq!(of_stack(Cause::MemPagefault, Some("futex"), &stack(&other)), None);
    }
}
