//! What a stack of the kernel says to who knows its functions: which call the task is in, what it waits for, and for a lock whose lock it is.
//!
//! In: frames, innermost first. Out: a sentence without its subject: `waits for a directory's lock (a mutex) that another task holds, while it
//! opens a file on ext4`. The table has the functions, one row for all that say the same; the grammar here puts the parts together. Names are of
//! Linux 3.10 to 6.18, where they were renamed all forms stand beside each other; one that ends in `*` stands for all that begin so.

use crate::functions::plain;
use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("kernel_waits.tsv");

/// Frames behind a lock's own functions in which its taker is looked for: one may be a helper of the taker.
const TAKERS: usize = 2;

/// Functions in which one of several things is waited for, as a bit of a page, whichever it is, or a turn at a device: who called them
/// says for which, where that is known.
const ANY: [&str; 7] = [
    "wait_on_page_bit",
    "wait_on_page_bit_common",
    "wait_on_page_bit_killable",
    "folio_wait_bit",
    "folio_wait_bit_common",
    "folio_wait_bit_killable",
    "rq_qos_wait",
];

/// What a function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    /// It takes a lock of this kind, and sleeps until it has it.
    Lock,
    /// It takes a lock of this kind, and keeps its CPU until it has it.
    Spin,
    /// It waits for this and keeps its CPU meanwhile.
    Call,
    /// A lock that it takes itself is this one.
    Of,
    /// It waits for this.
    For,
    /// The task is in this call, or does this.
    Does,
    /// It is of this file system.
    On,
}

/// The table by name.
struct Index {
    exact: HashMap<(Role, &'static str), &'static str>,
    /// Names that stand for all that begin so, longest first.
    beginnings: Vec<(Role, &'static str, &'static str)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        exact: HashMap::new(),
        beginnings: Vec::new(),
    };
    for (role, words, name) in rows() {
        match name.strip_suffix('*') {
            Some(begin) => index.beginnings.push((role, begin, words)),
            None => {
                index.exact.insert((role, name), words);
            }
        }
    }
    index
        .beginnings
        .sort_by_key(|(_, begin, _)| std::cmp::Reverse(begin.len()));
    index
});

/// The rows: role, words, function; a test holds that each line is well formed.
fn rows() -> impl Iterator<Item = (Role, &'static str, &'static str)> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(row).flatten()
}

fn row(line: &'static str) -> Option<impl Iterator<Item = (Role, &'static str, &'static str)>> {
    let mut cells = line.split('\t');
    let role = match cells.next()? {
        "lock" => Role::Lock,
        "spin" => Role::Spin,
        "call" => Role::Call,
        "of" => Role::Of,
        "for" => Role::For,
        "does" => Role::Does,
        "on" => Role::On,
        _ => return None,
    };
    let (words, names) = (cells.next()?, cells.next()?);
    Some(names.split(' ').map(move |name| (role, words, name)))
}

fn says(role: Role, name: &str) -> Option<&'static str> {
    let index = &*INDEX;
    index.exact.get(&(role, name)).copied().or_else(|| {
        let mut beginnings = index.beginnings.iter();
        let found = beginnings.find(|(of, begin, _)| *of == role && name.starts_with(begin));
        found.map(|(_, _, words)| *words)
    })
}

/// What the frames of a task that sleeps say together; `None` where none of them says what is waited for.
#[must_use]
pub fn told<'a>(frames: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let frames: Vec<&str> = frames.into_iter().map(plain).collect();
    let says_so = |name: &&str| lock(name).is_some() || awaited(name).is_some();
    let mut at = frames.iter().position(says_so)?;
    while frames.get(at).is_some_and(|name| ANY.contains(name)) && frames.get(at + 1).is_some_and(&says_so) {
        at += 1;
    }
    let rest = frames.get(at..)?;
    let innermost = rest.first()?;
    let awaited = match awaited(innermost) {
        Some(awaited) if lock(innermost).is_none() => awaited.to_owned(),
        _ => locked(rest, "task")?,
    };
    Some(format!(
        "waits for {awaited}{}",
        within(&frames).unwrap_or_default()
    ))
}

