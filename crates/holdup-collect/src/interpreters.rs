//! Frames of interpreters, read from outside while their threads sleep.
//!
//! In: a thread that sleeps, of a process that may have an interpreter mapped. Out: its frames, innermost first; none where the
//! thread has run meanwhile, or its interpreter is not one that can be read. Reading can block, so a child does it that can be
//! left behind ([`super::behind`]). It keeps what it learnt of each interpreter.

use super::behind::{Answerer, Readers};
use holdup_jvm::Running;
use holdup_proc::{Root, memory, sampling::clocks};
use holdup_runtimes::python::{self, Interpreter, Place, PythonFrame, Refused, SYMBOLS, Version};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Interpreters that a child keeps; then all are forgotten.
const KEPT: usize = 64;

/// Looks for an interpreter in a process: its library may be loaded later.
const LOOKS: u32 = 8;

/// Questions to an interpreter that had no threads yet.
const TRIES: u32 = 8;

/// How often a thread had run when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    /// Voluntary context switches.
    pub(super) switches: u64,
    /// How often it got a CPU, where the kernel counts that.
    pub(super) turns: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question {
    pid: u32,
    tid: u32,
    place: Place,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Answer {
    /// The frames, and what was counted before and after.
    Frames(Vec<PythonFrame>, Turns),
    /// Of this thread nothing could be read, or it ran.
    Nothing,
    /// Of no thread of this interpreter anything can be read.
    Refused(Refused),
}

/// What is known of a process.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// No interpreter was found in so many looks.
    None(u32),
    /// One is there; so often it had no threads.
    There(Place, u32),
    /// It cannot be read.
    Refused,
}

/// Reads all of them.
#[derive(Debug)]
pub(super) struct Interpreters {
    readers: Readers<Question, Answer>,
    known: HashMap<ProcessKey, Known>,
}

impl Default for Interpreters {
    fn default() -> Interpreters {
        Interpreters {
            readers: Readers::new(answerer),
            known: HashMap::new(),
        }
    }
}

/// Whether a function of an interpreter evaluates interpreted code.
pub(super) fn evaluates(symbol: &str) -> bool {
    python::evaluates(symbol)
}

/// Whether a file may hold CPython: the program, or the library where it is embedded.
fn may_hold(file: &str) -> bool {
    file.strip_prefix("lib").unwrap_or(file).starts_with("python3")
}

