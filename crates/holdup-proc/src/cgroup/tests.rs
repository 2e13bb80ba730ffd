//! Trees of control groups, version 1 and 2, and what must be found in them.

use super::Watch;
use crate::mountinfo;
use crate::root::Tree;
use holdup_evidence::DeviceNumber;
use holdup_evidence::facts::{CgroupFacts, CpuQuota, IoLimit, MemoryCgroup};

fn watch(tree: &Tree) -> Watch {
    let mounts = mountinfo::read(&tree.root, &mut Vec::new());
    Watch::new(&tree.root, &mounts)
}

fn v2(tree: &Tree, root: &str) {
    let target = tree.path("cg");
    tree.write(
        "proc/self/mountinfo",
        &format!("30 1 0:26 {root} {} rw - cgroup2 cgroup2 rw\n", target.display()),
    );
}

fn v1(tree: &Tree) {
    let mut text = String::new();
    for controllers in ["cpu,cpuacct", "blkio", "memory", "freezer"] {
        let target = tree.path("cg").join(controllers);
        text += &format!(
            "30 1 0:26 / {} rw - cgroup cgroup rw,{controllers}\n",
            target.display()
        );
    }
    tree.write("proc/self/mountinfo", &text);
}

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 16 };

#[test]
fn version_2_takes_the_nearest_limit_and_the_difference_of_counters() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/system.slice/job.service\n"),
        ("cg/system.slice/job.service/cpu.max", "max 100000\n"),
        ("cg/system.slice/cpu.max", "50000 100000\n"),
        (
            "cg/system.slice/cpu.stat",
            "usage_usec 1\nnr_throttled 3\nthrottled_usec 40\n",
        ),
        (
            "cg/system.slice/job.service/io.max",
            "8:16 rbps=max wbps=max riops=max wiops=120\n",
        ),
        ("cg/system.slice/io.max", "8:16 wiops=7 rbps=4096\n8:32\n"),
        ("cg/system.slice/job.service/memory.high", "max\n"),
        ("cg/system.slice/memory.high", "1048576\n"),
        ("cg/system.slice/memory.events", "low 0\nhigh 2\nmax 0\n"),
        (
            "cg/system.slice/memory.stat",
            "anon 1\nworkingset_refault_file 5\n",
        ),
    ]);
    v2(&tree, "/");
    let watch = watch(&tree);
    tree.write(
        "cg/system.slice/cpu.stat",
        "usage_usec 1\nnr_throttled 5\nthrottled_usec 90\n",
    );
    tree.write("cg/system.slice/memory.events", "low 0\nhigh 9\nmax 0\n");
    let limit = |cgroup: &str, setting: &str, value| IoLimit {
        device: DISK,
        setting: setting.into(),
        value,
        cgroup: cgroup.into(),
    };
    assert_eq!(
        watch.facts(),
        CgroupFacts {
            cpu_quota: Some(CpuQuota {
                cgroup: "/system.slice".into(),
                quota_us: 50_000,
                period_us: 100_000,
            }),
            cpu_throttled: Some((2, 50_000)),
            io_limits: vec![
                limit("/system.slice/job.service", "io.max wiops", 120),
                limit("/system.slice", "io.max rbps", 4096),
            ],
            memory_high: Some(1 << 20),
            memory_max: None,
            memory: MemoryCgroup {
                cgroup: Some("/system.slice".into()),
                limit_reached: Some(0),
                high_reached: Some(7),
                files_again: Some(0),
                memory_again: None,
                oom_killer: Some(true),
            },
            freezer: Some("/system.slice/job.service".into()),
        }
    );
}

