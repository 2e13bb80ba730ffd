//! Goroutines that are parked when observation ends, and which of them were in the same place at an earlier look.
//!
//! A parked goroutine has no thread: none of its waits is among those that are measured. In: processes that may be Go programs. Out:
//! their goroutines with their stacks, and of each process that has parked ones, a sentence of what they wait for by the runtime's
//! own words. Reading can block, so a child does it that can be left behind ([`super::behind`]).

mod looks;

use looks::whose;
pub(super) use looks::{GoLooks, inode};

use super::behind::{Answerer, Readers};
use super::task_peers::Peers;
use holdup_evidence::facts::FailedTask;
use holdup_evidence::{
    AwaitedDescriptor, NotMeasured, Ns, RuntimeTask, SharedWord, TaskChannels, TaskDoes, TaskLook,
    TaskRuntime, WorkerPool,
};
use holdup_jvm::Running;
use holdup_knowledge::go;
use holdup_proc::{Root, clocks, memory, names};
use holdup_runtimes::go::{Awaits, Goroutine, Goroutines, Place, Program, SYMBOLS, Status, TablePlace};
use holdup_symbols::{ProcessKey, UserStacks};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Processes that are asked; each takes a millisecond for a thousand goroutines.
const PROCESSES_MAX: usize = 64;

/// Goroutines of all processes that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// How often one process is asked for an answer that comes in time.
const TRIES: usize = 3;

/// Descriptors of one process whose goroutines are followed to who asked.
const ASKED_MAX: usize = 256;

/// Reasons that a sentence has.
const REASONS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    pid: u32,
    place: Place,
    /// Whether it is also asked which of them refer to what others wait for: that takes longer.
    closely: bool,
}

/// What goroutines do; nothing where they cannot be read.
type Answer = Option<Read>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Read {
    /// How many parked goroutines wait for what, in the runtime's words.
    reasons: BTreeMap<String, u64>,
    /// The goroutines, the program's own first.
    listed: Vec<Goroutine>,
    /// How many more there are.
    more: u64,
    /// Descriptors that they wait for, and who waits for those who do; read only where they are asked closely.
    asked: Vec<Asked>,
}

/// A descriptor that a goroutine waits for.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    descriptor: u32,
    /// The goroutine that waits for it, and those that wait for that one, one after the other.
    addresses: Vec<u64>,
    /// Whether one of them stands in the application's code, and the first has work.
    asks: bool,
}

/// What came of all processes.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// The goroutines.
    pub(super) tasks: Vec<RuntimeTask>,
    /// The same at instants before.
    pub(super) looks: Vec<TaskLook>,
    /// Descriptors that tasks wait for.
    pub(super) descriptors: Vec<AwaitedDescriptor>,
    /// Processes whose tasks of tokio were read.
    pub(super) tokio_read: Vec<u32>,
    /// Pools of threads.
    pub(super) pools: Vec<WorkerPool>,
    /// Tasks that have failed while others wait beside them.
    pub(super) failed: Vec<FailedTask>,
    /// Words of shared files for which threads wait.
    pub(super) shared_words: Vec<SharedWord>,
    /// What is not known of them.
    pub(super) not_measured: Vec<NotMeasured>,
}

/// Where a goroutine stood, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stand {
    reason: Option<String>,
    addresses: Vec<u64>,
}

/// The first look at goroutines that wait.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    at: Ns,
    /// Who reads, from the first look to the last: it knows the program then.
    readers: Option<Readers<Question, Answer>>,
    /// By process and number.
    stands: BTreeMap<(u32, u64), Stand>,
}

