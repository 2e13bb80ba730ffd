//! Machines laid out as trees of files: what `holdup host` says of each. What a file system answers is said by the test, and the
//! time by the tree's own clock.

use super::{Ask, Host, report};
use crate::recorded::Evidence;
use crate::verdict::machine;
use holdup_artefacts::attribute;
use holdup_evidence::host::HostLook;
use holdup_model::finding::Severity;
use holdup_model::report::Report;
use holdup_proc::Root;
use holdup_proc::room::Room;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// Seconds between two turns.
const STEP: u32 = 2;

/// Turns of a look.
const TURNS: u32 = 3;

/// A machine of two CPUs.
struct Machine {
    folder: TempDir,
    /// Percent of CPU time that is idle.
    idle: u32,
    load: &'static str,
    /// Milliseconds in which `sda` is busy in a second.
    busy: u32,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine {
            folder: tempfile::tempdir().unwrap(),
            idle: 98,
            load: "0.05 0.06 0.07",
            busy: 5,
        };
        machine.write("proc/sys/kernel/osrelease", "6.1.0-test\n");
        machine.write("proc/sys/kernel/pid_max", "32768\n");
        machine.write("proc/sys/kernel/threads-max", "60000\n");
        machine.write("proc/sys/fs/file-nr", "900\t0\t100000\n");
        machine.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
        machine.write("proc/self/status", "Uid:\t0\t0\t0\t0\n");
        machine.write(
            "proc/self/mountinfo",
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:30 / /srv rw - nfs4 host:/srv rw\n",
        );
        machine.write(
            "proc/meminfo",
            "MemTotal:        8000000 kB\nMemFree:         1000000 kB\nMemAvailable:    6000000 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n",
        );
        machine.write("dev/kmsg", "6,1,100000,-;usb 1-1: new device\n");
        machine.task(1, 1, "init", 'S', 0);
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn root(&self) -> Root {
        Root::below(self.folder.path())
    }

    /// A task, a process of its own if both ids are the same.
    fn task(&self, pid: u32, tid: u32, name: &str, state: char, ticks: u32) {
        let line = format!(
            "{tid} ({name}) {state} 1 {pid} {pid} 0 -1 4194304 1 2 3 4 {ticks} 0 0 0 20 0 1 0 900 4096 25600 1844\n"
        );
        self.write(&format!("proc/{pid}/task/{tid}/stat"), &line);
        if pid == tid {
            self.write(&format!("proc/{pid}/stat"), &line);
        }
    }

    /// What the counters are at a turn.
    fn tick(&self, turn: u32) {
        let seconds = 7200 + turn * STEP;
        self.write("proc/uptime", &format!("{seconds}.00 9000.00\n"));
        self.write("proc/loadavg", &format!("{} 1/80 4711\n", self.load));
        // Hundredths of seconds of two CPUs, and of one.
        let passed = turn * STEP * 100;
        let times = |cpus: u32| {
            let idle = passed * cpus * self.idle / 100;
            format!("{} 0 0 {idle} 0 0 0 0 0 0", passed * cpus - idle)
        };
        let (all, one) = (times(2), times(1));
        self.write(
            "proc/stat",
            &format!("cpu  {all}\ncpu0 {one}\ncpu1 {one}\nctxt {passed}\nprocs_running 1\nprocs_blocked 0\n"),
        );
        let busy = turn * STEP * self.busy;
        let writes = turn * STEP * 80;
        self.write(
            "proc/diskstats",
            &format!(
                "   8       0 sda 0 0 0 0 {writes} 0 {} {busy} 0 {busy} {busy} 0 0 0 0 0 0\n",
                writes * 8
            ),
        );
    }

    fn look(&self, room: super::once::Ask) -> Report {
        self.tick(0);
        let mut host = Host::new(&self.root(), u32::MAX, asked(room));
        for turn in 0..TURNS {
            self.tick(turn);
            host.turn();
        }
        report_of(host)
    }
}