/// Innermost frames of a CPU that does not get on in which it may wait for another one.
const ON_CPU: usize = 6;

/// What the frames of a task that has a CPU and does not give it back say: which lock or which other CPU it waits for there, and within what.
#[must_use]
pub fn told_on_cpu<'a>(frames: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let frames: Vec<&str> = frames.into_iter().map(plain).collect();
    let within = within(&frames);
    let innermost = || frames.iter().take(ON_CPU);
    if let Some(at) = innermost().position(|name| says(Role::Spin, name).is_some()) {
        let lock = locked(frames.get(at..)?, "CPU")?;
        return Some(format!("spins for {lock}{}", within.unwrap_or_default()));
    }
    let calls = innermost().find_map(|name| says(Role::Call, name));
    match calls {
        Some(calls) => Some(format!("waits for {calls}{}", within.unwrap_or_default())),
        None => Some(format!("does not come to an end{}", within?)),
    }
}

fn lock(name: &str) -> Option<&'static str> {
    says(Role::Lock, name).or_else(|| says(Role::Spin, name))
}

fn awaited(name: &str) -> Option<&'static str> {
    says(Role::For, name).or_else(|| says(Role::Call, name))
}

/// A lock that the innermost of these frames takes: of which kind, and whose it is.
fn locked(frames: &[&str], holder: &str) -> Option<String> {
    let kind = lock(frames.first()?)?;
    let takers = frames.iter().copied().skip_while(|name| lock(name).is_some());
    let takers: Vec<&str> = takers.take(TAKERS).collect();
    Some(match takers.iter().find_map(|taker| says(Role::Of, taker)) {
        Some(whose) => format!("{whose} ({kind}) that another {holder} holds"),
        None => match takers.first() {
            Some(taker) => format!("{kind} that another {holder} holds (taken in {taker})"),
            None => format!("{kind} that another {holder} holds"),
        },
    })
}

