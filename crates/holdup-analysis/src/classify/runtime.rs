//! Waits that only a user stack can tell: the locks that an interpreter or a runtime makes of futexes.
//!
//! In: the cause that the kernel's side of a wait showed, its call, and the user stack that asked. Out: the cause that
//! takes its place, and what is waited for, where the stack proves it. A wait for such a lock may run out of time and
//! be tried again, as Python's does every 5 ms: it is then no sleep, but the same wait.

use super::objects::{named, with};
use crate::attributed::{Resource, ResourceKind};
use crate::user_code;
use holdup_evidence::{Cause, Frame};

/// What a wait was for by the stack that asked; `None` where the stack says no more than the kernel did.
#[must_use]
pub fn by_user_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    let futex = matches!(call, Some("futex" | "futex_wait" | "futex_waitv"));
    if !futex || !matches!(cause, Cause::LockFutex | Cause::TimerSleep) {
        return None;
    }
    let lock = user_code::interpreter_lock(stack)?;
    let resource = with(named(ResourceKind::Lock, lock), "call", call.unwrap_or("futex"));
    Some((Cause::RuntimeInterpreter, resource))
}

#[cfg(test)]
mod tests {
    use super::by_user_stack;
    use holdup_evidence::{Cause, Frame};

    fn taking() -> Vec<Frame> {
        let frames = [
            ("libc.so.6", Some("pthread_cond_timedwait")),
            ("python3.11", None),
            ("python3.11", Some("PyEval_RestoreThread")),
        ];
        let frame = |(module, symbol): (&str, Option<&str>)| Frame {
            module: Some(module.to_owned()),
            symbol: symbol.map(str::to_owned),
            ..Frame::default()
        };
        frames.map(frame).to_vec()
    }

    #[test]
    fn a_futex_wait_under_the_interpreters_lock_is_for_it_even_if_its_time_ran_out() {
        for cause in [Cause::LockFutex, Cause::TimerSleep] {
            let (told, resource) = by_user_stack(cause, Some("futex"), &taking()).unwrap();
            assert_eq!(told, Cause::RuntimeInterpreter);
            assert_eq!(resource.name, "Python's global interpreter lock");
        }
    }

    #[test]
    fn other_calls_and_causes_stay_what_they_are() {
        assert_eq!(
            by_user_stack(Cause::TimerSleep, Some("clock_nanosleep"), &taking()),
            None
        );
        assert_eq!(by_user_stack(Cause::MemPagefault, Some("futex"), &taking()), None);
        assert_eq!(by_user_stack(Cause::LockFutex, Some("futex"), &[]), None);
    }
}
