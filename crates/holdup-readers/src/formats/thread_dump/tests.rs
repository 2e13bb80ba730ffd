//! Dumps of several JVMs, whole, pasted, cut and damaged.

use crate::read_text;
use holdup_evidence::observed::{Civil, LockWait, SeenThread, Snapshot, State, When};

const MODERN: &str = r#"4711:
2026-01-31 10:00:01
Full thread dump OpenJDK 64-Bit Server VM (21.0.2+13 mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00007f0000000010, length=2, elements={
0x00007f0000000020, 0x00007f0000000030
}

"pay "now"" #12 [4720] daemon prio=5 os_prio=0 cpu=51.59ms elapsed=7.93s tid=0x00007f0000000020 nid=4720 waiting for monitor entry  [0x00007f0000001000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at shop.Till.pay(Till.java:7)
	- waiting to lock <0x0000000087489f10> (a java.lang.Object)
	- locked <0x0000000087489f00> (a java.lang.Class for shop.Till)
	at java.lang.Thread.run(java.base@21.0.2/Thread.java:1583)

   Locked ownable synchronizers:
	- <0x0000000087489e00> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

"VM Thread" os_prio=0 cpu=1.00ms elapsed=8.00s tid=0x00007f0000000040 nid=4721 runnable

JNI global refs: 15, weak refs: 0


Found one Java-level deadlock:
=============================
"pay "now"":
  waiting to lock monitor 0x00007f0000000050 (object 0x0000000087489f10, a java.lang.Object),
  which is held by "count"

"count":
  waiting to lock monitor 0x00007f0000000060 (object 0x0000000087489f00, a java.lang.Class for shop.Till),
  which is held by "pay "now""

Java stack information for the threads listed above:
===================================================
"pay "now"":
	at shop.Till.pay(Till.java:7)
	- waiting to lock <0x0000000087489f10> (a java.lang.Object)

Found 1 deadlock.

Heap
 def new generation   total 116160K, used 8263K [0x0000000687400000, 0x000000068f200000, 0x0000000704d50000)
  the space 258048K,   0% used

"#;

/// As people paste it: no lines around it, no indentation.
const PASTED: &str = r#""scheduler-3" prio=10 tid=0x00002aaaac28c800 nid=0x5edd runnable [0x00000000441de000]
java.lang.Thread.State: RUNNABLE
at java.io.FileInputStream.readBytes(Native Method)
at java.io.BufferedInputStream.read(BufferedInputStream.java:317)
- locked <0x00002b4fc75a5018> (a java.io.BufferedInputStream)
at shop.Start.init(Start.java:12)
- locked <0x00002b4fc75a5018> (a java.io.BufferedInputStream)
"#;

const TO_FILE: &str = r#"23475
2026-01-31T10:00:01.500000000Z
25.0.3+9-LTS

#16 "pay" BLOCKED 2026-01-31T10:00:01.600000000Z
    at shop.Till.pay(Till.java:7)
    - locked <java.lang.Object@5980e778>
    - waiting to lock <java.lang.Object@b084aeb>
    at java.base/java.lang.Thread.run(Thread.java:1474)

#17 "" virtual WAITING 2026-01-31T10:00:01.600000000Z
    at java.base/java.lang.VirtualThread.park(VirtualThread.java:742)
    - parking to wait for <java.util.concurrent.locks.ReentrantLock$NonfairSync@2d0579dc>, owner #16
"#;

const JAVACORE: &str = r#"0SECTION       TITLE subcomponent dump routine
NULL           ===============================
1TIDATETIME    Date: 2026/01/31 at 10:00:01:250
0SECTION       GPINFO subcomponent dump routine
1CIPROCESSID   Process ID: 4711 (0x1267)
1LKDEADLOCK    Deadlock detected !!!
2LKDEADLOCKTHR  Thread "pay" (0x0000000000A1B200)
3LKDEADLOCKWTR    is waiting for:
2LKDEADLOCKTHR  Thread "count" (0x0000000000A1B300)
2LKDEADLOCKTHR  Thread "pay" (0x0000000000A1B200)
3XMTHREADINFO      "pay" J9VMThread:0x0000000000A1B200, omrthread_t:0x00007F0000000010, java/lang/Thread:0x00000000E0004A00, state:B, prio=5
3XMJAVALTHREAD            (java/lang/Thread getId:0x1C, isDaemon:false)
3XMTHREADINFO1            (native thread ID:0x1270, native priority:0x5, native policy:UNKNOWN, vmstate:B, vm thread flags:0x00000201)
3XMCPUTIME               CPU usage total: 0.250000000 secs, user: 0.200000000 secs, system: 0.050000000 secs, current category="Application"
3XMTHREADBLOCK     Blocked on: java/lang/Object@0x00000000E0004B00 Owned by: "count" (J9VMThread:0x0000000000A1B300, java/lang/Thread:0x00000000E0004A80)
3XMTHREADINFO3           Java callstack:
4XESTACKTRACE                at shop/Till.pay(Till.java:7(Compiled Code))
5XESTACKTRACE                   (entered lock: java/lang/Object@0x00000000E0004C00, entry count: 1)
4XESTACKTRACE                at java/lang/Thread.run(Thread.java:825)
"#;

fn dumps(text: &str) -> (Vec<Snapshot>, u64, impl Fn(&SeenThread) -> Vec<String> + use<>) {
    let reading = read_text("dump", text.as_bytes());
    let missed = reading
        .accounts
        .iter()
        .map(|account| account.not_understood)
        .sum();
    let stacks = reading.observed.stacks.clone();
    let frames = move |thread: &SeenThread| {
        let frames = thread
            .stack
            .map(|id| stacks.frames(id).map(str::to_owned).collect());
        frames.unwrap_or_default()
    };
    (reading.observed.snapshots, missed, frames)
}

#[test]
fn a_dump_tells_threads_locks_and_deadlocks() {
    let (dumps, missed, frames) = dumps(MODERN);
    let [dump] = dumps.as_slice() else {
        panic!("{dumps:?}")
    };
    assert_eq!(missed, 0);
    assert_eq!(
        dump.at,
        Some(When::Civil(Civil {
            day: Some(20_484),
            year_known: true,
            of_day: 36_001_000_000_000
        }))
    );
    assert_eq!(dump.deadlocks, [["pay \"now\"", "count"]]);
    let [pay, vm] = dump.threads.as_slice() else {
        panic!("{dump:?}")
    };
    assert_eq!(
        (pay.name.as_str(), pay.tid, pay.number, pay.pid),
        ("pay \"now\"", Some(4720), Some(12), Some(4711))
    );
    assert_eq!((pay.cpu, pay.elapsed), (Some(51_590_000), Some(7_930_000_000)));
    assert_eq!(pay.state, State::Blocked);
    assert_eq!(
        frames(pay),
        [
            "shop.Till.pay(Till.java:7)",
            "java.lang.Thread.run(Thread.java:1583)"
        ]
    );
    let wanted = pay.waits_for.as_ref().map(|lock| (lock.id.as_str(), lock.wait));
    assert_eq!(wanted, Some(("0x0000000087489f10", Some(LockWait::Enter))));
    let held: Vec<&str> = pay.holds.iter().map(|lock| lock.class.as_str()).collect();
    assert_eq!(
        held,
        [
            "java.lang.Class for shop.Till",
            "java.util.concurrent.locks.ReentrantLock$NonfairSync"
        ]
    );
    assert_eq!((vm.tid, vm.stack), (Some(4721), None));
}

#[test]
fn a_pasted_thread_is_a_dump_and_twice_the_same_are_two() {
    let twice = format!("{PASTED}\n{PASTED}");
    let (dumps, missed, frames) = dumps(&twice);
    assert_eq!((dumps.len(), missed), (2, 0));
    let thread = &dumps[0].threads[0];
    assert_eq!(
        (thread.tid, thread.state, thread.holds.len()),
        (Some(24_285), State::Runnable, 1)
    );
    assert_eq!(frames(thread).len(), 3);
}

#[test]
fn a_dump_to_a_file_names_owners_by_number() {
    let (dumps, missed, frames) = dumps(TO_FILE);
    assert_eq!((dumps.len(), missed), (1, 0));
    assert_eq!(dumps[0].at, Some(When::Unix(1_769_853_601_500_000_000)));
    let [pay, other] = dumps[0].threads.as_slice() else {
        panic!("{dumps:?}")
    };
    assert_eq!(
        (pay.number, pay.pid, pay.holds.len()),
        (Some(16), Some(23_475), 1)
    );
    assert_eq!(frames(pay)[1], "java.lang.Thread.run(Thread.java:1474)");
    assert!(other.is_virtual);
    assert_eq!(
        other.waits_for.as_ref().and_then(|lock| lock.owner.as_deref()),
        Some("pay")
    );
}

#[test]
fn the_same_as_json() {
    let text = r#"{"threadDump": {"processId": "23475", "time": "2026-01-31T10:00:01.5Z", "runtimeVersion": "25.0.3+9-LTS",
      "threadContainers": [{"container": "<root>", "threads": [
        {"tid": "16", "name": "pay", "state": "BLOCKED", "blockedOn": "java.lang.Object@b084aeb",
         "stack": ["shop.Till.pay(Till.java:7)", "java.base\/java.lang.Thread.run(Thread.java:1474)"],
         "monitorsOwned": [{"depth": 0, "locks": ["java.lang.Object@5980e778", null]}]},
        {"tid": 17, "name": "", "virtual": true, "state": "WAITING",
         "parkBlocker": {"object": "java.util.concurrent.locks.ReentrantLock$NonfairSync@2d", "owner": "16"}, "stack": []},
        {"tid": 18}]}]}}"#;
    let (dumps, missed, frames) = dumps(text);
    assert_eq!((dumps.len(), missed), (1, 1));
    let [pay, other] = dumps[0].threads.as_slice() else {
        panic!("{dumps:?}")
    };
    assert_eq!(
        (pay.state, pay.holds.len(), frames(pay).len()),
        (State::Blocked, 1, 2)
    );
    assert_eq!(frames(pay)[1], "java.lang.Thread.run(Thread.java:1474)");
    assert_eq!(
        other.waits_for.as_ref().and_then(|lock| lock.owner.as_deref()),
        Some("pay")
    );
}

