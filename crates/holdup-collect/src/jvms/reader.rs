//! Reads what a machine says of itself, in a child process that can be left behind: its address space may be locked.

use holdup_detached::Failed;
use holdup_evidence::Jvm;
use holdup_evidence::jvm::Figures;
use holdup_jvm::figures::Copy;
use holdup_jvm::perf_memory::{Absent, PerfMemory};
use holdup_proc::Root;
use holdup_proc::blocking::{self, Reader as Child};
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
type ReadResult = Result<Jvm, Figures>;

/// One machine's reader.
#[derive(Debug)]
pub(crate) struct Reader {
    child: Child<(), ReadResult>,
    /// Whether it has been asked, and has not answered; and how often that was noticed.
    late: u32,
}

impl Reader {
    /// Begins; `None` where no process can be had.
    pub(crate) fn start(pid: u32) -> Option<Reader> {
        let begin = move || {
            let mut source = Source::new(&Root::system(), pid);
            move |(), _| source.read()
        };
        let child = Child::start(&blocking::reader(c"holdup-jvm-perf"), Some(pid), begin).ok()?;
        Some(Reader { child, late: 0 })
    }

    /// What the machine says now, if it says it until then.
    pub(crate) fn read(&mut self, until: Instant) -> Result<ReadResult, Late> {
        // One who has not answered is not asked again, nor waited for: his next answer will be of an instant before this.
        let until = match self.late {
            0 => {
                let asked = self.child.ask((), &[], until);
                asked.map_err(|_| Late::ForGood)?;
                until
            }
            _ => Instant::now(),
        };
        match self.child.answer(until) {
            Ok(found) => {
                self.late = 0;
                return Ok(found);
            }
            Err(Failed::Gone) => return Err(Late::ForGood),
            Err(Failed::Late) => {}
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

    fn read(&mut self) -> ReadResult {
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

/// What a machine says, read once: for whoever runs in a process that can be left behind.
pub fn read_once(root: &Root, pid: u32) -> Jvm {
    Source::new(root, pid).read().unwrap_or_else(|figures| Jvm {
        pid,
        figures,
        ..Jvm::default()
    })
}

#[cfg(test)]
mod tests {
    use super::{Late, Reader};
    use holdup_proc::blocking::{self, Reader as Child};
    use std::time::Instant;

    #[test]
    fn when_the_time_of_all_is_over_one_that_has_not_answered_is_asked_and_not_waited_for() {
        // No answer ever comes: a reader that waited would never come back.
        let begin = || {
            |(), _| loop {
                std::thread::park();
            }
        };
        let child = Child::start(&blocking::reader(c"holdup-test"), None, begin).unwrap();
        let mut reader = Reader { child, late: 0 };
        assert_eq!(reader.read(Instant::now()).err(), Some(Late::Today));
        assert_eq!(reader.read(Instant::now()).err(), Some(Late::Today));
        assert_eq!(reader.late, 2);
    }

    #[test]
    fn a_reader_that_breaks_is_given_up() {
        let begin = || |(), _| panic!("over hostile figures");
        let child = Child::start(&blocking::reader(c"holdup-test"), None, begin).unwrap();
        let mut reader = Reader { child, late: 0 };
        let long = Instant::now() + std::time::Duration::from_secs(60);
        assert_eq!(reader.read(long).err(), Some(Late::ForGood));
    }
}