/// A kernel that lists no listeners: those of the machine that the tests run on are none of the tree's.
fn asked(room: super::once::Ask) -> Ask {
    Ask {
        room,
        queues: Vec::new,
        conversations: Vec::new,
        datagrams: Vec::new,
        devices: Vec::new,
    }
}

/// What is said of a look that is over.
fn report_of(host: Host) -> Report {
    let (look, facts) = host.finish();
    let evidence = Evidence {
        attributed: attribute(&look.observed),
        facts,
        build_ids: BTreeMap::new(),
        look: Some(look),
    };
    report(machine::subject(0), &evidence)
}

fn roomy(_mount: &str) -> Option<Room> {
    Some(Room {
        used_percent: Some(40.0),
        available_kib: 60_000_000.0,
        size_kib: 100_000_000.0,
        inodes_used_percent: Some(10.0),
        inodes_free: 1e6,
    })
}

fn full(mount: &str) -> Option<Room> {
    assert_ne!(mount, "/srv", "a server is never asked");
    Some(Room {
        used_percent: Some(100.0),
        available_kib: 0.0,
        ..roomy(mount)?
    })
}

/// Rules that fire with more than a note.
fn trouble(report: &Report) -> Vec<&str> {
    let all = report
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note);
    all.map(|finding| finding.rule.as_str()).collect()
}

fn verdict(report: &Report) -> &str {
    &report.host.as_ref().unwrap().verdict
}

#[test]
fn an_idle_machine_gives_no_finding() {
    let report = Machine::new().look(roomy);
    assert_eq!(report.findings, []);
    assert_eq!(
        verdict(&report),
        "Load 0.1 on 2 CPUs; CPU 98 % idle: nothing is short"
    );
    let host = report.host.as_ref().unwrap();
    assert_eq!((host.lists, host.cpus), (TURNS, Some(2)));
    assert!(host.blocked.is_empty() && host.facts.is_empty(), "{host:?}");
    let names: Vec<String> = host.resources.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "cpu",
            "memory",
            "swap",
            "disk sda",
            "file systems",
            "tasks",
            "open files"
        ]
    );
    // Nothing proves a duration, and that is said.
    assert!(report.causes.is_empty() && report.artefacts.is_empty());
    let missing = report.coverage.not_measured.iter();
    let missing: Vec<&str> = missing.map(|one| one.what.as_str()).collect();
    assert_eq!(
        missing,
        [
            "how long each wait took",
            "which processes read randomness, how much and for how long"
        ]
    );
}

#[test]
fn load_of_blocked_tasks_is_told_by_whom_and_where() {
    let mut machine = Machine::new();
    (machine.load, machine.idle) = ("37.01 20.00 9.00", 69);
    machine.write(
        "proc/self/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/sdb1 rw\n9 1 8:0 / /spool rw - ext4 /dev/sda rw\n",
    );
    for number in 0..34 {
        let pid = 100 + number;
        machine.task(pid, pid, "sendmail", 'D', 0);
        machine.write(&format!("proc/{pid}/task/{pid}/wchan"), "jbd2_log_wait_commit");
        machine.write(
            &format!("proc/{pid}/syscall"),
            &format!("{} 0x4 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f1\n", libc::SYS_fsync),
        );
        machine.write(&format!("proc/{pid}/fdinfo/4"), "pos:\t0\nmnt_id:\t9\n");
        let links = machine.folder.path().join(format!("proc/{pid}/fd"));
        std::fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink("/spool/q7", links.join("4")).unwrap();
        machine.write(
            &format!("proc/{pid}/task/{pid}/stack"),
            "[<0>] jbd2_log_wait_commit+0x1/0x2\n[<0>] ext4_sync_file+0x1/0x2\n[<0>] do_fsync+0x1/0x2\n",
        );
    }
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["load-is-not-cpu"]);
    let said = verdict(&report);
    assert_eq!(
        said,
        "Load 37 on 2 CPUs, of it 34 in disk.sync on sda by sendmail; CPU 69 % idle"
    );
    let finding = &report.findings[0];
    let stack = finding.evidence.iter().any(|one| one.text.contains("do_fsync"));
    assert!(stack, "{finding:?}");
    let blocked = &report.host.as_ref().unwrap().blocked;
    assert_eq!((blocked.len(), blocked[0].tasks), (1, 34.0));
    assert_eq!(
        (blocked[0].disks.as_slice(), blocked[0].file.as_deref()),
        (["sda".to_owned()].as_slice(), Some("/spool/q7"))
    );
}