#[test]
fn a_javacore_is_the_same_in_other_words() {
    let (dumps, missed, frames) = dumps(JAVACORE);
    let [dump] = dumps.as_slice() else {
        panic!("{dumps:?}")
    };
    assert_eq!(missed, 0);
    assert_eq!(dump.deadlocks, [["pay", "count"]]);
    let pay = &dump.threads[0];
    assert_eq!(
        (pay.tid, pay.number, pay.cpu),
        (Some(0x1270), Some(28), Some(250_000_000))
    );
    assert_eq!(
        frames(pay),
        [
            "shop.Till.pay(Till.java:7)",
            "java.lang.Thread.run(Thread.java:825)"
        ]
    );
    let wanted = pay.waits_for.as_ref().expect("it is blocked");
    assert_eq!(
        (wanted.class.as_str(), wanted.owner.as_deref()),
        ("java.lang.Object", Some("count"))
    );
    assert_eq!(pay.holds.len(), 1);
}

#[test]
fn whatever_is_cut_or_damaged_the_rest_is_read() {
    for text in [MODERN, PASTED, TO_FILE, JAVACORE] {
        for cut in 0..text.len() {
            let mut bytes = text.as_bytes()[..cut].to_vec();
            let cut_off = read_text("cut", &bytes);
            assert_eq!(cut_off.accounts.len(), cut_off.observed.sources.len());
            bytes.extend_from_slice(b"\nx\0\xff\n\"\" nid=0x\n#\n#1 \"\n- locked <\nat\n");
            // A tag without what belongs to it; before another dump it would make the whole a javacore.
            if text == JAVACORE {
                bytes.extend_from_slice(b"3XMTHREADINFO \"\n3XMCPUTIME\n4XESTACKTRACE at\n");
            }
            bytes.extend_from_slice(text.as_bytes());
            let reading = read_text("damaged", &bytes);
            assert!(
                !reading.observed.snapshots.is_empty(),
                "after {cut} bytes: {reading:?}"
            );
            assert!(!reading.observed.snapshots.is_empty(), "after {cut} bytes");
        }
    }
    for damaged in [
        &b"{\"threadDump\""[..],
        b"{\"threadDump\": 3}",
        b"{\"threadDump\": {\"threadContainers\": [1, {\"threads\": [null]}]}}",
    ] {
        assert!(read_text("damaged", damaged).observed.is_empty());
    }
}

