//! What a wait of a Ruby program's thread was for, where Ruby waits by its own means: to the kernel a sleep, a `Mutex` and a `Queue` are
//! all a futex, or a poll of an eventfd through which the interpreter is woken for signals.
//!
//! In: the cause that the kernel's side showed, its call, and the user stack. Out: the cause that takes its place, and what is waited for,
//! where the innermost method is one of Ruby's own that waits, and nothing but the interpreter lies between it and the kernel.

use super::objects::named;
use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::user_code::of_c_library;
use holdup_model::attributed::{Common, Resource, ResourceKind};

/// What a method that is written in C waits for.
#[derive(Clone, Copy)]
enum Waits {
    /// Time to pass.
    Time,
    /// A lock that another thread has.
    Lock(&'static str),
    /// Something that another thread does.
    Thread(&'static str),
}

const MUTEX: Waits = Waits::Lock("a Mutex of Ruby");
const MONITOR: Waits = Waits::Lock("a Monitor of Ruby");
const QUEUE: Waits = Waits::Thread("something in a Queue of Ruby");

/// Methods of `Kernel`, `Thread`, `Mutex`, `Monitor`, `Queue` and `SizedQueue` that wait.
const WAITS: [(&str, Waits); 16] = [
    ("sleep", Waits::Time),
    ("lock", MUTEX),
    ("synchronize", MUTEX),
    ("enter", MONITOR),
    ("mon_enter", MONITOR),
    ("mon_synchronize", MONITOR),
    ("join", Waits::Thread("the end of a thread of Ruby")),
    ("value", Waits::Thread("the end of a thread of Ruby")),
    ("wait", CONDITION),
    ("pop", QUEUE),
    ("shift", QUEUE),
    ("deq", QUEUE),
    ("push", ROOM),
    ("enq", ROOM),
    ("<<", ROOM),
    ("stop", Waits::Thread("another thread of Ruby to wake it")),
];
const ROOM: Waits = Waits::Thread("room in a SizedQueue of Ruby");
const CONDITION: Waits = Waits::Thread("a ConditionVariable of Ruby");

/// The method by which a condition variable gives its mutex back and sleeps.
const GIVES_BACK: &str = "sleep";

/// The standard library's module that has monitors.
const MONITORS: &str = "monitor.so";

/// What a thread of a Ruby program waited for; `None` where the stack shows no more than the kernel did, or is of another program.
pub(super) fn told(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    if !matches!(cause, Cause::IpcQueue | Cause::LockFutex | Cause::TimerSleep) {
        return None;
    }
    let inner = stack.iter().position(|frame| frame.language == Language::Ruby)?;
    let module = stack.get(inner)?.module.as_deref();
    // An extension's own wait is not Ruby's.
    let own = |frame: &Frame| {
        let of = frame.module.as_deref();
        of_c_library(frame) || of == module || of == Some(MONITORS)
    };
    if !stack.iter().take(inner).all(own) {
        return None;
    }
    let mut methods = stack
        .iter()
        .skip(inner)
        .filter(|frame| frame.language == Language::Ruby)
        .take_while(|frame| frame.file.is_none())
        .map(|frame| frame.symbol.as_deref().unwrap_or_default());
    let known = |name: &str| WAITS.iter().find(|(method, _)| *method == name);
    let (method, waits) = known(methods.next()?)?;
    // What was called for time to pass may be a part of a longer wait.
    let waits = match methods.next().and_then(known) {
        Some((_, outer @ Waits::Thread(_))) if *method == GIVES_BACK => outer,
        _ => waits,
    };
    let call = call.unwrap_or("futex");
    Some(match (waits, cause) {
        // A time limit that passed was a pause.
        (Waits::Time | Waits::Thread(_), Cause::TimerSleep) => return None,
        (Waits::Time, _) => (Cause::TimerSleep, Resource::of(Common::Timer).in_call(call)),
        // Ruby looks for deadlocks now and then while it waits for a lock: that is the same wait.
        (Waits::Lock(name) | Waits::Thread(name), _) => {
            (Cause::LockFutex, named(ResourceKind::Lock, *name).in_call(call))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::told;
    use holdup_evidence::{Cause, Frame, Language};

    fn stack(natives: &[&str], methods: &[(&str, Option<&str>)]) -> Vec<Frame> {
        let native = |module: &&str| Frame {
            module: Some((*module).to_owned()),
            ..Frame::default()
        };
        let method = |(name, file): &(&str, Option<&str>)| Frame {
            symbol: Some((*name).to_owned()),
            module: Some("libruby-3.1.so.3.1.2".to_owned()),
            file: file.map(str::to_owned),
            language: Language::Ruby,
            ..Frame::default()
        };
        natives
            .iter()
            .map(native)
            .chain(methods.iter().map(method))
            .collect()
    }

    fn shown(cause: Cause, stack: &[Frame]) -> Option<(Cause, String)> {
        told(cause, Some("ppoll"), stack).map(|(cause, resource)| (cause, resource.name.to_string()))
    }

    const NATIVES: [&str; 3] = ["libc.so.6", "libruby-3.1.so.3.1.2", "libruby-3.1.so.3.1.2"];
    const OWN: (&str, Option<&str>) = ("prices", Some("/srv/shop.rb"));

    #[test]
    fn the_method_that_waits_says_for_what() {
        let of = |cause, method| shown(cause, &stack(&NATIVES, &[(method, None), OWN]));
        let (cause, _) = of(Cause::IpcQueue, "sleep").unwrap();
        assert_eq!(cause, Cause::TimerSleep);
        let lock = Some((Cause::LockFutex, "a Mutex of Ruby".to_owned()));
        for cause in [Cause::IpcQueue, Cause::LockFutex, Cause::TimerSleep] {
            assert_eq!(of(cause, "synchronize"), lock);
        }
        let queue = Some((Cause::LockFutex, "something in a Queue of Ruby".to_owned()));
        assert_eq!(of(Cause::IpcQueue, "pop"), queue);
        assert_eq!(of(Cause::TimerSleep, "pop"), None, "its time limit passed");
        assert_eq!(of(Cause::NetReceive, "pop"), None);
        assert_eq!(of(Cause::IpcQueue, "select"), None);
    }

    #[test]
    fn a_condition_variable_sleeps_by_its_mutex() {
        let methods = [("sleep", None), ("wait", None), OWN];
        let condition = Some((Cause::LockFutex, "a ConditionVariable of Ruby".to_owned()));
        assert_eq!(shown(Cause::IpcQueue, &stack(&NATIVES, &methods)), condition);
        let own = [("sleep", None), ("wait", Some("/srv/shop.rb"))];
        let (cause, _) = shown(Cause::IpcQueue, &stack(&NATIVES, &own)).unwrap();
        assert_eq!(
            cause,
            Cause::TimerSleep,
            "a method of the program's own is another one"
        );
    }

    #[test]
    fn methods_of_the_program_and_of_extensions_are_others() {
        let own = stack(&NATIVES, &[("pop", Some("/srv/shop.rb"))]);
        assert_eq!(shown(Cause::IpcQueue, &own), None);
        let extension = ["libc.so.6", "redis_ext.so", "libruby-3.1.so.3.1.2"];
        assert_eq!(
            shown(Cause::LockFutex, &stack(&extension, &[("pop", None), OWN])),
            None
        );
        let monitor = ["libc.so.6", "libruby-3.1.so.3.1.2", "monitor.so"];
        let (cause, _) = shown(Cause::IpcQueue, &stack(&monitor, &[("synchronize", None)])).unwrap();
        assert_eq!(cause, Cause::LockFutex);
        assert_eq!(shown(Cause::LockFutex, &stack(&NATIVES, &[])), None);
    }
}