impl Interpreters {
    /// The frames of a sleeping thread: of a process, by its id, and by its own. `still`: whether it sleeps as it did, by its counts.
    pub(super) fn frames(
        &mut self,
        stacks: &mut UserStacks,
        (process, pid, tid): (ProcessKey, u32, u32),
        still: impl Fn(&Turns) -> bool,
    ) -> Vec<Interpreted> {
        let Some((place, tries)) = self.place(stacks, process, pid) else {
            return Vec::new();
        };
        let answer = self.readers.ask(pid, Question { pid, tid, place });
        match answer {
            Some(Answer::Frames(frames, turns)) if still(&turns) => {
                let each = frames
                    .into_iter()
                    .map(|PythonFrame { frame, entry }| Interpreted { frame, entry });
                each.collect()
            }
            Some(Answer::Refused(refused)) => {
                let again = matches!(refused, Refused::NoThreads(_)) && tries < TRIES;
                let known = if again {
                    Known::There(place, tries + 1)
                } else {
                    Known::Refused
                };
                self.known.insert(process, known);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The process runs another program now, or none.
    pub(super) fn exit(&mut self, process: ProcessKey) {
        self.known.remove(&process);
    }

    /// Processes whose memory could not be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.readers.stuck()
    }

    /// Where a process has its interpreter, and how often that had no threads.
    fn place(&mut self, stacks: &mut UserStacks, process: ProcessKey, pid: u32) -> Option<(Place, u32)> {
        let known = self.known.entry(process).or_insert(Known::None(0));
        if let Known::None(looks) = known
            && *looks < LOOKS
        {
            *known = match stacks.find(process, pid, may_hold, &SYMBOLS) {
                Some(found) => {
                    let mut addresses = found.addresses.into_iter();
                    let runtime = addresses.next().flatten()?;
                    let place = Place {
                        runtime,
                        number: addresses.next().flatten(),
                        named: Version::of_file(&found.file),
                    };
                    Known::There(place, 0)
                }
                None => Known::None(*looks + 1),
            };
        }
        match *known {
            Known::There(place, tries) => Some((place, tries)),
            Known::None(_) | Known::Refused => None,
        }
    }
}

/// What a child does.
fn answerer() -> Answerer<Question, Answer> {
    let mut kept: HashMap<(u32, u64), Interpreter<Running>> = HashMap::new();
    let root = Root::system();
    Box::new(move |question| answer(&root, &mut kept, question))
}

fn answer(
    root: &Root,
    kept: &mut HashMap<(u32, u64), Interpreter<Running>>,
    Question { pid, tid, place }: Question,
) -> Answer {
    // Where reading memory would end this process, it is not tried.
    if memory::is_refused(pid, place.runtime) {
        return Answer::Refused(Refused::Memory);
    }
    let key = (pid, place.runtime);
    if !kept.contains_key(&key) {
        if kept.len() >= KEPT {
            kept.clear();
        }
        match Interpreter::find(Running(pid), place) {
            Ok(interpreter) => drop(kept.insert(key, interpreter)),
            Err(refused) => return Answer::Refused(refused),
        }
    }
    let mut read = || {
        let interpreter = kept.get_mut(&key)?;
        let inside = memory::inside(root, tid)?;
        let before = turns(root, tid)?;
        let frames = interpreter.frames(inside).ok()?;
        let after = turns(root, tid)?;
        (before == after).then_some((frames, after))
    };
    match read() {
        Some((frames, turns)) => Answer::Frames(frames, turns),
        None => Answer::Nothing,
    }
}

fn turns(root: &Root, tid: u32) -> Option<Turns> {
    let switches = memory::voluntary_switches(root, tid)?;
    let counted = std::fs::read_to_string(root.proc.join(tid.to_string()).join("schedstat"));
    let counted = counted.ok().and_then(|text| clocks::turns(&text));
    Some(Turns {
        switches,
        turns: counted.map(|turns| turns.count),
    })
}

#[cfg(test)]
mod tests {
    use super::Interpreters;
    use holdup_proc::{Root, maps};
    use holdup_symbols::{Interpreted, Mapping, ProcessKey, UserStacks};
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    const PROGRAM: &str =
        "import time\ndef pause():\n    print('ready', flush=True)\n    time.sleep(600)\npause()\n";

    fn shown(frames: &[Interpreted]) -> Vec<(&str, u32)> {
        let each = frames.iter().map(|one| &one.frame);
        each.map(|frame| (frame.symbol.as_deref().unwrap(), frame.line.unwrap()))
            .collect()
    }

    #[test]
    fn a_sleeper_is_read_unless_it_has_run_or_is_no_interpreter() {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert_eq!(said, "ready\n");
        let (key, other) = (ProcessKey(1), ProcessKey(2));
        let mut stacks = UserStacks::new();
        for one in maps::executable(&Root::system(), pid).unwrap() {
            let mapping = Mapping {
                start: one.start,
                end: one.end,
                offset: one.offset,
                path: one.path,
                device: one.device,
                inode: one.inode,
            };
            stacks.map(key, pid, mapping);
        }
        let mut interpreters = Interpreters::default();
        let sleeps = [("pause", 4), ("<module>", 5)];
        // It is about to sleep.
        let mut frames = Vec::new();
        for _ in 0..100_000 {
            frames = interpreters.frames(&mut stacks, (key, pid, pid), |_| true);
            if shown(&frames) == sleeps {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(shown(&frames), sleeps);
        let ran = interpreters.frames(&mut stacks, (key, pid, pid), |_| false);
        assert_eq!(ran, [], "it has run since");
        let own = std::process::id();
        let none = interpreters.frames(&mut stacks, (other, own, own), |_| true);
        assert_eq!(none, [], "there is no interpreter");
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = interpreters.frames(&mut stacks, (key, pid, pid), |_| true);
        assert_eq!(gone, []);
    }
}