/// Up to some updates of JDK 8 and 11 nothing but the header and the state tell of a wait for a class.
#[test]
fn a_class_that_another_initialises_without_its_line() {
    let dump = "Full thread dump OpenJDK 64-Bit Server VM (25.202-b08 mixed mode):

\"init-1\" #9 prio=5 os_prio=0 tid=0x00007f1 nid=0x1f in Object.wait() [0x00007f2]
   java.lang.Thread.State: RUNNABLE
\tat shop.One.<clinit>(One.java:7)
\tat shop.Main.run(Main.java:3)

\"init-2\" #10 prio=5 os_prio=0 tid=0x00007f3 nid=0x20 in Object.wait() [0x00007f4]
   java.lang.Thread.State: RUNNABLE
\tat shop.Main.go(Main.java:9)

\"Finalizer\" #3 daemon prio=8 os_prio=0 tid=0x00007f5 nid=0x21 in Object.wait() [0x00007f6]
   java.lang.Thread.State: WAITING (on object monitor)
\tat java.lang.Object.wait(Native Method)
\t- waiting on <0x00000006c0> (a java.lang.ref.ReferenceQueue$Lock)

\"odd\" #4 prio=8 os_prio=0 tid=0x00007f7 nid=0x22 in Object.wait() [0x00007f8]
   java.lang.Thread.State: RUNNABLE
\tat java.lang.Object.wait(Native Method)
";
    let reading = read_text("d", dump.as_bytes());
    let threads = &reading.observed.snapshots[0].threads;
    let waits: Vec<Option<LockWait>> = threads
        .iter()
        .map(|thread| thread.waits_for.as_ref().and_then(|lock| lock.wait))
        .collect();
    let class = Some(LockWait::ClassInit);
    assert_eq!(waits, [class, class, Some(LockWait::Wait), None]);
}

