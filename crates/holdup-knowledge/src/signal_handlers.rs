//! Handlers of signals on a stack: what a handler does, and what the signal interrupted.
//!
//! In: a user stack, innermost frame first. Out: its part within a handler, and its part that was interrupted. A handler runs in the middle of
//! whatever its thread did, so that the thread may have taken locks that the handler asks for (signal-safety(7)).

use crate::user_code::{Primitive, primitive};
use holdup_evidence::Frame;

/// What the C library's functions that wait for a lock of its own begin with.
const WAITS_FOR_OWN_LOCK: &str = "__lll_lock_wait";

/// The name of the frame between a handler and what was interrupted: the kernel's call of the handler, under the name that debuggers show.
pub const HANDLER_CALLED: &str = "<signal handler called>";

/// A stack on which a signal's handler runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Handling<'a> {
    /// The handler's frames, innermost first: its own function is the last one.
    pub handler: &'a [Frame],
    /// What the signal interrupted, innermost first.
    pub interrupted: &'a [Frame],
}

impl Handling<'_> {
    /// Whether the handler waits for a lock, and for nothing that somebody signals: a runtime may stop a thread in a handler until another one
    /// posts a semaphore.
    #[must_use]
    pub fn waits_for_lock(&self) -> bool {
        let innermost = self.handler.first().and_then(|frame| frame.symbol.as_deref());
        let own = innermost.is_some_and(|symbol| symbol.starts_with(WAITS_FOR_OWN_LOCK));
        own || matches!(
            primitive(self.handler),
            Some(Primitive::Mutex | Primitive::ReadWriteLock)
        )
    }

    /// Whether the signal came within the file whose function waits for the lock.
    #[must_use]
    pub fn within_one_file(&self) -> bool {
        let file = |frames: &[Frame]| frames.first().and_then(|frame| frame.module.clone());
        file(self.handler).is_some_and(|own| Some(own) == file(self.interrupted))
    }
}

/// The innermost handler that waits for a lock on a stack; `None` where there is none.
#[must_use]
pub fn handling_with_lock(stack: &[Frame]) -> Option<Handling<'_>> {
    handling(stack).filter(Handling::waits_for_lock)
}

/// The innermost handler on a stack; `None` where there is none.
#[must_use]
pub fn handling(stack: &[Frame]) -> Option<Handling<'_>> {
    // No file has a function of this name: what holds it is no code.
    let called = |frame: &Frame| frame.module.is_none() && frame.symbol.as_deref() == Some(HANDLER_CALLED);
    let at = stack.iter().position(called)?;
    Some(Handling {
        handler: stack.get(..at)?,
        interrupted: stack.get(at + 1..)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{HANDLER_CALLED, handling, handling_with_lock};
    use holdup_evidence::Frame;

    #[test]
    fn a_stack_is_split_where_the_kernel_called_the_handler() {
        let frame = |module: Option<&str>, symbol: &str| Frame {
            module: module.map(str::to_owned),
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        };
        let stack = [
            frame(Some("libc.so.6"), "__tz_convert"),
            frame(Some("shop"), "on_alarm"),
            frame(None, HANDLER_CALLED),
            frame(Some("libc.so.6"), "__tzfile_compute"),
            frame(Some("shop"), "main"),
        ];
        let found = handling(&stack).unwrap();
        assert_eq!((found.handler.len(), found.interrupted.len()), (2, 2));
        assert_eq!(found.handler.last().unwrap().symbol.as_deref(), Some("on_alarm"));
        assert_eq!(handling(&stack[3..]), None);
        assert!(
            handling_with_lock(&stack).is_none(),
            "nothing shows that it is a lock"
        );
        let waits = |symbol: &str| [&[frame(Some("libc.so.6"), symbol)], &stack[..]].concat();
        let lock = waits("__lll_lock_wait_private");
        assert!(handling_with_lock(&lock).is_some_and(|found| found.within_one_file()));
        assert!(handling_with_lock(&waits("sem_wait")).is_none());
        // A function of a program that calls itself so is none.
        assert_eq!(handling(&[frame(Some("shop"), HANDLER_CALLED)]), None);
    }
}
