//! What holdup sees with: each thing it can need of a machine, whether it is there, what is lost without it, and
//! the fix. One line of the table each.

use super::{Row, State, Trial};
use holdup_diagnosis::rules;
use holdup_diagnosis::rules::Need;
use holdup_proc::capability::{Lockdown, Machine};
use holdup_proc::status::Capability;

/// Something that holdup sees with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    Privilege,
    NoLockdown,
    ProcessNumbers,
    TypeInformation,
    Tracepoint(String),
    Load,
    KernelSymbols,
    WokenMemory,
    TaskStorage,
    SavedRegisters,
    CpuSamples,
    OthersLibraries,
    KernelLog,
}

/// What is before a tracepoint's name in the name of its trial.
const TRACEPOINT: &str = "tracepoint:";

impl Sight {
    /// All, in the order of the table: what others hang on comes first.
    pub(super) fn all(trials: &[Trial]) -> impl Iterator<Item = Sight> {
        let tracepoints = trials
            .iter()
            .filter_map(|trial| trial.name.strip_prefix(TRACEPOINT))
            .map(str::to_owned);
        [
            Sight::Privilege,
            Sight::NoLockdown,
            Sight::ProcessNumbers,
            Sight::TypeInformation,
        ]
        .into_iter()
        .chain(tracepoints.map(Sight::Tracepoint))
        .chain([
            Sight::Load,
            Sight::KernelSymbols,
            Sight::WokenMemory,
            Sight::TaskStorage,
            Sight::SavedRegisters,
            Sight::CpuSamples,
            Sight::OthersLibraries,
            Sight::KernelLog,
        ])
    }

    /// The line of the table.
    pub(super) fn row(&self, machine: &Machine, trials: &[Trial]) -> Row {
        let trial = self
            .trial()
            .and_then(|name| trials.iter().find(|trial| trial.name == name));
        let essential = trial.map_or(*self == Sight::Privilege || *self == Sight::NoLockdown, |trial| {
            trial.required
        });
        let lost = if essential {
            "tracing: holdup run and attach sample /proc instead, and record does not work".to_owned()
        } else {
            self.lost()
        };
        let blind = trials
            .iter()
            .any(|trial| trial.name == "btf" && trial.state.is_err());
        Row {
            what: self.name(),
            state: match self.fact(machine) {
                Some(state) => state,
                None => tried(trial, blind && self.hangs_on_types()),
            },
            essential,
            lost,
            fix: self.fix().to_owned(),
        }
    }

    fn name(&self) -> String {
        match self {
            Sight::Privilege => "privilege".to_owned(),
            Sight::NoLockdown => "no lockdown".to_owned(),
            Sight::ProcessNumbers => "host PID namespace".to_owned(),
            Sight::TypeInformation => "kernel type information".to_owned(),
            Sight::Tracepoint(name) => format!("tracepoint {name}"),
            Sight::Load => "BPF programs".to_owned(),
            Sight::KernelSymbols => "kernel symbols".to_owned(),
            Sight::WokenMemory => "woken threads' memory".to_owned(),
            Sight::TaskStorage => "BPF task storage".to_owned(),
            Sight::SavedRegisters => "saved registers".to_owned(),
            Sight::CpuSamples => "CPU samples".to_owned(),
            Sight::OthersLibraries => "other users' libraries".to_owned(),
            Sight::KernelLog => "kernel log".to_owned(),
        }
    }

    /// The tracer's name for having tried it.
    fn trial(&self) -> Option<String> {
        match self {
            Sight::ProcessNumbers => Some("process-numbers".to_owned()),
            Sight::TypeInformation => Some("btf".to_owned()),
            Sight::Tracepoint(name) => Some(format!("{TRACEPOINT}{name}")),
            Sight::Load => Some("load".to_owned()),
            Sight::WokenMemory => Some("task-work".to_owned()),
            Sight::TaskStorage => Some("task-storage".to_owned()),
            Sight::SavedRegisters => Some("task-registers".to_owned()),
            Sight::CpuSamples => Some("cpu-clock".to_owned()),
            Sight::Privilege
            | Sight::NoLockdown
            | Sight::KernelSymbols
            | Sight::OthersLibraries
            | Sight::KernelLog => None,
        }
    }

    fn hangs_on_types(&self) -> bool {
        matches!(
            self,
            Sight::Tracepoint(_) | Sight::WokenMemory | Sight::TaskStorage | Sight::SavedRegisters
        )
    }

    /// What files tell of it; `None` for what only trying tells.
    fn fact(&self, machine: &Machine) -> Option<State> {
        Some(match self {
            Sight::Privilege => privilege(machine),
            Sight::NoLockdown => match machine.lockdown {
                Some(Lockdown::Confidentiality) => no("the kernel is locked down (confidentiality)"),
                Some(Lockdown::Integrity) => yes("integrity, which allows BPF to read"),
                Some(Lockdown::None) => yes(""),
                None => not_told("no file reports it"),
            },
            Sight::KernelSymbols => state_of(
                machine.kernel_symbols,
                "/proc/kallsyms",
                "/proc/kallsyms hides the addresses",
                "no /proc/kallsyms",
            ),
            Sight::OthersLibraries => state_of(
                machine.status.has(Capability::SysPtrace),
                "CAP_SYS_PTRACE",
                "no CAP_SYS_PTRACE",
                "no /proc/self/status",
            ),
            Sight::KernelLog => state_of(
                machine.kernel_log,
                "/dev/kmsg",
                "/dev/kmsg cannot be read",
                "no /dev/kmsg",
            ),
            Sight::ProcessNumbers
            | Sight::TypeInformation
            | Sight::Tracepoint(_)
            | Sight::Load
            | Sight::WokenMemory
            | Sight::TaskStorage
            | Sight::SavedRegisters
            | Sight::CpuSamples => return None,
        })
    }

