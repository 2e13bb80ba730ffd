//! What a thread of a .NET program does, by its frames.
//!
//! In: `Type.Method(place)`, innermost first. Out: what it waits for: the outermost of the library's own methods says it, because a task's
//! `Wait` stands on an event's, and that on a monitor's.

use super::Doing;
use holdup_evidence::Cause;

/// Methods that wait: the end of the type's name and the method, and what for.
const WAITS: &[(&str, Doing)] = &[
    ("Monitor.Enter", Doing::Waits(Cause::LockFutex)),
    ("Monitor.ReliableEnter", Doing::Waits(Cause::LockFutex)),
    ("Monitor.Enter_Slowpath", Doing::Waits(Cause::LockFutex)),
    ("Monitor.TryEnter", Doing::Waits(Cause::LockFutex)),
    ("AwareLock::Enter", Doing::Waits(Cause::LockFutex)),
    ("Lock.EnterSlow", Doing::Waits(Cause::LockFutex)),
    ("Lock.TryEnterSlow", Doing::Waits(Cause::LockFutex)),
    ("Lock.Enter", Doing::Waits(Cause::LockFutex)),
    ("SpinLock.ContinueTryEnter", Doing::Waits(Cause::LockFutex)),
    (
        "ReaderWriterLockSlim.TryEnterReadLockCore",
        Doing::Waits(Cause::LockFutex),
    ),
    (
        "ReaderWriterLockSlim.TryEnterWriteLockCore",
        Doing::Waits(Cause::LockFutex),
    ),
    ("Monitor.ObjWait", Doing::WaitsUnknown),
    ("Monitor.Wait", Doing::WaitsUnknown),
    ("WaitHandle.WaitOneCore", Doing::WaitsUnknown),
    ("WaitHandle.WaitOne", Doing::WaitsUnknown),
    ("WaitHandle.WaitMultiple", Doing::WaitsUnknown),
    ("WaitHandle.WaitAny", Doing::WaitsUnknown),
    ("ManualResetEventSlim.Wait", Doing::WaitsUnknown),
    ("SemaphoreSlim.Wait", Doing::WaitsUnknown),
    ("CountdownEvent.Wait", Doing::WaitsUnknown),
    ("Barrier.SignalAndWait", Doing::WaitsUnknown),
    ("Task.InternalWait", Doing::WaitsForTask),
    ("Task.InternalWaitCore", Doing::WaitsForTask),
    ("Task.SpinThenBlockingWait", Doing::WaitsForTask),
    ("Task.Wait", Doing::WaitsForTask),
    ("Task.WaitAll", Doing::WaitsForTask),
    ("Task.WaitAny", Doing::WaitsForTask),
    (
        "TaskAwaiter.HandleNonSuccessAndDebuggerNotification",
        Doing::WaitsForTask,
    ),
    ("TaskAwaiter.GetResult", Doing::WaitsForTask),
    ("Thread.Join", Doing::WaitsForTask),
    ("Thread.JoinInternal", Doing::WaitsForTask),
    ("Thread.Sleep", Doing::Waits(Cause::TimerSleep)),
    ("Thread.SleepInternal", Doing::Waits(Cause::TimerSleep)),
    ("Socket.Receive", Doing::Waits(Cause::NetReceive)),
    ("NetworkStream.Read", Doing::Waits(Cause::NetReceive)),
    ("Sys.Receive", Doing::Waits(Cause::NetReceive)),
    ("Socket.Send", Doing::Waits(Cause::NetSend)),
    ("Socket.Connect", Doing::Waits(Cause::NetConnect)),
    ("SslStream.AuthenticateAsClient", Doing::Waits(Cause::NetTls)),
    ("Dns.GetHostEntry", Doing::Waits(Cause::NetDns)),
    ("Dns.GetHostAddresses", Doing::Waits(Cause::NetDns)),
    ("Process.WaitForExit", Doing::Waits(Cause::ProcessChild)),
    ("FileStream.Flush", Doing::Waits(Cause::DiskSync)),
    ("RandomAccess.ReadAtOffset", Doing::Waits(Cause::DiskRead)),
    ("DbConnectionPool.TryGetConnection", Doing::WaitsForPool),
    ("WaitHandleDbConnectionPool.TryGetConnection", Doing::WaitsForPool),
    ("NpgsqlConnectionPool.Get", Doing::WaitsForPool),
    // Threads of the runtime, and workers without work.
    ("WorkerThread.WorkerThreadStart", Doing::Idle),
    ("WorkerThread.WaitForWorkRequest", Doing::Idle),
    ("GateThread.GateThreadStart", Doing::Idle),
    ("LowLevelLifoSemaphore.Wait", Doing::Idle),
    ("TimerQueue.TimerThread", Doing::Idle),
    ("SocketAsyncEngine.EventLoop", Doing::Idle),
    ("BlockingCollection`1.TryTakeWithNoTimeValidation", Doing::Idle),
    ("Socket.Accept", Doing::Idle),
    ("HostingAbstractionsHostExtensions.Run", Doing::Idle),
    ("HostingAbstractionsHostExtensions.WaitForShutdown", Doing::Idle),
];

