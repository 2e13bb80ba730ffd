//! From addresses to frames, at the end of a run.
//!
//! In come modules and the addresses that stacks went through, out come their frames. A process that can be abandoned finds them (see
//! `namer`), file by file, those that look cheapest first. One that does not get on, uses up its CPU time or breaks costs the names of the
//! file that it was at; another goes on behind it, first without that file's debug information. The time of each file is charged
//! to the processes that had stacks through it, and whoever waits for the report can end all of it.

use crate::debug_copy::debug_bytes;
use crate::modules::{Module, ModuleId, Modules};
use crate::namer::{Answer, Namer, Place, Question, unnamed};
use crate::stacks::{Address, ProcessKey};
use crate::symbols::Symbols;
use crate::unread::{Unread, Why};
use holdup_detached::{Answer as Sent, Capabilities, Confinement, Detached, Failed, is_runnable};
use holdup_evidence::Frame;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The stacks of a run with their names.
#[derive(Debug, Default)]
pub struct Named {
    /// Frames of each stack, innermost first, in the order of the stacks' numbers.
    pub stacks: Vec<Vec<Frame>>,
    /// What has no names that it could have had, and why.
    pub unread: Vec<Unread>,
}

/// More address space than this process has, bytes: the debug information of a browser and what is made of it.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Reading files by descriptors that were opened before, and debug files that are installed for root alone.
const CONFINEMENT: Confinement = Confinement {
    name: c"holdup-names",
    capabilities: Capabilities::DAC_READ_SEARCH,
    cpu_time: None,
    memory_bytes: MEMORY_BYTES_MAX,
    files: 64,
};

/// So many addresses are asked for at a time.
const ADDRESSES_AT_ONCE: usize = 256;

/// How often it is looked at the child's time and at whether anybody still wants names.
const SLICE: Duration = Duration::from_millis(20);

/// How long a child may be blocked. It reads files that were in use a moment ago, from a disk at worst.
const BLOCKED_MAX: Duration = Duration::from_secs(2);

/// How long all naming may take, in times of the CPU time that it may take.
const ELAPSED_TIMES: u32 = 2;

/// How many processes may use up all of theirs.
const PROCESSES_AT_COST: u32 = 3;

/// So many children are started.
const STARTED_MAX: usize = 64;

/// Most bytes of names of all addresses together. Those of a browser have some ten million.
const NAMES_BYTES_MAX: usize = 256 << 20;

/// The frames of each address, innermost (most deeply inlined) first; and what was not named. `stop` says whether nobody wants names
/// any more.
pub(crate) fn frames(
    modules: &Modules,
    addresses: BTreeSet<Address>,
    stop: &mut dyn FnMut() -> bool,
) -> (HashMap<Address, Vec<Frame>>, Vec<Unread>) {
    let mut by_module: HashMap<ModuleId, Vec<Address>> = HashMap::new();
    for address in addresses {
        by_module.entry(address.module).or_default().push(address);
    }
    let mut work: Vec<(ModuleId, Vec<Address>)> = by_module.into_iter().collect();
    work.sort_by_key(|(id, addresses)| (bytes(modules.get(*id)), addresses.len(), *id));
    let mut naming = Naming::new(modules, stop);
    let mut found = HashMap::new();
    for (id, addresses) in work {
        let module = modules.get(id);
        let named = naming.module(module, &addresses);
        let mut named = named.unwrap_or_default().into_iter();
        for address in addresses {
            let frames = named.next().filter(|frames| !frames.is_empty());
            let frames = frames.filter(|frames| naming.has_room(frames));
            found.insert(
                address,
                frames.unwrap_or_else(|| vec![without_name(module, &address)]),
            );
        }
    }
    (found, naming.unread)
}

/// How many bytes of a file say what its functions are called; of a list, which its process can still write to, nobody knows.
fn bytes(module: &Module) -> u64 {
    if module.listed.is_some() {
        return u64::MAX;
    }
    let sizes = |head| Symbols::bytes(head).saturating_add(debug_bytes(head));
    module.head.as_ref().map_or(0, sizes)
}

