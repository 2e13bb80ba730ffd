//! Stacks as JDK 17 and 25 have them.

use super::of_stack;
use holdup_evidence::{Cause, Frame, Language};
use holdup_model::attributed::{Awaits, JavaLock, SleepsBy};

const CONDITION: &[(&str, &str)] = &[
    ("libc.so.6", "pthread_cond_wait"),
    ("libjvm.so", ""),
    ("libjvm.so", ""),
];
const PARK: &str = "jdk.internal.misc.Unsafe.park";
const LOCK_SUPPORT: &str = "java.util.concurrent.locks.LockSupport.park";
const ACQUIRE: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire";
const AWAIT: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await";
const BLOCK: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode.block";
const CART: &str = "com.shop.Cart.checkout";
const RUN: &str = "java.lang.Thread.run";

fn native((module, symbol): &(&str, &str)) -> Frame {
    Frame {
        module: Some((*module).to_owned()),
        symbol: (!symbol.is_empty()).then(|| (*symbol).to_owned()),
        ..Frame::default()
    }
}

fn stack(natives: &[(&str, &str)], java: &[&str]) -> Vec<Frame> {
    let java = java.iter().map(|symbol| Frame {
        symbol: Some((*symbol).to_owned()),
        language: Language::Java,
        ..Frame::default()
    });
    let begin = [("libjvm.so", ""), ("libc.so.6", "start_thread")];
    natives
        .iter()
        .map(native)
        .chain(java)
        .chain(begin.iter().map(native))
        .collect()
}

/// Cause, name and kind of what a futex wait under these Java frames is for.
fn of(java: &[&str]) -> Option<(Cause, String, String)> {
    from(Cause::LockFutex, java)
}

fn from(cause: Cause, java: &[&str]) -> Option<(Cause, String, String)> {
    let (cause, resource) = of_stack(cause, Some("futex"), &stack(CONDITION, java))?;
    let kind = resource
        .detail
        .java_lock
        .map(JavaLock::id)
        .or(resource.detail.awaits.map(Awaits::id));
    Some((cause, resource.name.clone(), kind.unwrap_or_default().to_owned()))
}

fn is(cause: Cause, name: &str, kind: &str) -> Option<(Cause, String, String)> {
    Some((cause, name.to_owned(), kind.to_owned()))
}

#[test]
fn a_lock_is_told_from_a_condition_by_who_parks() {
    let lock = [
        PARK,
        LOCK_SUPPORT,
        ACQUIRE,
        ACQUIRE,
        "java.util.concurrent.locks.ReentrantLock$Sync.lock",
        "java.util.concurrent.locks.ReentrantLock.lock",
        CART,
        RUN,
    ];
    assert_eq!(
        of(&lock),
        is(
            Cause::LockMonitor,
            "the ReentrantLock in com.shop.Cart.checkout",
            "lock"
        )
    );
    let read = [
        PARK,
        LOCK_SUPPORT,
        "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireShared",
        "java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock.lock",
        CART,
    ];
    assert_eq!(
        of(&read).unwrap().1,
        "the ReentrantReadWriteLock in com.shop.Cart.checkout"
    );
    let permit = [
        PARK,
        LOCK_SUPPORT,
        ACQUIRE,
        "java.util.concurrent.Semaphore.acquire",
        CART,
    ];
    assert_eq!(of(&permit).unwrap().2, "semaphore");
    // As JDK 8 and 11 do it.
    let older = [
        PARK,
        LOCK_SUPPORT,
        "java.util.concurrent.locks.AbstractQueuedSynchronizer.parkAndCheckInterrupt",
        "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireQueued",
        "java.util.concurrent.locks.ReentrantLock$NonfairSync.lock",
        "java.util.concurrent.locks.ReentrantLock.lock",
        CART,
    ];
    assert_eq!(of(&older).unwrap().0, Cause::LockMonitor);
    let condition = [
        PARK,
        LOCK_SUPPORT,
        BLOCK,
        "java.util.concurrent.ForkJoinPool.managedBlock",
        AWAIT,
        CART,
    ];
    assert_eq!(
        of(&condition),
        is(Cause::LockFutex, "a condition to be signalled", "signal")
    );
    let back = [PARK, LOCK_SUPPORT, ACQUIRE, AWAIT, CART];
    assert_eq!(
        of(&back).unwrap().0,
        Cause::LockMonitor,
        "the lock that a condition had let go of"
    );
}