/// Beginnings of names of the runtime's and the framework's own.
const LIBRARY: &[&str] = &[
    "System.",
    "Microsoft.",
    "Interop",
    "Internal.",
    "Npgsql.",
    "[",
    "CorUnix::",
];

/// Modules of the runtime, and the C library's below them.
const MODULES: &[&str] = &[
    "(libcoreclr.so",
    "(coreclr",
    "(libclrjit",
    "(libSystem.",
    "(libc.so",
    "(libpthread",
    "(ntdll",
    "(KERNELBASE",
    "(clr)",
];

/// What a thread does.
pub(super) fn of(frames: &[&str]) -> Doing {
    let library = || frames.iter().take_while(|frame| of_library(frame));
    match library().filter_map(|frame| known(frame)).last() {
        Some(doing) => doing,
        None if frames.is_empty() => Doing::Unknown,
        // A method of the program is innermost: it computes, or is in code that has no frame.
        None if library().count() == 0 => Doing::Runs,
        None => Doing::Unknown,
    }
}

fn known(frame: &str) -> Option<Doing> {
    let name = frame.split('(').next().unwrap_or(frame);
    let ends = |waits: &str| {
        let before = name.strip_suffix(waits);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['.', '+', ':', '!']))
    };
    WAITS
        .iter()
        .find(|(waits, _)| ends(waits))
        .map(|(_, doing)| *doing)
}

/// Whether a frame is the runtime's or the framework's own.
pub(super) fn of_library(frame: &str) -> bool {
    LIBRARY.iter().any(|start| frame.starts_with(start))
        || MODULES.iter().any(|module| frame.contains(module))
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::dumps::Doing;
    use holdup_evidence::Cause;

    #[test]
    fn the_outermost_of_the_framework_says_what_for() {
        let task = [
            "System.Threading.Monitor.ObjWait()",
            "System.Threading.ManualResetEventSlim.Wait(System.Private.CoreLib)",
            "System.Threading.Tasks.Task.InternalWaitCore(System.Private.CoreLib)",
            "Shop.Cart.Load(Cart.cs:62)",
        ];
        assert_eq!(of(&task), Doing::WaitsForTask);
        let lock = [
            "AwareLock::Enter(libcoreclr.so)",
            "System.Threading.Monitor.ReliableEnter()",
            "Shop.Cart.Add(Cart.cs:12)",
        ];
        assert_eq!(of(&lock), Doing::Waits(Cause::LockFutex));
        let worker = [
            "System.Threading.LowLevelLifoSemaphore.WaitForSignal(System.Private.CoreLib)",
            "System.Threading.LowLevelLifoSemaphore.Wait(System.Private.CoreLib)",
            "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart(System.Private.CoreLib)",
        ];
        assert_eq!(of(&worker), Doing::Idle);
        assert_eq!(of(&["Shop.Price.Compute(Price.cs:3)"]), Doing::Runs);
        assert_eq!(
            of(&["System.Text.RegularExpressions.Regex.Run(x)", "Shop.A.B(y)"]),
            Doing::Unknown
        );
        assert_eq!(of(&[]), Doing::Unknown);
    }
}
