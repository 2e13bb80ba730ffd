//! What a wait of a thread of Node.js was for, where the thread is one of V8's or libuv's workers without work.
//!
//! In: the cause that the kernel's side showed, its call, and the user stack. Out: `idle`, where the stack proves it: the worker's own
//! function waits, and not something that it was given to do.

use super::objects::named;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::system_calls::Kind as Does;
use holdup_knowledge::user_code::of_c_library;
use holdup_knowledge::{javascript, system_calls};
use holdup_model::attributed::{Resource, ResourceKind};

/// Beginning of the names of libuv's functions, in which each of these waits.
const LIBUV: &str = "uv_";

/// The functions in which a worker stands without work, each called by the function beside it or one whose name has that in it, and what
/// it then waits for.
const AT_REST: [(&str, &str, &str); 4] = [
    // V8's workers: they compile and collect garbage.
    ("uv_cond_wait", "PlatformWorkerThread", WORK),
    ("uv_cond_wait", "WorkerThreadsTaskRunner", WORK),
    // The one that gives them work after some time.
    ("uv_run", "WorkerThreadsTaskRunner", "its next task that is due"),
    // The one that a signal tells to open a port for debuggers.
    ("uv_sem_wait", "StartIoThread", "a debugger"),
];

/// libuv's worker, which has no prefix.
const LIBUV_WORKER: (&str, &str) = ("uv_cond_wait", "worker");

const WORK: &str = "work from another thread";

/// The program, and the library that it may consist of.
const MODULES: [&str; 3] = ["node", "libnode", "libuv"];

/// What such a thread waited for; `None` where the stack shows no more than the kernel did, or is of another program.
pub(super) fn of_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    let waits = matches!(
        cause,
        Cause::LockFutex | Cause::TimerSleep | Cause::PollWait | Cause::IpcQueue | Cause::IpcPipe
    );
    // Of a pair of sockets it is known who has the other end, and what that waits for.
    let polls = matches!(cause, Cause::PollWait | Cause::IpcQueue | Cause::IpcPipe);
    if polls && javascript::awaits_child(stack) {
        let child = named(ResourceKind::Process, "a child process");
        return Some((Cause::ProcessChild, child.in_call(call.unwrap_or("epoll_wait"))));
    }
    let futex = system_calls::is_named(call, Does::WaitsForFutex);
    let own: Vec<&Frame> = stack.iter().filter(|frame| !of_c_library(frame)).collect();
    let of_node = own.first().is_some_and(|frame| is_of_node(frame));
    if !waits || !of_node {
        return None;
    }
    let names: Vec<&str> = own.iter().map_while(|frame| frame.symbol.as_deref()).collect();
    let waiting = names.iter().take_while(|name| name.starts_with(LIBUV)).count();
    let (waited, by) = (*names.get(waiting.checked_sub(1)?)?, *names.get(waiting)?);
    let rests = AT_REST
        .iter()
        .find(|(wait, worker, _)| waited == *wait && by.contains(worker) && by.contains("node::"));
    let work = match rests {
        Some((.., work)) => *work,
        None if (waited, by) == LIBUV_WORKER && futex => WORK,
        None => return None,
    };
    let resource = named(ResourceKind::Name, work);
    Some((Cause::Idle, resource.in_call(call.unwrap_or("futex"))))
}

fn is_of_node(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    let name = module.split(['.', '-']).next().unwrap_or_default();
    MODULES.contains(&name) || name == "nodejs"
}

#[cfg(test)]
mod tests {
    use super::of_stack;
    use holdup_evidence::{Cause, Frame};

    fn stack(module: &str, symbols: &[&str]) -> Vec<Frame> {
        let frame = |module: &str, symbol: &str| Frame {
            module: Some(module.to_owned()),
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        };
        let mut frames = vec![frame("libc.so.6", "pthread_cond_wait")];
        frames.extend(symbols.iter().map(|symbol| frame(module, symbol)));
        frames.push(frame("libc.so.6", "start_thread"));
        frames
    }

    fn cause(cause: Cause, call: &str, stack: &[Frame]) -> Option<Cause> {
        of_stack(cause, Some(call), stack).map(|one| one.0)
    }

    #[test]
    fn workers_without_work_are_idle() {
        let v8 = stack(
            "node",
            &[
                "uv_cond_wait",
                "node::(anonymous namespace)::PlatformWorkerThread(void*)",
            ],
        );
        assert_eq!(cause(Cause::LockFutex, "futex", &v8), Some(Cause::Idle));
        let libuv = stack("libuv.so.1.0.0", &["uv_cond_wait", "worker"]);
        assert_eq!(cause(Cause::LockFutex, "futex", &libuv), Some(Cause::Idle));
        let later = stack(
            "libnode.so.108",
            &[
                "uv__io_poll",
                "uv_run",
                "node::WorkerThreadsTaskRunner::DelayedTaskScheduler::Start()::{lambda(void*)#1}::_FUN(void*)",
            ],
        );
        assert_eq!(cause(Cause::PollWait, "epoll_pwait", &later), Some(Cause::Idle));
        let debugger = stack(
            "node",
            &[
                "uv__sem_wait",
                "uv_sem_wait",
                "node::inspector::(anonymous namespace)::StartIoThreadMain(void*)",
            ],
        );
        assert_eq!(cause(Cause::LockFutex, "futex", &debugger), Some(Cause::Idle));
    }

    #[test]
    fn work_and_other_programs_are_not() {
        let work = stack("node", &["uv_mutex_lock", "uv__work_done", "worker"]);
        assert_eq!(cause(Cause::LockFutex, "futex", &work), None);
        let task = stack(
            "node",
            &[
                "uv_cond_wait",
                "v8::internal::Thing::Await()",
                "node::(anonymous namespace)::PlatformWorkerThread(void*)",
            ],
        );
        assert_eq!(cause(Cause::LockFutex, "futex", &task), None);
        let main = stack(
            "node",
            &[
                "uv__io_poll",
                "uv_run",
                "node::SpinEventLoopInternal(node::Environment*)",
            ],
        );
        assert_eq!(cause(Cause::PollWait, "epoll_pwait", &main), None);
        let other = stack("indexer", &["uv_cond_wait", "worker"]);
        assert_eq!(cause(Cause::LockFutex, "futex", &other), None);
    }
}
