//! Reads what a machine says of itself, in a thread that may be left behind: its address space may be locked.

use holdup_evidence::Jvm;
use holdup_evidence::jvm::Figures;
use holdup_jvm::figures::Copy;
use holdup_jvm::perf_memory::{Absent, PerfMemory};
use holdup_proc::Root;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// How long the answers of all machines are waited for in a turn. A copy takes some 20 µs, the first one a millisecond; a busy
/// machine needs some more.
pub(super) const LIMIT: Duration = Duration::from_millis(200);

/// So many questions without an answer are taken for an address space that is locked: they are asked some fifty milliseconds
/// apart at least.
const PATIENCE: u32 = 40;

/// It did not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// It may yet.
    Today,
    /// It will not.
    ForGood,
}

/// What was read.
type Told = Result<Jvm, Figures>;

/// One machine's reader.
#[derive(Debug)]
pub(crate) struct Reader {
    ask: Sender<()>,
    answers: Receiver<Told>,
    /// Whether it has been asked, and has not answered; and how often that was noticed.
    late: u32,
}

impl Reader {
    /// Begins; `None` where no thread can be had.
    pub(crate) fn start(pid: u32) -> Option<Reader> {
        let (ask, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let mut source = Source::new(&Root::system(), pid);
        let read_all = move || {
            while asked.recv().is_ok() {
                if answer.send(source.read()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("look".to_owned())
            .spawn(read_all)
            .ok()?;
        Some(Reader {
            ask,
            answers,
            late: 0,
        })
    }

    /// What the machine says now, if it says it until then.
    pub(crate) fn read(&mut self, until: Instant) -> Result<Told, Late> {
        // One who has not answered is not asked again, nor waited for: his next answer will be of an instant before this.
        let limit = match self.late {
            0 => {
                self.ask.send(()).map_err(|_| Late::ForGood)?;
                until.saturating_duration_since(Instant::now())
            }
            _ => Duration::ZERO,
        };
        if let Ok(told) = self.answers.recv_timeout(limit) {
            self.late = 0;
            return Ok(told);
        }
        self.late += 1;
        Err(match self.late > PATIENCE {
            true => Late::ForGood,
            false => Late::Today,
        })
    }
}

/// Where it is read.
struct Source {
    pid: u32,
    root: Root,
    memory: Option<PerfMemory>,
    processors: Option<u32>,
}

impl Source {
    fn new(root: &Root, pid: u32) -> Source {
        Source {
            pid,
            root: root.clone(),
            memory: None,
            processors: None,
        }
    }

    fn read(&mut self) -> Told {
        let bytes = match &mut self.memory {
            Some(memory) => memory.copy().map_err(Absent::from),
            None => PerfMemory::find(&self.root, self.pid).map(|(memory, bytes)| {
                self.memory = Some(memory);
                bytes
            }),
        };
        let bytes = bytes.map_err(|absent| match absent {
            Absent::NotShared => Figures::NotShared,
            Absent::NoMappings | Absent::Unreadable(_) => Figures::Unreadable(absent.to_string()),
        })?;
        let Some(memory) = &self.memory else {
            return Err(Figures::NotShared);
        };
        let mut jvm = Copy {
            index: memory.index(),
            bytes: &bytes,
        }
        .jvm(self.pid);
        if self.processors.is_none() {
            self.processors = super::processors(&self.root, self.pid, &jvm.options);
        }
        jvm.processors = self.processors;
        Ok(jvm)
    }
}

/// What a machine says, read once: for whoever runs in a thread that may be left behind.
pub(crate) fn read_once(root: &Root, pid: u32) -> Jvm {
    Source::new(root, pid).read().unwrap_or_else(|figures| Jvm {
        pid,
        figures,
        ..Jvm::default()
    })
}

#[cfg(test)]
mod tests {
    use super::{Late, Reader};
    use std::sync::mpsc;
    use std::time::Instant;

    #[test]
    fn when_the_time_of_all_is_over_one_that_has_not_answered_is_asked_and_not_waited_for() {
        let (ask, asked) = mpsc::channel();
        let (_answer, answers) = mpsc::channel();
        let mut reader = Reader {
            ask,
            answers,
            late: 0,
        };
        // No answer ever comes: a reader that waited would never come back.
        assert_eq!(reader.read(Instant::now()).err(), Some(Late::Today));
        assert_eq!(reader.read(Instant::now()).err(), Some(Late::Today));
        assert_eq!(asked.try_iter().count(), 1);
    }
}
