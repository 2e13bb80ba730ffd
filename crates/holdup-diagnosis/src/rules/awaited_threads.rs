//! What another thread would end: a condition, a barrier, a semaphore, the end of a thread. To the kernel all are futexes.
//!
//! In: waits for futexes whose end nobody explains. Out: which of them to speak of, in words, who else is in the process, and what
//! an expert would look for.

use super::{Run, Waits, asked, beside, java_waits, say, tasks};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, TaskRuntime};
use holdup_knowledge::user_code::{Primitive, in_python, primitive, python_lock};
use holdup_model::attributed::{AttributedWait, Task};
use holdup_model::finding::{Evidence, Finding, Remedy};
use std::collections::{BTreeMap, BTreeSet};

/// What other threads do, at most so many kinds of it.
const MAX_KINDS: usize = 3;

/// What is spoken of.
pub(super) struct Awaited<'a> {
    primitive: Primitive,
    python: bool,
    /// The waits for the one thing that costs most.
    pub(super) waits: Waits<'a>,
}

/// The costliest thing that is waited for, where stacks show what it is. A thread that waits for another's end is spoken of only where
/// that is all: what matters is what the other one waits for.
pub(super) fn of<'a>(waits: &Waits<'a>) -> Option<Awaited<'a>> {
    if waits.cause() != Cause::LockFutex {
        return None;
    }
    let joins = |wait: &AttributedWait| primitive(&wait.asker.stack) == Some(Primitive::ThreadEnd);
    let others = waits.only(|wait| !joins(wait));
    let of_one = others.as_ref().unwrap_or(waits).split(|wait| {
        let name = &wait.asker.name;
        (name.pid, wait.resource.name.clone())
    });
    let costliest = of_one
        .into_iter()
        .max_by_key(|group| (group.cost(), group.own()))?;
    let stack = &costliest.main().asker.stack;
    Some(Awaited {
        primitive: primitive(stack)?,
        python: python_lock(stack) && in_python(stack).is_none(),
        waits: costliest,
    })
}

/// What a thread waits for, as it follows "for".
pub(super) fn what(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Condition => "a condition",
        Primitive::Barrier => "others at a barrier or latch",
        Primitive::Semaphore => "a semaphore",
        Primitive::ThreadEnd => "the end of a thread",
        Primitive::ReadWriteLock => "a reader-writer lock",
        Primitive::Mutex => "a lock",
        Primitive::Future => "the result of a future",
        Primitive::Queue => "the next item of a queue or channel",
        Primitive::Room => "room in a queue or channel",
        Primitive::BlockOn => "a future that it runs",
        Primitive::Initialisation => "what is initialised once",
    }
}

