//! Programs that a trace can do without, and what it does not show then.
//!
//! In: what libbpf said when the kernel refused a program. Out: the group of programs to leave out, so that one that this kernel does
//! not take does not keep all others from loading. A program that is in no group is needed: without it there is no trace.

use holdup_evidence::NotMeasured;
use libbpf_rs::{Error, ErrorKind};

/// Programs that only make sense together.
#[derive(Debug)]
pub(crate) struct Group {
    /// Their names: a function's name in `bpf/`.
    pub(crate) programs: &'static [&'static str],
    /// What is not seen without them.
    unseen: &'static str,
}

/// Without all of these no waker can be trusted to be an interrupt, and one that enters and never exits is worse than none.
pub(crate) static INTERRUPTS: Group = Group {
    programs: &[
        "on_irq_entry",
        "on_irq_exit",
        "on_softirq_entry",
        "on_softirq_exit",
        "on_softirq_raise",
        "on_hrtimer_entry",
        "on_hrtimer_exit",
        "on_tick_entry",
        "on_tick_exit",
        "on_called_entry",
        "on_called_exit",
    ],
    unseen: "whether a device, a timer or a thread ended a wait, and the time that interrupts took",
};

/// Who begins to wait for a lock in the kernel, and who ends to.
static CONTENTION: Group = Group {
    programs: &["on_contention_begin", "on_contention_end"],
    unseen: "who holds a lock inside the kernel",
};

/// What is sent and received.
pub(crate) static TRAFFIC: Group = Group {
    programs: &["on_received", "on_sent", "on_request_dropped", "on_conversation"],
    unseen: "requests on sockets, and how long their answers took",
};

static GROUPS: [&Group; 18] = [
    &INTERRUPTS,
    &CONTENTION,
    &TRAFFIC,
    &Group {
        programs: &["on_connection"],
        unseen: "connections that are made, refused and given up",
    },
    &Group {
        programs: &["on_socket_state"],
        unseen: "who is at the other end of connections that are made during observation",
    },
    &Group {
        programs: &["on_packet"],
        unseen: "questions to name servers",
    },
    &Group {
        programs: &["on_data_ready"],
        unseen: "which of several sockets ended a poll",
    },
    &Group {
        programs: &["on_datagram"],
        unseen: "which servers answer what is sent to them over UDP",
    },
    &Group {
        programs: &["on_page_added"],
        unseen: "which file is read where memory is mapped",
    },
    &Group {
        programs: &["on_page_written"],
        unseen: "which file's pages are waited for while they are written",
    },
    &Group {
        programs: &["on_async_done"],
        unseen: "which request of io_uring ended a wait",
    },
    &Group {
        programs: &["on_new_worker"],
        unseen: "threads of io_uring that begin during observation",
    },
    &Group {
        programs: &["on_rename"],
        unseen: "names that threads give themselves during observation",
    },
    &Group {
        programs: &["on_signal"],
        unseen: "who stops, continues and ends threads by a signal",
    },
    &Group {
        programs: &["each_task"],
        unseen: "threads that live on as observation ends, and their last wait",
    },
    &Group {
        programs: &["name_function"],
        unseen: "functions of the kernel in which threads sleep, where /proc/kallsyms does not show them",
    },
    &Group {
        programs: &["look_at_file"],
        unseen: "what was said on connections before observation began",
    },
    &Group {
        programs: &["look_at_socket"],
        unseen: "requests that were open at the end and not reported before",
    },
];

/// How to find out which programs a kernel refuses.
const ASK_DOCTOR: &str = "a kernel that takes it; `holdup doctor` says which programs this one refuses";

/// The group of the program that libbpf names in what it says of a failed load, if a trace can do without it.
pub(crate) fn refused(said: &str) -> Option<&'static Group> {
    said.lines().find_map(|line| {
        let (_, rest) = line.split_once("prog '")?;
        let (name, _) = rest.split_once('\'')?;
        of(name)
    })
}

/// The group of this program.
pub(crate) fn of(program: &str) -> Option<&'static Group> {
    GROUPS.into_iter().find(|group| group.programs.contains(&program))
}

impl Group {
    /// What a report says of it.
    pub(crate) fn not_measured(&self) -> NotMeasured {
        NotMeasured {
            what: self.unseen.into(),
            why: format!("this kernel refused the program {}", self.programs.join(", ")),
            fix: ASK_DOCTOR.into(),
        }
    }

    /// What is not seen without them.
    pub(crate) fn unseen(&self) -> &'static str {
        self.unseen
    }
}

/// What a report says of a program that was to run now and did not. Not each error is a refusal of the program: memory and descriptors may be
/// short for a moment.
pub(crate) fn not_run(program: &str, unseen: &str, error: &Error) -> NotMeasured {
    let fix = match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::TooBig | ErrorKind::PermissionDenied => ASK_DOCTOR,
        _ => "try again",
    };
    NotMeasured {
        what: unseen.into(),
        why: format!("the kernel did not run {program}: {error}"),
        fix: fix.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, refused};
    use std::collections::BTreeSet;

    #[test]
    fn the_program_that_is_refused_is_known_by_its_name() {
        let said = "libbpf: map 'x': created\nlibbpf: prog 'on_contention_end': BPF program load failed: Invalid argument\n";
        assert!(
            refused(said).is_some_and(|group| group.programs == ["on_contention_begin", "on_contention_end"])
        );
    }

    #[test]
    fn without_a_program_that_is_needed_there_is_no_trace() {
        assert!(refused("libbpf: prog 'on_switch': BPF program load failed: Invalid argument").is_none());
        assert!(refused("libbpf: failed to load object 'trace_bpf'").is_none());
        assert!(refused("prog 'on_rename").is_none(), "cut short");
    }

    #[test]
    fn each_program_is_in_one_group_and_exists() {
        let object = libbpf_programs();
        let mut seen = BTreeSet::new();
        for name in GROUPS.iter().flat_map(|group| group.programs) {
            assert!(seen.insert(*name), "{name} is there twice");
            assert!(object.contains(*name), "{name} is no program");
        }
    }

    /// The names of functions in the compiled programs.
    fn libbpf_programs() -> BTreeSet<String> {
        use object::{Object, ObjectSymbol, SymbolKind};
        let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));
        let file = object::File::parse(&bytes[..]).unwrap();
        file.symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .collect()
    }
}