impl FirstLook {
    /// Looks at the goroutines of these processes, where nobody has looked before.
    pub(super) fn look(
        &mut self,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        if self.at > 0 {
            return;
        }
        let mut readers = self.readers.take().unwrap_or_else(|| Readers::new(answerer));
        for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
            let read = found(stacks, &mut readers, pid, process, false).and_then(|(_, read)| read);
            let room = LISTED_MAX.saturating_sub(self.stands.len());
            let listed = read.map(|read| read.listed).unwrap_or_default().into_iter();
            let waiting = listed.filter(|one| one.status == Status::Waiting).take(room);
            self.stands.extend(waiting.map(|one| {
                let stand = Stand {
                    reason: one.reason,
                    addresses: one.addresses,
                };
                ((pid, one.id), stand)
            }));
        }
        self.readers = Some(readers);
        // When it is over: each stood there by then.
        self.at = clocks::monotonic();
    }

    /// Since when this one is known to stand as it does now.
    fn stood_since(&self, pid: u32, now: &Goroutine) -> Option<Ns> {
        let stand = self.stands.get(&(pid, now.id))?;
        let same = now.status == Status::Waiting
            && stand.reason == now.reason
            && stand.addresses == now.addresses
            && !now.addresses.is_empty();
        same.then_some(self.at)
    }
}

/// Where a Go program keeps its goroutines, with the name of its file; `None` of another program.
fn which(stacks: &mut UserStacks, pid: u32, process: ProcessKey) -> Option<(String, Option<Place>)> {
    let found = stacks.find_go(process, pid, &SYMBOLS)?;
    let mut addresses = found.addresses.into_iter();
    let place = Place {
        goroutines: addresses.next().flatten(),
        reasons: addresses.next().flatten(),
        table: found.table.map(|table| TablePlace {
            table,
            module: found.module,
        }),
    };
    Some((found.file, place.some_address().map(|_| place)))
}

/// What is read of the goroutines of a Go program, with the name of its file; `None` of another program.
fn found(
    stacks: &mut UserStacks,
    readers: &mut Readers<Question, Answer>,
    pid: u32,
    process: ProcessKey,
    closely: bool,
) -> Option<(String, Answer)> {
    let (file, place) = which(stacks, pid, process)?;
    let mut ask = |place| {
        let question = Question { pid, place, closely };
        readers.ask(pid, question).flatten()
    };
    // To find out how a stripped program is laid out may take longer than an answer may, once; and on a busy machine any answer may.
    let read = place.and_then(|place| (0..TRIES).find_map(|_| ask(place)));
    Some((file, read))
}

/// What the parked goroutines of these processes wait for.
pub(super) fn parked(
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    first: &mut FirstLook,
    looks: Option<&GoLooks>,
) -> Parked {
    let mut readers = first.readers.take().unwrap_or_else(|| Readers::new(answerer));
    let mut outcome = Parked::default();
    let mut peers = Peers::default();
    for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
        let Some((file, read)) = found(stacks, &mut readers, pid, process, true) else {
            continue;
        };
        let name = names::comm(&Root::system(), pid).unwrap_or(file);
        let reasons = read.as_ref().map(|read| &read.reasons);
        outcome.not_measured.extend(sentence(&name, pid, reasons));
        let Some(read) = read else { continue };
        for one in read.asked {
            let Some(inode) = inode(pid, one.descriptor) else {
                continue;
            };
            outcome.descriptors.push(AwaitedDescriptor {
                pid,
                inode,
                peer: peers.of(pid, one.descriptor),
                stack: stacks.intern_known(process, &one.addresses),
                asks: one.asks,
            });
        }
        let room = LISTED_MAX - outcome.tasks.len();
        let left = u64::try_from(read.listed.len().saturating_sub(room)).unwrap_or(u64::MAX);
        outcome
            .not_measured
            .extend(unlisted(&name, pid, read.more.saturating_add(left)));
        for goroutine in read.listed.into_iter().take(room) {
            let stood_since = first.stood_since(pid, &goroutine);
            let stack = match goroutine.addresses.is_empty() {
                true => None,
                false => Some(stacks.intern_known(process, &goroutine.addresses)),
            };
            let descriptor = goroutine.awaited.descriptor;
            let peer = descriptor.and_then(|number| peers.of(pid, number));
            let sends = descriptor.filter(|_| peer.is_none());
            let sends = sends.and_then(|number| peers.of_datagrams(pid, number));
            // Who asks by a datagram has a socket for each question.
            let stood_since = match sends.and(descriptor) {
                Some(number) => stood_since.or_else(|| looks?.awaited_since(process, inode(pid, number)?)),
                None => stood_since,
            };
            let datagrams = sends.is_some();
            let peer = peer.or(sends);
            let opened = descriptor.and_then(|number| match peer {
                Some(_) => peers.of_process(pid, number),
                None => peers.opened(pid, number),
            });
            outcome.tasks.push(RuntimeTask {
                runtime: TaskRuntime::Go,
                pid,
                process: name.clone(),
                id: goroutine.id,
                does: does(goroutine.status),
                reason: goroutine.reason,
                since: Some(goroutine.seen_waiting).filter(|since: &Ns| *since > 0),
                stood_since,
                channels: TaskChannels {
                    awaits: goroutine.awaited.channels,
                    refers: goroutine.refers,
                    uses: Vec::new(),
                    timed: goroutine.awaited.timed,
                },
                stack,
                name: None,
                blocks: None,
                started_by: goroutine.started_by,
                awaits: None,
                descriptor,
                peer,
                datagrams,
                opened,
                called_in: None,
                holder: None,
                holder_thread: None,
            });
        }
    }
    first.readers = Some(readers);
    outcome
}