fn without_name(module: &Module, address: &Address) -> Frame {
    match module.listed {
        // An address of one process's memory says nothing to anybody without a name.
        Some(_) => Frame::default(),
        None => unnamed(module.name.clone(), &place(address)),
    }
}

fn place(address: &Address) -> Place {
    Place {
        looked_up: address.looked_up,
        shown: address.shown(),
    }
}

/// Who finds names.
enum Child {
    Apart(Detached<Question, Answer>),
    /// A thread of this process.
    Here(Namer),
}

/// Naming that goes on.
struct Naming<'a> {
    modules: &'a Modules,
    stop: &'a mut dyn FnMut() -> bool,
    child: Option<Child>,
    started: usize,
    began: Instant,
    /// CPU time that was used for whom.
    used_for: HashMap<ProcessKey, Duration>,
    used: Duration,
    names_bytes: usize,
    stopped: bool,
    unread: Vec<Unread>,
}

impl<'a> Naming<'a> {
    fn new(modules: &'a Modules, stop: &'a mut dyn FnMut() -> bool) -> Naming<'a> {
        Naming {
            modules,
            stop,
            child: None,
            started: 0,
            began: Instant::now(),
            used_for: HashMap::new(),
            used: Duration::ZERO,
            names_bytes: 0,
            stopped: false,
            unread: Vec::new(),
        }
    }

    /// Whether there is room for these frames' names.
    fn has_room(&mut self, frames: &[Frame]) -> bool {
        self.names_bytes = self.names_bytes.saturating_add(name_bytes(frames));
        self.names_bytes <= NAMES_BYTES_MAX
    }

    /// The frames of addresses of one module, address by address; `None` where they can't be had.
    fn module(&mut self, module: &Module, addresses: &[Address]) -> Option<Vec<Vec<Frame>>> {
        module.place.as_ref()?;
        let debug = self.modules.bounds.debug;
        let with_debug = module.head.as_ref().is_some_and(|head| debug_bytes(head) > 0);
        let mut named = self.attempt(module, addresses, debug);
        if with_debug && !matches!(named, Ok(_) | Err(Why::Interrupted)) {
            named = self.attempt(module, addresses, 0);
        }
        named
            .map_err(|why| {
                let (name, pid) = (module.about.name.clone(), module.about.pid);
                self.unread.push(Unread::Names { name, pid, why });
            })
            .ok()
    }

    fn attempt(
        &mut self,
        module: &Module,
        addresses: &[Address],
        debug: u64,
    ) -> Result<Vec<Vec<Frame>>, Why> {
        if self.stopped {
            return Err(Why::Interrupted);
        }
        let left = self.left(module);
        if left.is_zero() || self.began.elapsed() > self.elapsed_max() {
            return Err(Why::Costly);
        }
        let before = self.cpu_time();
        let named = self.ask_all(module, addresses, debug, left);
        let used = self.cpu_time().saturating_sub(before);
        self.used += used;
        for user in &module.users {
            *self.used_for.entry(*user).or_default() += used;
        }
        if let Err(why) = named
            && let Some(Child::Apart(child)) = self.child.take()
            && why == Why::Silent
        {
            child.abandon(&format!("{} of process {}", module.about.name, module.about.pid));
        }
        named
    }

    fn elapsed_max(&self) -> Duration {
        self.modules.bounds.naming * PROCESSES_AT_COST * ELAPSED_TIMES
    }

    /// CPU time that may still be used for a module: what the one of its users has left that has most.
    fn left(&self, module: &Module) -> Duration {
        let each = self.modules.bounds.naming;
        let used = |user| self.used_for.get(user).copied().unwrap_or_default();
        let least = module.users.iter().map(used).min().unwrap_or_default();
        let all = (each * PROCESSES_AT_COST).saturating_sub(self.used);
        each.saturating_sub(least).min(all)
    }

    fn cpu_time(&self) -> Duration {
        match &self.child {
            Some(Child::Apart(child)) => child.cpu_time(),
            _ => Duration::ZERO,
        }
    }

    /// Asks for all of a module's addresses, for so much CPU time.
    fn ask_all(
        &mut self,
        module: &Module,
        addresses: &[Address],
        debug: u64,
        left: Duration,
    ) -> Result<Vec<Vec<Frame>>, Why> {
        let question = match module.listed {
            Some(language) => Question::List(
                language,
                addresses.iter().map(|address| address.looked_up).collect(),
            ),
            None => Question::File {
                name: module.name.clone(),
                names: self.modules.bounds.names,
                debug,
            },
        };
        let file = module.place.as_ref().map(AsFd::as_fd);
        let until = self.cpu_time() + left;
        self.ask(question, file, until)?;
        let mut named = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(ADDRESSES_AT_ONCE) {
            let places = some.iter().map(place).collect();
            let frames = self.ask(Question::Addresses(places), None, until)?;
            if frames.len() != some.len() {
                return Err(Why::Broken);
            }
            named.extend(frames);
        }
        Ok(named)
    }

    /// One answer, if it comes before the child has used so much CPU time.
    fn ask(
        &mut self,
        question: Question,
        file: Option<BorrowedFd<'_>>,
        until: Duration,
    ) -> Result<Answer, Why> {
        let elapsed_max = self.elapsed_max();
        if self.child.is_none() {
            self.child = self.start();
        }
        let child = match self.child.as_mut().ok_or(Why::Broken)? {
            Child::Apart(child) => child,
            Child::Here(namer) => {
                let file = file.and_then(|file| file.try_clone_to_owned().ok());
                return namer
                    .answer(question, file.into_iter().collect())
                    .ok_or(Why::Broken);
            }
        };
        let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
        let taken = child.ask(&question, &files, Instant::now() + BLOCKED_MAX);
        taken.map_err(|failed| match failed {
            Failed::Late => Why::Silent,
            Failed::Gone => Why::Broken,
        })?;
        let mut blocked_since = None;
        let mut used = child.cpu_time();
        loop {
            match child.answer(Instant::now() + SLICE) {
                Ok(answer) => return Ok(answer.value),
                Err(Failed::Gone) => return Err(Why::Broken),
                Err(Failed::Late) => {}
            }
            if (self.stop)() {
                self.stopped = true;
                return Err(Why::Interrupted);
            }
            if child.cpu_time() > until || self.began.elapsed() > elapsed_max {
                return Err(Why::Costly);
            }
            // Between two of its turns on a CPU it may be asleep for a moment, so what it has used since then counts too.
            let used_before = std::mem::replace(&mut used, child.cpu_time());
            match used > used_before || is_runnable(child.pid()) {
                true => blocked_since = None,
                false => {
                    let since = *blocked_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > BLOCKED_MAX {
                        return Err(Why::Silent);
                    }
                }
            }
        }
    }

    fn start(&mut self) -> Option<Child> {
        if self.modules.reader.reads_here() {
            return Namer::start().map(Child::Here);
        }
        if self.started >= STARTED_MAX {
            return None;
        }
        self.started += 1;
        let begin = || {
            let namer = Namer::start();
            move |question, descriptors| -> Sent<Answer> {
                let answer = namer
                    .as_ref()
                    .and_then(|namer| namer.answer(question, descriptors));
                // Whoever asked sees that this process has ended.
                answer.expect("the thread that names is there").into()
            }
        };
        Detached::start(&CONFINEMENT, begin).ok().map(Child::Apart)
    }
}

/// How many bytes of names frames have.
pub(crate) fn name_bytes(frames: &[Frame]) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    frames
        .iter()
        .map(|frame| text(&frame.symbol) + text(&frame.file) + text(&frame.module))
        .sum()
}
