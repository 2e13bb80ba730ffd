//! Stacks by debuggers, of goroutines and of Python, whole, pasted, cut and damaged.

use crate::Reading;
use crate::read_text;
use holdup_evidence::Observed;
use holdup_evidence::observed::{How, SeenThread, Snapshot, SnapshotKind, State, StatementKind};

fn read(text: &str) -> Reading {
    read_text("dump.txt", text.as_bytes())
}

/// Lines that were not understood.
fn lost(reading: &Reading) -> u64 {
    reading
        .accounts
        .iter()
        .map(|account| account.not_understood)
        .sum()
}

fn only(observed: &Observed) -> &Snapshot {
    assert_eq!(observed.snapshots.len(), 1, "{:?}", observed.snapshots);
    &observed.snapshots[0]
}

fn frames<'a>(observed: &'a Observed, thread: &SeenThread) -> Vec<&'a str> {
    let stack = thread.stack.expect("a stack");
    observed.stacks.frames(stack).collect()
}

const GDB: &str = r#"[New LWP 7736]
Thread 2 (Thread 0x7f60c64d76c0 (LWP 7736) "pay (eu)"):
#0  futex_wait (private=0, expected=2, futex_word=0x5644347491a0 <journal>) at ../sysdeps/nptl/futex-internal.h:146
#1  ___pthread_mutex_lock (mutex=mutex@entry=0x5644347491a0 <journal>) at ./nptl/pthread_mutex_lock.c:93
#2  0x00005644347462b8 in shop::Till::pay<int (*)(char)> (this=0x0, f=0x55 "a)b(") at /build/shop/till.cpp:12
        total = 3
#3  <signal handler called>
#4  0x00007f60ca56c1f5 in ?? () from /lib/x86_64-linux-gnu/libc.so.6

Thread 1 (LWP 7726):
#0  0x00007f60ca5df6a0 in __poll () from /lib/x86_64-linux-gnu/libc.so.6
"#;

#[test]
fn a_debugger_s_threads_have_names_numbers_locks_and_short_places() {
    let reading = read(GDB);
    let observed = &reading.observed;
    let dump = only(observed);
    assert_eq!(dump.kind, SnapshotKind::Native);
    assert_eq!(lost(&reading), 0, "{:?}", reading.accounts);
    let [pay, main] = &dump.threads[..] else {
        panic!("{:?}", dump.threads)
    };
    assert_eq!(
        (pay.name.as_str(), pay.tid, main.tid),
        ("pay (eu)", Some(7736), Some(7726))
    );
    assert_eq!(
        frames(observed, pay),
        [
            "futex_wait(sysdeps/nptl/futex-internal.h:146)",
            "___pthread_mutex_lock(nptl/pthread_mutex_lock.c:93)",
            "shop::Till::pay<int (*)(char)>(till.cpp:12)",
            "<signal handler called>()",
            "0x00007f60ca56c1f5(libc.so.6)",
        ]
    );
    let lock = pay.waits_for.as_ref().expect("a lock");
    assert_eq!(
        (lock.id.as_str(), lock.class.as_str()),
        ("0x5644347491a0", "journal")
    );
    assert_eq!(main.waits_for, None);
}

#[test]
fn two_dumps_of_a_debugger_are_two() {
    let reading = read(&format!("{GDB}\n{GDB}"));
    let observed = &reading.observed;
    let threads: Vec<usize> = observed.snapshots.iter().map(|dump| dump.threads.len()).collect();
    assert_eq!(threads, [2, 2]);
}

const GO: &str = "fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan receive, 12 minutes, locked to thread]:
main.main()
	/srv/shop/main.go:77 +0x4d4

goroutine 18 gp=0x1360afe04000 m=nil [sync.Mutex.Lock]:
internal/sync.runtime_SemacquireMutex(0x411680?, 0x70?)
	/usr/local/go/src/runtime/sema.go:95 +0x25
internal/sync.(*Mutex).lockSlow(0xc000586008)
	/usr/local/go/src/internal/sync/mutex.go:149 +0x15d
main.(*store).get(0xc0005?, {0x77a070, 0x1})
	/srv/shop/main.go:23 +0x5c fp=0x1360aff06aa8 sp=0x1360aff06a48 pc=0x67e57c
created by main.main in goroutine 1
	/srv/shop/main.go:39 +0x86
exit status 2
";

