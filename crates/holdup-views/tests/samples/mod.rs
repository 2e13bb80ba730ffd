//! Runs to render: each an attribution as it comes from a real run of its kind, with made-up numbers.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of them")]

pub mod diff;
pub mod experiment;
pub mod nasty;
mod parts;
pub mod scale;

use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{Holder, HowKnown, Link, ResourceKind};
use holdup_model::finding::Verdicts;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use holdup_model::report::{Backend, Report, SubjectKind};
use holdup_report::{Subject, build};
use parts::{attributed, frame, name, resource, wait};

/// One millisecond.
pub const MS: Ns = 1_000_000;

/// A run before it is a report.
pub struct Sample {
    pub command: &'static [&'static str],
    pub pids: Vec<u32>,
    pub exit: i32,
    pub attributed: Attributed,
    pub verdicts: Verdicts,
}

impl Sample {
    pub fn report(self) -> Report {
        let subject = Subject {
            elsewhere: Vec::new(),
            kind: SubjectKind::Run,
            backend: Backend::Bpf,
            command: self.command.iter().map(ToString::to_string).collect(),
            pids: self.pids,
            started: 1_800 * MS,
            exit: Some(self.exit),
        };
        let facts = SystemFacts {
            boot_minus_monotonic: Some(0),
            unix_minus_monotonic: Some(1_700_000_000_000_000_000),
            ..SystemFacts::default()
        };
        build(subject, &self.attributed, self.verdicts, &facts, "0.1.0")
    }
}

/// All of them, by name.
pub fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("sshd", sshd().report()),
        ("pipeline", pipeline().report()),
        ("healthy", healthy().report()),
        ("hostile", hostile().report()),
        ("low coverage", low_coverage().report()),
        ("daemon", daemon().report()),
        ("database", database().report()),
        ("build of many", build_of_many().report()),
        ("diff of runs", diff::traded()),
        ("diff of profiles", diff::profiles()),
        ("a queue in memory", experiment::in_memory()),
        ("readers of a locked file", scale::contends()),
        ("readers that were observed", scale::observed()),
        ("readers on eight CPUs", scale::scales()),
    ]
}

/// The first user of an unseeded generator.
pub fn sshd() -> Sample {
    let sshd = name(812, 812, "sshd", "sshd");
    let mut seed = wait(&sshd, Cause::RandomUnseeded, 1_012 * MS);
    seed.call = Some("getrandom".to_owned());
    seed.bytes = Some(32);
    seed.max_started = 1_800 * MS;
    seed.max_ended = 2_812 * MS;
    seed.resource = resource(
        ResourceKind::Kernel,
        "random number generator",
        &[("seeded", "2.81 s after boot")],
    );
    seed.asker.frame = Some("RAND_status".to_owned());
    seed.asker.module = Some("libcrypto.so.3".to_owned());
    seed.asker.stack = vec![
        frame(Some("syscall"), "libc.so.6", 0x19),
        frame(None, "libcrypto.so.3", 0x1d2e10),
        frame(Some("RAND_status"), "libcrypto.so.3", 0x23),
        frame(None, "sshd", 0x2f31c),
        frame(None, "sshd", 0x2f400),
        frame(Some("__libc_start_main"), "libc.so.6", 0x85),
        frame(None, "sshd", 0x10ad1),
    ];
    seed.asker.stack[5].file = Some("../csu/libc-start.c".to_owned());
    seed.asker.stack[5].line = Some(360);
    seed.kernel_stack = ["wait_for_random_bytes", "__do_sys_getrandom", "do_syscall_64"]
        .map(str::to_owned)
        .to_vec();
    let mut own = wait(&sshd, Cause::CpuUser, 20 * MS);
    own.asker.frame = Some("main".to_owned());
    own.asker.module = Some("sshd".to_owned());
    let read = wait(&sshd, Cause::DiskRead, 8_120_000);
    let finding = Finding::new(
        "crng-not-seeded",
        Severity::Critical,
        "The kernel had no randomness to give yet",
        Cause::RandomUnseeded,
        1_012 * MS,
        Evidence::new(
            "the wait ended at 2.81 s after boot, with the kernel's \"crng init done\"",
            "/dev/kmsg",
        ),
    )
    .and(Evidence::new(
        "this CPU offers no RDRAND; no hardware source is attached (rng_current: none)",
        "/proc/cpuinfo, /sys/class/misc/hw_random/rng_current",
    ))
    .remedy(Remedy::safe(
        "give the guest a source: -device virtio-rng-pci, or expose RDRAND (-cpu host)",
    ))
    .remedy(
        Remedy::changing(
            "let the kernel trust what the boot loader passes on",
            "what it passes on is no better than where it comes from",
        )
        .with_command("grubby --update-kernel=ALL --args=random.trust_bootloader=on"),
    )
    .remedy(Remedy::pointless(
        "a userspace entropy daemon: it starts later than this",
    ))
    .about(seed.resource.clone(), seed.asker.clone())
    .confidence(Confidence::Proved);
    Sample {
        command: &["sshd", "-t"],
        pids: vec![812],
        exit: 0,
        attributed: attributed(vec![seed, own, read]),
        verdicts: Verdicts {
            findings: vec![finding],
            ruled_out: vec![(
                "random-reads-dominate".to_owned(),
                "reads of /dev/urandom took 0.0 % of the elapsed time, less than 20 %".to_owned(),
            )],
            cannot_tell: vec![(
                "lock-convoy".to_owned(),
                "kernel symbols are hidden (kernel.kptr_restrict), so the locks have no names".to_owned(),
            )],
        },
    }
}

