//! What this kernel and these privileges allow, found by trying, never by version.

use crate::extract::{Walked, walk};
use crate::mappings::open_event;
use libbpf_rs::btf::{Btf, ReferencesType, types};
use perf_event_open_sys::bindings;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// One thing that tracing needs or can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Stable short name: `btf`, `load`, `process-numbers`, `tracepoint:sched_switch`, `task-work`, `task-storage`,
    /// `task-registers`, `cpu-clock`.
    pub name: String,
    /// Whether a trace cannot do without it.
    pub required: bool,
    /// `Err` says why not, in the kernel's words where it has any.
    pub state: Result<(), String>,
}

/// Tracepoints that a trace cannot do without.
pub const REQUIRED_TRACEPOINTS: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "sched_process_fork",
    "sched_process_exec",
];

/// Tracepoints without which something is less well told.
pub const OPTIONAL_TRACEPOINTS: &[&str] = &[
    "task_rename",
    "signal_generate",
    "sk_data_ready",
    "mm_filemap_add_to_page_cache",
    "contention_begin",
    "inet_sock_set_state",
    "net_dev_queue",
    "irq_handler_entry",
    "softirq_entry",
    "hrtimer_expire_entry",
];

/// What the kernel's type information offers.
pub(crate) struct KernelTypes {
    /// What was looked for by name.
    walked: Walked,
    switch_state: bool,
    task_storage: bool,
}

impl KernelTypes {
    pub(crate) fn read() -> Result<KernelTypes, String> {
        crate::loaded::silence_libbpf();
        let all = Btf::from_vmlinux()
            .map_err(|error| format!("this kernel has no type information, BTF ({error})"))?;
        let walked = walk(&all);
        let tracepoint = walked.tracepoints.get("sched_switch");
        Ok(KernelTypes {
            switch_state: tracepoint.is_some_and(|number| has_switch_state(&all, *number)),
            task_storage: walked
                .structures
                .get("task_struct")
                .is_some_and(|number| has_task_storage(&all, *number)),
            walked,
        })
    }

    /// Whether programs may attach to it by type.
    pub(crate) fn has_tracepoint(&self, name: &str) -> bool {
        self.walked.tracepoints.contains_key(name)
    }

    /// The number of a structure that the programs know; 0: there is none.
    pub(crate) fn structure(&self, name: &str) -> u32 {
        self.walked.structures.get(name).copied().unwrap_or_default()
    }

    /// The number of a function that is looked for; 0: there is none.
    pub(crate) fn function(&self, name: &str) -> u32 {
        self.walked.functions.get(name).copied().unwrap_or_default()
    }

    /// Where the extract is that the programs are adapted by.
    pub(crate) fn extract(&self) -> Option<PathBuf> {
        let file = self.walked.extract.as_ref()?;
        Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
    }

    /// Whether sched_switch hands over the state that the leaving task had.
    pub(crate) fn has_switch_state(&self) -> bool {
        self.switch_state
    }

    /// Whether tracing programs may store something with a task.
    pub(crate) fn has_task_storage(&self) -> bool {
        self.task_storage
    }

    /// Whether a program may be told where a task's registers were saved.
    pub(crate) fn has_task_registers(&self) -> bool {
        self.function("bpf_task_pt_regs") != 0
    }

    pub(crate) fn has_task_work(&self) -> bool {
        self.function("bpf_task_work_schedule_resume_impl") != 0
    }
}

/// The arguments are then the programs' data, preemption, the two tasks, and the state.
fn has_switch_state(all: &Btf<'_>, tracepoint: u32) -> bool {
    const ARGUMENTS: usize = 5;
    all.type_by_id::<types::Typedef<'_>>(tracepoint.into())
        .and_then(|alias| types::Ptr::try_from(alias.referenced_type()).ok())
        .and_then(|pointer| types::FuncProto::try_from(pointer.referenced_type()).ok())
        .is_some_and(|function| function.iter().count() == ARGUMENTS)
}

