//! Every file below `/proc`, `/sys`, `/etc` and `/dev` that holdup reads. Input: the file's path on a line of its own,
//! then its content. The rest of the tree is as on an ordinary machine.

use holdup_proc::{Root, capability, cgroup, cpu_times, facts, mountinfo};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tempfile::TempDir;

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 500;

/// The files, as they are on a machine with both versions of cgroups. An input whose first line is none of these paths
/// is taken for the first.
const FILES: &[(&str, &str)] = &[
    (
        "proc/self/mountinfo",
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n",
    ),
    ("proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a/b\n2:blkio:/a/b\n0::/a/b\n"),
    (
        "proc/self/status",
        "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nvoluntary_ctxt_switches:\t12\n",
    ),
    ("proc/self/comm", "holdup\n"),
    ("proc/stat", "cpu  10 0 0 100 0 0 0 7 0 0\ncpu0 5 0 0 60 2 0 0 3 0 0\n"),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    ("proc/diskstats", "   8       1 sda1 1 2 3 4 5 6 7 8 9 777 11\n"),
    ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu rdrand hypervisor\n"),
    ("proc/cmdline", "quiet random.trust_cpu=on\n"),
    ("proc/kallsyms", "ffffffff81000000 T _stext\n"),
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/sys/kernel/kptr_restrict", "0\n"),
    ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
    ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
    ("proc/sys/kernel/random/poolsize", "256\n"),
    ("proc/sys/kernel/random/entropy_avail", "256\n"),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("sys/devices/system/cpu/online", "0-3,8\n"),
    ("sys/class/misc/hw_random/rng_current", "none\n"),
    ("sys/class/misc/hw_random/rng_available", "tpm-rng-0\n"),
    ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
    ("sys/dev/block/8:1/queue/rotational", "1\n"),
    ("sys/dev/block/8:1/loop/backing_file", "/srv/image\n"),
    ("sys/cpu/a/b/cpu.cfs_quota_us", "50000\n"),
    ("sys/cpu/a/b/cpu.cfs_period_us", "100000\n"),
    ("sys/cpu/a/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 100\n"),
    ("sys/cpu/a/b/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 100\n"),
    ("sys/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
    ("sys/blkio/a/b/blkio.throttle.write_iops_device", "8:1 100\n"),
    ("sys/unified/a/b/cpu.max", "50000 100000\n"),
    ("sys/unified/a/cpu.stat", "usage_usec 1\nnr_throttled 2\nthrottled_usec 100\n"),
    ("sys/unified/a/b/io.max", "8:1 rbps=max wbps=1024 riops=max wiops=100\n"),
    ("sys/unified/a/memory.high", "max\n"),
    ("sys/unified/a/memory.max", "1048576\n"),
    ("etc/resolv.conf", "nameserver 192.0.2.1\noptions timeout:1\n"),
    ("dev/kmsg", "5,80,2810000,-;random: crng init done\n"),
];

thread_local! {
    /// Laid out once: most of a run would be spent on it.
    static TREE: TempDir = tree();
}

fn tree() -> TempDir {
    let tree = TempDir::new().expect("a temporary directory can be made");
    for (path, text) in FILES {
        put(tree.path(), path, text.as_bytes());
    }
    tree
}

fn put(tree: &Path, path: &str, bytes: &[u8]) {
    let path = tree.join(path);
    let folder = path.parent().expect("each is in a folder");
    fs::create_dir_all(folder).expect("a folder can be made");
    fs::write(path, bytes).expect("a file can be written");
}

/// Where the hierarchies are mounted in the tree.
fn hierarchies(tree: &Path) -> Vec<mountinfo::Line> {
    let line = |name: &str, file_system: &str| mountinfo::Line {
        number: 1,
        parent: 0,
        root: "/".to_owned(),
        super_options: format!("rw,{name}"),
        device: holdup_device(),
        target: tree.join("sys").join(name).to_string_lossy().into_owned(),
        file_system: file_system.to_owned(),
        source: name.to_owned(),
        options: "rw".to_owned(),
    };
    vec![
        line("cpu", "cgroup"),
        line("memory", "cgroup"),
        line("blkio", "cgroup"),
        line("unified", "cgroup2"),
    ]
}

fn holdup_device() -> holdup_evidence::DeviceNumber {
    holdup_evidence::DeviceNumber { major: 0, minor: 30 }
}

/// Puts the file into the tree, reads all there is to read, and puts the tree in order again.
pub(crate) fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let content = bytes.get(end + 1..).unwrap_or_default();
    let asked = Path::new(std::ffi::OsStr::from_bytes(&bytes[..end]));
    let (path, ordinary) = *FILES
        .iter()
        .find(|(path, _)| Path::new(path) == asked)
        .unwrap_or(&FILES[0]);
    TREE.with(|tree| {
        let tree = tree.path();
        let root = Root::below(tree);
        let mut problems = Vec::new();
        let mut watch = cgroup::Watch::new(&root, &hierarchies(tree));
        put(tree, path, content);
        // What the machine calls its mounts is hostile too; of these only the names are looked at.
        for mount in mountinfo::read(&root, &mut problems) {
            let _ = holdup_evidence::facts::Mount::from(mount);
        }
        watch.look(std::process::id());
        let _ = watch.of_process(std::process::id());
        let question = facts::Question {
            cgroup: Some(watch),
            cpu_times: cpu_times::read(&root, &mut problems),
            ..facts::Question::default()
        };
        facts::collect(&root, &question, &mut problems);
        // One more that begins with the file as it is now.
        let question = facts::Question {
            cgroup: Some(cgroup::Watch::new(&root, &hierarchies(tree))),
            ..facts::Question::default()
        };
        facts::collect(&root, &question, &mut problems);
        capability::read(&root, &mut problems);
        put(tree, path, ordinary.as_bytes());
    });
}
