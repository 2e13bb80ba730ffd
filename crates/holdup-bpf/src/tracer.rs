//! Loads the programs, watches one run, hands out its records.

use crate::calls;
use crate::capability::{KernelTypes, cpu_clock_attributes};
use crate::decode::{RawEvent, decode};
use crate::mappings::{Mapped, Mappings, open_event};
use crate::older;
use crate::skeleton::{OpenTraceSkel, TraceSkel, TraceSkelBuilder};
use holdup_evidence::{Loss, LossClass, NotMeasured, Ns};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapCore, MapFlags, OpenObject, PrintLevel, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{Ordering, fence};

/// Period of the CPU clock: 500 samples tell shares of a second on a CPU to 2.2 points (one standard error). Twice as
/// many were measured to cost a program that never blocks another percent.
const CPU_SAMPLE_PERIOD: Ns = 2_000_000;
/// Blocked time that one stack stands for to begin with: a wait of a millisecond or more has one of its own.
/// Shorter ones do not decide what a person can feel; at this budget stacks cost some 0.25 % of blocked time.
const STACK_BUDGET: Ns = 1_000_000;
/// A stack stands for at most this much, so that long runs are still told.
const STACK_BUDGET_MOST: Ns = 1_000_000_000;
/// Most records handed out at once: some 16 MB if all of them held stacks.
const BATCH: usize = 1024;

/// The ring between the programs and user space, bytes: 0.2 s of records at 400,000 waits a second, which is ten
/// turns of the reader.
pub const DEFAULT_BUFFER: u32 = 16 << 20;
/// The smallest ring: two of the largest records, which hold a stack, and some of the others.
pub const SMALLEST_BUFFER: u32 = 64 << 10;
/// The largest, for the kernel takes its memory for as long as the trace lasts: 14 s of records at that rate.
pub const LARGEST_BUFFER: u32 = 1 << 30;

/// What can be chosen about a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of the ring between the programs and user space, bytes: a power of two.
    pub buffer: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            buffer: DEFAULT_BUFFER,
        }
    }
}

/// How many stacks of one kind may come, and what each stands for.
struct Allowance {
    /// Stacks a second above which each must stand for more.
    most: f64,
    /// Stacks a second below which each may stand for less again.
    few: f64,
    /// Blocked time that one stands for now.
    budget: Ns,
    /// Stacks since the last adaptation.
    seen: u64,
}

impl Allowance {
    /// Unwinding a user stack takes some 30 µs.
    const USER: Allowance = Allowance {
        most: 500.0,
        few: 100.0,
        budget: STACK_BUDGET,
        seen: 0,
    };
    /// A kernel stack is some names by the time it gets here, and found again by them.
    const KERNEL: Allowance = Allowance {
        most: 20_000.0,
        few: 4_000.0,
        budget: STACK_BUDGET,
        seen: 0,
    };

    /// Adapts to what came in the last `elapsed`; returns how many more may come until the next time.
    fn adapt(&mut self, elapsed: Ns) -> i32 {
        let rate = self.seen as f64 * 1e9 / elapsed.max(1) as f64;
        self.seen = 0;
        if rate > self.most {
            self.budget = (self.budget * 2).min(STACK_BUDGET_MOST);
        } else if rate < self.few {
            self.budget = (self.budget / 2).max(STACK_BUDGET);
        }
        // Twice the rate that is too much, for 20 ms and at least one turn.
        (self.most / 25.0) as i32
    }
}

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
    /// The kernel refuses.
    #[error("the kernel does not let holdup trace: {0}")]
    Refused(String),
}

/// What a trace reports of itself when it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Dropped records.
    pub losses: Vec<Loss>,
    /// What could not be seen.
    pub not_measured: Vec<NotMeasured>,
    /// Run time of the programs, estimated from every 64th run.
    pub programs: Ns,
    /// Blocked time that one kernel stack stood for at the end.
    pub kernel_stack_budget: Ns,
    /// Blocked time that one user stack stood for at the end.
    pub user_stack_budget: Ns,
    /// Period of the CPU clock.
    pub cpu_sample_period: Ns,
}