#[test]
fn a_worker_without_work_is_idle_and_a_consumer_of_a_queue_awaits() {
    let take = "java.util.concurrent.LinkedBlockingQueue.take";
    let get_task = "java.util.concurrent.ThreadPoolExecutor.getTask";
    let idle = [
        PARK,
        LOCK_SUPPORT,
        BLOCK,
        AWAIT,
        take,
        get_task,
        "java.util.concurrent.ThreadPoolExecutor.runWorker",
        RUN,
    ];
    for cause in [Cause::LockFutex, Cause::TimerSleep, Cause::Idle] {
        assert_eq!(from(cause, &idle).unwrap().0, Cause::Idle);
    }
    let forks = [
        PARK,
        LOCK_SUPPORT,
        "java.util.concurrent.ForkJoinPool.awaitWork",
        RUN,
    ];
    assert_eq!(of(&forks).unwrap().0, Cause::Idle);
    let cleaner = [
        "java.lang.Object.wait0",
        "java.lang.Object.wait",
        "java.lang.ref.ReferenceQueue.remove",
        RUN,
    ];
    assert_eq!(of(&cleaner).unwrap().0, Cause::Idle);
    let handler = ["java.lang.ref.Reference.waitForReferencePendingList", RUN];
    assert_eq!(of(&handler).unwrap().0, Cause::Idle);
    let consumer = [
        PARK,
        LOCK_SUPPORT,
        BLOCK,
        AWAIT,
        take,
        "com.shop.Orders.next",
        RUN,
    ];
    assert_eq!(
        of(&consumer),
        is(
            Cause::LockFutex,
            "something to take from a LinkedBlockingQueue",
            "queue"
        )
    );
    assert_eq!(from(Cause::TimerSleep, &consumer), None, "its time limit passed");
    assert_eq!(from(Cause::Idle, &consumer), None);
    let full = [
        PARK,
        LOCK_SUPPORT,
        BLOCK,
        AWAIT,
        "java.util.concurrent.ArrayBlockingQueue.put",
        CART,
    ];
    let room = is(Cause::LockFutex, "room in an ArrayBlockingQueue", "room");
    assert_eq!(of(&full), room);
    assert_eq!(from(Cause::Idle, &full), room, "it has something to put there");
    // A task that waits by itself is no worker without work.
    let task = [
        PARK,
        LOCK_SUPPORT,
        BLOCK,
        AWAIT,
        CART,
        "java.util.concurrent.ThreadPoolExecutor.runWorker",
        RUN,
    ];
    assert_eq!(of(&task).unwrap().0, Cause::LockFutex);
}

#[test]
fn results_pools_and_sleeps_are_told() {
    let get = "java.util.concurrent.FutureTask.get";
    let result = [
        PARK,
        LOCK_SUPPORT,
        "java.util.concurrent.FutureTask.awaitDone",
        get,
        CART,
    ];
    assert_eq!(
        of(&result),
        is(Cause::LockFutex, "the result of a task (FutureTask.get)", "task")
    );
    let join = [
        "java.lang.Object.wait",
        "java.lang.Thread.join",
        "java.lang.Thread.join",
        CART,
    ];
    assert_eq!(of(&join).unwrap().1, "the end of a thread (Thread.join)");
    // In a server, a thread that was started has a task in hand while it wants another's result; the first thread waits for the end.
    let started = [&result[..], &[RUN]].concat();
    assert_eq!(from(Cause::Idle, &started), of(&result));
    let first = [&join[..], &["com.shop.Shop.main"]].concat();
    assert_eq!(from(Cause::Idle, &first), None);
    let pool = [
        PARK,
        "java.util.concurrent.locks.LockSupport.parkNanos",
        "java.util.concurrent.SynchronousQueue.poll",
        "com.zaxxer.hikari.util.ConcurrentBag.borrow",
        "com.zaxxer.hikari.pool.HikariPool.getConnection",
        "com.shop.Orders.find",
    ];
    for cause in [Cause::LockFutex, Cause::TimerSleep, Cause::Idle] {
        let found = from(cause, &pool);
        assert_eq!(
            found,
            is(
                Cause::LockMonitor,
                "a free connection of a pool (ConcurrentBag)",
                "pool"
            )
        );
    }
    let inside = [
        PARK,
        LOCK_SUPPORT,
        "java.util.concurrent.FutureTask.get",
        CART,
        pool[4],
        pool[5],
    ];
    assert_eq!(
        of(&inside).unwrap().2,
        "task",
        "what a pool's own user waits for in it"
    );
    for sleep in [
        "java.lang.Thread.sleep",
        "java.lang.Thread.sleep0",
        "java.lang.Thread.sleepNanos0",
    ] {
        assert_eq!(of(&[sleep, CART]).unwrap().0, Cause::TimerSleep);
    }
    assert_eq!(
        of(&["java.lang.Object.wait0", "java.lang.Object.wait", CART])
            .unwrap()
            .2,
        "signal"
    );
}

