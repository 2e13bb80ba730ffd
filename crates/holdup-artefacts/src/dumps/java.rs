//! What a thread of a JVM does, by its state and its innermost frames.

use super::Doing;
use holdup_evidence::Cause;
use holdup_evidence::observed::{LockWait, SeenThread, State};
use holdup_knowledge::java::{IDLE, LOOPS, NEAR, POOLS, TASKS, is, method, of_runtime, seeds};

/// Native methods that wait, and for what.
const NATIVE: &[(&str, Cause)] = &[
    ("java.net.SocketInputStream.socketRead0", Cause::NetReceive),
    ("sun.nio.ch.SocketDispatcher.read0", Cause::NetReceive),
    ("sun.nio.ch.SocketDispatcher.readv0", Cause::NetReceive),
    ("java.net.PlainDatagramSocketImpl.receive0", Cause::NetReceive),
    ("sun.nio.ch.DatagramChannelImpl.receive0", Cause::NetReceive),
    ("java.net.SocketOutputStream.socketWrite0", Cause::NetSend),
    ("sun.nio.ch.SocketDispatcher.write0", Cause::NetSend),
    ("java.net.PlainSocketImpl.socketConnect", Cause::NetConnect),
    ("sun.nio.ch.Net.connect0", Cause::NetConnect),
    ("java.net.Inet4AddressImpl.lookupAllHostAddr", Cause::NetDns),
    ("java.net.Inet6AddressImpl.lookupAllHostAddr", Cause::NetDns),
    ("java.net.Inet4AddressImpl.getHostByAddr", Cause::NetDns),
    ("java.net.Inet6AddressImpl.getHostByAddr", Cause::NetDns),
    ("sun.nio.ch.FileDispatcherImpl.force0", Cause::DiskSync),
    ("sun.nio.ch.UnixFileDispatcherImpl.force0", Cause::DiskSync),
    ("java.io.FileDescriptor.sync", Cause::DiskSync),
    ("java.nio.MappedByteBuffer.force0", Cause::DiskSync),
    ("java.nio.MappedMemoryUtils.force0", Cause::DiskSync),
    ("java.io.RandomAccessFile.readBytes", Cause::DiskRead),
    ("sun.nio.ch.FileDispatcherImpl.pread0", Cause::DiskRead),
    ("sun.nio.ch.UnixFileDispatcherImpl.pread0", Cause::DiskRead),
    ("sun.nio.ch.FileDispatcherImpl.lock0", Cause::LockFile),
    ("sun.nio.ch.UnixFileDispatcherImpl.lock0", Cause::LockFile),
    ("java.lang.UNIXProcess.forkAndExec", Cause::ProcessChild),
    ("java.lang.ProcessImpl.forkAndExec", Cause::ProcessChild),
];

/// Native methods in which a server stands that nobody asks anything.
const NOBODY_ASKS: &[&str] = &[
    "java.net.PlainSocketImpl.socketAccept",
    "sun.nio.ch.Net.accept",
    "sun.nio.ch.ServerSocketChannelImpl.accept0",
    "sun.nio.ch.EPollArrayWrapper.epollWait",
    "sun.nio.ch.EPoll.wait",
    "sun.nio.ch.PollArrayWrapper.poll0",
    "io.netty.channel.epoll.Native.epollWait",
    "org.apache.tomcat.jni.Socket.accept",
    "org.apache.tomcat.jni.Poll.poll",
];

/// Native reads of a file, a pipe or a device.
const READS: &[&str] = &[
    "java.io.FileInputStream.read",
    "sun.nio.ch.FileDispatcherImpl.read0",
    "sun.nio.ch.UnixFileDispatcherImpl.read0",
];

/// What a thread does; by its stack, its state, how it waits for a lock, and whether that is [`held`], and nothing else.
pub(super) fn of(thread: &SeenThread, frames: &[&str]) -> Doing {
    if thread.state == State::Ended {
        return Doing::Unknown;
    }
    if let Some(LockWait::Enter | LockWait::ClassInit) = thread.waits_for.as_ref().and_then(|lock| lock.wait)
    {
        return Doing::Waits(Cause::LockMonitor);
    }
    let Some(top) = frames.first() else {
        return Doing::Unknown;
    };
    let near = frames.get(..NEAR.min(frames.len())).unwrap_or_default();
    let any = |list: &[&str]| {
        near.iter()
            .any(|frame| list.iter().any(|method| is(frame, method)))
    };
    // Reading for a seed: the kernel's generator or what stands in its place, whatever the state says.
    if near.iter().any(|frame| seeds(frame)) && READS.iter().any(|method| is(top, method)) {
        return Doing::Waits(Cause::RandomDevice);
    }
    // A virtual thread that is pinned parks its carrier.
    let pinned = near
        .get(1)
        .is_some_and(|frame| is(frame, "java.lang.VirtualThread.parkOnCarrierThread"));
    let polls = pinned || is(top, "sun.nio.ch.Net.poll") || is(top, "java.lang.VirtualThread.park");
    if let Some(doing) = socket(near).filter(|_| polls) {
        return doing;
    }
    // A carrier does what the virtual thread on it does, which is a thread of its own in the dump.
    if is(top, "jdk.internal.vm.Continuation.run") {
        return Doing::Unknown;
    }
    let asleep = matches!(
        thread.state,
        State::Waiting | State::TimedWaiting | State::Sleeping | State::Blocked
    );
    // A loop that runs others' code is idle only where none of that is on the stack.
    let no_code = |method: &str| {
        let within = near.iter().take_while(|frame| !is(frame, method));
        within.into_iter().all(|frame| of_runtime(frame))
    };
    if any(IDLE) || LOOPS.iter().any(|method| any(&[method]) && no_code(method)) {
        return Doing::Idle;
    }
    if NOBODY_ASKS.iter().any(|method| is(top, method)) {
        return Doing::Idle;
    }
    if let Some((_, cause)) = NATIVE.iter().find(|(method, _)| is(top, method)) {
        return Doing::Waits(handshake(*cause, near));
    }
    if READS.iter().any(|method| is(top, method)) {
        let of_child = near.iter().any(|frame| frame.contains("Process"));
        return if of_child {
            Doing::Waits(Cause::IpcPipe)
        } else {
            Doing::WaitsUnknown
        };
    }
    if thread.state == State::Sleeping || is(top, "java.lang.Thread.sleep") {
        return Doing::Waits(Cause::TimerSleep);
    }
    if !asleep {
        return match thread.state {
            State::Runnable => Doing::Runs,
            _ => Doing::Unknown,
        };
    }
    if any(POOLS) {
        return Doing::WaitsForPool;
    }
    if near
        .iter()
        .any(|frame| frame.contains("Process") && frame.contains(".waitFor("))
    {
        return Doing::Waits(Cause::ProcessChild);
    }
    if any(TASKS) {
        return Doing::WaitsForTask;
    }
    match thread.waits_for.as_ref().map(|lock| lock.wait) {
        Some(Some(LockWait::Park)) if held(thread) => Doing::Waits(Cause::LockMonitor),
        _ => Doing::WaitsUnknown,
    }
}