/// `slow-writer | reader` in a shell: the time is the writer's, the others wait for it.
pub fn pipeline() -> Sample {
    let (sh, writer, reader) = (
        name(100, 100, "sh", "sh"),
        name(101, 101, "slow-writer", "slow-writer"),
        name(102, 102, "reader", "reader"),
    );
    let mut sleep = wait(&writer, Cause::TimerSleep, 1_960 * MS);
    sleep.call = Some("clock_nanosleep".to_owned());
    sleep.count = 20;
    (sleep.p50, sleep.p99, sleep.max) = (98 * MS, 99 * MS, 99 * MS);
    sleep.resource = resource(ResourceKind::Kernel, "98 ms asked each time", &[]);
    sleep.asker.frame = Some("pace".to_owned());
    sleep.asker.module = Some("slow-writer".to_owned());
    sleep.asker.stack = vec![
        frame(Some("clock_nanosleep"), "libc.so.6", 0x10),
        frame(Some("pace"), "slow-writer", 0x44),
        frame(Some("main"), "slow-writer", 0x81),
    ];
    let mut pipe = wait(&reader, Cause::IpcPipe, 1_970 * MS);
    (pipe.path_ns, pipe.handed_on_ns) = (0, 1_960 * MS);
    pipe.call = Some("read".to_owned());
    pipe.count = 20;
    (pipe.p50, pipe.p99, pipe.max) = (98 * MS, 99 * MS, 99 * MS);
    pipe.resource = resource(ResourceKind::File, "pipe:[40312]", &[]);
    pipe.asker.frame = Some("next_line".to_owned());
    pipe.asker.module = Some("reader".to_owned());
    pipe.holders = vec![Holder {
        name: writer.clone(),
        how_known: HowKnown::PipePeer,
        doing: Some(Cause::TimerSleep),
        ns: 1_960 * MS,
        stack: Vec::new(),
        place: None,
        others_busy: 0,
    }];
    let mut child = wait(&sh, Cause::ProcessChild, 1_995 * MS);
    (child.path_ns, child.handed_on_ns) = (0, 1_990 * MS);
    child.call = Some("wait4".to_owned());
    child.resource = resource(ResourceKind::Process, "reader (pid 102)", &[]);
    child.chain = vec![
        Link {
            name: reader.clone(),
            cause: Cause::IpcPipe,
            ns: 1_970 * MS,
            frame: None,
        },
        Link {
            name: writer.clone(),
            cause: Cause::TimerSleep,
            ns: 1_960 * MS,
            frame: None,
        },
    ];
    let own = wait(&reader, Cause::CpuUser, 40 * MS);
    let finding = Finding::new(
        "pipe-peer-slow",
        Severity::Warning,
        "reader waits for slow-writer at the other end of a pipe",
        Cause::IpcPipe,
        1_960 * MS,
        Evidence::new(
            "20 reads of pipe:[40312] waited 98.0 ms each at the median",
            "waits",
        ),
    )
    .remedy(Remedy::safe(
        "look at slow-writer: it sleeps on purpose, 20 times for 98 ms",
    ));
    Sample {
        command: &["sh", "-c", "slow-writer | reader"],
        pids: vec![100, 101, 102],
        exit: 0,
        attributed: attributed(vec![child, pipe, sleep, own]),
        verdicts: Verdicts {
            findings: vec![finding],
            ..Verdicts::default()
        },
    }
}