/// As long as only security modules could, that did not hang on the task itself.
fn has_task_storage(all: &Btf<'_>, task: u32) -> bool {
    all.type_by_id::<types::Struct<'_>>(task.into())
        .is_some_and(|task| {
            task.iter()
                .any(|member| member.name.is_some_and(|name| name == "bpf_storage"))
        })
}

/// Tries everything. Loads the programs and lets them go again; attaches nothing.
#[must_use]
pub fn probe() -> Vec<Capability> {
    let kernel = KernelTypes::read();
    let mut found = vec![
        Capability {
            name: "process-numbers".into(),
            required: true,
            state: process_numbers(),
        },
        Capability {
            name: "btf".into(),
            required: true,
            state: kernel.as_ref().map(|_| ()).map_err(Clone::clone),
        },
    ];
    for (names, required) in [(REQUIRED_TRACEPOINTS, true), (OPTIONAL_TRACEPOINTS, false)] {
        for name in names {
            let state = match &kernel {
                Ok(types) if types.has_tracepoint(name) => Ok(()),
                Ok(_) => Err("this kernel has no such tracepoint".to_owned()),
                Err(_) => Err("is not known without the kernel's type information".to_owned()),
            };
            found.push(Capability {
                name: format!("tracepoint:{name}"),
                required,
                state,
            });
        }
    }
    found.push(optional(
        &kernel,
        "task-work",
        KernelTypes::has_task_work,
        "this kernel has no task work for programs (Linux 6.18 and later have)",
    ));
    found.push(optional(
        &kernel,
        "task-storage",
        KernelTypes::has_task_storage,
        "this kernel lets no tracing program store something with a task (Linux 5.13 and later do)",
    ));
    found.push(optional(
        &kernel,
        "task-registers",
        KernelTypes::has_task_registers,
        "this kernel has no bpf_task_pt_regs (Linux 5.15 and later have)",
    ));
    found.push(Capability {
        name: "cpu-clock".into(),
        required: false,
        state: cpu_clock(),
    });
    let loaded = crate::loaded::try_load();
    for missing in loaded.as_deref().unwrap_or_default() {
        found.push(Capability {
            name: "all-programs".into(),
            required: false,
            state: Err(format!("{}; not seen: {}", missing.why, missing.what)),
        });
    }
    found.push(Capability {
        name: "load".into(),
        required: true,
        state: loaded.map(drop),
    });
    found
}

/// What the outermost PID namespace is called: its number is fixed in the kernel (`PROC_PID_INIT_INO`), those of others are given out.
const OUTERMOST: &str = "pid:[4026531836]";

/// Whether processes have the numbers here that the kernel's events carry. Within a PID namespace they have others, and nothing that is
/// reported of could be found again.
pub(crate) fn process_numbers() -> Result<(), String> {
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(own) if own.as_os_str() != OUTERMOST => Err(
            "holdup is in a PID namespace of its own, in which processes have other numbers than in the kernel's events"
                .to_owned(),
        ),
        // A kernel without PID namespaces has no such file.
        _ => Ok(()),
    }
}

/// Something that a trace can do without, as the type information tells it.
fn optional(
    kernel: &Result<KernelTypes, String>,
    name: &str,
    has: impl Fn(&KernelTypes) -> bool,
    lacking: &str,
) -> Capability {
    let state = match kernel {
        Ok(types) if has(types) => Ok(()),
        Ok(_) => Err(lacking.to_owned()),
        Err(_) => Err("is not known without the kernel's type information".to_owned()),
    };
    Capability {
        name: name.into(),
        required: false,
        state,
    }
}

fn cpu_clock() -> Result<(), String> {
    let mut attributes = cpu_clock_attributes(1_000_000);
    open_event(&mut attributes, 0)
        .map(drop)
        .map_err(|error| error.desc().to_owned())
}

/// A software clock that ticks each `period` nanoseconds of a CPU.
pub(crate) fn cpu_clock_attributes(period: u64) -> bindings::perf_event_attr {
    let mut attributes = bindings::perf_event_attr {
        type_: bindings::PERF_TYPE_SOFTWARE,
        size: u32::try_from(size_of::<bindings::perf_event_attr>()).expect("a small structure"),
        config: u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = period;
    attributes
}
