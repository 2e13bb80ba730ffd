//! Programs that are loaded and not attached: they watch nothing yet, or no more.
//!
//! In: what this kernel offers, and options. Out: programs and maps for a [`crate::Tracer`]. That the kernel verifies them is two thirds
//! of what a start costs, so whoever observes again and again loads once and keeps them. A tracer leaves its books in the
//! maps; [`Loaded::blank`] takes them out, so that the next one begins as if nothing had been.

use crate::adopt;
use crate::calls;
use crate::capability::{self, KernelTypes};
use crate::later::{Iterators, Later};
use crate::older;
use crate::optional::{self, Group};
use crate::skeleton::{OpenTraceSkel, TraceSkel, TraceSkelBuilder, types};
use crate::tracer::{Options, Pace};
use holdup_evidence::NotMeasured;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, PrintLevel};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Mutex;

/// Where a CPU begins and ends to serve an interrupt. Without all of them no waker can be trusted.
const INTERRUPTS: [&str; 6] = [
    "irq_handler_entry",
    "irq_handler_exit",
    "softirq_entry",
    "softirq_exit",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
];

/// Where a thread begins and ends to wait for a lock in the kernel (Linux 5.19 and later).
const CONTENTION: [&str; 2] = ["contention_begin", "contention_end"];

/// Why a trace could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel does not describe its types.
    #[error("this kernel has no type information (BTF)")]
    NoTypes,
    /// Processes have other numbers here than in the kernel's events.
    #[error("{0}")]
    OtherNumbers(String),
    /// The kernel refuses.
    #[error("the kernel does not let holdup trace: {0}")]
    Refused(String),
}

/// libbpf's own words are kept for the error message instead of going to the terminal.
static LIBBPF_SAID: Mutex<String> = Mutex::new(String::new());

/// From here on libbpf writes nothing to the terminal. Call it before anything else of libbpf's.
pub(crate) fn silence_libbpf() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_what_libbpf_says)));
}

fn keep_what_libbpf_says(level: PrintLevel, message: String) {
    if matches!(level, PrintLevel::Warn)
        && let Ok(mut said) = LIBBPF_SAID.lock()
        && said.len() < 16_384
    {
        said.push_str(&message);
    }
}

/// The line of libbpf's words that says what went wrong, else the error itself.
pub(crate) fn refusal(error: &libbpf_rs::Error) -> TraceError {
    let said = LIBBPF_SAID
        .lock()
        .map(|mut said| std::mem::take(&mut *said))
        .unwrap_or_default();
    let line = said
        .lines()
        .find(|line| line.contains("failed") || line.contains("not permitted"));
    let reason = match line {
        Some(line) => format!("{error} ({})", line.trim_start_matches("libbpf: ").trim()),
        None => error.to_string(),
    };
    TraceError::Refused(reason)
}

