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
            "tracing: holdup run and attach sample /proc instead, record does not work".to_owned()
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
            Sight::ProcessNumbers => "process numbers".to_owned(),
            Sight::TypeInformation => "kernel type information".to_owned(),
            Sight::Tracepoint(name) => format!("tracepoint {name}"),
            Sight::Load => "BPF programs".to_owned(),
            Sight::KernelSymbols => "kernel symbols".to_owned(),
            Sight::WokenMemory => "woken threads' memory".to_owned(),
            Sight::TaskStorage => "memory kept with threads".to_owned(),
            Sight::SavedRegisters => "saved registers".to_owned(),
            Sight::CpuSamples => "CPU samples".to_owned(),
            Sight::OthersLibraries => "others' libraries".to_owned(),
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
                Some(Lockdown::Integrity) => yes("integrity, which lets BPF read"),
                Some(Lockdown::None) => yes(""),
                None => not_told("no file says"),
            },
            Sight::KernelSymbols => told(
                machine.kernel_symbols,
                "/proc/kallsyms",
                "/proc/kallsyms hides the addresses",
                "no /proc/kallsyms",
            ),
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

    /// What can't be told without it: causes by id, and the rules that say they need it.
    fn lost(&self) -> String {
        let (words, need) = match self {
            Sight::Tracepoint(name) => match name.as_str() {
                "task_rename" => ("names of threads that rename themselves", None),
                "signal_generate" => ("who stopped a process (process.stopped)", None),
                "sk_data_ready" => (
                    "the socket that ended a wait, and so the blocker of net.receive",
                    None,
                ),
                "contention_begin" => (
                    "the holder of a lock inside the kernel (lock.kernel, mem.mmaplock): the thread that \
                     released it is named instead, without the file or process of the lock",
                    None,
                ),
                "mm_filemap_add_to_page_cache" => (
                    "which file a page fault or the start of a program waits for",
                    None,
                ),
                "inet_sock_set_state" => ("what became of connections that were asked for", None),
                "net_dev_queue" => ("which name a resolver asks for (net.dns)", None),
                _ => (
                    "whether a device or timer ended a wait, so that wakers are not named",
                    None,
                ),
            },
            Sight::KernelSymbols => (
                "what the kernel itself waited in: disk.writeback, disk.journal, lock.kernel, mem.mmaplock, \
                 mem.reclaim and their like become unknown",
                Some(Need::KernelStacks),
            ),
            Sight::WokenMemory => (
                "what ended a poll (poll.wait keeps its time) and paths of calls that take one; askers of short \
                 waits are known less exactly",
                Some(Need::WaitMemory),
            ),
            Sight::TaskStorage => (
                "threads beyond 16,384 alive at once, which are counted as lost; below that nothing",
                None,
            ),
            Sight::SavedRegisters => (
                "nothing on a distribution's kernel: the registers are found at the top of the kernel stack; where \
                 nothing plausible lies there, which system call a thread waits in is unknown, and counted",
                None,
            ),
            Sight::CpuSamples => (
                "how CPU time splits into cpu.user and cpu.kernel, and who used it; random.unseeded while it spins",
                Some(Need::CpuSamples),
            ),
            Sight::OthersLibraries => (
                "functions of programs that run as another user: askers stay addresses",
                None,
            ),
            Sight::KernelLog => ("when the random generator was seeded", Some(Need::KernelLog)),
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
            format!("{words}; of the rules: {}", rules.join(", "))
        }
    }

    fn fix(&self) -> &'static str {
        match self {
            Sight::Privilege => "sudo holdup …; or give it CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
            Sight::NoLockdown => "boot with lockdown=integrity, or with Secure Boot off",
            Sight::ProcessNumbers => {
                "holdup on the host, or a container with the host's process numbers (docker run --pid=host; hostPID in \
                 Kubernetes)"
            }
            Sight::TypeInformation => {
                "a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian 11, Ubuntu 20.10, Fedora 31, RHEL \
                 8.2 and later are; in a container, mount /sys"
            }
            Sight::Tracepoint(name) if name == "sk_data_ready" => "Linux 6.3 or later",
            Sight::Tracepoint(name) if name == "contention_begin" => "Linux 5.19 or later",
            Sight::Tracepoint(_) => "a distribution's kernel, or one built with CONFIG_TRACEPOINTS=y",
            Sight::Load => "what is missing above; if nothing is, please report the kernel's words here",
            Sight::KernelSymbols => "sysctl kernel.kptr_restrict=1 (or 0), and root or CAP_SYSLOG",
            Sight::WokenMemory => "Linux 6.18 or later",
            Sight::TaskStorage => "Linux 5.13 or later",
            Sight::SavedRegisters => "Linux 5.15 or later",
            Sight::CpuSamples => "root or CAP_PERFMON, and a kernel built with CONFIG_PERF_EVENTS=y",
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
        Some(Err(_)) if blind => not_told("needs the type information"),
        Some(Err(why)) => no(why),
        None => not_told("not tried"),
    }
}

fn told(fact: Option<bool>, is: &str, is_not: &str, unknown: &str) -> State {
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
    State::NotTold(why.to_owned())
}