/// `, while it opens a file on ext4`: the call that the program made, and what it came to in it.
fn within(frames: &[&str]) -> Option<String> {
    let all = |role: Role| frames.iter().filter_map(move |name| says(role, name));
    let (outer, inner) = (all(Role::Does).next_back(), all(Role::Does).next());
    let on = all(Role::On)
        .next()
        .map(|on| format!(" on {on}"))
        .unwrap_or_default();
    match (outer, inner) {
        // Of a write, that it is one to a file says more.
        (Some(outer), Some(inner)) if inner.starts_with(outer) => Some(format!(", while it {inner}{on}")),
        (Some(outer), Some(inner)) => Some(format!(", while it {outer}, for which it {inner}{on}")),
        _ => Some(on).filter(|on| !on.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLE, row, told, told_on_cpu};
    use std::collections::BTreeSet;

    fn of(frames: &str) -> String {
        told(frames.split(' ')).unwrap_or_default()
    }

    #[test]
    fn each_line_is_a_row_and_no_function_says_two_things_of_one_kind() {
        let mut seen = BTreeSet::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let rows = row(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(line.split('\t').count(), 3, "{line}");
            for (role, words, name) in rows {
                assert!(!name.is_empty() && !words.is_empty(), "{line}");
                assert!(seen.insert((format!("{role:?}"), name)), "{name} twice: {line}");
            }
        }
        assert!(seen.len() > 500);
    }

    #[test]
    fn a_lock_is_told_with_whose_it_is_and_in_which_call() {
        assert_eq!(
            of("schedule_preempt_disabled __mutex_lock_slowpath mutex_lock do_unlinkat sys_unlink"),
            "waits for a directory's lock (a mutex) that another task holds, while it removes a file"
        );
        assert_eq!(
            of(
                "__schedule schedule rwsem_down_write_slowpath down_write ext4_buffered_write_iter ext4_file_write_iter vfs_write ksys_write"
            ),
            "waits for a file's lock (a read-write semaphore, to write) that another task holds, while it writes to a file on ext4"
        );
        assert_eq!(
            of(
                "__schedule schedule schedule_preempt_disabled __mutex_lock.isra.0 rtnl_lock register_netdev probe"
            ),
            "waits for the lock of the network configuration (rtnl) (a mutex) that another task holds, while it changes the network \
             configuration"
        );
        assert_eq!(
            of("__schedule mutex_lock my_driver_ioctl vfs_ioctl"),
            "waits for a mutex that another task holds (taken in my_driver_ioctl), while it handles an ioctl"
        );
    }

    #[test]
    fn what_is_waited_for_is_told_by_the_innermost_function() {
        assert_eq!(
            of(
                "schedule bit_wait out_of_line_wait_on_bit jbd2_log_wait_commit ext4_sync_file vfs_fsync_range do_fsync"
            ),
            "waits for the commit of the journal, while it flushes a file to disk (fsync) on ext4"
        );
        assert_eq!(
            of(
                "rpc_wait_bit_killable __rpc_execute nfs4_call_sync_sequence nfs4_proc_getattr vfs_getattr vfs_statx"
            ),
            "waits for an answer of the NFS server, while it asks for the attributes of a file (stat) on NFSv4"
        );
        assert_eq!(
            of(
                "io_schedule wait_on_page_bit do_read_cache_page path_openat load_elf_binary do_execveat_common"
            ),
            "waits for a page that another task has locked, or that is being read from its device, while it starts a program (exec), for \
             which it opens a file"
        );
        assert_eq!(
            of("schedule blk_execute_rq __scsi_execute scsi_test_unit_ready sd_check_events sd_open"),
            "waits for the answer of a device to a command, while it asks a SCSI device whether it is ready (TEST UNIT READY)"
        );
    }

    #[test]
    fn a_page_is_waited_for_as_who_called_says() {
        for frames in [
            "io_schedule folio_wait_bit_common folio_wait_bit folio_wait_writeback __filemap_fdatawait_range do_fsync",
            "io_schedule wait_on_page_bit_common wait_on_page_bit wait_on_page_writeback __filemap_fdatawait_range do_fsync",
            "io_schedule wait_on_page_bit wait_on_page_writeback do_fsync",
        ] {
            assert_eq!(
                of(frames),
                "waits for a page that is being written to its device, while it flushes a file to disk (fsync)"
            );
        }
        assert!(
            of("io_schedule folio_wait_bit_common __folio_lock my_read vfs_read")
                .starts_with("waits for a page that another task has locked")
        );
        assert_eq!(
            of("schedule raise_barrier raid1_sync_request md_do_sync"),
            "waits for ordinary requests to a part of the array (md) to end, so that it can be rebuilt, while it rebuilds or checks an array (md)"
        );
    }

    #[test]
    fn a_turn_at_a_device_is_waited_for_as_who_called_says() {
        assert!(
            of("io_schedule rq_qos_wait __blkcg_iolatency_throttle blkcg_iolatency_throttle __rq_qos_throttle")
                .starts_with("waits for its turn under an I/O limit of a cgroup")
        );
        assert!(of("io_schedule rq_qos_wait wbt_wait __rq_qos_throttle").contains("writeback throttling"));
        assert_eq!(
            of("io_schedule rq_qos_wait my_throttle"),
            "waits for its turn at the device, whose requests are throttled"
        );
    }

    #[test]
    fn a_cpu_that_spins_and_one_that_waits_for_others() {
        let of = |frames: &str| told_on_cpu(frames.split(' ')).unwrap_or_default();
        assert_eq!(
            of("native_queued_spin_lock_slowpath _raw_spin_lock my_free vfs_ioctl"),
            "spins for a spin lock that another CPU holds (taken in my_free), while it handles an ioctl"
        );
        assert_eq!(
            of("smp_call_function_many_cond on_each_cpu_cond_mask my_flush do_munmap"),
            "waits for other CPUs to answer, while it unmaps memory"
        );
        assert_eq!(
            of("my_loop ext4_writepages wb_workfn"),
            "does not come to an end, while it writes dirty pages back on ext4"
        );
        assert_eq!(of("my_loop worker_thread"), "");
    }

    #[test]
    fn a_stack_of_unknown_functions_is_not_told() {
        assert_eq!(told(["schedule", "my_wait", "my_thread", "kthread"]), None);
        assert_eq!(told([]), None);
    }
}
