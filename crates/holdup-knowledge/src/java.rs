//! What the names of Java's methods tell: which are the runtime's, which hand out connections, in which a worker without work
//! stands.
//!
//! In: frames as dumps and a JVM's structures write them, `com.shop.Cart.checkout` with or without a place in the source behind it,
//! innermost first. Out: answers about them.

mod libraries;

/// Beginnings of the runtime's own classes.
pub const RUNTIME: &[&str] = &[
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "sunw.",
    "com.sun.",
    "com.ibm.",
    "openj9.",
    "org.openjdk.",
];

/// Methods in which a worker without work stands.
pub const IDLE: &[&str] = &[
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.lang.ref.ReferenceQueue.remove",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "java.lang.VirtualThread.takeVirtualThreadListToUnblock",
    "java.lang.ProcessHandleImpl.waitForProcessExit0",
    "java.awt.EventQueue.getNextEvent",
    "sun.nio.ch.Poller.pollerLoop",
    "sun.nio.ch.Poller.pollLoop",
    "sun.nio.ch.Poller.subPollerLoop",
    "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
    "org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.reservedWait",
    "io.netty.channel.nio.NioEventLoop.select",
];

/// Loops that run others' code, or wait until it is time to.
pub const LOOPS: &[&str] = &[
    "java.util.TimerThread.mainLoop",
    "java.util.concurrent.DelayScheduler.loop",
];

/// Methods that collect a child for whoever waits for its end: of Java 9 and later, and before.
const COLLECT_CHILDREN: &[&str] = &[
    "java.lang.ProcessHandleImpl.waitForProcessExit0",
    "java.lang.UNIXProcess.waitForProcessExit",
];

/// Methods that wait for the end of a child.
const WAIT_FOR_CHILDREN: &[&str] = &["java.lang.ProcessImpl.waitFor", "java.lang.UNIXProcess.waitFor"];

/// Whether a thread in this method collects a child for whoever waits for its end.
#[must_use]
pub fn collects_child(method: &str) -> bool {
    COLLECT_CHILDREN.contains(&bare(method))
}

/// Whether a thread in this method waits for the end of a child, which another thread collects.
#[must_use]
pub fn waits_for_child(method: &str) -> bool {
    WAIT_FOR_CHILDREN.contains(&bare(method))
}

/// Methods by which a pool's worker runs the tasks that the pool is given.
const WORKERS: &[&str] = &[
    "java.util.concurrent.ThreadPoolExecutor$Worker.run",
    "java.util.concurrent.ForkJoinWorkerThread.run",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor$Worker.run",
    "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.run",
];

/// Methods that hand out a connection or another pooled object.
pub const POOLS: &[&str] = &[
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "com.zaxxer.hikari.util.ConcurrentBag.borrow",
    "org.apache.commons.pool.impl.GenericObjectPool.borrowObject",
    "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject",
    "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection",
    "org.apache.tomcat.dbcp.dbcp2.PoolingDataSource.getConnection",
    "com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable",
    "com.mchange.v2.resourcepool.BasicResourcePool.checkoutResource",
    "com.alibaba.druid.pool.DruidDataSource.takeLast",
    "com.alibaba.druid.pool.DruidDataSource.pollLast",
    "org.apache.http.pool.AbstractConnPool.getPoolEntryBlocking",
    "org.apache.hc.core5.pool.StrictConnPool.lease",
    "io.agroal.pool.ConnectionPool.handlerFromSharedCache",
];

/// Methods that wait for a task's result.
pub const TASKS: &[&str] = &[
    "java.util.concurrent.FutureTask.get",
    "java.util.concurrent.CompletableFuture.get",
    "java.util.concurrent.CompletableFuture.join",
    "java.util.concurrent.ForkJoinTask.get",
    "java.util.concurrent.ForkJoinTask.join",
    "java.util.concurrent.ForkJoinTask.invoke",
    "java.util.concurrent.CountDownLatch.await",
    "java.lang.Thread.join",
];

/// Frames from the innermost in which what a thread does is looked for.
pub const NEAR: usize = 30;

/// Whether a frame is of this method or of one whose name begins so: natives get a digit more from time to time.
pub fn is(frame: &str, method: &str) -> bool {
    frame.starts_with(method)
}

/// Whether a thread runs tasks that a pool is given, by its frames.
pub fn of_pool(frames: &[&str]) -> bool {
    let mut frames = frames.iter();
    frames.any(|frame| WORKERS.iter().any(|method| is(frame, method)))
}

/// Whether a frame gets the seed of a generator.
pub fn seeds(frame: &str) -> bool {
    let by_method = method(frame).ends_with("enerateSeed");
    frame.contains("SeedGenerator") || frame.contains("NativePRNG$Blocking") || by_method
}

/// Whether a frame is of a generator of random numbers that the runtime calls as one.
pub fn is_generator(frame: &str) -> bool {
    frame.starts_with("java.security.SecureRandom.")
        || frame.starts_with("java.util.Random.")
        || frame.starts_with("javax.crypto.KeyGenerator.")
        || frame.starts_with("java.security.KeyPairGenerator.")
        || frame.starts_with("sun.security.provider.")
}

/// Whether a frame is the runtime's own.
pub fn of_runtime(frame: &str) -> bool {
    RUNTIME.iter().any(|start| frame.starts_with(start))
}

/// Whether a frame is of a library that many programs have: what it is called for, its caller says.
pub fn of_library(frame: &str) -> bool {
    of_runtime(frame) || libraries::of(frame)
}