#[test]
fn a_swap_area_that_is_not_switched_on_is_found_by_its_signature() {
    let machine = Machine::new();
    let mut area = vec![0; 1 << 16];
    area[4086..4096].copy_from_slice(b"SWAPSPACE2");
    std::fs::create_dir_all(machine.folder.path().join("dev")).unwrap();
    std::fs::write(machine.folder.path().join("dev/sda"), area).unwrap();
    machine.write("sys/class/block/sda/size", "2097152\n");
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["swap-not-switched-on"]);
    assert!(
        report.findings[0].title.contains("sda, 1"),
        "{}",
        report.findings[0].title
    );
    // Switched on, it is none.
    machine.write(
        "proc/swaps",
        "Filename\tType\tSize\tUsed\tPriority\n/dev/sda partition\t1048572\t0\t-2\n",
    );
    assert_eq!(machine.look(roomy).findings, []);
}

#[test]
fn a_full_file_system_is_found_and_a_server_is_not_asked() {
    let report = Machine::new().look(full);
    assert_eq!(trouble(&report), ["file-system-full"]);
    assert!(!verdict(&report).contains("nothing is short"));
    let host = report.host.as_ref().unwrap();
    let short: Vec<String> = host
        .resources
        .iter()
        .filter(|one| one.short)
        .map(|one| one.name.to_string())
        .collect();
    assert_eq!(short, ["file systems"]);
}

#[test]
fn a_busy_disk_is_found_with_the_idle_cpu_beside_it() {
    let mut machine = Machine::new();
    machine.busy = 980;
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["disk-busy"]);
    let evidence = &report.findings[0].evidence;
    assert!(
        evidence.iter().any(|one| one.source == "/proc/diskstats"),
        "{evidence:?}"
    );
    assert!(
        evidence.iter().any(|one| one.text.contains("98 % idle")),
        "{evidence:?}"
    );
}

#[test]
fn who_uses_the_cpu_is_told_by_the_clock_of_the_machine() {
    let machine = Machine::new();
    machine.tick(0);
    let mut host = Host::new(&machine.root(), u32::MAX, asked(roomy));
    for turn in 0..TURNS {
        machine.tick(turn);
        machine.task(50, 50, "burner", 'R', turn * STEP * 90);
        host.turn();
    }
    let (HostLook { sight, .. }, _) = host.finish();
    assert_eq!(sight.cpu.len(), 1);
    assert_eq!(sight.cpu[0].process, "burner");
    assert!((sight.cpu[0].amount - 90.0).abs() < 0.1, "{:?}", sight.cpu);
    assert_eq!(sight.memory[0].amount, 25_600.0 * super::page() as f64 / 1024.0);
}

#[test]
fn without_privilege_it_says_what_it_does_not_see() {
    let machine = Machine::new();
    machine.write("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
    machine.task(60, 60, "stuck", 'D', 0);
    machine.write("proc/60/task/60/wchan", "0");
    std::fs::remove_file(machine.folder.path().join("dev/kmsg")).unwrap();
    let table = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n3 1 0:5 / /proc rw - proc proc rw,hidepid=invisible\n";
    machine.write("proc/self/mountinfo", table);
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), Vec::<&str>::new());
    let missing: Vec<&str> = report
        .coverage
        .not_measured
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    for what in [
        "where tasks are blocked",
        "other users' processes",
        "messages of the kernel log",
        "deleted files",
        "how much each process reads and writes",
    ] {
        assert!(
            missing.iter().any(|other| other.starts_with(what)),
            "{what}: {missing:?}"
        );
    }
}