/// A trace under way.
pub struct Tracer {
    ring: RingBuffer<'static>,
    received: Rc<RefCell<Received>>,
    skeleton: TraceSkel<'static>,
    /// Until CMD's first thread has been seen.
    first_waking: Option<Link>,
    _links: Vec<Link>,
    mappings: Option<Mappings>,
    not_measured: Vec<NotMeasured>,
    user: Allowance,
    kernel: Allowance,
}

#[derive(Default)]
struct Received {
    events: Vec<RawEvent>,
    undecodable: u64,
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
fn refusal(error: &libbpf_rs::Error) -> TraceError {
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

fn open(types: &KernelTypes, options: Options) -> Result<OpenTraceSkel<'static>, TraceError> {
    // Programs and maps live as long as the process: one trace a process, so nothing is gained by less.
    let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut skeleton = TraceSkelBuilder::default()
        .open(object)
        .map_err(|error| refusal(&error))?;
    if let Some(settings) = skeleton.maps.rodata_data.as_deref_mut() {
        settings.cpu_period = CPU_SAMPLE_PERIOD;
        settings.have_task_work = u8::from(types.has_task_work());
        settings.have_interrupts = u8::from(INTERRUPTS.iter().all(|name| types.has_tracepoint(name)));
        settings.fd_argument = calls::descriptor_arguments();
        settings.path_argument = calls::path_arguments();
        settings.call_of_operation = calls::calls_of_operations();
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
        (&mut programs.on_page_added, "mm_filemap_add_to_page_cache"),
        (&mut programs.on_contention_begin, CONTENTION[0]),
        (&mut programs.on_contention_end, CONTENTION[1]),
        (&mut programs.on_connection, "inet_sock_set_state"),
        (&mut programs.on_packet, "net_dev_queue"),
        (&mut programs.on_socket_state, "inet_sock_set_state"),
        (&mut programs.on_page_written, "folio_wait_writeback"),
        (&mut programs.on_irq_entry, INTERRUPTS[0]),
        (&mut programs.on_irq_exit, INTERRUPTS[1]),
        (&mut programs.on_softirq_entry, INTERRUPTS[2]),
        (&mut programs.on_softirq_exit, INTERRUPTS[3]),
        (&mut programs.on_hrtimer_entry, INTERRUPTS[4]),
        (&mut programs.on_hrtimer_exit, INTERRUPTS[5]),
        (&mut programs.on_softirq_raise, "softirq_raise"),
        (&mut programs.on_tick_entry, "local_timer_entry"),
        (&mut programs.on_tick_exit, "local_timer_exit"),
        (&mut programs.on_called_entry, "call_function_single_entry"),
        (&mut programs.on_called_exit, "call_function_single_exit"),
    ] {
        program.set_autoload(types.has_tracepoint(tracepoint));
    }
    // It sends errands, which needs task work.
    let completions = types.has_task_work() && types.has_tracepoint("io_uring_complete");
    programs.on_async_done.set_autoload(completions);
    Ok(skeleton)
}

/// Loads and lets go.
pub(crate) fn try_load() -> Result<(), String> {
    let types = KernelTypes::read()?;
    let skeleton = open(&types, Options::default()).map_err(|error| error.to_string())?;
    skeleton
        .load()
        .map(drop)
        .map_err(|error| refusal(&error).to_string())
}

impl Tracer {
    /// Loads and attaches everything. Nothing is watched before [`Tracer::watch`].
    ///
    /// # Errors
    /// When the kernel or the privileges do not allow it; the message names what was refused.
    pub fn load(options: Options) -> Result<Tracer, TraceError> {
        let types = KernelTypes::read().map_err(|_| TraceError::NoTypes)?;
        let mut not_measured = Vec::new();
        if !CONTENTION.iter().all(|name| types.has_tracepoint(name)) {
            not_measured.push(NotMeasured {
                what: "who holds a lock inside the kernel".into(),
                why: "this kernel has no contention tracepoints".into(),
                fix: "Linux 5.19 or later; until then the one that let go is named instead".into(),
            });
        }
        let skeleton = open(&types, options)?.load().map_err(|error| refusal(&error))?;
        older::give_out_numbers(&skeleton.maps.numbers).map_err(|error| refusal(&error))?;
        let programs = &skeleton.progs;
        let mut links = Vec::new();
        // Exits before entries: an exit whose entry was not seen does nothing, an entry whose exit was not seen
        // would leave its CPU "in an interrupt" for good.
        for program in [
            &programs.on_tick_exit,
            &programs.on_tick_entry,
            &programs.on_called_exit,
            &programs.on_called_entry,
            &programs.on_softirq_raise,
            &programs.on_irq_exit,
            &programs.on_irq_entry,
            &programs.on_hrtimer_exit,
            &programs.on_hrtimer_entry,
            &programs.on_softirq_exit,
            &programs.on_softirq_entry,
            &programs.on_rename,
            &programs.on_signal,
            &programs.on_data_ready,
            &programs.on_page_added,
            &programs.on_contention_end,
            &programs.on_contention_begin,
            &programs.on_connection,
            &programs.on_packet,
            &programs.on_socket_state,
            &programs.on_async_done,
            &programs.on_new_worker,
            &programs.on_page_written,
            &programs.on_exec,
            &programs.on_fork,
            &programs.on_switch,
            &programs.on_switch_without_errands,
            &programs.on_waking,
        ] {
            if program.autoload() {
                links.push(program.attach_trace().map_err(|error| refusal(&error))?);
            }
        }
        let first_waking = Some(
            programs
                .on_first_waking
                .attach_trace()
                .map_err(|error| refusal(&error))?,
        );
        let cpus = online_cpus();
        for cpu in &cpus {
            let mut attributes = cpu_clock_attributes(CPU_SAMPLE_PERIOD);
            let attached = open_event(&mut attributes, *cpu)
                .map_err(|error| error.desc().to_owned())
                .and_then(|clock| {
                    let link = programs.on_cpu_clock.attach_perf_event(clock.as_raw_fd());
                    // The link closes the event when it goes.
                    link.map(|link| (link, clock.into_raw_fd()).0)
                        .map_err(|error| error.to_string())
                });
            match attached {
                Ok(link) => links.push(link),
                Err(why) => {
                    not_measured.push(NotMeasured {
                        what: "what CPU time went into".into(),
                        why: format!("the CPU clock event was refused: {why}"),
                        fix: "allow performance events (CAP_PERFMON, kernel.perf_event_paranoid)".into(),
                    });
                    break;
                }
            }
        }
        let mappings = match Mappings::listen(&cpus) {
            Ok(mappings) => Some(mappings),
            Err(error) => {
                not_measured.push(NotMeasured {
                    what: "who asked (user stacks)".into(),
                    why: format!("announcements of mappings were refused: {}", error.desc()),
                    fix: "allow performance events (CAP_PERFMON, kernel.perf_event_paranoid)".into(),
                });
                None
            }
        };
        let received = Rc::new(RefCell::new(Received::default()));
        let sink = Rc::clone(&received);
        // The ring's map must outlive the ring: it belongs to the leaked object, its handle is leaked too.
        let records: &'static libbpf_rs::MapHandle = Box::leak(Box::new(
            libbpf_rs::MapHandle::try_from(&skeleton.maps.records).map_err(|error| refusal(&error))?,
        ));
        let mut builder = RingBufferBuilder::new();
        builder
            .add(records, move |bytes| {
                let mut received = sink.borrow_mut();
                match decode(bytes) {
                    Ok(event) => received.events.push(event),
                    Err(_) => received.undecodable += 1,
                }
                0
            })
            .map_err(|error| refusal(&error))?;
        let ring = builder.build().map_err(|error| refusal(&error))?;
        Ok(Tracer {
            ring,
            received,
            skeleton,
            first_waking,
            _links: links,
            mappings,
            not_measured,
            user: Allowance::USER,
            kernel: Allowance::KERNEL,
        })
    }

    /// Watches this process from its next waking on. It must be asleep.
    pub fn watch(&mut self, pid: u32) {
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.root_pid = pid;
        }
        fence(Ordering::SeqCst);
    }

    /// Some of the records that wait, and the mappings that they need. No records: there are none now.
    pub fn drain(&mut self) -> (Vec<Mapped>, Vec<RawEvent>) {
        // The ring first: what a record's stack needs was mapped before the record was made.
        let consumed = self.ring.consume_raw_n(BATCH);
        let mapped = self.mappings.as_mut().map(Mappings::drain).unwrap_or_default();
        let mut received = self.received.borrow_mut();
        if consumed < 0 {
            received.undecodable += 1;
        }
        let events = std::mem::take(&mut received.events);
        drop(received);
        if self.first_waking.is_some() && !events.is_empty() {
            self.first_waking = None;
        }
        for event in &events {
            match event {
                RawEvent::Memory(memory) if !memory.on_cpu => self.user.seen += 1,
                RawEvent::KernelStack { .. } => self.kernel.seen += 1,
                _ => {}
            }
        }
        (mapped, events)
    }

    /// Keeps the rate of stacks within what reading them may cost. `elapsed` is the time since the last call.
    pub fn adapt(&mut self, elapsed: Ns) {
        let (user, kernel) = (self.user.adapt(elapsed), self.kernel.adapt(elapsed));
        if let Some(settings) = self.skeleton.maps.data_data.as_deref_mut() {
            settings.user_budget = self.user.budget;
            settings.user_allowance = user;
            settings.kernel_budget = self.kernel.budget;
            settings.kernel_allowance = kernel;
        }
    }

    /// Ends observation at `at`: nothing changes any more, threads that live on are recorded as they are.
    /// A last [`Tracer::drain`] then has everything.
    pub fn freeze(&mut self, at: Ns) {
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.frozen_at = at;
            fence(Ordering::SeqCst);
            state.frozen = 1;
        }
        fence(Ordering::SeqCst);
        // Programs that began before the flag was set end within microseconds; attaching the iterator takes
        // longer than that.
        if let Ok(link) = self.skeleton.progs.each_task.attach_trace()
            && let Ok(mut tasks) = Iter::new(&link)
        {
            let mut nothing = Vec::new();
            // It writes no text; reading is what makes it run.
            let _ = tasks.read_to_end(&mut nothing);
        }
        self._links.clear();
    }

    /// What was dropped, what could not be seen, what it cost.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut losses = Vec::new();
        if let Some(state) = self.skeleton.maps.bss_data.as_deref() {
            const CLASSES: [LossClass; 7] = [
                LossClass::WaitRecord,
                LossClass::ThreadRecord,
                LossClass::ObjectRecord,
                LossClass::StackSample,
                LossClass::CpuSample,
                LossClass::Thread,
                LossClass::Waking,
            ];
            for (class, count) in CLASSES.into_iter().zip(state.losses) {
                let ns = match class {
                    LossClass::Waking => state.unseen_ns,
                    _ => 0,
                };
                losses.push(Loss { class, count, ns });
            }
        }
        let mappings = self.mappings.as_ref().map_or(0, |mappings| mappings.lost);
        losses.push(Loss {
            class: LossClass::Mapping,
            count: mappings,
            ns: 0,
        });
        let undecodable = self.received.borrow().undecodable;
        losses.push(Loss {
            class: LossClass::ThreadRecord,
            count: undecodable,
            ns: 0,
        });
        losses.retain(|loss| loss.count > 0);
        let mut not_measured = self.not_measured.clone();
        not_measured.extend(older::unseen(&self.skeleton, &losses));
        Report {
            losses,
            not_measured,
            programs: self.programs(),
            kernel_stack_budget: self.kernel.budget,
            user_stack_budget: self.user.budget,
            cpu_sample_period: CPU_SAMPLE_PERIOD,
        }
    }

    fn programs(&self) -> Ns {
        let costs = self
            .skeleton
            .maps
            .costs
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let per_cpu = costs.ok().flatten().unwrap_or_default();
        per_cpu
            .iter()
            .filter_map(|cost| Some(u64::from_ne_bytes(*cost.get(8..)?.first_chunk()?)))
            .sum()
    }
}

/// CPUs online now, as the kernel lists them (`0-3,8`); CPU 0 when that cannot be read.
fn online_cpus() -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last);
        }
    }
    if cpus.is_empty() {
        cpus.push(0);
    }
    cpus
}
