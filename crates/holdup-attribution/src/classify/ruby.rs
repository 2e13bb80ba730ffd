//! What a wait of a Ruby program's thread was for, where Ruby waits by its own means: to the kernel a sleep, a `Mutex` and a `Queue` are
//! all a futex, or a poll of an eventfd through which the interpreter is woken for signals.
//!
//! In: the cause that the kernel's side showed, its call, and the user stack. Out: the cause that takes its place, and what is waited for,
//! where the innermost method is one of Ruby's own that waits, and nothing but the interpreter lies between it and the kernel.

use super::objects::named;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::handlers::has_request;
use holdup_knowledge::ruby::{Awaited, awaited};
use holdup_model::attributed::{Common, Resource, ResourceKind, SleepsBy};

/// What a thread of a Ruby program waited for; `None` where the stack shows no more than the kernel did, or is of another program.
pub(super) fn of_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    if !matches!(
        cause,
        Cause::IpcQueue | Cause::LockFutex | Cause::TimerSleep | Cause::Idle
    ) {
        return None;
    }
    let awaited = awaited(stack)?;
    // A thread of a server that is parked so has no work; who makes something for others, takes a lock, or is in a handler, has some.
    // Who hands a client what comes, as it comes, takes that from a queue.
    let in_handler = || awaited != Awaited::Item && has_request(stack);
    let has_work = || awaited.is_lock() || awaited == Awaited::Room || in_handler();
    if cause == Cause::Idle && !has_work() {
        return None;
    }
    let call = call.unwrap_or("futex");
    match (awaited, awaited.words(), cause) {
        (Awaited::Time, ..) | (_, None, _) => {
            let timer = Resource::of(Common::Timer).in_call(call);
            let timer = timer.with(|facts| facts.sleeps = Some(SleepsBy::KernelSleep));
            Some((Cause::TimerSleep, timer))
        }
        (Awaited::Child, Some(words), _) => {
            let child = named(ResourceKind::Process, words).in_call(call);
            Some((Cause::ProcessChild, child))
        }
        // A time limit that passed was a pause.
        (awaited, _, Cause::TimerSleep) if !awaited.is_lock() => None,
        // Ruby looks for deadlocks now and then while it waits for a lock: that is the same wait.
        (_, Some(words), _) => {
            let lock = named(ResourceKind::Lock, words).in_call(call);
            Some((Cause::LockFutex, lock))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_stack;
    use holdup_evidence::{Cause, Frame, Language};
    use holdup_model::attributed::SleepsBy;

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
        of_stack(cause, Some("ppoll"), stack).map(|(cause, resource)| (cause, resource.name.to_string()))
    }

    const NATIVES: [&str; 3] = ["libc.so.6", "libruby-3.1.so.3.1.2", "libruby-3.1.so.3.1.2"];
    const OWN: (&str, Option<&str>) = ("prices", Some("/srv/shop.rb"));

    #[test]
    fn the_method_that_waits_says_for_what() {
        let of = |cause, method| shown(cause, &stack(&NATIVES, &[(method, None), OWN]));
        let sleeps = stack(&NATIVES, &[("sleep", None), OWN]);
        // A thread that is not the first sleeps on a futex with a time limit.
        for cause in [Cause::IpcQueue, Cause::LockFutex, Cause::TimerSleep] {
            let (cause, timer) = of_stack(cause, Some("futex"), &sleeps).unwrap();
            assert_eq!(cause, Cause::TimerSleep);
            assert_eq!(timer.detail.sleeps, Some(SleepsBy::KernelSleep));
        }
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
    fn who_has_something_in_hand_is_not_idle() {
        let of = |method| shown(Cause::Idle, &stack(&NATIVES, &[(method, None), OWN]));
        for method in ["push", "<<", "enq"] {
            let room = "room in a SizedQueue of Ruby".to_owned();
            assert_eq!(of(method), Some((Cause::LockFutex, room)), "{method}");
        }
        let lock = "a Mutex of Ruby".to_owned();
        assert_eq!(of("synchronize"), Some((Cause::LockFutex, lock)));
        for method in ["pop", "sleep", "join", "system"] {
            assert_eq!(of(method), None, "{method}: of a pool's worker, of a main thread");
        }
    }

    #[test]
    fn who_is_in_a_handler_is_not_idle_but_for_the_next_item_of_a_queue() {
        let server = "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/request.rb";
        let of = |method| {
            let methods = [(method, None), OWN, ("handle_request", Some(server))];
            shown(Cause::Idle, &stack(&NATIVES, &methods)).map(|(cause, _)| cause)
        };
        assert_eq!(of("pop"), None);
        assert_eq!(of("join"), Some(Cause::LockFutex));
        assert_eq!(of("sleep"), Some(Cause::TimerSleep));
        assert_eq!(of("system"), Some(Cause::ProcessChild));
        // Between two requests.
        let worker = [("pop", None), ("block in spawn_thread", Some(server))];
        assert_eq!(shown(Cause::Idle, &stack(&NATIVES, &worker)), None);
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
    fn the_end_of_a_child_is_no_lock() {
        for method in ["wait", "wait2", "waitpid", "system"] {
            let (cause, _) = shown(Cause::IpcQueue, &stack(&NATIVES, &[(method, None), OWN])).unwrap();
            assert_eq!(cause, Cause::ProcessChild, "{method}");
        }
        let condition = [("sleep", None), ("wait", None), OWN];
        let (cause, _) = shown(Cause::LockFutex, &stack(&NATIVES, &condition)).unwrap();
        assert_eq!(cause, Cause::LockFutex);
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
