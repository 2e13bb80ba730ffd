//! `/proc/sys`: the few settings that explain waits.

use crate::root::{Problem, Root, word};
use std::collections::BTreeMap;

/// Paths below `/proc/sys`, and what each explains.
const SETTINGS: [&str; 30] = [
    // How many connections to one peer there can be.
    "net/ipv4/ip_local_port_range",
    // How long an unanswered connection is tried.
    "net/ipv4/tcp_syn_retries",
    "net/ipv4/tcp_syn_linear_timeouts",
    "net/ipv4/tcp_synack_retries",
    "net/ipv4/tcp_retries2",
    "net/ipv4/tcp_keepalive_time",
    "net/ipv4/tcp_keepalive_intvl",
    "net/ipv4/tcp_keepalive_probes",
    "net/ipv4/tcp_fin_timeout",
    // How many clients may queue before accept.
    "net/core/somaxconn",
    "net/ipv4/tcp_max_syn_backlog",
    // How many datagrams may queue before a Unix sender waits.
    "net/unix/max_dgram_qlen",
    // The random generator.
    "kernel/random/poolsize",
    "kernel/random/entropy_avail",
    "kernel/random/read_wakeup_threshold",
    "kernel/random/write_wakeup_threshold",
    "kernel/random/urandom_min_reseed_secs",
    // When a writer is made to wait for the disk.
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_ratio",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/swappiness",
    "vm/watermark_scale_factor",
    // How much fits into a pipe.
    "fs/pipe-max-size",
    "fs/pipe-user-pages-soft",
    // Who is given a CPU.
    "kernel/sched_rt_runtime_us",
    "kernel/sched_autogroup_enabled",
    // What a dying process does.
    "kernel/core_pattern",
];

/// Those of the settings that this kernel has.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    let directory = root.proc.join("sys");
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        if let Some(value) = word(&directory.join(name), problems) {
            settings.insert(name.to_owned(), value);
        }
    }
    settings
}

/// A setting that is a number; `None` where the kernel has none of this name.
#[must_use]
pub fn number(root: &Root, name: &str) -> Option<i64> {
    let value = word(&root.proc.join("sys").join(name), &mut Vec::new())?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;

    #[test]
    fn only_what_is_there() {
        let tree = Tree::new(&[
            ("proc/sys/net/ipv4/tcp_syn_retries", "6\n"),
            ("proc/sys/vm/overcommit_memory", "0\n"),
        ]);
        let mut problems = Vec::new();
        let settings = read(&tree.root, &mut problems);
        assert_eq!(
            settings.into_iter().collect::<Vec<_>>(),
            [("net/ipv4/tcp_syn_retries".into(), "6".into())]
        );
        assert_eq!(problems, []);
    }
}
