//! Functions of the kernel that do one kind of work, and what it means that a profile is full of them.
//!
//! In: functions with their own shares, as a profile lists them. Out: the kind that has most together, where it is one that says why a
//! program is slow: locks of programs, spin locks, memory that is searched for, faults, interrupts. One function of many has a small share each,
//! and none of them says it.

/// A kind of work: beginnings of its functions, whole names of others, and what it means that it takes much.
struct Kind {
    name: &'static str,
    begin: &'static [&'static str],
    means: &'static str,
}

/// The part of all samples from which a kind of work is much.
const MIN_SHARE: f64 = 0.25;

/// The largest sum of rounded shares that is believed.
const MAX_SHARE: f64 = 1.01;

/// Functions that stand beside each other: one alone is told by the profile itself.
const MIN_FUNCTIONS: usize = 2;

const KINDS: [Kind; 8] = [
    Kind {
        name: "futexes",
        begin: &[
            "futex_",
            "do_futex",
            "get_futex_",
            "drop_futex_",
            "sys_futex",
            "__x64_sys_futex",
            "__arm64_sys_futex",
            "wake_futex",
            "__futex_",
            "__unqueue_futex",
            "unqueue_me",
            "hash_futex",
        ],
        means: "threads contend for locks in user space, and the kernel puts them to sleep and wakes them all the time",
    },
    Kind {
        name: "spin locks",
        begin: &[
            "native_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "_raw_spin_lock",
            "do_raw_spin_lock",
            "__ticket_spin_lock",
            "queued_write_lock_slowpath",
            "queued_read_lock_slowpath",
        ],
        means: "CPUs wait for each other's locks inside the kernel; who calls them says for which",
    },
    Kind {
        name: "sleeping locks",
        begin: &[
            "rwsem_",
            "__rwsem_",
            "down_read",
            "down_write",
            "up_read",
            "up_write",
            "osq_lock",
            "mutex_spin_on_owner",
            "__mutex_",
            "mutex_lock",
            "rwsem_spin_on_owner",
        ],
        means: "threads contend for locks of the kernel, mostly for that of an address space (mmap, page faults) or of a directory or file",
    },
    Kind {
        name: "memory reclaim",
        begin: &[
            "shrink_",
            "do_shrink_slab",
            "isolate_lru_",
            "try_to_free_",
            "balance_pgdat",
            "page_referenced",
            "folio_referenced",
            "super_cache_scan",
            "super_cache_count",
            "list_lru_",
            "mem_cgroup_iter",
            "inactive_list_is_low",
            "kswapd",
        ],
        means: "memory is short, and the kernel searches for pages that it can free",
    },
    Kind {
        name: "memory compaction",
        begin: &[
            "compact_",
            "compaction_",
            "isolate_migratepages",
            "isolate_freepages",
            "migrate_pages",
            "get_pfnblock_",
            "fast_isolate_",
            "clear_huge_page",
        ],
        means: "the kernel moves or clears memory to get large pages (transparent huge pages)",
    },
    Kind {
        name: "page faults",
        begin: &[
            "handle_mm_fault",
            "__handle_mm_fault",
            "do_anonymous_page",
            "clear_page",
            "do_user_addr_fault",
            "__do_page_fault",
            "handle_pte_fault",
            "do_fault",
            "filemap_map_pages",
            "lru_cache_add",
            "lru_add_drain",
            "zap_pte_range",
            "unmap_page_range",
            "free_unref_page",
            "page_remove_rmap",
            "prep_new_page",
        ],
        means: "memory is asked for, touched for the first time and given back all the time",
    },
    Kind {
        name: "flushes of other CPUs' address caches",
        begin: &[
            "smp_call_function_",
            "flush_tlb_",
            "native_flush_tlb_",
            "on_each_cpu_cond",
            "tlb_flush_",
        ],
        means: "CPUs wait until all others have taken a change of the address space (munmap, mprotect, migration)",
    },
    Kind {
        name: "directory entries",
        begin: &[
            "__d_lookup",
            "d_alloc_parallel",
            "dentry_kill",
            "shrink_dentry_list",
            "dput",
            "lockref_",
            "d_walk",
        ],
        means: "names of files are looked up or forgotten all the time",
    },
];

/// The kind of work that has most of the samples, and its share, where that is much.
/// Functions of programs have no name here.
pub(super) fn most<'a>(functions: impl Iterator<Item = (Option<&'a str>, f64)>) -> Option<(f64, String)> {
    let mut sums = [(0.0_f64, 0_usize); KINDS.len()];
    let mut largest = 0.0_f64;
    for (function, share) in functions {
        largest = largest.max(share);
        let is = |kind: &Kind| {
            let mut begin = kind.begin.iter();
            function.is_some_and(|function| begin.any(|begin| function.starts_with(begin)))
        };
        let of = KINDS.iter().position(is);
        if let Some((sum, count)) = of.and_then(|of| sums.get_mut(of)) {
            *sum += share;
            *count += 1;
        }
    }
    let all = KINDS.iter().zip(sums);
    let (kind, (share, count)) = all.max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other))?;
    let told = (MIN_SHARE..=MAX_SHARE).contains(&share) && count >= MIN_FUNCTIONS && share >= largest;
    told.then(|| {
        let text = format!(
            "{count} functions of the kernel for {} have {:.1} % of the samples together: {}",
            kind.name,
            share * 100.0,
            kind.means
        );
        (share.min(1.0), text)
    })
}

#[cfg(test)]
mod tests {
    use super::{KINDS, most};
    use std::collections::HashSet;

    fn said(rows: &[(&str, f64)]) -> Option<String> {
        most(rows.iter().map(|(name, share)| (Some(*name), *share))).map(|(_, text)| text)
    }

    #[test]
    fn functions_of_one_kind_are_added() {
        let told = said(&[
            ("futex_wake", 0.24),
            ("parse", 0.2),
            ("get_futex_key", 0.14),
            ("do_futex", 0.1),
        ])
        .unwrap();
        assert!(
            told.starts_with("3 functions of the kernel for futexes have 48.0 %"),
            "{told}"
        );
        let told = said(&[
            ("shrink_lruvec", 0.2),
            ("shrink_slab.constprop.0", 0.1),
            ("main", 0.1),
        ])
        .unwrap();
        assert!(told.contains("memory is short"), "{told}");
        let told = said(&[
            ("_raw_spin_lock_irqsave", 0.2),
            ("native_queued_spin_lock_slowpath", 0.4),
        ])
        .unwrap();
        assert!(told.contains("60.0 %"), "{told}");
    }

    #[test]
    fn an_ordinary_profile_is_left_alone() {
        assert_eq!(
            said(&[("parse", 0.5), ("futex_wake", 0.06), ("do_futex", 0.05)]),
            None
        );
        // A function that has more than they together is what the profile is about, and one alone speaks for itself.
        assert_eq!(
            said(&[("parse", 0.5), ("clear_page_erms", 0.2), ("handle_mm_fault", 0.1)]),
            None
        );
        assert_eq!(said(&[("clear_page_erms", 0.4), ("parse", 0.3)]), None);
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn no_beginning_is_of_two_kinds() {
        let mut known = HashSet::new();
        for begin in KINDS.iter().flat_map(|kind| kind.begin) {
            assert!(known.insert(begin), "{begin}");
        }
    }
}