#[test]
fn goroutines_have_states_ages_and_locks() {
    let reading = read(GO);
    let observed = &reading.observed;
    let dump = only(observed);
    assert_eq!((dump.kind, dump.deadlocks.len()), (SnapshotKind::Go, 1));
    assert_eq!(lost(&reading), 0, "{:?}", reading.accounts);
    let [main, get] = &dump.threads[..] else {
        panic!("{:?}", dump.threads)
    };
    assert_eq!(
        (main.words.as_str(), main.waited),
        ("chan receive", Some(720_000_000_000))
    );
    assert_eq!((get.state, get.waited), (State::Waiting, None));
    assert_eq!(
        get.waits_for.as_ref().map(|lock| lock.id.as_str()),
        Some("0xc000586008")
    );
    let stack = frames(observed, get);
    assert_eq!(stack.last(), Some(&"main.(*store).get(main.go:23)"));
    assert_eq!(stack.len(), 3, "who made it is no frame");
}

#[test]
fn a_profile_of_goroutines_has_as_many_as_it_counts() {
    let text = "goroutine profile: total 4\n3 @ 0x48614e 0x44a137\n#\t0x485324\tinternal/poll.runtime_pollWait+0x84\t\t/usr/local/go/src/runtime/netpoll.go:351\n\
                #\t0x656731\tmain.pay+0x171\t\t/srv/shop/main.go:9\n\n1 @ 0x48614e\n#\t0x6580e5\tmain.main+0xe5\t/srv/shop/main.go:3\n";
    let reading = read(text);
    let observed = &reading.observed;
    let dump = only(observed);
    assert_eq!(dump.threads.len(), 4);
    let first = [
        "internal/poll.runtime_pollWait(netpoll.go:351)",
        "main.pay(main.go:9)",
    ];
    assert_eq!(frames(observed, &dump.threads[0]), first);
    assert_eq!(frames(observed, &dump.threads[3]), ["main.main(main.go:3)"]);
}

#[test]
fn python_s_threads_are_read_from_both_dumps() {
    let spy = "Process 12: python3 app.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 12 (active+gil): \"MainThread\"\n    \
               sum (app.py:3)\nThread 13 (idle): \"till_0\"\n    Popen._wait (subprocess.py:2046)\n";
    let reading = read(spy);
    let observed = &reading.observed;
    let dump = only(observed);
    assert_eq!(
        (dump.kind, dump.program.as_deref()),
        (SnapshotKind::Python, Some("python3 app.py"))
    );
    let [main, till] = &dump.threads[..] else {
        panic!("{:?}", dump.threads)
    };
    assert_eq!(
        (main.state, main.pid, main.tid),
        (State::Runnable, Some(12), Some(12))
    );
    assert_eq!((till.state, till.name.as_str()), (State::Waiting, "till_0"));
    assert_eq!(frames(observed, till), ["Popen._wait(subprocess.py:2046)"]);

    let fault = "Thread 0x00007f3994ff96c0 [till] (most recent call first):\n  File \"/srv/a \"b\", line 1/app.py\", line 22 in <lambda>\n\n\
                 Current thread 0x00007f399da63b80 (most recent call first):\n  <no Python frame>\n";
    let reading = read(fault);
    let observed = &reading.observed;
    let dump = only(observed);
    assert_eq!(dump.threads.len(), 2);
    assert_eq!(dump.threads[0].name, "till");
    assert_eq!(lost(&reading), 1, "a file's name that looks like the end of one");
}

#[test]
fn cut_anywhere_nothing_is_lost_but_the_end() {
    for text in [GDB, GO] {
        for end in 0..text.len() {
            let Some(part) = text.get(..end) else { continue };
            let reading = read(part);
            let observed = &reading.observed;
            let threads: usize = observed.snapshots.iter().map(|dump| dump.threads.len()).sum();
            assert!(threads <= 2, "{end}: {threads}");
        }
    }
}

#[test]
fn pystack_has_the_innermost_frame_last() {
    let text = "Traceback for thread 31 (worker) [Has the GIL] (most recent call last):\n\
        \x20   (Python) File \"/srv/job.py\", line 40, in main\n        run()\n\
        \x20   (Python) File \"/srv/job.py\", line 12, in run\n        time.sleep(9)\n\
        Traceback for thread 32 [] (most recent call last):\n    (Python) File \"/srv/pool.py\", line 3, in take\n";
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "python-stacks");
    assert_eq!(reading.accounts[0].not_understood, 0);
    let [dump] = reading.observed.snapshots.as_slice() else {
        panic!("{reading:?}")
    };
    let names: Vec<&str> = dump.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["worker", "thread 32"]);
    let stack: Vec<&str> = frames(&reading.observed, &dump.threads[0]);
    assert_eq!(stack, ["run(/srv/job.py:12)", "main(/srv/job.py:40)"]);
}

