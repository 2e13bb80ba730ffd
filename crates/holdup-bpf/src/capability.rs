//! What this kernel and these privileges allow, found by trying, never by version.

use crate::mappings::open_event;
use libbpf_rs::btf::{Btf, types};
use perf_event_open_sys::bindings;

/// One thing that tracing needs or can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Stable short name: `btf`, `load`, `tracepoint:sched_switch`, `task-work`, `cpu-clock`, `mappings`.
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
    "irq_handler_entry",
    "softirq_entry",
    "hrtimer_expire_entry",
];

/// What the kernel's type information offers.
pub(crate) struct KernelTypes(Btf<'static>);

impl KernelTypes {
    pub(crate) fn read() -> Result<KernelTypes, String> {
        crate::tracer::silence_libbpf();
        Btf::from_vmlinux()
            .map(KernelTypes)
            .map_err(|error| format!("this kernel has no type information, BTF ({error})"))
    }

    /// Tracepoints that programs may attach to by type have a typedef of this name.
    pub(crate) fn has_tracepoint(&self, name: &str) -> bool {
        self.0
            .type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{name}"))
            .is_some()
    }

    pub(crate) fn has_task_work(&self) -> bool {
        self.0
            .type_by_name::<types::Func<'_>>("bpf_task_work_schedule_resume_impl")
            .is_some()
    }
}

/// Tries everything. Loads the programs and lets them go again; attaches nothing.
#[must_use]
pub fn probe() -> Vec<Capability> {
    let kernel = KernelTypes::read();
    let mut found = vec![Capability {
        name: "btf".into(),
        required: true,
        state: kernel.as_ref().map(|_| ()).map_err(Clone::clone),
    }];
    for (names, required) in [(REQUIRED_TRACEPOINTS, true), (OPTIONAL_TRACEPOINTS, false)] {
        for name in names {
            let state = match &kernel {
                Ok(types) if types.has_tracepoint(name) => Ok(()),
                Ok(_) => Err("this kernel has no such tracepoint".to_owned()),
                Err(_) => Err("cannot be told without the kernel's type information".to_owned()),
            };
            found.push(Capability {
                name: format!("tracepoint:{name}"),
                required,
                state,
            });
        }
    }
    let task_work = match &kernel {
        Ok(types) if types.has_task_work() => Ok(()),
        Ok(_) => Err("this kernel has no task work for programs (Linux 6.18 and later have)".to_owned()),
        Err(_) => Err("cannot be told without the kernel's type information".to_owned()),
    };
    found.push(Capability {
        name: "task-work".into(),
        required: false,
        state: task_work,
    });
    found.push(Capability {
        name: "cpu-clock".into(),
        required: false,
        state: cpu_clock(),
    });
    found.push(Capability {
        name: "load".into(),
        required: true,
        state: crate::tracer::try_load(),
    });
    found
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