/// JDK 21 and later print the virtual thread behind its carrier's frames.
#[test]
fn a_mounted_virtual_thread_is_a_thread_of_its_own() {
    let dump = "\"ForkJoinPool-1-worker-1\" #23 [17710] daemon prio=5 os_prio=0 cpu=15.93ms elapsed=3.40s tid=0x00007f24 [0x00007f25]
   Carrying virtual thread #22
\tat jdk.internal.vm.Continuation.run(java.base@25.0.3/Continuation.java:251)
   Mounted virtual thread #22
\tat jdk.internal.misc.Unsafe.park(java.base@25.0.3/Native Method)
\tat java.lang.VirtualThread.parkOnCarrierThread(java.base@25.0.3/VirtualThread.java:817)
\tat shop.Till.pay(Till.java:19)

\"ForkJoinPool-1-worker-2\" #25 [17711] daemon prio=5 os_prio=0 cpu=0.18ms elapsed=3.40s tid=0x00007f26 [0x00007f27]
   Carrying virtual thread #24
\tat jdk.internal.vm.Continuation.run(java.base@25.0.3/Continuation.java:251)
   Mounted virtual thread #24
\tat shop.Till.pay(Till.java:18)
\t- waiting on the Class initialization monitor for shop.Rates
";
    let reading = read_text("d", dump.as_bytes());
    assert_eq!(reading.accounts[0].not_understood, 0);
    let threads = &reading.observed.snapshots[0].threads;
    let rows: Vec<(Option<u64>, bool, State)> = threads
        .iter()
        .map(|thread| (thread.number, thread.is_virtual, thread.state))
        .collect();
    assert_eq!(
        rows,
        [
            (Some(23), false, State::Unknown),
            (Some(22), true, State::Waiting),
            (Some(25), false, State::Unknown),
            (Some(24), true, State::Runnable),
        ]
    );
    let lock = threads[3].waits_for.as_ref().unwrap();
    assert_eq!(
        (lock.wait, lock.class.as_str()),
        (Some(LockWait::ClassInit), "shop.Rates")
    );
}

