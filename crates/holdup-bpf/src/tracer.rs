//! Attaches the programs, watches one run, hands out its records.

mod looking;

use crate::adopt::{self, Looked};
use crate::allowance::Allowance;
use crate::capability::cpu_clock_attributes;
use crate::decode::{RawEvent, decode};
use crate::functions::KernelFunctions;
use crate::later::Iterators;
use crate::loaded::{Loaded, TraceError, refusal};
use crate::mappings::{Mapped, Mappings, open_event};
use crate::older;
use crate::skeleton::TraceSkel;
use crate::thinning::Thinning;
use holdup_evidence::budget::{STEPS, Thinned};
use holdup_evidence::{Datagrams, Loss, LossClass, NotMeasured, Ns, RequestStep, Role, Upstream};
use holdup_knowledge::system_calls::{self, Kind};
use libbpf_rs::{Link, MapCore, MapFlags, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};

/// Period of the CPU clock: 500 samples tell shares of a second on a CPU to 2.2 points (one standard error). Twice as
/// many were measured to cost a program that never blocks another percent.
const CPU_SAMPLE_PERIOD: Ns = 2_000_000;
/// The same of what runs for good: 200 samples tell shares of a second to 3.5 points, of ten seconds to 1.1.
const CPU_SAMPLE_PERIOD_OF_SERVICES: Ns = 5_000_000;
/// The same of what is recorded: 3,000 samples a minute and CPU.
const CPU_SAMPLE_PERIOD_OF_RECORDERS: Ns = 20_000_000;
/// Most records handed out at once: some 16 MB if all of them held stacks.
const BATCH: usize = 1024;

/// The ring between the programs and user space, bytes: 0.2 s of records at 400,000 waits a second, which is ten
/// turns of the reader.
pub const DEFAULT_BUFFER: u32 = 16 << 20;
/// The smallest ring: two of the largest records, which hold a stack, and some of the others.
pub const SMALLEST_BUFFER: u32 = 64 << 10;
/// The largest, for the kernel takes its memory for as long as the trace lasts: 14 s of records at that rate.
pub const LARGEST_BUFFER: u32 = 1 << 30;

/// What is traced, and so how much watching it may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pace {
    /// A command, from its begin to its end: it may be over in a second, and who started it waits for the answer.
    #[default]
    Command,
    /// What runs for good and has others to serve: what is rare today comes again.
    Service,
    /// A whole machine, for months: waits that are like the one before are known by their number, and stacks and samples are few.
    Record,
}

/// What can be chosen about a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of the ring between the programs and user space, bytes: a power of two.
    pub buffer: u32,
    /// What is traced.
    pub pace: Pace,
}

impl Pace {
    pub(crate) fn cpu_sample_period(self) -> Ns {
        match self {
            Pace::Command => CPU_SAMPLE_PERIOD,
            Pace::Service => CPU_SAMPLE_PERIOD_OF_SERVICES,
            Pace::Record => CPU_SAMPLE_PERIOD_OF_RECORDERS,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            buffer: DEFAULT_BUFFER,
            pace: Pace::default(),
        }
    }
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
    iterators: Iterators,
    /// Until CMD's first thread has been seen.
    first_waking: Option<Link>,
    links: Vec<Link>,
    /// Somebody polls, and the sockets that become ready are noted.
    notes_ready: bool,
    mappings: Option<Mappings>,
    not_measured: Vec<NotMeasured>,
    user: Allowance,
    kernel: Allowance,
    requests: Thinning,
    tells_all: bool,
    /// Waits like the one before have no record, to stay within a budget.
    spares_repeats: bool,
    cpu_sample_period: Ns,
}

#[derive(Default)]
struct Received {
    events: Vec<RawEvent>,
    undecodable: u64,
}

impl Tracer {
    /// Loads and attaches everything. Nothing is watched before [`Tracer::watch`].
    ///
    /// # Errors
    /// When the kernel or the privileges do not allow it; the message names what was refused.
    pub fn load(options: Options) -> Result<Tracer, TraceError> {
        Tracer::with(Loaded::load_some(options)?)
    }