#[test]
fn what_the_machine_waits_for_in_java_code_needs_a_name() {
    assert_eq!(
        of(&[CART, RUN]),
        None,
        "a monitor, a class, a safepoint: not to be told"
    );
    let enter = [
        ("libc.so.6", "pthread_cond_wait"),
        ("libjvm.so", "ObjectMonitor::enter(JavaThread*)"),
    ];
    let (cause, resource) = of_stack(Cause::LockFutex, Some("futex"), &stack(&enter, &[CART, RUN])).unwrap();
    assert_eq!(
        (cause, resource.name.as_str()),
        (Cause::LockMonitor, "the monitor in com.shop.Cart.checkout")
    );
    // Who was notified waits until whoever notified it lets go of the monitor.
    let notified = [
        ("libjvm.so", "ObjectMonitor::ReenterI(JavaThread*, ObjectWaiter*)"),
        ("libjvm.so", "ObjectMonitor::wait(long, bool, JavaThread*)"),
    ];
    let wait = ["java.lang.Object.wait0", "java.lang.Object.wait", CART, RUN];
    let (cause, resource) = of_stack(Cause::LockFutex, Some("futex"), &stack(&notified, &wait)).unwrap();
    assert_eq!(
        (cause, resource.name.as_str()),
        (Cause::LockMonitor, "the monitor in com.shop.Cart.checkout")
    );
    let (cause, _) = of_stack(Cause::LockFutex, Some("futex"), &stack(&notified[1..], &wait)).unwrap();
    assert_eq!(cause, Cause::LockFutex, "a notification");
    let class = [("libjvm.so", "InstanceKlass::initialize_impl(JavaThread*)")];
    let (_, resource) = of_stack(
        Cause::LockFutex,
        Some("futex"),
        &stack(&class, &["com.shop.Prices.<clinit>"]),
    )
    .unwrap();
    assert_eq!(resource.detail.java_lock, Some(JavaLock::Class));
}

