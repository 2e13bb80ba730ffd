//! What holdup sees with: each thing it can need of a machine, whether it is there, what is lost without it, and
//! the fix. One line of the table each.

use super::{Row, State};
use holdup_proc::capability::{Lockdown, Machine, TASK_WORK, TRACEPOINTS};
use holdup_proc::status::Capability;

/// Something that holdup sees with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Privilege,
    NoLockdown,
    TypeInformation,
    Tracepoint(&'static str),
    KernelSymbols,
    WokenMemory,
    CpuSamples,
    OthersLibraries,
    KernelLog,
}

const EVERYTHING: &str = "everything: holdup run does not work";

impl Sight {
    /// All, in the order of the table.
    pub(super) fn all() -> impl Iterator<Item = Sight> {
        [Sight::Privilege, Sight::NoLockdown, Sight::TypeInformation]
            .into_iter()
            .chain(TRACEPOINTS.map(Sight::Tracepoint))
            .chain([
                Sight::KernelSymbols,
                Sight::WokenMemory,
                Sight::CpuSamples,
                Sight::OthersLibraries,
                Sight::KernelLog,
            ])
    }

    /// The line of the table.
    pub(super) fn row(self, machine: &Machine) -> Row {
        Row {
            what: self.name(),
            state: self.state(machine),
            essential: self.lost() == EVERYTHING,
            lost: self.lost().to_owned(),
            fix: self.fix().to_owned(),
        }
    }

    fn name(self) -> String {
        match self {
            Sight::Privilege => "privilege".to_owned(),
            Sight::NoLockdown => "no lockdown".to_owned(),
            Sight::TypeInformation => "kernel type information".to_owned(),
            Sight::Tracepoint(name) => format!("tracepoint {name}"),
            Sight::KernelSymbols => "kernel symbols".to_owned(),
            Sight::WokenMemory => "woken threads' memory".to_owned(),
            Sight::CpuSamples => "CPU samples".to_owned(),
            Sight::OthersLibraries => "others' libraries".to_owned(),
            Sight::KernelLog => "kernel log".to_owned(),
        }
    }

    fn state(self, machine: &Machine) -> State {
        match self {
            Sight::Privilege => privilege(machine),
            Sight::NoLockdown => match machine.lockdown {
                Some(Lockdown::Confidentiality) => no("the kernel is locked down: confidentiality"),
                Some(Lockdown::Integrity) => yes("integrity, which lets BPF read"),
                Some(Lockdown::None) => yes(""),
                None => State::NotTold("no file says".to_owned()),
            },
            Sight::TypeInformation => told(
                machine.btf,
                "BTF",
                "no /sys/kernel/btf/vmlinux",
                "/sys is not mounted",
            ),
            Sight::Tracepoint(name) => told(
                machine.tracepoints.get(name).copied(),
                "",
                "this kernel has none of this name",
                "no type information to look in",
            ),
            Sight::KernelSymbols => told(
                machine.kernel_symbols,
                "/proc/kallsyms",
                "/proc/kallsyms hides the addresses",
                "no /proc/kallsyms",
            ),
            Sight::WokenMemory => told(
                machine.task_work,
                TASK_WORK[0],
                "this kernel has no bpf_task_work_schedule_resume",
                "no type information to look in",
            ),
            Sight::CpuSamples => match machine.perf_event_paranoid {
                Some(level) => yes(&format!("cpu-clock, perf_event_paranoid {level}")),
                None => no("this kernel has no performance events"),
            },
            Sight::OthersLibraries => told(
                machine.status.has(Capability::SysPtrace),
                "CAP_SYS_PTRACE",
                "no CAP_SYS_PTRACE",
                "no /proc/self/status",
            ),
            Sight::KernelLog => told(
                machine.kernel_log,
                "/dev/kmsg",
                "/dev/kmsg can't be read",
                "no /dev/kmsg",
            ),
        }
    }

    /// What can't be told without it: causes by id, rules by id.
    fn lost(self) -> &'static str {
        match self {
            Sight::Privilege | Sight::NoLockdown | Sight::TypeInformation => EVERYTHING,
            Sight::Tracepoint(name) => match name {
                "task_rename" => "names of threads that rename themselves",
                "signal_generate" => "who stopped a process (process.stopped, rule stopped)",
                "sk_data_ready" => {
                    "which socket ended a wait: net.receive and net.dns behind poll.wait, and the peer in the way"
                }
                "softirq_entry" | "irq_handler_entry" | "hrtimer_expire_entry" => {
                    "whether a device or timer ended a wait; the one that was interrupted could be blamed"
                }
                _ => EVERYTHING,
            },
            Sight::KernelSymbols => {
                "what the kernel itself waited in: disk.writeback, disk.journal, lock.kernel, mem.mmaplock, \
                 mem.reclaim, fs.frozen become unknown"
            }
            Sight::WokenMemory => {
                "what ended a poll (poll.wait keeps its time), paths of calls that have no descriptor; askers of \
                 waits are known less exactly"
            }
            Sight::CpuSamples => {
                "how CPU time splits into cpu.user and cpu.kernel, who used it (rule cpu-bound), and \
                 random.unseeded while it spins"
            }
            Sight::OthersLibraries => {
                "names of functions of programs that run as another user: askers stay addresses"
            }
            Sight::KernelLog => "when the generator was seeded (rule crng-not-seeded has less evidence)",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Sight::Privilege => "sudo holdup …; or give CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE to it",
            Sight::NoLockdown => "boot with lockdown=integrity, or with Secure Boot off",
            Sight::TypeInformation => {
                "a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian 11, Ubuntu 20.10, Fedora 31, RHEL \
                 8.2 and later are; in a container, mount /sys"
            }
            Sight::Tracepoint("sk_data_ready") => "Linux 6.3 or later",
            Sight::Tracepoint(_) => "a distribution's kernel, or one built with CONFIG_TRACEPOINTS=y",
            Sight::KernelSymbols => "sysctl kernel.kptr_restrict=1 (or 0), and CAP_SYSLOG or root",
            Sight::WokenMemory => "Linux 6.18 or later",
            Sight::CpuSamples => "a kernel built with CONFIG_PERF_EVENTS=y",
            Sight::OthersLibraries => "sudo holdup …; in a container, add CAP_SYS_PTRACE",
            Sight::KernelLog => {
                "root or CAP_SYSLOG, or sysctl kernel.dmesg_restrict=0; in a container, give it /dev/kmsg"
            }
        }
    }
}

/// CAP_SYS_ADMIN includes the other two.
fn privilege(machine: &Machine) -> State {
    let status = &machine.status;
    if status.effective.is_none() {
        return State::NotTold("no /proc/self/status".to_owned());
    }
    if status.has(Capability::SysAdmin) == Some(true) {
        return yes("CAP_SYS_ADMIN");
    }
    let missing: Vec<&str> = [(Capability::Bpf, "CAP_BPF"), (Capability::Perfmon, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| status.has(*capability) == Some(false))
        .map(|(_, name)| name)
        .collect();
    if missing.is_empty() {
        yes("CAP_BPF, CAP_PERFMON")
    } else {
        no(&format!("no {}", missing.join(", no ")))
    }
}

fn told(fact: Option<bool>, is: &str, is_not: &str, unknown: &str) -> State {
    match fact {
        Some(true) => yes(is),
        Some(false) => no(is_not),
        None => State::NotTold(unknown.to_owned()),
    }
}

fn yes(note: &str) -> State {
    State::Yes(note.to_owned())
}

fn no(why: &str) -> State {
    State::No(why.to_owned())
}