    /// What can't be reported without it: causes by id, and the rules that say they need it.
    fn lost(&self) -> String {
        let (words, need) = match self {
            Sight::Tracepoint(name) => match name.as_str() {
                "task_rename" => ("names of threads that rename themselves", None),
                "signal_generate" => ("who stopped a process (process.stopped)", None),
                "sk_data_ready" => (
                    "the socket that ended a wait, and therefore the blocker of net.receive",
                    None,
                ),
                "contention_begin" => (
                    "the holder of a kernel lock (lock.kernel, mem.mmaplock): the report names the thread that \
                     released it instead, without the file or process of the lock",
                    None,
                ),
                "mm_filemap_add_to_page_cache" => (
                    "the file that a page fault or the start of a program waits for",
                    None,
                ),
                "inet_sock_set_state" => ("the outcome of connection attempts", None),
                "net_dev_queue" => ("the name that a resolver looks up (net.dns)", None),
                _ => (
                    "the end of a wait by a device or timer; the report names no wakers",
                    None,
                ),
            },
            Sight::KernelSymbols => (
                "the kernel functions of a wait: disk.writeback, disk.journal, lock.kernel, mem.mmaplock, \
                 mem.reclaim and similar causes become unknown",
                Some(Need::KernelStacks),
            ),
            Sight::WokenMemory => (
                "the descriptor that ended a poll (its time stays under poll.wait) and the path arguments of system calls; \
                 the functions of short waits are less exact",
                Some(Need::WaitMemory),
            ),
            Sight::TaskStorage => (
                "threads beyond 16,384 at the same time; they are counted as lost",
                None,
            ),
            Sight::SavedRegisters => (
                "nothing on the kernel of a distribution: holdup reads the registers from the top of the kernel stack. If they \
                 are not plausible, the system call of a wait is unknown, and counted as such",
                None,
            ),
            Sight::CpuSamples => (
                "the split of CPU time into cpu.user and cpu.kernel, and the functions that used it; random.unseeded while it spins",
                Some(Need::CpuSamples),
            ),
            Sight::OthersLibraries => (
                "function names in programs of other users: the report has addresses instead",
                None,
            ),
            Sight::KernelLog => (
                "the time at which the random generator was seeded",
                Some(Need::KernelLog),
            ),
            Sight::Privilege
            | Sight::NoLockdown
            | Sight::ProcessNumbers
            | Sight::TypeInformation
            | Sight::Load => ("everything", None),
        };
        let rules: Vec<&str> = rules::ALL
            .iter()
            .filter(|rule| need.is_some_and(|need| rule.needs.contains(&need)))
            .map(|rule| rule.id.id())
            .collect();
        if rules.is_empty() {
            words.to_owned()
        } else {
            format!("{words}; rules that need it: {}", rules.join(", "))
        }
    }

    fn fix(&self) -> &'static str {
        match self {
            Sight::Privilege => "run sudo holdup …, or give holdup CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
            Sight::NoLockdown => "boot with lockdown=integrity, or turn Secure Boot off",
            Sight::ProcessNumbers => {
                "run holdup on the host, or in a container in the PID namespace of the host (docker run --pid=host; hostPID in \
                 Kubernetes)"
            }
            Sight::TypeInformation => {
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as in Debian 11, Ubuntu 20.10, Fedora 31, RHEL \
                 8.2 and later; in a container, mount /sys"
            }
            Sight::Tracepoint(name) if name == "sk_data_ready" => "Linux 6.3 or later",
            Sight::Tracepoint(name) if name == "contention_begin" => "Linux 5.19 or later",
            Sight::Tracepoint(_) => {
                "use the kernel of a distribution, or one built with CONFIG_TRACEPOINTS=y"
            }
            Sight::Load => {
                "fix what is missing above; if nothing is missing, please report this message of the kernel"
            }
            Sight::KernelSymbols => {
                "run sysctl kernel.kptr_restrict=1 (or 0), and run holdup as root or with CAP_SYSLOG"
            }
            Sight::WokenMemory => "Linux 6.18 or later",
            Sight::TaskStorage => "Linux 5.13 or later",
            Sight::SavedRegisters => "Linux 5.15 or later",
            Sight::CpuSamples => {
                "run holdup as root or with CAP_PERFMON, on a kernel built with CONFIG_PERF_EVENTS=y"
            }
            Sight::OthersLibraries => "run sudo holdup …; in a container, add CAP_SYS_PTRACE",
            Sight::KernelLog => {
                "run holdup as root or with CAP_SYSLOG, or run sysctl kernel.dmesg_restrict=0; in a container, add the device \
                 /dev/kmsg"
            }
        }
    }
}

/// CAP_SYS_ADMIN includes the other two.
fn privilege(machine: &Machine) -> State {
    let status = &machine.status;
    if status.effective.is_none() {
        return not_told("no /proc/self/status");
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

fn tried(trial: Option<&Trial>, blind: bool) -> State {
    match trial.map(|trial| &trial.state) {
        Some(Ok(())) => yes(""),
        Some(Err(_)) if blind => not_told("needs kernel type information"),
        Some(Err(why)) => no(why),
        None => not_told("not tried"),
    }
}

fn state_of(fact: Option<bool>, is: &str, is_not: &str, unknown: &str) -> State {
    match fact {
        Some(true) => yes(is),
        Some(false) => no(is_not),
        None => not_told(unknown),
    }
}

fn yes(note: &str) -> State {
    State::Yes(note.to_owned())
}

fn no(why: &str) -> State {
    State::No(why.to_owned())
}

fn not_told(why: &str) -> State {
    State::Unknown(why.to_owned())
}