fn does(status: Status) -> TaskDoes {
    match status {
        Status::Running => TaskDoes::Runs,
        Status::Runnable => TaskDoes::Ready,
        Status::InSystemCall => TaskDoes::Calls,
        Status::Waiting => TaskDoes::Waits,
    }
}

fn unlisted(name: &str, pid: u32, count: u64) -> Option<NotMeasured> {
    (count > 0).then(|| NotMeasured {
        what: format!("places of {count} more goroutines of {name} (pid {pid})"),
        why: format!("a report lists {LISTED_MAX} goroutines"),
        fix: "give `holdup read` a dump of the goroutines (`/debug/pprof/goroutine?debug=2`)".into(),
    })
}

fn sentence(name: &str, pid: u32, reasons: Option<&BTreeMap<String, u64>>) -> Option<NotMeasured> {
    let what = match reasons {
        None => format!("what parked goroutines of {name} (pid {pid}) wait for"),
        Some(reasons) => {
            let all: u64 = reasons.values().sum();
            if all == 0 {
                return None;
            }
            let mut order: Vec<(&String, &u64)> = reasons.iter().collect();
            order.sort_by_key(|(reason, count)| (Reverse(**count), *reason));
            let mut listed: Vec<String> = order
                .iter()
                .take(REASONS_MAX)
                .map(|(reason, count)| format!("{count} in \"{reason}\""))
                .collect();
            if order.len() > REASONS_MAX {
                listed.push("…".to_owned());
            }
            let goroutines = if all == 1 { "goroutine" } else { "goroutines" };
            format!(
                "waits of {all} parked {goroutines} of {name} (pid {pid}), {}",
                listed.join(", ")
            )
        }
    };
    Some(NotMeasured {
        what,
        why: "holdup measures waits of threads, and a parked goroutine has none".into(),
        fix: "give `holdup read` a dump of the goroutines (`/debug/pprof/goroutine?debug=2`)".into(),
    })
}

/// What a child does. It keeps the program that it was asked about last: who was late is asked again.
fn answerer() -> Answerer<Question, Answer> {
    let mut kept: Option<(Question, Program<Running>)> = None;
    Box::new(move |question| {
        let known = kept.take_if(|(of, _)| *of == question);
        let mut program = match known {
            Some((_, program)) => program,
            None => program(question)?,
        };
        let read = answer(&mut program, question.closely);
        kept = Some((question, program));
        read
    })
}

fn program(Question { pid, place, .. }: Question) -> Option<Program<Running>> {
    // Where reading memory would end this process, it is not tried.
    if memory::is_refused(pid, place.some_address()?) {
        return None;
    }
    Program::find(Running(pid), place).ok()
}

