//! Messages in all their forms, as kernels of twenty years wrote them.

use crate::read_text;
use holdup_evidence::observed::{BootStep, Happening, KernelEvent, SpanKind, Stall, What, When};

/// Everything that a log of these messages tells, the line about the boot left out.
fn events(messages: &[&str]) -> Vec<KernelEvent> {
    let mut text = "[    0.000000] Linux version 6.1.0 (builder)\n".to_owned();
    for message in messages {
        text.push_str("[    1.000000] ");
        text.push_str(message);
        text.push('\n');
    }
    let reading = read_text("log", text.as_bytes());
    assert_eq!(reading.accounts[0].not_understood, 0, "{messages:?}");
    let kernel = |one: Happening| match one.what {
        What::Kernel(event) => event,
        other => panic!("{other:?}"),
    };
    reading
        .observed
        .happenings
        .into_iter()
        .skip(1)
        .map(kernel)
        .collect()
}

fn one(message: &str) -> KernelEvent {
    let [event] = &events(&[message])[..] else {
        panic!("{message}: {:?}", events(&[message]))
    };
    event.clone()
}

#[test]
fn the_generator_in_all_its_words() {
    for (message, fully) in [
        ("random: nonblocking pool is initialized", true),
        ("random: crng init done", true),
        ("random: crng done (trusting CPU's manufacturer)", true),
        ("random: crng init done (trusting CPU's manufacturer)", true),
        ("random: fast init done", false),
    ] {
        assert_eq!(one(message), KernelEvent::RandomSeeded { fully }, "{message}");
    }
    for (message, process, suppressed) in [
        (
            "random: systemd: uninitialized urandom read (16 bytes read)",
            "systemd",
            0,
        ),
        (
            "random: dd: uninitialized urandom read (16 bytes read, 35 bits of entropy available)",
            "dd",
            0,
        ),
        (
            "random: dd urandom read with 35 bits of entropy available",
            "dd",
            0,
        ),
        ("random: 7 urandom warning(s) missed due to ratelimiting", "", 7),
    ] {
        let read = KernelEvent::UnseededRead {
            process: process.to_owned(),
            suppressed,
        };
        assert_eq!(one(message), read, "{message}");
    }
}

#[test]
fn a_boot_whose_first_lines_were_filtered_out_still_begins() {
    let line = "Apr 17 12:05:06 box kernel: random: get_random_bytes called from start_kernel+0x93/0x531 with crng_init=0";
    let reading = read_text("log", line.as_bytes());
    let boot = KernelEvent::Boot {
        release: String::new(),
        id: None,
    };
    assert_eq!(reading.observed.happenings[0].what, What::Kernel(boot));
    // Behind the first line of a boot it is none.
    let called = "random: get_random_bytes called from start_kernel+0x93/0x531 with crng_init=0";
    assert_eq!(events(&[called]), []);
}

#[test]
fn a_hung_task_has_its_stack_and_owner() {
    let report = [
        "INFO: task my app:x:123 blocked for more than 120 seconds.",
        "      Not tainted 6.17.0 #1",
        "\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.",
        "task:my app:x  state:D stack:0 pid:123 tgid:123 ppid:1 task_flags:0x400100 flags:0x00004002",
        "Call Trace:",
        " <TASK>",
        " __schedule+0x34d/0x9e0",
        " ? leftover+0x1/0x2",
        " [<ffffffff81234567>] mutex_lock+0x20/0x30 [ext4]",
        " </TASK>",
        "INFO: task my app:x:123 <writer> blocked on an rw-semaphore likely owned by task dd:45 <reader>",
        "random: crng init done",
    ];
    let [hung, _seeded] = &events(&report)[..] else {
        panic!("{:?}", events(&report))
    };
    let expected = KernelEvent::HungTask {
        process: "my app:x".to_owned(),
        pid: 123,
        ns: 120_000_000_000,
        owner: Some("dd:45".to_owned()),
        stack: vec!["__schedule".to_owned(), "mutex_lock".to_owned()],
    };
    assert_eq!(*hung, expected);
    // Cut off behind its first line, it is still reported.
    assert!(matches!(
        one(report[0]),
        KernelEvent::HungTask { owner: None, .. }
    ));
    let in_io = one("INFO: task dd:1 blocked in I/O wait for more than 30 seconds.");
    assert!(matches!(in_io, KernelEvent::HungTask { pid: 1, .. }));
}