/// `true`: over before one can look.
pub fn healthy() -> Sample {
    let who = name(7, 7, "true", "true");
    let mut attributed = attributed(vec![
        wait(&who, Cause::CpuKernel, 512_000),
        wait(&who, Cause::CpuUser, 203_000),
        wait(&who, Cause::SchedRunqueue, 61_000),
    ]);
    attributed.coverage.own_cost = 22 * MS;
    Sample {
        command: &["true"],
        pids: vec![7],
        exit: 0,
        attributed,
        verdicts: Verdicts::default(),
    }
}

/// Everything that can have a bad name has one.
pub fn hostile() -> Sample {
    let bad = "a\x1b[2J\x1b]0;owned\x07\nlost 0\r\u{202e}gpj.exe\u{200b}";
    let who = name(9, 9, bad, bad);
    let mut open = wait(&who, Cause::LockFile, 5_000 * MS);
    open.call = Some("flock".to_owned());
    let path = format!("/srv/{}/{bad}", "very-long-directory-name/".repeat(12));
    open.resource = resource(ResourceKind::File, &path, &[("mount", bad), ("device", bad)]);
    open.asker.frame = Some(format!(
        "std::map<{}>::operator[]",
        "std::basic_string<char>, ".repeat(9)
    ));
    open.asker.module = Some(bad.to_owned());
    open.holders = vec![Holder {
        name: name(10, 11, bad, "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}"),
        how_known: HowKnown::FileLock,
        doing: Some(Cause::DiskSync),
        ns: 4_000 * MS,
        stack: Vec::new(),
        place: None,
        others_busy: 0,
    }];
    let mut attributed = attributed(vec![open]);
    attributed.coverage.lost = vec![(bad.to_owned(), 3, 5 * MS)];
    attributed.coverage.not_measured = vec![(bad.to_owned(), bad.to_owned(), bad.to_owned())];
    let finding = Finding::new(
        "waits-for-lock-holder",
        Severity::Warning,
        format!("{bad} holds the lock on {path}"),
        Cause::LockFile,
        5_000 * MS,
        Evidence::new(format!("{bad}{}", "x".repeat(300)), bad),
    )
    .remedy(Remedy::changing(bad, bad).with_command(bad));
    Sample {
        command: &["sh", "-c", "printf '\x1b[31m'\nrm -rf /", ""],
        pids: vec![9],
        exit: 137,
        attributed,
        verdicts: Verdicts {
            findings: vec![finding],
            ..Verdicts::default()
        },
    }
}

/// Much was lost.
pub fn low_coverage() -> Sample {
    let who = name(20, 20, "app", "app");
    let worker = name(20, 23, "app", "worker-3");
    let mut unknown = wait(&worker, Cause::Unknown, 450 * MS);
    unknown.why_unknown = Some("its record was dropped".to_owned());
    let mut read = wait(&who, Cause::NetReceive, 550 * MS);
    read.call = Some("recvfrom".to_owned());
    read.resource = resource(ResourceKind::Socket, "192.0.2.7:5432", &[]);
    let finding = Finding::new(
        "peer-slow",
        Severity::Warning,
        "192.0.2.7:5432 answers slowly",
        Cause::NetReceive,
        550 * MS,
        Evidence::new("one answer took 0.55 s", "waits"),
    );
    let mut attributed = attributed(vec![read, unknown]);
    attributed.coverage.lost = vec![("waits whose record was dropped".to_owned(), 4_211, 450 * MS)];
    attributed.coverage.not_measured = vec![(
        "names of kernel functions".to_owned(),
        "kernel.kptr_restrict is 2".to_owned(),
        "sysctl kernel.kptr_restrict=1".to_owned(),
    )];
    Sample {
        command: &["app"],
        pids: vec![20],
        exit: 0,
        attributed,
        verdicts: Verdicts {
            findings: vec![finding],
            ..Verdicts::default()
        },
    }
}