    /// Attaches programs that are loaded, and watch nothing. Nothing is watched before [`Tracer::watch`].
    ///
    /// # Errors
    /// When the kernel or the privileges do not allow it; the message names what was refused.
    pub fn with(loaded: Loaded) -> Result<Tracer, TraceError> {
        let Loaded {
            skeleton,
            iterators,
            options,
            mut not_measured,
            ..
        } = loaded;
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
            &programs.on_page_added,
            &programs.on_contention_end,
            &programs.on_contention_begin,
            &programs.on_connection,
            &programs.on_packet,
            &programs.on_socket_state,
            &programs.on_async_done,
            &programs.on_new_worker,
            &programs.on_page_written,
            // Answers before requests: one that was not read under observation is none.
            &programs.on_request_dropped,
            &programs.on_sent,
            &programs.on_received,
            // Both before connections: of one that is kept everything is seen.
            &programs.on_conversation,
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
        let cpus = online_cpus();
        for cpu in &cpus {
            let mut attributes = cpu_clock_attributes(options.pace.cpu_sample_period());
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
        // Nothing is watched yet: what is there was left by who had the programs before, and did not live to read it.
        ring.consume().ok();
        received.borrow_mut().events.clear();
        Ok(Tracer {
            ring,
            received,
            skeleton,
            iterators,
            first_waking: None,
            links,
            notes_ready: false,
            mappings,
            not_measured,
            user: Allowance::user(options.pace),
            kernel: Allowance::kernel(options.pace),
            requests: Thinning::default(),
            tells_all: options.pace != Pace::Record,
            spares_repeats: false,
            cpu_sample_period: options.pace.cpu_sample_period(),
        })
    }

    /// From now on notes which socket became ready last on each CPU: that is how it is told which one of a poll's ended it.
    /// A service that never polls, as those with an epoll instance, is spared the cost of each packet.
    fn note_ready(&mut self) {
        self.notes_ready = true;
        let program = &self.skeleton.progs.on_data_ready;
        if program.autoload() {
            // Where it is refused the polls' sockets are not distinguished.
            self.links.extend(program.attach_trace().ok());
        }
    }

    /// Counts datagrams by peer once the subject has sent one: what arrives is looked at for that, and each packet of the machine costs.
    fn count_datagrams(&mut self) {
        let sends = self.skeleton.maps.bss_data.as_deref();
        if !sends.is_some_and(|state| state.sends_datagrams != 0 && state.counts_datagrams == 0) {
            return;
        }
        let program = &self.skeleton.progs.on_datagram;
        // Where it is refused nothing is counted: nobody would be known to answer.
        let Some(link) = program.autoload().then(|| program.attach_trace().ok()).flatten() else {
            return;
        };
        self.links.push(link);
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.counts_datagrams = 1;
        }
    }

    /// Peers to which the subject sent datagrams of UDP, and what came back; `None`: they could not be counted.
    #[must_use]
    pub fn datagrams(&self) -> Option<Datagrams> {
        let state = self.skeleton.maps.bss_data.as_deref()?;
        match (state.counts_datagrams != 0, state.sends_datagrams != 0) {
            (true, _) => Some(crate::datagrams::read(&self.skeleton.maps.datagram_peers)),
            (false, true) => None,
            // None was sent, as far as that can be seen.
            (false, false) => self.tells_traffic().then(Datagrams::default),
        }
    }