#[test]
fn frames_of_a_dump_to_a_file_of_jdk_21_have_no_word_before_them() {
    let text = "64933
2025-04-22T07:47:09.198298561Z
24+36

#3 \"main\"
      java.base/jdk.internal.misc.Unsafe.park(Native Method)
      java.base/java.util.concurrent.locks.LockSupport.park(LockSupport.java:223)
      com.test.MainClass.main(MainClass.java:14)

#8 \"Signal Dispatcher\"
";
    let reading = read_text("d", text.as_bytes());
    let threads = &reading.observed.snapshots[0].threads;
    let frames: Vec<&str> = reading
        .observed
        .stacks
        .frames(threads[0].stack.unwrap())
        .collect();
    assert_eq!(frames.len(), 3);
    assert!(frames[2].starts_with("com.test.MainClass.main"), "{frames:?}");
    assert_eq!(threads[1].stack, None);
}

#[test]
fn a_deadlock_whose_heading_was_not_copied() {
    let text = "\"till-1\":\n  waiting to lock monitor 0x1 (object 0x2, a shop.Till),\n  which is held by \"till-2\"\n\"till-2\":\n  waiting for ownable synchronizer 0x3, (a java.util.concurrent.locks.ReentrantLock$Sync),\n  which is held by \"till-1\"\n";
    let dumps = read_text("t", text.as_bytes()).observed.snapshots;
    assert_eq!(dumps.len(), 1);
    assert_eq!(dumps[0].deadlocks, [["till-1", "till-2"]]);
    let owners = dumps[0]
        .threads
        .iter()
        .map(|thread| thread.waits_for.as_ref()?.owner.clone());
    assert_eq!(
        owners.collect::<Vec<_>>(),
        [Some("till-2".to_owned()), Some("till-1".to_owned())]
    );
    // A document has names with colons too.
    assert!(
        read_text("t", b"\"status\":\n  waiting\n")
            .observed
            .snapshots
            .is_empty()
    );
}

#[test]
fn threads_of_android_with_their_states_and_who_has_a_lock() {
    let text = "----- pid 812 at 2024-04-05 10:00:00 -----\nCmd line: org.shop.app\n\n\"main\" prio=5 tid=1 Blocked\n  | group=\"main\" sCount=1 dsCount=0\n\
        \x20 at org.shop.Cart.show(Cart.java:40)\n  - waiting to lock <0x0a1b2c3d> (a org.shop.Store) held by thread 14\n\
        \x20 at org.shop.Main.click(Main.java:9)\n\n\"sync\" prio=5 tid=14 Native\n  at org.shop.Store.save(Store.java:7)\n\
        \x20 - locked <0x0a1b2c3d> (a org.shop.Store)\n";
    let reading = read_text("a", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "thread-dump");
    let threads = &reading.observed.snapshots[0].threads;
    assert_eq!(
        (threads[0].name.as_str(), threads[0].state),
        ("main", State::Blocked)
    );
    let waits = threads[0].waits_for.as_ref().unwrap();
    assert_eq!(waits.class, "org.shop.Store");
    assert_eq!(threads[1].holds[0].id, waits.id);
}
