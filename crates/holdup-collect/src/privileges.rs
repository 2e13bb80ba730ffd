//! Which part of holdup needs which of root's rights, and giving up the others.
//!
//! Once the programs are loaded, the outputs are open and CMD is forked, holdup reads what hostile programs wrote. From then on it has only
//! the capabilities of the table below, can get no others ([`keep`] empties the bounding set and sets `no_new_privs`), and its children have
//! no more than it has. CMD is forked before and has all that holdup was started with.
//!
//! Names are given to output files at the end, in folders of anybody: a process of its own does that ([`holdup_files::finish_apart`]).
//!
//! Sampling of `/proc`, where tracing is not to be had, keeps all rights so far: with fewer it names no functions.
//!
//! In: what this process is going to do. Out: a process that can do no more than that.

use anyhow::{Context, bail};
use holdup_detached::Capabilities;

/// What a process does with hostile data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Traces: `run`, `attach`, and the processes of `record` that observe.
    Trace,
    /// Looks at the machine: `host`.
    Look,
    /// Reads files that the caller named: `read`, `show`, `diff`.
    Read,
    /// Has all that it needs: `explain`.
    Nothing,
}

/// A capability, who needs it, and for what.
#[derive(Debug)]
struct Need {
    number: u32,
    parts: &'static [Part],
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for who reads this table, and for its test")
    )]
    why: &'static str,
}

/// Those who read other processes.
const OBSERVERS: &[Part] = &[Part::Trace, Part::Look];

/// `CAP_BPF`, which Linux has since 5.8.
const BPF: u32 = 39;

/// `CAP_SYS_ADMIN`.
const ADMIN: u32 = 21;

/// The table.
const NEEDS: &[Need] = &[
    Need {
        number: BPF,
        parts: &[Part::Trace],
        why: "bpf(2) on the maps of loaded programs, and attaching them to what is observed later",
    },
    Need {
        number: 38,
        parts: &[Part::Trace],
        why: "PERFMON: attaching tracing programs, iterators over tasks, and clocks of CPUs",
    },
    Need {
        number: 19,
        parts: OBSERVERS,
        why: "SYS_PTRACE: mappings, memory, open files and system calls of other users' processes",
    },
    Need {
        number: 2,
        parts: &[Part::Trace, Part::Look, Part::Read],
        why: "DAC_READ_SEARCH: programs and debug information that only their users may read; files that the caller named",
    },
    Need {
        number: 40,
        parts: OBSERVERS,
        why: "CHECKPOINT_RESTORE: /proc/PID/map_files, by which files are reached that have no name any more",
    },
    Need {
        number: 34,
        parts: OBSERVERS,
        why: "SYSLOG: addresses in /proc/kallsyms, and the kernel's log",
    },
    Need {
        number: 24,
        parts: &[Part::Trace],
        why: "SYS_RESOURCE: locked memory for perf buffers of processes that are observed later",
    },
    Need {
        number: 23,
        parts: &[Part::Trace],
        why: "SYS_NICE: running before others when it falls behind",
    },
    Need {
        number: 5,
        parts: OBSERVERS,
        why: "KILL: passing signals on to CMD of another user, and ending children that have become nobody",
    },
    Need {
        number: 6,
        parts: OBSERVERS,
        why: "SETGID: children that read hostile data become nobody; the one that asks a JVM becomes its user",
    },
    Need {
        number: 7,
        parts: OBSERVERS,
        why: "SETUID: the same",
    },
    Need {
        number: ADMIN,
        parts: &[Part::Look],
        why: "SYS_ADMIN: /proc/PID/stack, for the one child that reads it",
    },
];

/// What a part may keep. `permitted`: what there is; before `CAP_BPF` came, `CAP_SYS_ADMIN` stood for it.
///
/// Without `CAP_SYS_PTRACE`, as in most containers, the kernel lets a process read only those of its own user that have no capability which
/// it has not itself. CMD has all that holdup was started with, so holdup keeps that there.
fn kept(part: Part, permitted: Capabilities) -> Capabilities {
    if OBSERVERS.contains(&part) && !permitted.contains(Capabilities::SYS_PTRACE) {
        return permitted;
    }
    let needs = NEEDS.iter().filter(|need| need.parts.contains(&part));
    let needed = needs.fold(Capabilities::NONE, |all, need| {
        all | Capabilities::number(need.number)
    });
    let bpf = Capabilities::number(BPF);
    let needed = match needed.contains(bpf) && !permitted.contains(bpf) {
        true => needed | Capabilities::number(ADMIN),
        false => needed,
    };
    needed.and(permitted)
}

/// Gives up, for good, whatever `part` does not need. Call it when outputs are open and CMD is forked.
///
/// # Errors
/// When the kernel refuses, or when another thread runs, which would keep its rights.
pub fn keep(part: Part) -> anyhow::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        bail!("cannot give up privileges: {threads} threads run, and each has its own");
    }
    holdup_files::finish_apart().context("cannot start the process that finishes the output files")?;
    let permitted = Capabilities::permitted().context("cannot read this process's capabilities")?;
    let kept = kept(part, permitted);
    kept.bound();
    kept.keep_only().context("cannot give up capabilities")?;
    nix::sys::prctl::set_no_new_privs().context("cannot give up the right to get privileges")
}

#[cfg(test)]
mod tests {
    use super::{ADMIN, Capabilities, NEEDS, Part, kept};

    fn all() -> Capabilities {
        (0..=40).fold(Capabilities::NONE, |all, number| {
            all | Capabilities::number(number)
        })
    }

    #[test]
    fn each_capability_is_there_once_and_says_what_for() {
        for (place, need) in NEEDS.iter().enumerate() {
            assert!(!need.why.is_empty() && !need.parts.is_empty(), "{need:?}");
            assert!(NEEDS[..place].iter().all(|other| other.number != need.number));
        }
    }

    #[test]
    fn who_parses_writes_to_nobodys_files_and_changes_no_machine() {
        // CHOWN, DAC_OVERRIDE, FOWNER, SETPCAP, NET_ADMIN, SYS_MODULE, SYS_RAWIO, SYS_CHROOT, SYS_BOOT, SYS_TIME, MKNOD, SETFCAP.
        for number in [0, 1, 3, 8, 12, 16, 17, 18, 22, 25, 27, 31] {
            for part in [Part::Trace, Part::Look, Part::Read, Part::Nothing] {
                assert!(
                    !kept(part, all()).contains(Capabilities::number(number)),
                    "{part:?}"
                );
            }
        }
        assert!(!kept(Part::Trace, all()).contains(Capabilities::number(ADMIN)));
        assert_eq!(kept(Part::Read, all()), Capabilities::DAC_READ_SEARCH);
        assert_eq!(kept(Part::Nothing, all()), Capabilities::NONE);
    }

    #[test]
    fn an_older_kernel_wants_the_one_capability_for_both() {
        let older = (0..38).fold(Capabilities::NONE, |all, number| {
            all | Capabilities::number(number)
        });
        assert!(kept(Part::Trace, older).contains(Capabilities::number(ADMIN)));
        assert_eq!(
            kept(Part::Trace, Capabilities::NONE).and(older),
            Capabilities::NONE
        );
    }
}