/// Whether what it is parked for is a lock, which somebody holds, and not a condition or a queue.
pub(super) fn held(thread: &SeenThread) -> bool {
    let class = thread.waits_for.as_ref().map_or("", |lock| lock.class.as_str());
    ["ReentrantLock", "ReadWriteLock", "StampedLock"]
        .iter()
        .any(|lock| class.contains(lock))
}

/// A wait for a socket by poll or of a virtual thread: what for, its callers tell.
fn socket(near: &[&str]) -> Option<Doing> {
    let by = |method: &str| near.iter().any(|frame| frame.starts_with(method));
    let of = |name: &str| by(&format!("sun.nio.ch.NioSocketImpl.{name}"));
    if of("accept") || of("timedAccept") {
        return Some(Doing::Idle);
    }
    if of("connect") || of("timedFinishConnect") {
        return Some(Doing::Waits(Cause::NetConnect));
    }
    if of("implRead") || of("timedRead") || of("read") {
        return Some(Doing::Waits(handshake(Cause::NetReceive, near)));
    }
    (of("implWrite") || of("write")).then_some(Doing::Waits(Cause::NetSend))
}

/// Receiving within a TLS handshake.
fn handshake(cause: Cause, near: &[&str]) -> Cause {
    let shakes = |frame: &&str| {
        [
            "startHandshake(",
            "readHandshakeRecord(",
            "performInitialHandshake(",
        ]
        .iter()
        .any(|method| frame.contains(method))
    };
    if cause == Cause::NetReceive && near.iter().any(shakes) {
        return Cause::NetTls;
    }
    cause
}

/// Whether a frame is where a server, a request or a program begins.
pub(super) fn is_beginning(frame: &str) -> bool {
    const BEGIN: &[&str] = &[
        "init",
        "main",
        "start",
        "service",
        "doGet",
        "doPost",
        "<clinit>",
        "contextInitialized",
        "afterPropertiesSet",
    ];
    !of_runtime(frame) && BEGIN.contains(&method(frame))
}

#[cfg(test)]
mod tests {
    use crate::dumps::doing::{Doing, of_state};
    use holdup_evidence::Cause;
    use holdup_evidence::observed::{SnapshotKind, State};

    fn doing(state: State, frames: &[&str]) -> Doing {
        of_state(SnapshotKind::Jvm, state, frames)
    }

    #[test]
    fn runnable_in_a_native_read_is_a_wait() {
        let seed = [
            "java.io.FileInputStream.readBytes(Native Method)",
            "sun.security.provider.SeedGenerator$URLSeedGenerator.getSeedByte(SeedGenerator.java:453)",
            "shop.Start.init(Start.java:7)",
        ];
        assert_eq!(doing(State::Runnable, &seed), Doing::Waits(Cause::RandomDevice));
        assert_eq!(doing(State::Runnable, &[seed[0], seed[2]]), Doing::WaitsUnknown);
        let read = [
            "sun.nio.ch.SocketDispatcher.read0(Native Method)",
            "shop.Start.init(Start.java:7)",
        ];
        assert_eq!(doing(State::Runnable, &read), Doing::Waits(Cause::NetReceive));
        assert_eq!(doing(State::Runnable, &[seed[2]]), Doing::Runs);
    }

    #[test]
    fn a_worker_without_work_is_idle_and_one_with_a_task_is_not() {
        let park = "jdk.internal.misc.Unsafe.park(Native Method)";
        let idle = [
            park,
            "java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)",
            "java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1062)",
        ];
        assert_eq!(doing(State::Waiting, &idle), Doing::Idle);
        let awaits = [
            park,
            "java.util.concurrent.FutureTask.get(FutureTask.java:190)",
            "shop.Till.pay(Till.java:7)",
            "java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)",
        ];
        assert_eq!(doing(State::Waiting, &awaits), Doing::WaitsForTask);
        let pool = [
            park,
            "com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:181)",
        ];
        assert_eq!(doing(State::TimedWaiting, &pool), Doing::WaitsForPool);
        let accept = ["sun.nio.ch.Net.accept(Native Method)"];
        assert_eq!(doing(State::Runnable, &accept), Doing::Idle);
    }
}