#[test]
fn the_machines_own_threads_wait_for_work() {
    let collector: Vec<Frame> = [
        ("libc.so.6", "sem_wait"),
        ("libjvm.so", ""),
        ("libc.so.6", "start_thread"),
    ]
    .iter()
    .map(native)
    .collect();
    for cause in [Cause::LockFutex, Cause::TimerSleep] {
        assert_eq!(of_stack(cause, Some("futex"), &collector).unwrap().0, Cause::Idle);
    }
    assert_eq!(of_stack(Cause::MemPagefault, None, &collector), None);
    assert_eq!(
        of_stack(Cause::LockFutex, Some("futex"), &collector[..2]),
        None,
        "cut off"
    );
    let mutex: Vec<Frame> = [
        ("libc.so.6", "__lll_lock_wait"),
        ("libc.so.6", "__pthread_mutex_cond_lock"),
        ("libjvm.so", ""),
        ("libc.so.6", "start_thread"),
    ]
    .iter()
    .map(native)
    .collect();
    assert_eq!(of_stack(Cause::LockFutex, Some("futex"), &mutex), None, "a lock");
    let agent: Vec<Frame> = [
        ("libc.so.6", "pthread_cond_wait"),
        ("libagent.so", ""),
        ("libc.so.6", "start_thread"),
    ]
    .iter()
    .map(native)
    .collect();
    assert_eq!(of_stack(Cause::LockFutex, Some("futex"), &agent), None);
    let launcher: Vec<Frame> = [
        ("libc.so.6", "pthread_join"),
        ("libjli.so", "JLI_Launch"),
        ("java", ""),
    ]
    .iter()
    .map(native)
    .collect();
    assert_eq!(
        of_stack(Cause::LockFutex, Some("futex"), &launcher).unwrap().0,
        Cause::Idle
    );
    let starts = [
        ("libc.so.6", "pthread_cond_wait"),
        ("libjvm.so", "JNI_CreateJavaVM"),
        ("libjli.so", ""),
        ("libc.so.6", "start_thread"),
    ];
    let starts: Vec<Frame> = starts.iter().map(native).collect();
    assert_eq!(
        of_stack(Cause::LockFutex, Some("futex"), &starts),
        None,
        "the machine is started"
    );
}

#[test]
fn a_thread_whose_java_frames_could_not_be_read_is_none_of_the_machines() {
    let asks = |native: &str| {
        let natives = [
            ("libc.so.6", "pthread_cond_timedwait"),
            ("libjvm.so", "os::PlatformEvent::park(long)"),
            ("libjvm.so", native),
            (
                "libjvm.so",
                "JavaCalls::call_helper(JavaValue*, methodHandle const&)",
            ),
            ("libjvm.so", "JavaThread::run()"),
        ];
        of_stack(Cause::TimerSleep, Some("futex"), &stack(&natives, &[]))
    };
    let (cause, resource) = asks("JVM_Sleep").unwrap();
    assert_eq!(cause, Cause::TimerSleep);
    assert_eq!(resource.detail.sleeps, Some(SleepsBy::ThreadSleep));
    assert_eq!(
        asks("JVM_WaitForReferencePendingList").map(|(cause, _)| cause),
        Some(Cause::Idle)
    );
    assert_eq!(asks("JVM_MonitorWait"), None);
    assert_eq!(asks(""), None);
}

#[test]
fn other_calls_stay_what_they_are() {
    let reads = stack(
        &[("libnet.so", "")],
        &["java.net.SocketInputStream.socketRead0", CART],
    );
    assert_eq!(of_stack(Cause::NetReceive, Some("recvfrom"), &reads), None);
    let poller = stack(
        &[("libnio.so", "")],
        &["sun.nio.ch.EPoll.wait", "sun.nio.ch.Poller.pollerLoop", RUN],
    );
    assert_eq!(
        of_stack(Cause::PollWait, Some("epoll_wait"), &poller).unwrap().0,
        Cause::Idle
    );
    assert_eq!(of_stack(Cause::DiskSync, Some("fsync"), &poller), None);
}

#[test]
fn a_pool_that_makes_a_connection_waits_for_what_its_driver_waits_for() {
    let borrow = "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject";
    let parked = [PARK, "java.util.concurrent.CompletableFuture.get"];
    let driver = [
        "io.r2dbc.Client.connect",
        "org.apache.commons.dbcp2.PoolableConnectionFactory.makeObject",
    ];
    let of_driver: Vec<&str> = parked
        .iter()
        .chain(&driver)
        .chain([&borrow, &CART])
        .copied()
        .collect();
    let (_, name, kind) = of(&of_driver).unwrap();
    assert_eq!((kind.as_str(), name.contains("pool")), ("task", false), "{name}");
    let taking = [
        PARK,
        LOCK_SUPPORT,
        AWAIT,
        "org.apache.commons.pool2.impl.LinkedBlockingDeque.pollFirst",
        borrow,
        CART,
    ];
    let (cause, _, kind) = of(&taking).unwrap();
    assert_eq!((cause, kind.as_str()), (Cause::LockMonitor, "pool"));
}