#[test]
fn nothing_at_all_is_said_to_be_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new(&Root::below(folder.path()), u32::MAX, asked(roomy));
    host.turn();
    let report = report_of(host);
    assert_eq!(report.findings, []);
    assert!(
        verdict(&report).starts_with("The load average is not known"),
        "{}",
        verdict(&report)
    );
    assert!(!Path::new(&folder.path().join("proc")).exists());
}

#[test]
fn who_queues_for_a_file_s_lock_is_told_with_who_has_it() {
    let machine = Machine::new();
    for pid in [70, 71, 72] {
        machine.task(pid, pid, "python3", 'S', 0);
        machine.write(&format!("proc/{pid}/comm"), "python3\n");
        machine.write(
            &format!("proc/{pid}/cmdline"),
            "/usr/bin/python3\0-u\0/srv/render.py\0--key=x\0",
        );
    }
    machine.write(
        "proc/locks",
        "1: FLOCK  ADVISORY  WRITE 70 fe:00:11 0 EOF\n\
         1: -> FLOCK  ADVISORY  WRITE 71 fe:00:11 0 EOF\n\
         1: -> FLOCK  ADVISORY  WRITE 72 fe:00:11 0 EOF\n",
    );
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["others-wait-behind"]);
    let title = &report.findings[0].title;
    let expected = "python3 render.py (pid 70) has a file's lock: 2 processes of python3 render.py wait behind it, for at least 4.00 s";
    assert_eq!(title, expected);
    assert!(!verdict(&report).contains("nothing is short"));
}

#[test]
fn a_stopped_process_that_has_a_lock_is_the_root() {
    let machine = Machine::new();
    machine.task(70, 70, "server", 'T', 0);
    machine.task(71, 71, "client", 'S', 0);
    for (pid, name) in [(70, "server"), (71, "client")] {
        machine.write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
    }
    machine.write(
        "proc/locks",
        "1: POSIX  ADVISORY  WRITE 70 fe:00:11 0 EOF\n1: -> POSIX  ADVISORY  WRITE 71 fe:00:11 0 EOF\n",
    );
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["others-wait-behind", "stopped"]);
    assert!(
        report.findings[0]
            .title
            .starts_with("server (pid 70) is stopped and has a file's lock: client waits behind it"),
        "{}",
        report.findings[0].title
    );
}

#[test]
fn who_has_let_go_of_the_lock_keeps_nobody() {
    let machine = Machine::new();
    machine.tick(0);
    let mut host = Host::new(&machine.root(), u32::MAX, asked(roomy));
    let waits =
        "1: FLOCK  ADVISORY  WRITE 70 fe:00:11 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 71 fe:00:11 0 EOF\n";
    for turn in 0..TURNS {
        machine.tick(turn);
        machine.write("proc/locks", if turn + 1 < TURNS { waits } else { "" });
        host.turn();
    }
    assert_eq!(trouble(&report_of(host)), Vec::<&str>::new());
}

#[test]
fn sessions_of_a_database_wait_behind_the_one_that_is_idle_in_a_transaction() {
    let machine = Machine::new();
    let title = |pid: u32, title: &str| {
        machine.task(pid, pid, "postgres", 'S', 0);
        machine.write(&format!("proc/{pid}/comm"), "postgres\n");
        machine.write(
            &format!("proc/{pid}/cmdline"),
            &format!("postgres: bob shop [local] {title}\0"),
        );
        machine.write(&format!("proc/{pid}/status"), "Name:\tpostgres\nPPid:\t2\n");
    };
    title(80, "UPDATE waiting");
    title(81, "idle in transaction");
    title(82, "idle");
    let report = machine.look(roomy);
    assert_eq!(trouble(&report), ["others-wait-behind"]);
    let title_of = &report.findings[0].title;
    assert!(
        title_of.starts_with(
            "postgres (pid 81) is idle in a transaction, and has a lock: postgres waits behind it"
        ),
        "{title_of}"
    );
    // Of two nobody knows which it is.
    title(83, "idle in transaction (aborted)");
    let report = machine.look(roomy);
    assert!(
        report.findings[0]
            .title
            .starts_with("postgres waits for a lock of the database"),
        "{}",
        report.findings[0].title
    );
}