impl Awaited<'_> {
    /// Whether one of them has waited all the time; others go round, as threads do that get work again and again.
    pub(super) fn stands(&self, run: &Run<'_>) -> bool {
        self.waits.iter().any(|wait| java_waits::stands(run, wait))
    }

    /// Whether who waits so may have no work: it goes on whenever there is some.
    pub(super) fn may_be_work(&self) -> bool {
        !self.python
            && matches!(
                self.primitive,
                Primitive::Condition | Primitive::Semaphore | Primitive::Queue | Primitive::BlockOn
            )
    }

    /// For the end of a title: the threads of the process of which one may end the wait, where they stand in one place.
    pub(super) fn candidate(&self, run: &Run<'_>) -> String {
        let role = match self.primitive {
            Primitive::Condition => "signals it",
            Primitive::Semaphore => "posts it",
            Primitive::ThreadEnd => "has to end",
            _ => "ends that",
        };
        let standing = |wait: &&AttributedWait| java_waits::stands(run, wait) && !beside::goes_round(wait);
        let others: Vec<&AttributedWait> = beside::others(run, &self.waits)
            .into_iter()
            .filter(standing)
            .collect();
        let Some(first) = others.first().filter(|_| !self.python) else {
            return String::new();
        };
        let doing = beside::doing_with_peer(run, first);
        match others.len() {
            1 => format!(
                "; {} may be the one that {role}, {doing}",
                beside::other(&first.asker.name)
            ),
            count
                if others
                    .iter()
                    .all(|other| beside::doing_with_peer(run, other) == doing) =>
            {
                format!("; one of {count} other threads may be the one that {role}, {doing}")
            }
            _ => String::new(),
        }
    }

    /// Who waits for what, as a title.
    pub(super) fn title(&self, run: &Run<'_>) -> String {
        match self.candidate(run) {
            candidate if candidate.is_empty() => self.head(run),
            candidate => format!("{}{}{candidate}", self.head(run), asked::place(&self.waits)),
        }
    }

    /// The future on which the thread blocks, where it was read: the wait has its frames.
    fn future<'b>(&self, run: &Run<'b>) -> Option<&'b Task> {
        let main = self.waits.main();
        let is_in = |task: &&Task| {
            let own = task.runtime == TaskRuntime::Tokio && task.pid == main.asker.name.pid;
            let functions: Vec<&Frame> = task.stack.iter().filter(|frame| frame.file.is_some()).collect();
            let length = functions.len();
            let stack: Vec<&Frame> = main.asker.stack.iter().collect();
            own && length > 0 && stack.windows(length).any(|part| part == functions)
        };
        run.attributed.tasks.iter().find(is_in)
    }

    fn head(&self, run: &Run<'_>) -> String {
        let main = self.waits.main();
        let tids: BTreeSet<u32> = self.waits.iter().map(|wait| wait.asker.name.tid).collect();
        let who = match tids.len() {
            1 => format!("{} waits", say::who(&main.asker.name)),
            count => format!("{count} threads of {} wait", main.asker.name.process),
        };
        let held = self.waits.open();
        match self.primitive {
            _ if self.python => format!("{who} for a lock, a queue or a condition of Python's threading"),
            Primitive::Condition if held => format!("{who} for a condition that no thread has signalled yet"),
            Primitive::Condition => format!("{who} for a condition that another thread signals"),
            Primitive::Barrier if held => format!("{who} at a barrier for threads that have not arrived yet"),
            Primitive::Barrier => format!("{who} at a barrier for threads that arrive later"),
            Primitive::Semaphore if held => format!("{who} for a semaphore that no thread has posted yet"),
            Primitive::Semaphore => format!("{who} for a semaphore that another thread posts"),
            Primitive::ThreadEnd => format!("{who} for the end of another thread"),
            Primitive::Future if held => format!("{who} for a future that no thread has set yet"),
            Primitive::Future => format!("{who} for a future that another thread sets"),
            Primitive::BlockOn => match self.future(run) {
                Some(future) => format!(
                    "{who} for a future that it runs (block_on){}",
                    tasks::waits_for(future)
                ),
                None => format!(
                    "{who} for a future of tokio that it runs (block_on); which task that is for was not read"
                ),
            },
            Primitive::Queue => format!("{who} for a queue that another thread fills or empties"),
            Primitive::Room => format!("{who} for room in a queue that another thread empties"),
            Primitive::Initialisation => format!("{who} for what another thread initialises"),
            Primitive::ReadWriteLock => format!("{who} for a reader-writer lock"),
            Primitive::Mutex => format!("{who} for a mutex"),
        }
    }

    /// What the other threads of the process do, one of which would end the wait.
    pub(super) fn others(&self, run: &Run<'_>) -> Option<Evidence> {
        let pid = self.waits.main().asker.name.pid;
        let own: BTreeSet<u32> = self.waits.iter().map(|wait| wait.asker.name.tid).collect();
        // What each of them does most.
        let mut most: BTreeMap<u32, &AttributedWait> = BTreeMap::new();
        let theirs = run.attributed.waits.iter();
        for wait in theirs.filter(|wait| wait.asker.name.pid == pid && !own.contains(&wait.asker.name.tid)) {
            let known = most.entry(wait.asker.name.tid).or_insert(wait);
            if wait.ns > known.ns {
                *known = wait;
            }
        }
        let mut kinds: BTreeMap<(Cause, String), usize> = BTreeMap::new();
        for wait in most.values() {
            let frame = chosen_frame(&wait.asker.stack).map(say::place);
            let frame = frame.or(wait.asker.frame.clone()).unwrap_or_default();
            *kinds.entry((wait.cause, frame)).or_default() += 1;
        }
        if kinds.is_empty() {
            return None;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let more = kinds.len().saturating_sub(MAX_KINDS);
        let mut parts: Vec<String> = kinds
            .iter()
            .take(MAX_KINDS)
            .map(|((cause, frame), count)| {
                let place = match frame.as_str() {
                    "" => String::new(),
                    frame => format!(" in {frame}"),
                };
                format!("{count} {}{place}", cause.phrase())
            })
            .collect();
        if more > 0 {
            parts.push(format!("{more} more kinds"));
        }
        let text = match most.len() {
            1 => format!(
                "its only other thread: {}",
                parts.join("").trim_start_matches("1 ")
            ),
            count => format!("of its {count} other threads: {}", parts.join("; ")),
        };
        Some(Evidence::new(text, "other threads of the process at that time"))
    }

    /// What an expert would look for.
    pub(super) fn remedies(&self, finding: Finding) -> Finding {
        let texts: &[&str] = match self.primitive {
            _ if self.python => &[
                "find the thread that would release it: py-spy dump --pid, or faulthandler in the program, \
                 show the Python code of each thread",
            ],
            Primitive::Condition => &[
                "find the thread that should signal it, and what blocks that thread",
                "check the condition with the mutex held, and wait only while it is false: a signal before \
                 the wait begins is lost",
            ],
            Primitive::Barrier => &[
                "look at the threads that have not arrived: one that ended early or waits for something else \
                 blocks all others",
                "compare the count of the barrier with the number of threads that reach it",
            ],
            Primitive::Semaphore => &[
                "find the thread that should post it; a semaphore does not store its owner, and an owner \
                 that died posts nothing",
                "use a robust mutex (PTHREAD_MUTEX_ROBUST) or a file lock if it guards something: those are \
                 released when their holder dies",
            ],
            Primitive::Future => &[
                "find the thread that has the promise, and what blocks it: a promise that is kept and never \
                 set is never fulfilled",
            ],
            Primitive::Room | Primitive::Initialisation => &["find the other thread, and what blocks it"],
            Primitive::Queue => &[
                "find the thread that should put something in or take something out, and what blocks that thread",
            ],
            Primitive::ThreadEnd => &["look at what that thread waits for"],
            Primitive::BlockOn => &[
                "build the program with full debug information, also of a release (`debug = true` in `[profile.release]`): then holdup reads its tasks and this future",
            ],
            Primitive::ReadWriteLock | Primitive::Mutex => {
                &["find the thread that has it, and what it waits for"]
            }
        };
        texts
            .iter()
            .fold(finding, |finding, text| finding.remedy(Remedy::safe(*text)))
    }
}