/// What the names of a library's classes begin with, by one of its frames, if threads of that library may wait for what the program asked of it:
/// libraries that are a language's own, or that only write logs, have no such threads.
pub fn library(frame: &str) -> Option<&'static str> {
    libraries::with_threads(frame)
}

/// What the names of classes have that are made while the program runs: of lambdas and references to methods, and of proxies. They have the
/// application's name, and no source.
const GENERATED: [&str; 8] = [
    "$$Lambda",
    "$$EnhancerBy",
    "$$SpringCGLIB$$",
    "$$FastClassBy",
    "$Proxy",
    "_$$_javassist",
    "$HibernateProxy$",
    "$ByteBuddy$",
];

/// Whether a frame is of such a class.
fn is_generated(frame: &str) -> bool {
    let class = class(frame);
    GENERATED.iter().any(|part| class.contains(part))
}

/// Who asked: the innermost frame that is neither the runtime's nor a well-known library's nor of a generated class; where all are,
/// the innermost that is not the runtime's. Of randomness, the innermost outside of all generators: a provider's generator is called
/// by the runtime and calls it again.
pub fn asker<'a>(frames: &[&'a str]) -> Option<&'a str> {
    let near = frames.get(..NEAR.min(frames.len())).unwrap_or_default();
    let from = match near.iter().any(|frame| seeds(frame)) {
        true => near
            .iter()
            .rposition(|frame| is_generator(frame))
            .map_or(0, |at| at + 1),
        false => 0,
    };
    let outside = frames.get(from..).unwrap_or_default();
    let own = || outside.iter().filter(|frame| !of_library(frame));
    let written = own().find(|frame| !is_generated(frame));
    written
        .or_else(|| own().next())
        .or_else(|| outside.iter().find(|frame| !of_runtime(frame)))
        .copied()
}

/// A frame's class and method, without its place in the source.
pub fn bare(frame: &str) -> &str {
    frame.split('(').next().unwrap_or(frame)
}

/// The name of a frame's method.
pub fn method(frame: &str) -> &str {
    let bare = bare(frame);
    bare.rsplit_once('.').map_or(bare, |(_, method)| method)
}

/// The class of a frame.
pub fn class(frame: &str) -> &str {
    let bare = bare(frame);
    bare.rsplit_once('.').map_or(bare, |(class, _)| class)
}

#[cfg(test)]
mod tests {
    use super::{asker, class, method};

    #[test]
    fn a_class_that_was_generated_asks_for_whoever_called_it() {
        let of = |frames: &[&'static str]| asker(frames);
        let by_reference = [
            "java.util.concurrent.CompletableFuture.join",
            "shop.Async$$Lambda$31.apply",
            "java.util.stream.ReferencePipeline$3$1.accept",
            "shop.Async.all(Async.java:35)",
            "shop.Orders.place(Orders.java:27)",
        ];
        assert_eq!(of(&by_reference), Some("shop.Async.all(Async.java:35)"));
        let hidden = [
            "java.lang.Object.wait",
            "shop.Desk$$Lambda/0x00007f1c.run",
            "shop.Desk.serve",
        ];
        assert_eq!(of(&hidden), Some("shop.Desk.serve"));
        let proxies = [
            "jdk.internal.misc.Unsafe.park",
            "shop.Repo$$SpringCGLIB$$0.find",
            "shop.Service.pay",
        ];
        assert_eq!(of(&proxies), Some("shop.Service.pay"));
        let alone = [
            "jdk.internal.misc.Unsafe.park",
            "shop.Main$$Lambda$1.run",
            "java.lang.Thread.run",
        ];
        assert_eq!(of(&alone), Some("shop.Main$$Lambda$1.run"), "nobody else");
        let scala = [
            "java.lang.Object.wait",
            "shop.Cart$$anonfun$total$1.apply",
            "shop.Cart.total",
        ];
        assert_eq!(
            of(&scala),
            Some("shop.Cart$$anonfun$total$1.apply"),
            "it has a source"
        );
    }

    #[test]
    fn who_asked_is_neither_the_runtime_nor_a_library() {
        let stack = [
            "jdk.internal.misc.Unsafe.park",
            "com.zaxxer.hikari.pool.HikariPool.getConnection",
            "com.shop.Orders.find",
            "java.lang.Thread.run",
        ];
        assert_eq!(asker(&stack), Some("com.shop.Orders.find"));
        assert_eq!(
            asker(&stack[..2]),
            Some("com.zaxxer.hikari.pool.HikariPool.getConnection")
        );
        assert_eq!(asker(&stack[..1]), None);
    }

    #[test]
    fn of_randomness_a_providers_generator_did_not_ask() {
        let stack = [
            "java.io.FileInputStream.readBytes(Native Method)",
            "sun.security.provider.SeedGenerator$URLSeedGenerator.getSeedByte(SeedGenerator.java:453)",
            "java.security.SecureRandom.generateSeed(SecureRandom.java:495)",
            "com.rsa.jsafe.provider.c7.engineGenerateSeed(Unknown Source)",
            "java.security.SecureRandom.nextBytes(SecureRandom.java:433)",
            "flex.messaging.util.UUIDUtils.createUUID(UUIDUtils.java:110)",
        ];
        assert_eq!(asker(&stack), Some(stack[5]));
    }

    #[test]
    fn a_frame_has_a_class_and_a_method() {
        assert_eq!(class("a.B$C.run(B.java:7)"), "a.B$C");
        assert_eq!(method("a.B$C.run(B.java:7)"), "run");
        assert_eq!((class("run"), method("run")), ("run", "run"));
    }
}