    /// Watches this process from its next waking on. It must be asleep. With a descriptor of it that waking is seen even where
    /// the program could keep nothing of a task just then (`remember_thread` in `bpf/state.h`).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn watch(&mut self, pid: u32, pidfd: Option<BorrowedFd<'_>>) -> Result<(), TraceError> {
        let threads = &self.skeleton.maps.threads;
        // Where the kernel has no such storage there is a table, in which there is room.
        if let Some(pidfd) = pidfd.filter(|_| threads.autocreate()) {
            let blank = vec![0; threads.value_size() as usize];
            let made = threads.update(&pidfd.as_raw_fd().to_ne_bytes(), &blank, MapFlags::NO_EXIST);
            made.map_err(|error| refusal(&error))?;
        }
        let first_waking = self.skeleton.progs.on_first_waking.attach_trace();
        self.first_waking = Some(first_waking.map_err(|error| refusal(&error))?);
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.root_pid = pid;
        }
        // A command's first poll may be the one that matters.
        self.note_ready();
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Watches the threads that these processes have now, and what they create from now on. Those that are watched
    /// already stay what they are. `false`: what was said on their connections before could not be looked at.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn adopt(&mut self, processes: &[(u32, Role)], looked: &[Looked]) -> Result<bool, TraceError> {
        adopt::adopt(&mut self.skeleton, &mut self.iterators, processes, looked)
            .map_err(|error| refusal(&error))
    }

    /// Where the subject is served: requests on connections that were accepted on these TCP ports are reported. `false`: this
    /// kernel does not tell of any.
    pub fn serve(&mut self, ports: impl Iterator<Item = u16>) -> bool {
        for port in ports {
            let key = u32::from(port).to_ne_bytes();
            self.skeleton
                .maps
                .served_ports
                .update(&key, &key, MapFlags::ANY)
                .ok();
        }
        // What was found out about sockets may be otherwise now.
        if let Some(state) = self.skeleton.maps.data_data.as_deref_mut() {
            state.served_ports_known += 1;
        }
        self.tells_traffic()
    }

    /// Whether this kernel tells what is sent and received on sockets.
    #[must_use]
    pub fn tells_traffic(&self) -> bool {
        self.skeleton.progs.on_received.autoload() && self.skeleton.progs.on_sent.autoload()
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
        let mut polls = false;
        for event in &events {
            match event {
                RawEvent::Wait(wait) | RawEvent::Peek(wait) => {
                    polls |= system_calls::is(&wait.call, Kind::Polls)
                }
                RawEvent::Memory(memory) if !memory.on_cpu => self.user.came(),
                RawEvent::KernelStack { .. } => self.kernel.came(),
                RawEvent::Request(request) if matches!(request.step, RequestStep::Read { .. }) => {
                    self.requests.arrive();
                }
                _ => {}
            }
        }
        if polls && !self.notes_ready {
            self.note_ready();
        }
        self.count_datagrams();
        (mapped, events)
    }

    /// From now on all waits are reported, and more stacks, as beside a service; or, again, as few as a recorder wants.
    pub fn tell_all(&mut self, all: bool) {
        if all == self.tells_all {
            return;
        }
        self.tells_all = all;
        let pace = match all {
            true => Pace::Service,
            false => Pace::Record,
        };
        (self.user, self.kernel) = (Allowance::user(pace), Allowance::kernel(pace));
        self.set_thin();
    }

    /// Leaves out what the first `steps` of [`holdup_evidence::budget::STEPS`] are, and nothing else.
    pub fn spare(&mut self, steps: usize) {
        let leaves_out = |what: Thinned| STEPS.iter().take(steps).any(|step| *step == what);
        self.requests.spare(leaves_out(Thinned::Requests));
        let stacks = match (leaves_out(Thinned::Stacks), leaves_out(Thinned::MostStacks)) {
            (_, true) => 25.0,
            (true, false) => 5.0,
            (false, false) => 1.0,
        };
        self.user.spare(stacks);
        self.kernel.spare(stacks);
        self.spares_repeats = leaves_out(Thinned::Repeats);
        self.set_thin();
    }

    fn set_thin(&mut self) {
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.thin = u8::from(!self.tells_all || self.spares_repeats);
        }
    }

    /// Who is asked for the names of the kernel's functions; `None`: this kernel does not let programs print them.
    #[must_use]
    pub fn kernel_functions(&self) -> Option<KernelFunctions> {
        KernelFunctions::of(&self.skeleton)
    }

    pub(crate) fn skeleton(&self) -> &TraceSkel<'static> {
        &self.skeleton
    }

    /// Keeps the rate of stacks within what reading them may cost. `elapsed` is the time since the last call.
    pub fn adapt(&mut self, elapsed: Ns) {
        let (user, kernel) = (self.user.adapt(elapsed), self.kernel.adapt(elapsed));
        if let Some(settings) = self.skeleton.maps.data_data.as_deref_mut() {
            settings.user_budget = self.user.budget();
            settings.user_allowance = user;
            settings.kernel_budget = self.kernel.budget();
            settings.kernel_allowance = kernel;
        }
        let mask = self.requests.adapt(elapsed);
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.request_mask = mask;
        }
    }

    /// Servers that were asked for requests, until `at`.
    #[must_use]
    pub fn upstreams(&self, at: Ns) -> Vec<Upstream> {
        crate::upstreams::read(&self.skeleton.maps.upstreams, at)
    }

    /// What was dropped, what could not be seen, what it cost.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut losses = Vec::new();
        if let Some(state) = self.skeleton.maps.bss_data.as_deref() {
            const CLASSES: [LossClass; 10] = [
                LossClass::WaitRecord,
                LossClass::ThreadRecord,
                LossClass::ObjectRecord,
                LossClass::StackSample,
                LossClass::CpuSample,
                LossClass::Thread,
                LossClass::Waking,
                LossClass::Request,
                LossClass::Connection,
                LossClass::Switch,
            ];
            for (class, count) in CLASSES.into_iter().zip(state.losses) {
                let ns = match class {
                    LossClass::Waking => state.unseen_ns,
                    LossClass::Switch => state.unseen_switch_ns,
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
            kernel_stack_budget: self.kernel.budget(),
            user_stack_budget: self.user.budget(),
            cpu_sample_period: self.cpu_sample_period,
        }
    }

    /// Period of the clock that samples what runs.
    #[must_use]
    pub fn cpu_sample_period(&self) -> Ns {
        self.cpu_sample_period
    }

    /// Run time of the programs so far as they tell it themselves: an estimate from every 64th run of most of them.
    #[must_use]
    pub fn programs(&self) -> Ns {
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