/// Opens the programs without those that this kernel lacks something for, and without those that it `refused`.
fn open(
    types: &KernelTypes,
    options: Options,
    refused: &[&Group],
    extract: Option<&Path>,
) -> Result<OpenTraceSkel<'static>, TraceError> {
    let left_out = |group: &Group| refused.iter().any(|one| std::ptr::eq(*one, group));

    // Programs and maps live as long as the process: one trace a process, so nothing is gained by less.
    let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut builder = TraceSkelBuilder::default();
    if let Some(extract) = extract {
        let told = builder.obj_builder.btf_custom_path(extract);
        told.map_err(|error| refusal(&error))?;
    }
    let mut skeleton = builder.open(object).map_err(|error| refusal(&error))?;
    if let Some(settings) = skeleton.maps.rodata_data.as_deref_mut() {
        settings.cpu_period = options.pace.cpu_sample_period();
        settings.have_task_work = u8::from(types.has_task_work());
        let told = INTERRUPTS.iter().all(|name| types.has_tracepoint(name));
        settings.have_interrupts = u8::from(told && !left_out(&optional::INTERRUPTS));
        settings.type_ids = types::holdup_type_ids {
            task: types.structure("task_struct"),
            files: types.structure("files_struct"),
            table: types.structure("fdtable"),
            file: types.structure("file"),
            inode: types.structure("inode"),
            head: types.structure("hlist_head"),
        };
        settings.fd_argument = calls::descriptor_arguments();
        settings.path_argument = calls::path_arguments();
        settings.call_of_machine = calls::calls_of_machine();
        settings.call_of_32_bit = calls::calls_of_32_bit();
        settings.call_of_operation = calls::calls_of_operations();
    }
    if let Some(state) = skeleton.maps.bss_data.as_deref_mut() {
        state.thin = u8::from(options.pace == Pace::Record);
    }
    skeleton
        .maps
        .records
        .set_max_entries(options.buffer)
        .map_err(|error| refusal(&error))?;
    older::suit(&mut skeleton, types).map_err(|error| refusal(&error))?;
    let programs = &mut skeleton.progs;
    for (program, tracepoint) in [
        (&mut programs.on_rename, "task_rename"),
        (&mut programs.on_signal, "signal_generate"),
        (&mut programs.on_data_ready, "sk_data_ready"),
        (&mut programs.on_datagram, "sk_data_ready"),
        (&mut programs.on_page_added, "mm_filemap_add_to_page_cache"),
        (&mut programs.on_contention_begin, CONTENTION[0]),
        (&mut programs.on_contention_end, CONTENTION[1]),
        (&mut programs.on_connection, "inet_sock_set_state"),
        (&mut programs.on_socket_state, "inet_sock_set_state"),
        (&mut programs.on_page_written, "folio_wait_writeback"),
        (&mut programs.on_irq_entry, INTERRUPTS[0]),
        (&mut programs.on_irq_exit, INTERRUPTS[1]),
        (&mut programs.on_softirq_entry, INTERRUPTS[2]),
        (&mut programs.on_softirq_exit, INTERRUPTS[3]),
        (&mut programs.on_hrtimer_entry, INTERRUPTS[4]),
        (&mut programs.on_hrtimer_exit, INTERRUPTS[5]),
        (&mut programs.on_softirq_raise, "softirq_raise"),
        (&mut programs.on_received, "sock_recv_length"),
        (&mut programs.on_sent, "sock_send_length"),
        (&mut programs.on_conversation, "inet_sock_set_state"),
        (&mut programs.on_request_dropped, "sock_send_length"),
        (&mut programs.on_tick_entry, "local_timer_entry"),
        (&mut programs.on_tick_exit, "local_timer_exit"),
        (&mut programs.on_called_entry, "call_function_single_entry"),
        (&mut programs.on_called_exit, "call_function_single_exit"),
    ] {
        program.set_autoload(types.has_tracepoint(tracepoint));
    }
    // What a tick takes beside the timers that are due then is little, and there are hundreds a second and CPU.
    if options.pace == Pace::Record {
        programs.on_tick_entry.set_autoload(false);
        programs.on_tick_exit.set_autoload(false);
    }
    // It sends errands, which needs task work.
    let completions = types.has_task_work() && types.has_tracepoint("io_uring_complete");
    programs.on_async_done.set_autoload(completions);
    // The other way to see questions to name servers; it costs every packet something.
    let sends = types.has_tracepoint("sock_send_length") && !left_out(&optional::TRAFFIC);
    programs
        .on_packet
        .set_autoload(!sends && types.has_tracepoint("net_dev_queue"));
    for mut program in skeleton.open_object_mut().progs_mut() {
        let name = program.name().to_str().unwrap_or_default().to_owned();
        if refused
            .iter()
            .any(|group| group.programs.contains(&name.as_str()))
        {
            program.set_autoload(false);
        }
    }
    Ok(skeleton)
}

/// When the kernel verifies what is only run when somebody asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// With the others: they are used again and again, or it is asked whether this kernel takes them.
    AtOnce,
    /// As it is run for the first time, if ever.
    Later,
}

/// What was loaded.
struct Taken {
    skeleton: TraceSkel<'static>,
    iterators: Iterators,
    /// What this kernel does not take.
    refused: Vec<&'static Group>,
}