#[test]
fn goroutines_of_a_debugger_have_function_and_place_on_one_line() {
    let text = "  sync.runtime_SemacquireMutex (/go/src/runtime/sema.go:77)\n  sync.(*RWMutex).RLock (/go/src/sync/rwmutex.go:71)\n\
        \x20 shop.(*Pool).Do (<snip>/shop/pool.go:440)\n  created at: shop.TestPool (<snip>/pool_test.go:9)\n\nGoroutine 87\n\
        \x20 runtime.gopark (/go/src/runtime/proc.go:364)\n  shop.(*Pool).Do (<snip>/shop/pool.go:440)\n";
    let reading = read_text("g", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "goroutines");
    let threads = &reading.observed.snapshots[0].threads;
    assert_eq!(threads.len(), 2, "{threads:?}");
    let stack: Vec<&str> = frames(&reading.observed, &threads[0]);
    assert_eq!(stack[2], "shop.(*Pool).Do(pool.go:440)");
    assert_eq!(threads[1].number, Some(87));
}

#[test]
fn the_thread_that_is_looked_at_next_and_who_has_a_mutex_that_is_printed() {
    let text = "(gdb) p *(pthread_mutex_t*)0x7f\n$2 = {__data = {__lock = 2, __count = 1, __owner = 4321, __nusers = 1}\n\n(gdb) thread 25\n\
        [Switching to thread 25 (Thread 0x7fffcaffd700 (LWP 4321))]\n#0  __lll_lock_wait () at lowlevellock.S:135\n";
    let reading = read_text("g", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "native-stacks");
    let thread = &reading.observed.snapshots[0].threads[0];
    assert_eq!((thread.number, thread.tid), (Some(25), Some(4321)));
    assert_eq!(
        reading.observed.statements[0].text,
        "the lock that was printed is held by thread 4321 (__owner)"
    );
}

#[test]
fn stacks_of_a_test_whose_time_ran_out_have_the_innermost_frame_last() {
    let text = "+++++++++++ Timeout +++++++++++\n\n~~~~~~ Stack of Thread-6 (run) (139742417913600) ~~~~~~\n  File \"/usr/lib/python3.8/threading.py\", line 870, in run\n    self._target()\n  File \"/usr/lib/python3.8/multiprocessing/connection.py\", line 379, in _recv\n    chunk = read(handle, remaining)\n\n+++++++++++ Timeout +++++++++++\n";
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "python-stacks");
    let thread = &reading.observed.snapshots[0].threads[0];
    assert_eq!(thread.name, "Thread-6 (run)");
    assert!(thread.words.contains("limit of time"), "{}", thread.words);
    let stack: Vec<&str> = frames(&reading.observed, thread);
    assert!(stack[0].starts_with("_recv("), "{stack:?}");
    for other in [
        "~~~ Stack of wood ~~~\n",
        "~~~ Stack of a (b) ~~~\n",
        "+++ b\n",
        "++++\n",
    ] {
        assert_ne!(
            read_text("p", other.as_bytes()).observed.sources[0].format,
            "python-stacks"
        );
    }
}

#[test]
fn a_go_program_that_ended_says_why_unless_a_test_gave_up() {
    let stack = "\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/shop/main.go:36 +0x4e5\nexit status 2\n";
    let why = |said: &str| {
        let observed = read(&format!("{said}{stack}")).observed;
        assert_eq!(only(&observed).threads.len(), 1);
        let ended = observed.statements.into_iter().map(|one| (one.kind, one.text));
        ended.collect::<Vec<(StatementKind, String)>>()
    };
    for said in [
        "panic: dial tcp 10.0.1.53:6379: i/o timeout",
        "fatal error: concurrent map writes",
        "> panic: runtime error: index out of range [3] with length 3",
    ] {
        let words = said.trim_start_matches("> ").to_owned();
        assert_eq!(why(said), [(StatementKind::Ended, words)]);
    }
    for gave_up in [
        "panic: test timed out after 10m0s",
        "panic: Tests terminated by signal terminated",
        "panic: watchdog: no heartbeat from the scheduler for 30s",
    ] {
        assert_eq!(why(gave_up), []);
    }
    let panic = read(&format!("panic: dial tcp 10.0.1.53:6379: i/o timeout{stack}"));
    let blamed = &panic.observed.statements[0].blames[0];
    assert_eq!(
        (blamed.of.as_str(), blamed.how),
        ("10.0.1.53:6379", How::NoAnswer)
    );
}