#[test]
fn frames_with_files_and_lines_are_frames() {
    let report = [
        "INFO: task umount:7 blocked for more than 491 seconds.",
        "Call Trace:",
        "<TASK>",
        "__schedule (kernel/sched/core.c:5378 kernel/sched/core.c:6765)",
        "? leftover (kernel/sched/wait.c:383)",
        "btrfs_kill_super (fs/btrfs/super.c:2101) btrfs",
        "RIP: 0033:0x7f6de1c13936",
    ];
    let expected = ["__schedule".to_owned(), "btrfs_kill_super".to_owned()];
    assert!(matches!(&events(&report)[..], [KernelEvent::HungTask { stack, .. }] if *stack == expected));
}

#[test]
fn processors_that_do_not_get_on() {
    for message in [
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [dd:123]",
        "BUG: soft lockup - CPU#1 stuck for 22s! [dd:123]",
        "NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [dd:123]",
    ] {
        let lockup = KernelEvent::SoftLockup {
            cpu: 1,
            process: "dd:123".to_owned(),
            ns: 22_000_000_000,
            stall: Stall::default(),
        };
        assert_eq!(one(message), lockup, "{message}");
    }
    for message in [
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "INFO: rcu_sched detected stalls on CPUs/tasks:",
    ] {
        assert_eq!(one(message), KernelEvent::RcuStall, "{message}");
    }
    let stall = one("INFO: rcu_sched detected stalls on CPUs/tasks: { 1 3}");
    let on = Stall {
        cpus: vec![1, 3],
        ..Stall::default()
    };
    assert_eq!(stall, KernelEvent::CpuStall(on));
    for message in [
        "clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable because the skew is too large:",
        "Clocksource tsc unstable (delta = 123456 ns)",
        "tsc: Marking TSC unstable due to clocksource watchdog",
    ] {
        let from = "tsc".to_owned();
        assert_eq!(one(message), KernelEvent::ClockUnstable { from }, "{message}");
    }
}

#[test]
fn ended_for_their_memory_by_the_machine_and_by_a_cgroup() {
    let machine = [
        "java invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=0",
        "Free swap  = 12kB",
        "Total swap = 2097148kB",
        "Out of memory: Kill process 4242 (java) score 900 or sacrifice child",
        "Killed process 4242 (java) total-vm:10000kB, anon-rss:7000kB, file-rss:40kB",
    ];
    let kill =
        |process: &str, resident, cgroup: Option<&str>, swap: Option<(u64, u64)>| KernelEvent::OomKill {
            process: process.to_owned(),
            pid: 4242,
            resident_kib: resident,
            cgroup: cgroup.map(str::to_owned),
            free_swap_kib: swap.map(|swap| swap.0),
            total_swap_kib: swap.map(|swap| swap.1),
        };
    assert_eq!(
        events(&machine),
        [kill("java", Some(7040), None, Some((12, 2_097_148)))]
    );
    let cgroup = [
        "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/app,task_memcg=/app/x,task=java,pid=4242,uid=0",
        "Memory cgroup out of memory: Killed process 4242 (ja)va) total-vm:1kB, anon-rss:7kB, file-rss:4kB, shmem-rss:1kB, UID:0 pgtables:80kB oom_score_adj:0",
    ];
    assert_eq!(events(&cgroup), [kill("ja)va", Some(12), Some("/app"), None)]);
    let old = [
        "java invoked oom-killer: gfp_mask=0xd0, order=0",
        "Task in /lxc/a killed as a result of limit of /lxc",
        "Killed process 4242, UID 0, (java) total-vm:1kB, anon-rss:7kB, file-rss:4kB",
    ];
    assert_eq!(events(&old), [kill("java", Some(11), Some("/lxc"), None)]);
}