/// A program that leaves a daemon behind.
pub fn daemon() -> Sample {
    let who = name(30, 30, "start-it", "start-it");
    let daemon = name(31, 31, "itd", "itd");
    let mut open = wait(&daemon, Cause::NetAccept, 290 * MS);
    open.path_ns = 0;
    open.open = true;
    open.resource = resource(ResourceKind::Socket, "0.0.0.0:80", &[]);
    let mut sync = wait(&who, Cause::DiskSync, 30 * MS);
    sync.resource = resource(
        ResourceKind::File,
        "/var/lib/it/state",
        &[("device", "sda1"), ("mount", "/var")],
    );
    Sample {
        command: &["start-it", "--now"],
        pids: vec![30, 31],
        exit: 1,
        attributed: attributed(vec![wait(&who, Cause::CpuUser, 280 * MS), sync, open]),
        verdicts: Verdicts {
            cannot_tell: vec![("lock-convoy".to_owned(), "no symbols".to_owned())],
            ..Verdicts::default()
        },
    }
}

/// Eight threads that sync, and a CPU that is shared.
pub fn database() -> Sample {
    let main = name(40, 40, "db", "db");
    let mut waits = Vec::new();
    for worker in 1..=8 {
        let who = name(40, 40 + worker, "db", &format!("writer-{worker}"));
        let mut sync = wait(&who, Cause::DiskSync, 900 * MS);
        sync.path_ns = 700 * MS / 8;
        sync.count = 300;
        (sync.p50, sync.p99, sync.max) = (2_900_000, 9 * MS, 41 * MS);
        sync.max_started = 2_100 * MS;
        sync.call = Some("fdatasync".to_owned());
        sync.resource = resource(
            ResourceKind::File,
            "/srv/db/wal/000000010000000000000042",
            &[("device", "nvme0n1p2"), ("mount", "/srv")],
        );
        sync.asker.frame = Some("wal_flush".to_owned());
        sync.asker.module = Some("db".to_owned());
        waits.push(sync);
    }
    for (function, ns) in [
        ("btree_insert", 90),
        ("crc32c", 60),
        ("memcpy", 30),
        ("parse", 10),
    ] {
        let mut own = wait(&main, Cause::CpuUser, ns * MS);
        own.asker.frame = Some(function.to_owned());
        own.asker.module = Some("db".to_owned());
        waits.push(own);
    }
    let mut queue = wait(&main, Cause::SchedRunqueue, 100 * MS);
    queue.ran_instead = vec![("burner".to_owned(), 80 * MS), ("kworker/0:1".to_owned(), 4 * MS)];
    waits.push(queue);
    waits.push(wait(&main, Cause::ProcessExec, 10 * MS));
    let finding = Finding::new(
        "small-synchronous-writes",
        Severity::Warning,
        "Small writes, each made durable by itself",
        Cause::DiskSync,
        700 * MS,
        Evidence::new("2400 syncs of 4 KiB each", "waits"),
    )
    .confidence(Confidence::Suspect);
    Sample {
        command: &["db", "import", "a file.csv"],
        pids: vec![40],
        exit: 0,
        attributed: attributed(waits),
        verdicts: Verdicts {
            findings: vec![finding],
            ..Verdicts::default()
        },
    }
}

/// A build: so many compilers that most share an entry.
pub fn build_of_many() -> Sample {
    let make = name(50, 50, "make", "make");
    let mut child = wait(&make, Cause::ProcessChild, 3_000 * MS);
    (child.path_ns, child.handed_on_ns) = (0, 2_900 * MS);
    child.call = Some("wait4".to_owned());
    child.count = 4_000;
    let mut waits = vec![child, wait(&make, Cause::CpuUser, 100 * MS)];
    for (pid, tid, ns) in [(61, 61, 400), (62, 62, 300), (0, 0, 2_200)] {
        let mut own = wait(&name(pid, tid, "cc1", "cc1"), Cause::MemPagefault, ns * MS);
        own.count = 5_000;
        own.resource = resource(ResourceKind::File, "/usr/lib/gcc/cc1", &[]);
        waits.push(own);
    }
    let mut attributed = attributed(waits);
    let fold = attributed.threads.iter_mut().find(|thread| thread.name.tid == 0);
    fold.expect("one stands for many").threads = 3_998;
    Sample {
        command: &["make", "-j8"],
        pids: vec![50, 61, 62],
        exit: 0,
        attributed,
        verdicts: Verdicts::default(),
    }
}

/// The report of a command that was not observed: no waits, no findings.
fn without_waits(kind: SubjectKind, backend: Backend, command: Vec<String>) -> Report {
    let subject = Subject {
        kind,
        backend,
        command,
        pids: Vec::new(),
        started: 0,
        exit: None,
        elsewhere: Vec::new(),
    };
    let facts = SystemFacts::default();
    build(
        subject,
        &Attributed::default(),
        Verdicts::default(),
        &facts,
        "0.1.0",
    )
}