fn answer(program: &mut Program<Running>, closely: bool) -> Answer {
    let mut read = program.goroutines().ok()?;
    if !closely {
        return Some(listed(read.all, read.left_out));
    }
    let asked = asked(program, &read);
    program.refer(&mut read, go::sends);
    program.refer(&mut read, go::receives);
    program.groups(&mut read);
    program.started(&mut read);
    program.locks(&mut read);
    program.pooled(
        &mut read,
        |function| go::waits_for_connection(&function.name),
        |function| go::opens_connections(&function.name),
    );
    Some(Read {
        asked,
        ..listed(read.all, read.left_out)
    })
}

/// Descriptors that goroutines wait for, with where those stand who wait for them.
fn asked(program: &mut Program<Running>, read: &Goroutines) -> Vec<Asked> {
    let lines = program.lines(read, whose).into_iter();
    let of_descriptor = lines.filter_map(|line| match line.awaits {
        Awaits::Descriptor(descriptor) => Some(Asked {
            descriptor,
            addresses: line.stacks.concat(),
            asks: line.asks,
        }),
        Awaits::Timer => None,
    });
    of_descriptor.take(ASKED_MAX).collect()
}

/// The goroutines of a program, counted and in order; `left_out`: those that were not read.
fn listed(mut all: Vec<Goroutine>, left_out: u64) -> Read {
    let mut reasons = BTreeMap::new();
    let of_the_runtime = |one: &Goroutine| one.reason.as_deref().is_some_and(go::is_of_the_runtime);
    for goroutine in all
        .iter()
        .filter(|one| one.status == Status::Waiting && !of_the_runtime(one))
    {
        let reason = goroutine.reason.as_deref().unwrap_or("unknown");
        *reasons.entry(reason.to_owned()).or_default() += 1;
    }
    all.sort_by_key(|one| (of_the_runtime(one), one.id));
    let more = u64::try_from(all.len().saturating_sub(LISTED_MAX)).unwrap_or(u64::MAX);
    all.truncate(LISTED_MAX);
    Read {
        reasons,
        listed: all,
        more: more.saturating_add(left_out),
        asked: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LISTED_MAX, listed, sentence, unlisted};
    use holdup_runtimes::go::{Awaited, Goroutine, Status};
    use std::collections::BTreeMap;

    #[test]
    fn the_programs_own_goroutines_are_listed_first_and_the_rest_is_counted() {
        let one = |id: u64| Goroutine {
            id,
            status: Status::Waiting,
            reason: Some(if id < 4 { "force gc (idle)" } else { "select" }.to_owned()),
            seen_waiting: 0,
            addresses: Vec::new(),
            awaited: Awaited::default(),
            refers: Vec::new(),
            started_by: None,
            at: 0,
        };
        let count = LISTED_MAX as u64 + 2;
        let read = listed((1..=count).rev().map(one).collect(), 5);
        assert_eq!((read.listed.len(), read.more), (LISTED_MAX, 7));
        assert_eq!((read.listed[0].id, read.listed[LISTED_MAX - 1].id), (4, 1));
        assert_eq!(read.reasons, BTreeMap::from([("select".to_owned(), count - 3)]));
        assert_eq!(
            unlisted("shop", 7, 7).unwrap().what,
            "places of 7 more goroutines of shop (pid 7)"
        );
        assert_eq!(unlisted("shop", 7, 0), None);
    }

    #[test]
    fn parked_goroutines_are_counted_by_reason_most_first() {
        let reasons = [
            ("IO wait", 1),
            ("sync.Mutex.Lock", 3),
            ("chan send", 1),
            ("select", 2),
            ("sleep", 1),
        ];
        let reasons: BTreeMap<String, u64> = reasons.map(|(reason, count)| (reason.to_owned(), count)).into();
        assert_eq!(
            sentence("shop", 7, Some(&reasons)).unwrap().what,
            "waits of 8 parked goroutines of shop (pid 7), 3 in \"sync.Mutex.Lock\", 2 in \"select\", \
             1 in \"IO wait\", 1 in \"chan send\", …"
        );
        assert_eq!(sentence("shop", 7, Some(&BTreeMap::new())), None);
        assert_eq!(
            sentence("shop", 7, None).unwrap().what,
            "what parked goroutines of shop (pid 7) wait for"
        );
    }
}