#[test]
fn disks_and_their_links() {
    for (message, device) in [
        ("I/O error, dev vda, sector 0 op 0x0:(READ) flags 0x0", "vda"),
        ("blk_update_request: I/O error, dev sda, sector 8", "sda"),
        ("print_req_error: I/O error, dev sda, sector 8", "sda"),
        ("end_request: I/O error, dev sda, sector 8", "sda"),
        ("ata1.00: failed command: READ FPDMA QUEUED", "ata1.00"),
        // It only tries again.
        (
            "ata1.00: exception Emask 0x0 SAct 0x3 SErr 0x0 action 0x0",
            "ata1.00",
        ),
        (
            "Buffer I/O error on dev vda, logical block 0, async page read",
            "vda",
        ),
        ("Buffer I/O error on device sda1, logical block 0", "sda1"),
    ] {
        let found = one(message);
        assert!(
            matches!(&found, KernelEvent::IoError { device: of, .. } if of == device),
            "{message}: {found:?}"
        );
    }
    for (message, device) in [
        ("ata1: hard resetting link", "ata1"),
        (
            "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen",
            "ata1.00",
        ),
        ("nvme nvme0: I/O 12 QID 3 timeout, aborting", "nvme0"),
        (
            "nvme nvme0: I/O 12 (I/O Cmd) QID 3 timeout, reset controller",
            "nvme0",
        ),
        (
            "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
            "nvme0",
        ),
        ("sd 2:0:0:0: [sdb] tag#5 timing out command, waited 180s", "sdb"),
        ("sd 2:0:0:0: attempting task abort! scmd(0000)", "2:0:0:0"),
        ("e1000e 0000:00:19.0 eth0: Reset adapter unexpectedly", "eth0"),
    ] {
        let found = one(message);
        assert!(
            matches!(&found, KernelEvent::DeviceReset { device: of, .. } if of == device),
            "{message}: {found:?}"
        );
    }
    for message in [
        "NETDEV WATCHDOG: eth0 (e1000e): transmit queue 3 timed out",
        "NETDEV WATCHDOG: CPU: 2: eth0 (e1000e): transmit queue 3 timed out 5120 ms",
    ] {
        let silent = KernelEvent::TransmitTimeout {
            device: "eth0 (e1000e)".to_owned(),
            queue: Some(3),
        };
        assert_eq!(one(message), silent, "{message}");
    }
    for nothing in [
        "blk_update_request: I/O error, dev fd0, sector 0",
        "blk_update_request: operation not supported error, dev loop0, sector 8 op 0x9:(WRITE_ZEROES)",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "nvme nvme0: pci function 0000:01:00.0",
        "sd 0:0:0:0: Power-on or device reset occurred",
        "nfs: server",
        "EXT4-fs (vdb): re-mounted. Opts: (null)",
        "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
        "clocksource: Switched to clocksource tsc",
    ] {
        assert_eq!(events(&[nothing]), [], "{nothing}");
    }
}

#[test]
fn networks_and_file_systems() {
    for (message, port) in [
        (
            "TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.  Check SNMP counters.",
            80,
        ),
        (
            "TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:8080. Sending cookies.",
            8080,
        ),
        (
            "TCP: TCP: Possible SYN flooding on port [::]:443. Dropping request.",
            443,
        ),
        ("possible SYN flooding on port 25. Sending cookies.", 25),
    ] {
        assert_eq!(one(message), KernelEvent::SynFlood { port }, "{message}");
    }
    for message in [
        "nf_conntrack: table full, dropping packet",
        "nf_conntrack: nf_conntrack: table full, dropping packet",
        "ip_conntrack: table full, dropping packet.",
    ] {
        assert_eq!(one(message), KernelEvent::ConntrackFull, "{message}");
    }
    for (message, ok) in [
        ("nfs: server nas not responding, still trying", false),
        ("nfs: server nas not responding, timed out", false),
        ("lockd: server nas not responding, still trying", false),
        ("nfs: server nas OK", true),
        (
            "CIFS: VFS: \\\\nas has not responded in 180 seconds. Reconnecting...",
            false,
        ),
        (
            "CIFS VFS: Server nas has not responded in 120 seconds. Reconnecting...",
            false,
        ),
    ] {
        let silent = KernelEvent::NfsServer {
            server: "nas".to_owned(),
            ok,
            gave_up: message.ends_with("timed out"),
        };
        assert_eq!(one(message), silent, "{message}");
    }
    for (message, on, read_only) in [
        (
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
            "sda1",
            false,
        ),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "sda1", true),
        (
            "XFS (dm-0): Corruption detected. Unmount and run xfs_repair",
            "dm-0",
            false,
        ),
        ("XFS (dm-0): log I/O error -5", "dm-0", false),
        (
            "XFS (dm-0): Log I/O Error Detected. Shutting down filesystem",
            "dm-0",
            true,
        ),
        ("Aborting journal on device sda1-8.", "sda1-8", true),
        ("BTRFS info (device sda1): forced readonly", "sda1", true),
        (
            "BTRFS: error (device sda1) in btrfs_commit_transaction:2236: errno=-5 IO failure",
            "sda1",
            false,
        ),
        ("FAT-fs (sdb1): Filesystem has been set read-only", "sdb1", true),
    ] {
        let on = on.to_owned();
        assert_eq!(
            one(message),
            KernelEvent::FileSystemError { on, read_only },
            "{message}"
        );
    }
}

