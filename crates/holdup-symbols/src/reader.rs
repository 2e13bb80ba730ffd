//! Asks the process that opens and reads files (`files`), and goes on without it when it does not answer.
//!
//! An ordinary file takes a tenth of a millisecond. Who is late may only have waited for a disk or a CPU, so its answer is waited for once
//! more when the next question comes. Who is late then is abandoned, and the file system that it is stuck in is not touched again. Who is
//! late with the kernel's link to a mapped file waits for the lock of the process's memory map and for no file system: it is abandoned at
//! once, and that process's files are found by their paths. In: questions of whoever unwinds. Out: answers, and at the end what did not let
//! itself be read.

use crate::budget::{Asker, Budget};
use crate::elf::Head;
use crate::files::{Answer, Files, FrameBytes, Question};
use crate::maps::Mapping;
use crate::unread::{Unread, Why};
use holdup_detached::{Answer as Sent, Capabilities, Confinement, Detached, Failed, WaitBudget, is_runnable};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long an answer is waited for at a time.
const LIMIT: Duration = Duration::from_millis(200);

/// How long the kernel's link to a mapped file is waited for. Memory maps are locked for microseconds, or by one that is stuck.
const LIMIT_OF_LINK: Duration = Duration::from_millis(50);

/// How long a reader that is not blocked is waited for: then it is not the file system that makes it late, but a lack of CPUs.
const LIMIT_WITHOUT_CPU: Duration = Duration::from_secs(2);

/// So many file systems of one process may be stuck; after that nothing of it is read.
const STUCK_OF_A_PROCESS_MAX: u32 = 2;

/// CPU time that a question may take without being charged to whoever asked: a hundred times that of an ordinary one.
const FREE_CPU: Duration = Duration::from_millis(20);

/// Files that did not let themselves be read and are known by name.
const UNREAD_MAX: usize = 16;

/// Reading files and following links of anybody's processes; of files, reading those of anybody. Nothing is kept that writes.
const CONFINEMENT: Confinement = Confinement {
    name: c"holdup-files",
    capabilities: Capabilities::DAC_READ_SEARCH
        .or(Capabilities::SYS_PTRACE)
        .or(Capabilities::CHECKPOINT_RESTORE),
    cpu_time: None,
    memory_bytes: 1 << 30,
    files: 64,
};

/// What a question is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// The file system; zeros where it is not known.
    device: (u32, u32),
}

impl About {
    pub(crate) fn file(pid: u32, name: &str, device: (u32, u32)) -> About {
        About {
            pid,
            name: name.to_owned(),
            device,
        }
    }

    pub(crate) fn list(pid: u32) -> About {
        About::file(pid, &format!("perf-{pid}.map"), (0, 0))
    }

    fn unread(&self, why: Why) -> Unread {
        Unread::File {
            name: self.name.clone(),
            pid: self.pid,
            why,
        }
    }
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    pub(crate) build_id: Option<String>,
    pub(crate) place: OwnedFd,
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Reader {
    proc: PathBuf,
    /// Answers in this process instead of another.
    here: Option<Files>,
    child: Option<Detached<Question, Answer>>,
    /// How long may be waited for those that do not answer.
    waits: WaitBudget,
    /// What the child owes an answer about.
    owed: Option<About>,
    /// Processes whose memory map was found locked.
    locked: HashSet<u32>,
    /// File systems that did not answer, and how many of a process.
    stuck: HashSet<(u32, u32)>,
    stuck_of: HashMap<u32, u32>,
    unread: BTreeSet<Unread>,
}

impl Reader {
    /// `proc` is where the proc file system is.
    pub(crate) fn new(proc: PathBuf) -> Reader {
        Reader {
            proc,
            here: None,
            child: None,
            waits: WaitBudget::new(),
            owed: None,
            locked: HashSet::new(),
            stuck: HashSet::new(),
            stuck_of: HashMap::new(),
            unread: BTreeSet::new(),
        }
    }