#[test]
fn a_stack_of_which_a_page_made_headings() {
    let text = "# 0 0x00007fa9e3c7b6a7 in semop () from /lib64/libc.so.6\n\n# 1 0x000000000048c6e3 in \\*\\*shop_lock (line=line@entry=238) at locks.c:216\n\n\
        # 2 0x00000000004564c0 in lock_journal () at journal.c:238\n";
    let observed = read_text("t", text.as_bytes()).observed;
    let stack = observed.snapshots[0].threads[0].stack.unwrap();
    let frames: Vec<&str> = observed.stacks.frames(stack).collect();
    assert_eq!(
        frames,
        [
            "semop(libc.so.6)",
            "shop_lock(locks.c:216)",
            "lock_journal(journal.c:238)"
        ]
    );
}

#[test]
fn frames_without_a_sign_as_delve_prints_them() {
    let text = " 0  0x0000000000469bb3 in runtime.futex\n    at /root/sdk/sys_linux_amd64.s:563\n 1  0x0000000000432296 in runtime.futexsleep\n    \
        at /root/sdk/os_linux.go:44\n 2  0x000000000040cb7a in shop.Lock\n    at /srv/shop/lock.go:102\n";
    let reading = read(text);
    assert_eq!(reading.observed.sources[0].format, "native-stacks");
    let dump = only(&reading.observed);
    assert_eq!(frames(&reading.observed, &dump.threads[0]).len(), 3);
}

#[test]
fn a_list_of_threads_whose_frames_stand_in_the_next_line_and_a_stack_in_a_comment() {
    let text = "(gdb) info thr\n   Id   Target Id   Frame\n * 1    Thread 0x7fb9f0f39e00 (LWP 21) \"worker\"\n\
        0x00007fb9d784f54d in __lll_lock_wait () from /lib64/libpthread.so.0\n   2    Thread 0x7fb9f0f39e01 (LWP 22) \"other\"\n\
        0x00007fb9d784f54e in poll () from /lib64/libc.so.6\n";
    let reading = read(text);
    let dump = only(&reading.observed);
    assert_eq!(dump.threads.len(), 2);
    assert!(frames(&reading.observed, &dump.threads[0])[0].starts_with("__lll_lock_wait"));
    let text = "  // #0 0x424a84b8 in __lll_lock_wait () from /lib/libpthread.so.0\n  // No symbol table info available.\n  \
        // #1 0x424a1a30 in pthread_mutex_lock () from /lib/libpthread.so.0\n  // #2 0x41013840 in open_it () from /lib/own.so\n";
    let reading = read(text);
    let dump = only(&reading.observed);
    assert_eq!(frames(&reading.observed, &dump.threads[0]).len(), 3);
}

#[test]
fn held_locks_of_a_program_of_32_bits() {
    let text = "> syncblk\nIndex SyncBlock MonitorHeld Recursion Owning Thread Info  SyncBlock Owner\n    \
        7 09E2A714          681         1 09E36238 4b90   8   046b3a28 System.Object\n```\n```\n> clrstack\nOS Thread Id: 0x4b90 (8)\n\
        0AA5D128 7789443c [HelperMethodFrame_1OBJ: 0aa5d128] System.Threading.Monitor.ObjWait(Int32, System.Object)\n";
    let reading = read(text);
    let said = &reading.observed.statements[0];
    assert!(
        said.of_reader
            && said.text.starts_with(
                "340 threads wait for the lock of a System.Object, which thread 8 (0x4b90) holds"
            ),
        "{said:?}"
    );
}

#[test]
fn what_a_person_has_written_behind_a_frame_is_no_part_of_it() {
    for remark in [
        "   <--- here it stays",
        " <- stuck",
        " <== ?!",
        "  \u{2190} never returns",
    ] {
        let text = format!(
            "Thread 71 (idle): \"MainThread\"\n    wait (threading.py:320)\n    drain (shop/queue.py:44){remark}\n    main (shop/app.py:9)\n"
        );
        let reading = read_text("d", text.as_bytes());
        let observed = &reading.observed;
        assert_eq!(observed.sources[0].format, "python-stacks");
        let found = frames(observed, &observed.snapshots[0].threads[0]);
        assert_eq!(
            found,
            [
                "wait(threading.py:320)",
                "drain(shop/queue.py:44)",
                "main(shop/app.py:9)"
            ],
            "{remark}"
        );
    }
}