#[test]
fn a_device_that_fails_without_end_does_not_push_the_rest_out() {
    let mut text = "[    0.000000] Linux version 6.1.0\n".to_owned();
    for _ in 0..30_000 {
        text.push_str("[    1.000000] I/O error, dev vda, sector 0 op 0x0:(READ)\n");
    }
    text.push_str("[    2.000000] nfs: server nas OK\n");
    let reading = read_text("log", text.as_bytes());
    assert_eq!(reading.observed.happenings.len(), 2_002);
    assert_eq!(reading.accounts[0].left_out, 28_000);
    assert_eq!(reading.observed.sources[0].kernel_lines, 30_002);
}

#[test]
fn steps_of_a_boot_in_all_their_words() {
    let mounted = |on: &str, root| BootStep::Mounted {
        on: on.to_owned(),
        root,
    };
    let link = |interface: &str| BootStep::LinkUp {
        interface: interface.to_owned(),
    };
    for (message, step) in [
        (
            "Run /sbin/init as init process",
            BootStep::InitStarted {
                program: "/sbin/init".to_owned(),
            },
        ),
        (
            "Freeing unused kernel image (initmem) memory: 2824K",
            BootStep::KernelReady,
        ),
        ("Freeing unused kernel memory: 1188K", BootStep::KernelReady),
        (
            "Waiting for root device /dev/sda2...",
            BootStep::WaitsForRoot {
                device: "/dev/sda2".to_owned(),
            },
        ),
        (
            "VFS: Mounted root (ext4 filesystem) readonly on device 254:1.",
            mounted("254:1", true),
        ),
        (
            "EXT4-fs (vda1): mounted filesystem 0b-1c ro with ordered data mode. Quota mode: none.",
            mounted("vda1", false),
        ),
        ("XFS (dm-0): Ending clean mount", mounted("dm-0", false)),
        (
            "BTRFS info (device sda3 state M): first mount of filesystem 0b-1c",
            mounted("sda3", false),
        ),
        (
            "Adding 1046524k swap on /dev/vda2.  Priority:-2 extents:1 across:1046524k",
            BootStep::SwapOn {
                area: "/dev/vda2".to_owned(),
            },
        ),
        (
            "e1000: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX",
            link("eth0"),
        ),
        (
            "r8169 0000:02:00.0 enp2s0: Link is Up - 1Gbps/Full - flow control off",
            link("enp2s0"),
        ),
        (
            "IPv6: ADDRCONF(NETDEV_CHANGE): ens3: link becomes ready",
            link("ens3"),
        ),
    ] {
        assert_eq!(one(message), KernelEvent::Step(step), "{message}");
    }
    for nothing in [
        "Run  as",
        "Adding swap",
        "IPv6: ADDRCONF(NETDEV_CHANGE): lo: link becomes ready",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "XFS (sda1): Mounting V5 Filesystem",
        "VFS: Mounted root (",
    ] {
        assert_eq!(events(&[nothing]), [], "{nothing}");
    }
}

#[test]
fn pauses_are_between_lines_of_one_boot() {
    let text = "[    0.000000] Linux version 6.1.0 (builder)
[    1.500000] scsi host0: ahci
[   30.250000] sd 0:0:0:0: [sda] Attached SCSI disk
[   30.500000] x
[  800.000000] y
[ 2000.000000] z
[    0.000000] Linux version 6.1.0 (builder)
[    0.100000] a
";
    let reading = read_text("log", text.as_bytes());
    let pauses: Vec<_> = reading
        .observed
        .spans
        .iter()
        .map(|span| (span.kind, span.began, span.ns / 1_000_000, span.name.as_str()))
        .collect();
    let pause = |at_ms: u64, ms, line| {
        (
            SpanKind::KernelPause,
            Some(When::SinceBoot(at_ms * 1_000_000)),
            ms,
            line,
        )
    };
    assert_eq!(
        pauses,
        [
            pause(0, 1_500, "Linux version 6.1.0 (builder)"),
            pause(1_500, 28_750, "scsi host0: ahci"),
            pause(30_500, 769_500, "x"),
        ]
    );
}