/// Loads them; those that this kernel refuses and a trace can do without are left out, and come with what was loaded. `spoil` is given what
/// was opened before it is loaded.
fn load_what_is_taken(
    types: &KernelTypes,
    options: Options,
    when: When,
    spoil: impl Fn(&mut OpenTraceSkel<'static>),
) -> Result<Taken, TraceError> {
    let mut refused = Vec::new();
    let mut extract = types.extract();
    loop {
        let mut opened = open(types, options, &refused, extract.as_deref())?;
        spoil(&mut opened);
        let iterators = match when {
            When::AtOnce => Ok(Iterators::at_once()),
            When::Later => Iterators::defer(&mut opened, types),
        };
        let error = match iterators.and_then(|iterators| Ok((opened.load()?, iterators))) {
            Ok((skeleton, iterators)) => {
                return Ok(Taken {
                    skeleton,
                    iterators,
                    refused,
                });
            }
            Err(error) => error,
        };
        let said = LIBBPF_SAID.lock().map(|said| said.clone()).unwrap_or_default();
        match optional::refused(&said) {
            // What the extract may lack is no reason to leave anything out.
            _ if extract.is_some() => extract = None,
            // One that was left out and is refused again would be so for ever.
            Some(group) if !refused.iter().any(|one| std::ptr::eq(*one, group)) => refused.push(group),
            _ => return Err(refusal(&error)),
        }
        if let Ok(mut said) = LIBBPF_SAID.lock() {
            said.clear();
        }
    }
}

/// Whether a trace can do without these. One that is followed by the next would lose what goes on at the end of each.
fn suffices(when: When, refused: &[&Group]) -> Result<(), TraceError> {
    let end = Later::EachTask.name();
    match when == When::AtOnce && refused.iter().any(|group| group.programs.contains(&end)) {
        true => Err(TraceError::Refused(format!("the program {end} was refused"))),
        false => Ok(()),
    }
}

/// Programs and maps.
pub struct Loaded {
    pub(crate) skeleton: TraceSkel<'static>,
    pub(crate) iterators: Iterators,
    pub(crate) options: Options,
    pub(crate) not_measured: Vec<NotMeasured>,
    /// What the programs' variables were as they were loaded.
    fresh: Option<(types::bss, types::data)>,
}

impl Loaded {
    /// Loads them. They live as long as this process and those that it forks.
    ///
    /// # Errors
    /// When the kernel or the privileges do not allow it; the message names what was refused.
    pub fn load(options: Options) -> Result<Loaded, TraceError> {
        Loaded::load_with(options, When::AtOnce)
    }

    /// Loads those that are needed at once; the others as they are needed.
    pub(crate) fn load_some(options: Options) -> Result<Loaded, TraceError> {
        Loaded::load_with(options, When::Later)
    }

    fn load_with(options: Options, when: When) -> Result<Loaded, TraceError> {
        capability::process_numbers().map_err(TraceError::OtherNumbers)?;
        let types = KernelTypes::read().map_err(|_| TraceError::NoTypes)?;
        let mut not_measured = Vec::new();
        if !CONTENTION.iter().all(|name| types.has_tracepoint(name)) {
            not_measured.push(NotMeasured {
                what: "who holds a lock inside the kernel".into(),
                why: "this kernel has no contention tracepoints".into(),
                fix: "Linux 5.19 or later; until then the one that let go is named instead".into(),
            });
        }
        let Taken {
            skeleton,
            iterators,
            refused,
        } = load_what_is_taken(&types, options, when, |_| {})?;
        suffices(when, &refused)?;
        not_measured.extend(refused.iter().map(|group| group.not_measured()));
        older::give_out_numbers(&skeleton.maps.numbers).map_err(|error| refusal(&error))?;
        let maps = &skeleton.maps;
        let fresh = maps
            .bss_data
            .as_deref()
            .copied()
            .zip(maps.data_data.as_deref().copied());
        Ok(Loaded {
            skeleton,
            iterators,
            options,
            not_measured,
            fresh,
        })
    }

    /// Takes out of the maps what a tracer has left there. None may be attached.
    ///
    /// # Errors
    /// When the kernel does not let it.
    pub fn blank(&mut self) -> Result<(), TraceError> {
        self.try_blank().map_err(|error| refusal(&error))
    }

    fn try_blank(&mut self) -> libbpf_rs::Result<()> {
        let storage = self.skeleton.maps.threads.autocreate();
        if storage {
            adopt::run(&self.skeleton.progs.forget_task)?;
        }
        let maps = &mut self.skeleton.maps;
        empty(&maps.wanted)?;
        empty(&maps.looked_at)?;
        empty(&maps.errands)?;
        empty(&maps.connecting)?;
        empty(&maps.objects)?;
        empty(&maps.questions)?;
        empty(&maps.upstreams)?;
        empty(&maps.datagram_peers)?;
        empty(&maps.answered_by_others)?;
        empty(&maps.served_ports)?;
        if !storage {
            empty(&maps.thread_table)?;
            empty(&maps.socket_table)?;
        }
        zero(&maps.interrupts)?;
        zero(&maps.closings)?;
        zero(&maps.ready_socket)?;
        zero(&maps.costs)?;
        while maps.numbers.lookup_and_delete(&[])?.is_some() {}
        older::give_out_numbers(&maps.numbers)?;
        if let Some((bss, data)) = self.fresh {
            if let Some(now) = maps.bss_data.as_deref_mut() {
                *now = bss;
            }
            if let Some(now) = maps.data_data.as_deref_mut() {
                // What is kept of sockets goes with them, and is of the observation that has kept it.
                let observation = now.observation.wrapping_add(1).max(1);
                *now = types::data { observation, ..data };
            }
        }
        Ok(())
    }
}

/// Takes out all entries of a table.
fn empty(table: &impl MapCore) -> libbpf_rs::Result<()> {
    let keys: Vec<Vec<u8>> = table.keys().collect();
    for key in keys {
        match table.delete(&key) {
            // One that was gone already, as of a table that lets go of the oldest.
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => {}
            deleted => deleted?,
        }
    }
    Ok(())
}

/// Sets what each CPU has of an array of one to zeros.
pub(crate) fn zero(array: &impl MapCore) -> libbpf_rs::Result<()> {
    let key = 0u32.to_ne_bytes();
    let Some(mut values) = array.lookup_percpu(&key, MapFlags::ANY)? else {
        return Ok(());
    };
    for value in &mut values {
        value.fill(0);
    }
    array.update_percpu(&key, &values, MapFlags::ANY)
}

/// Loads and lets go. What was left out is told by what is not seen without it.
pub(crate) fn try_load() -> Result<Vec<NotMeasured>, String> {
    let types = KernelTypes::read()?;
    let taken = load_what_is_taken(&types, Options::default(), When::AtOnce, |_| {});
    let taken = taken.map_err(|error| error.to_string())?;
    Ok(taken.refused.iter().map(|group| group.not_measured()).collect())
}

#[cfg(test)]
mod tests {
    use super::{Options, TraceError, When, load_what_is_taken, suffices};
    use crate::capability::KernelTypes;
    use crate::optional;
    use crate::skeleton::OpenTraceSkel;
    use libbpf_rs::ProgramType;
    use libbpf_rs::skel::OpenSkel;

    /// Makes the program one of a type that may not do what it does, so that the kernel refuses it.
    fn spoil(opened: &mut OpenTraceSkel<'static>, name: &str) {
        let mut programs = opened.open_object_mut().progs_mut();
        let mut program = programs.find(|program| program.name() == name).unwrap();
        if program.autoload() {
            program.set_prog_type(ProgramType::SocketFilter);
        }
    }

    /// What is loaded, and the first program of each group that is not.
    fn load_spoilt(names: &[&str]) -> Result<Vec<&'static str>, TraceError> {
        let types = KernelTypes::read().unwrap();
        let taken = load_what_is_taken(&types, Options::default(), When::AtOnce, |opened| {
            names.iter().for_each(|name| spoil(opened, name));
        })?;
        let programs = &taken.skeleton.progs;
        assert!(programs.on_switch.autoload() || programs.on_switch_without_errands.autoload());
        Ok(taken
            .refused
            .iter()
            .filter_map(|group| group.programs.first().copied())
            .collect())
    }

    #[test]
    fn one_trace_after_the_other_needs_the_program_that_tells_of_the_end() {
        let (end, others) = (
            optional::of("each_task").unwrap(),
            optional::of("on_sent").unwrap(),
        );
        assert!(matches!(
            suffices(When::AtOnce, &[others, end]),
            Err(TraceError::Refused(_))
        ));
        assert!(suffices(When::AtOnce, &[others]).is_ok());
        assert!(
            suffices(When::Later, &[others, end]).is_ok(),
            "it is run once, if ever"
        );
    }

    #[test]
    fn a_program_that_is_refused_does_not_keep_the_others_from_loading() {
        assert_eq!(load_spoilt(&[]).unwrap(), Vec::<&str>::new());
        assert_eq!(
            load_spoilt(&["on_contention_end", "on_sent"]).unwrap(),
            ["on_contention_begin", "on_received"]
        );
        assert!(
            load_spoilt(&["on_waking"]).is_err(),
            "without it nothing is known of any wait"
        );
    }
}