    /// From now on reads in this process.
    pub(crate) fn read_here(&mut self) {
        self.here = Some(Files::new(self.proc.clone()));
    }

    /// Whether it reads in this process.
    pub(crate) fn reads_here(&self) -> bool {
        self.here.is_some()
    }

    /// Starts the child now and not with the first question.
    pub(crate) fn begin(&mut self) {
        if self.child.is_some() || self.here.is_some() || !self.waits.may_start() {
            return;
        }
        let proc = self.proc.clone();
        let begin = || {
            let files = Files::new(proc);
            move |question, descriptors| files.answer(&question, descriptors)
        };
        self.child = Detached::start(&CONFINEMENT, begin).ok();
    }

    /// Ends the child: no questions come any more.
    pub(crate) fn end(&mut self) {
        self.child = None;
    }

    /// What did not let itself be read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = Unread> {
        self.unread.iter().cloned()
    }

    /// The file of a mapping.
    pub(crate) fn mapped(
        &mut self,
        asker: &Asker,
        about: &About,
        mapping: &Mapping,
        budget: &mut Budget,
    ) -> Option<Found> {
        let place = match self.linked(asker, about, mapping, budget) {
            Some(place) => place,
            None => {
                let question = Question::AtPath(asker.pid, mapping.clone());
                match self.ask(asker, about, question, None, budget)? {
                    (Answer::Place, place) => place?,
                    (Answer::MayBlock, _) => {
                        self.note(about.unread(Why::MayBlock));
                        return None;
                    }
                    _ => return None,
                }
            }
        };
        match self.ask(asker, about, Question::Head, Some(place.as_fd()), budget)? {
            (Answer::Head(head, build_id), _) => Some(Found {
                head,
                build_id,
                place,
            }),
            _ => None,
        }
    }

    /// The place of a mapping's file, by the kernel's link.
    fn linked(
        &mut self,
        asker: &Asker,
        about: &About,
        mapping: &Mapping,
        budget: &mut Budget,
    ) -> Option<OwnedFd> {
        if self.locked.contains(&asker.pid) {
            return None;
        }
        let question = Question::Linked(asker.pid, mapping.clone());
        match self.try_to_ask(asker, about, &question, None, LIMIT_OF_LINK, budget)? {
            Ok((Answer::Place, place)) => place,
            Ok(_) | Err(Failed::Gone) => None,
            Err(Failed::Late) => {
                self.locked.insert(asker.pid);
                if let Some(child) = self.child.take() {
                    child.abandon(&format!("the memory map of process {}", asker.pid));
                }
                self.waits.charge(LIMIT_OF_LINK);
                None
            }
        }
    }

    /// The place of a process's own list of the code that it has written.
    pub(crate) fn list(&mut self, asker: &Asker, about: &About, budget: &mut Budget) -> Option<OwnedFd> {
        match self.ask(asker, about, Question::List(asker.pid), None, budget)? {
            (Answer::Place, place) => place,
            _ => None,
        }
    }

    /// What unwinding needs of a file.
    pub(crate) fn frames(
        &mut self,
        asker: &Asker,
        about: &About,
        place: BorrowedFd<'_>,
        descriptions: bool,
        budget: &mut Budget,
    ) -> Option<FrameBytes> {
        let question = Question::Frames(descriptions);
        match self.ask(asker, about, question, Some(place), budget)? {
            (Answer::Frames(sizes), Some(copy)) => FrameBytes::read(copy, sizes),
            _ => None,
        }
    }

    /// Where symbols are in a file.
    pub(crate) fn symbols(
        &mut self,
        asker: &Asker,
        about: &About,
        place: BorrowedFd<'_>,
        wanted: &[&str],
        budget: &mut Budget,
    ) -> Option<Vec<Option<u64>>> {
        let question = Question::Symbols(wanted.iter().map(|&name| name.to_owned()).collect());
        match self.ask(asker, about, question, Some(place), budget)? {
            (Answer::Symbols(found), _) if found.len() == wanted.len() => Some(found),
            _ => None,
        }
    }