#[test]
fn version_1_takes_only_its_own_io_limits() {
    let tree = Tree::new(&[
        (
            "proc/self/cgroup",
            "5:cpu,cpuacct:/a/b\n4:blkio:/a/b\n3:memory:/a\n1:name=systemd:/\n0::/\n",
        ),
        ("cg/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
        ("cg/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"),
        ("cg/cpu,cpuacct/a/cpu.cfs_quota_us", "20000\n"),
        ("cg/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
        ("cg/blkio/a/b/blkio.throttle.write_iops_device", "8:16 100\n"),
        ("cg/blkio/a/blkio.throttle.read_bps_device", "8:16 1\n"),
        ("cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ("cg/memory/memory.limit_in_bytes", "77\n"),
        ("cg/memory/memory.failcnt", "4\n"),
        (
            "cg/memory/memory.oom_control",
            "oom_kill_disable 1\nunder_oom 0\n",
        ),
        (
            "cg/memory/memory.stat",
            "cache 0\nworkingset_refault_anon 3\nworkingset_refault_file 8\n",
        ),
    ]);
    v1(&tree);
    let facts = watch(&tree).facts();
    assert_eq!(
        facts.cpu_quota,
        Some(CpuQuota {
            cgroup: "/a".into(),
            quota_us: 20_000,
            period_us: 100_000
        })
    );
    assert_eq!(facts.memory_max, Some(77));
    assert_eq!(
        facts.memory,
        MemoryCgroup {
            cgroup: Some("/".into()),
            limit_reached: Some(0),
            high_reached: None,
            files_again: Some(0),
            memory_again: Some(0),
            oom_killer: Some(false),
        }
    );
    assert_eq!(
        facts.io_limits,
        [IoLimit {
            device: DISK,
            setting: "blkio.throttle.write_iops_device".into(),
            value: 100,
            cgroup: "/a/b".into()
        }]
    );
}

#[test]
fn a_process_that_moves_is_followed_and_a_removed_cgroup_is_remembered() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "4:blkio:/\n"),
        ("proc/77/cgroup", "4:blkio:/slow\n"),
        ("cg/blkio/slow/blkio.throttle.write_iops_device", "8:16 9\n"),
    ]);
    v1(&tree);
    let mut watch = watch(&tree);
    assert_eq!(watch.facts().io_limits, []);
    watch.look(77);
    watch.look(78);
    std::fs::remove_dir_all(tree.path("cg/blkio/slow")).unwrap();
    let facts = watch.facts();
    assert_eq!(facts.io_limits[0].cgroup, "/slow");
    assert_eq!(facts.io_limits[0].value, 9);
}

#[test]
fn a_hierarchy_mounted_in_part() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/docker/abc/job\n"),
        ("cg/job/memory.max", "5\n"),
        ("memory.max", "not below the mount point"),
    ]);
    v2(&tree, "/docker/abc");
    assert_eq!(watch(&tree).facts().memory_max, Some(5));
}

#[test]
fn nothing_mounted_is_nothing_measured() {
    let tree = Tree::new(&[("proc/self/cgroup", "0::/x\n")]);
    let nothing = CgroupFacts::default();
    assert_eq!(watch(&tree).facts(), nothing);
}

#[test]
fn a_process_that_is_ending_does_not_move_to_the_root() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "4:freezer:/job\n"),
        ("proc/77/cgroup", "4:freezer:/\n"),
    ]);
    v1(&tree);
    let mut watch = watch(&tree);
    watch.look(77);
    assert_eq!(watch.facts().freezer.as_deref(), Some("/job"));
}

#[test]
fn a_quota_is_named_by_the_cgroup_that_sets_it_wherever_its_memory_counts() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "4:memory:/session\n1:cpu,cpuacct:/\n"),
        ("proc/77/cgroup", "4:memory:/session\n1:cpu,cpuacct:/job\n"),
        ("cg/cpu,cpuacct/job/cpu.cfs_quota_us", "20000\n"),
        ("cg/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
    ]);
    v1(&tree);
    let mut watch = watch(&tree);
    watch.look(77);
    assert_eq!(watch.facts().cpu_quota.unwrap().cgroup, "/job");
}