#[test]
fn a_virtual_thread_that_keeps_its_carrier_waits_for_its_socket_and_not_for_work() {
    const PINNED: [&str; 6] = [
        PARK,
        "java.lang.VirtualThread.parkOnCarrierThread",
        "java.lang.VirtualThread.park",
        "java.lang.System$1.parkVirtualThread",
        LOCK_SUPPORT,
        "sun.nio.ch.Poller.poll",
    ];
    let under = |java: &[&'static str]| [&PINNED[..], java, &[CART, "java.lang.VirtualThread.run"]].concat();
    for (method, awaits) in [
        ("sun.nio.ch.NioSocketImpl.connect", Cause::NetConnect),
        ("sun.nio.ch.NioSocketImpl.implRead", Cause::NetReceive),
        ("sun.nio.ch.SocketChannelImpl.blockingWriteFully", Cause::NetSend),
        ("sun.nio.ch.ServerSocketChannelImpl.accept", Cause::NetAccept),
        ("sun.nio.ch.SomethingNew.await", Cause::NetReceive),
    ] {
        let stack = under(&["sun.nio.ch.NioSocketImpl.park", method]);
        for before in [Cause::Idle, Cause::LockFutex] {
            let found = from(before, &stack).map(|(cause, ..)| cause);
            assert_eq!(found, Some(awaits), "{method}");
        }
    }
    // The machine's own thread that polls rests, and a program's method that is called so is none of the runtime's.
    let rests = ["sun.nio.ch.Poller.pollerLoop", RUN];
    assert_eq!(from(Cause::PollWait, &rests), None);
    let own = [
        PARK,
        LOCK_SUPPORT,
        "com.shop.Loop.turn",
        "sun.nio.ch.Poller.poll",
        CART,
        RUN,
    ];
    assert_ne!(
        from(Cause::LockFutex, &own).map(|(cause, ..)| cause),
        Some(Cause::NetReceive)
    );
}

#[test]
fn the_thread_that_ends_the_machine_rests_until_the_others_have_ended() {
    let ends = [
        ("libc.so.6", "pthread_cond_wait"),
        ("libjvm.so", "Monitor::wait(long)"),
        ("libjvm.so", "Threads::destroy_vm()"),
        ("libjvm.so", "jni_DestroyJavaVM"),
        ("libjli.so", "JavaMain"),
        ("libc.so.6", "start_thread"),
    ];
    let stack: Vec<Frame> = ends.iter().map(native).collect();
    let cause = |stack: &[Frame]| of_stack(Cause::LockFutex, Some("futex"), stack).map(|(cause, _)| cause);
    assert_eq!(cause(&stack), Some(Cause::Idle));
    // A function of a program that is called so is none of the machine's.
    let mut other = stack.clone();
    other[3].module = Some("libshop.so".to_owned());
    assert_eq!(cause(&other), None);
}

#[test]
fn who_is_in_a_handler_is_not_idle_but_for_the_next_item_of_a_queue() {
    const WAIT: &str = "java.lang.Object.wait";
    const CLIENT: &str = "org.apache.kafka.clients.producer.KafkaProducer.send";
    const SERVER: &str = "org.eclipse.jetty.server.Server.handle";
    let idle = |java: &[&str]| from(Cause::Idle, java).map(|(cause, ..)| cause);
    assert_eq!(idle(&[WAIT, CLIENT, CART, SERVER, RUN]), Some(Cause::LockFutex));
    assert_eq!(
        idle(&[PARK, LOCK_SUPPORT, AWAIT, CART, SERVER, RUN]),
        Some(Cause::LockFutex)
    );
    assert_eq!(
        idle(&["java.lang.Thread.sleep", CART, SERVER, RUN]),
        Some(Cause::TimerSleep)
    );
    // A thread that the program began, and one that hands a client what comes.
    assert_eq!(idle(&[WAIT, CLIENT, CART, RUN]), None);
    assert_eq!(idle(&["java.lang.Thread.sleep", CART, RUN]), None);
    let takes = "java.util.concurrent.LinkedBlockingQueue.take";
    assert_eq!(idle(&[PARK, LOCK_SUPPORT, AWAIT, takes, CART, SERVER, RUN]), None);
}