    fn ask(
        &mut self,
        asker: &Asker,
        about: &About,
        question: Question,
        place: Option<BorrowedFd<'_>>,
        budget: &mut Budget,
    ) -> Option<(Answer, Option<OwnedFd>)> {
        match self.try_to_ask(asker, about, &question, place, LIMIT, budget)? {
            Ok(answer) => Some(answer),
            Err(Failed::Late) => {
                self.owed = Some(about.clone());
                self.waits.charge(LIMIT);
                None
            }
            Err(Failed::Gone) => None,
        }
    }

    /// Asks, unless it is known that there is no answer.
    fn try_to_ask(
        &mut self,
        asker: &Asker,
        about: &About,
        question: &Question,
        place: Option<BorrowedFd<'_>>,
        limit: Duration,
        budget: &mut Budget,
    ) -> Option<Result<(Answer, Option<OwnedFd>), Failed>> {
        if let Some(files) = &self.here {
            let place = place.and_then(|place| place.try_clone_to_owned().ok());
            return Some(Ok(first(files.answer(question, place.into_iter().collect()))));
        }
        self.settle();
        if self.is_stuck(about) {
            return None;
        }
        self.begin();
        let child = self.child.as_mut()?;
        let before = child.cpu_time();
        let answer = ask(child, question, place, limit);
        let used = child.cpu_time().saturating_sub(before).saturating_sub(FREE_CPU);
        budget.charge_time(asker, used);
        if matches!(answer, Err(Failed::Gone)) {
            self.child = None;
            self.note(about.unread(Why::Broken));
        }
        Some(answer.map(first))
    }

    /// Waits for an answer that is owed, or leaves who owes it.
    fn settle(&mut self) {
        let Some(about) = self.owed.take() else { return };
        let Some(child) = &mut self.child else { return };
        // The answer is too late for what was asked, and is thrown away.
        if wait(child, LIMIT).is_ok() {
            return;
        }
        self.waits.charge(LIMIT);
        if let Some(child) = self.child.take() {
            child.abandon(&format!("{} of process {}", about.name, about.pid));
        }
        if about.device != (0, 0) {
            self.stuck.insert(about.device);
        }
        *self.stuck_of.entry(about.pid).or_default() += 1;
        self.note(about.unread(Why::Silent));
    }

    fn is_stuck(&mut self, about: &About) -> bool {
        let of_process = self.stuck_of.get(&about.pid).copied().unwrap_or(0);
        let stuck = self.stuck.contains(&about.device) || of_process >= STUCK_OF_A_PROCESS_MAX;
        if stuck {
            self.note(about.unread(Why::Silent));
        }
        stuck
    }

    fn note(&mut self, unread: Unread) {
        if self.unread.len() < UNREAD_MAX {
            self.unread.insert(unread);
        }
    }
}

fn first(answer: Sent<Answer>) -> (Answer, Option<OwnedFd>) {
    (answer.value, answer.descriptors.into_iter().next())
}

fn ask(
    child: &mut Detached<Question, Answer>,
    question: &Question,
    place: Option<BorrowedFd<'_>>,
    limit: Duration,
) -> Result<Sent<Answer>, Failed> {
    let descriptors: Vec<BorrowedFd<'_>> = place.into_iter().collect();
    child.ask(question, &descriptors, Instant::now() + LIMIT)?;
    wait(child, limit)
}

/// Waits for an answer, and for longer if the child only lacks a CPU.
fn wait(child: &mut Detached<Question, Answer>, limit: Duration) -> Result<Sent<Answer>, Failed> {
    let began = Instant::now();
    loop {
        match child.answer(Instant::now() + limit) {
            Err(Failed::Late) if began.elapsed() < LIMIT_WITHOUT_CPU && is_runnable(child.pid()) => {}
            answer => return answer,
        }
    }
}