#[test]
fn blocked_tasks_of_sysrq_are_a_list_with_stacks() {
    let text = "[13493.955032] sysrq: Show Blocked State
[13493.959997] task:umount.nfs4     state:D stack:0     pid:3542745 ppid:3542744 flags:0x00004000
[13493.969628] Call Trace:
[13493.973003]  <TASK>
[13493.976018]  __schedule+0x2cb/0x880
[13493.980426]  ? rpc_destroy_wait_queue+0x10/0x10 [sunrpc]
[13493.993637]  schedule+0x50/0xc0
[13493.997697]  rpc_wait_bit_killable+0xd/0x60 [sunrpc]
[13494.024603]  nfs4_proc_destroy_session+0x41/0x530
[13494.974388] task:md127_raid5     state:D stack:0
pid:2619  ppid:2      flags:0x00000008
[13494.983896] Call trace:
[13494.999658]  raid5d+0x358/0x56c
[13494.999999] md1_reclaim     D    0   806      2 0x80004000
[13494.999999]  schedule+0x40/0xb0
[13494.999999]  wbt_wait+0x98/0xe0
[13495.974388] task:bash            state:R stack:0 pid:2
[13495.999658]  do_exit+0x358/0x56c
";
    let reading = read_text("d", text.as_bytes());
    let [list] = reading.observed.snapshots.as_slice() else {
        panic!("{reading:?}")
    };
    let rows: Vec<(&str, Option<u32>, Vec<&str>)> = list
        .threads
        .iter()
        .map(|task| {
            let frames = reading
                .observed
                .stacks
                .frames(task.kernel_stack.unwrap())
                .collect();
            (task.name.as_str(), task.tid, frames)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (
                "umount.nfs4",
                Some(3_542_745),
                vec!["rpc_wait_bit_killable", "nfs4_proc_destroy_session"]
            ),
            ("md127_raid5", Some(2619), vec!["raid5d"]),
            ("md1_reclaim", Some(806), vec!["wbt_wait"]),
        ]
    );
}

#[test]
fn a_hard_lockup_and_lines_with_a_caller_and_no_time() {
    assert_eq!(
        one("NMI watchdog: Watchdog detected hard LOCKUP on cpu 5"),
        KernelEvent::HardLockup {
            cpu: 5,
            stall: Stall::default()
        }
    );
    let text = "[    C3] rcu: INFO: rcu_sched self-detected stall on CPU\n[    C3] rcu: \t(t=21001 jiffies g=5 q=9)\n\
        [    C3] CPU: 3 UID: 0 PID: 12 Comm: spin Not tainted 6.12.0 #1\n";
    let reading = read_text("log", text.as_bytes());
    let [stall] = reading.observed.happenings.as_slice() else {
        panic!("{reading:?}")
    };
    let What::Kernel(KernelEvent::CpuStall(told)) = &stall.what else {
        panic!("{stall:?}")
    };
    assert_eq!(
        (told.task.as_str(), told.jiffies),
        ("spin (pid 12)", Some(21_001))
    );
    assert!(
        stall.text.contains("task spin (pid 12), 21001 jiffies"),
        "{}",
        stall.text
    );
}

#[test]
fn a_report_without_its_first_line_is_a_blocked_task_and_unproven_frames_are_better_than_none() {
    let text = "[ 2417.809351] \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n\
        [ 2417.809351] kworker/0:0     D    0  2904      2 0x00000000\n[ 2417.809351] Workqueue: kcopyd do_work [dm_mod]\n[ 2417.809351] Call Trace:\n\
        [ 2417.809351]  [<ffffffff8780fe79>] ? __schedule+0x239/0x6f0\n[ 2417.809351]  [<ffffffff87810362>] ? schedule+0x32/0x80\n\
        [ 2417.809351]  [<ffffffff8750fcb0>] ? bt_get.isra.6+0x160/0x220\n";
    let reading = read_text("log", text.as_bytes());
    let [snapshot] = reading.observed.snapshots.as_slice() else {
        panic!("{reading:?}")
    };
    let task = &snapshot.threads[0];
    assert_eq!((task.name.as_str(), task.tid), ("kworker/0:0", Some(2904)));
    let frames: Vec<&str> = reading
        .observed
        .stacks
        .frames(task.kernel_stack.unwrap())
        .collect();
    assert_eq!(frames, ["bt_get.isra.6"]);
    assert!(
        reading.observed.statements.is_empty(),
        "{:?}",
        reading.observed.statements
    );
}
