//! A folder or an archive, and what became of the files in it.

use super::Allowance;
use crate::account::{Files, PROBLEMS};
use crate::gather::Gather;
use crate::stream::BINARY;

/// Sentences that are about one file of many, and are not worth one each.
#[derive(Debug, Default)]
struct Skipped {
    count: u64,
    first: String,
}

impl Skipped {
    fn add(&mut self, name: &str) {
        if self.count == 0 {
            name.clone_into(&mut self.first);
        }
        self.count += 1;
    }

    fn sentence(&self, what: &str) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!("{}: {what}, not read", self.first)),
            more => Some(format!("{} and {} more: {what}, not read", self.first, more - 1)),
        }
    }
}

/// Something that has files in it.
#[derive(Debug)]
pub(super) struct Whole {
    /// Which artefact it is itself.
    source: u32,
    files: Files,
    special: Skipped,
    elsewhere: Skipped,
    problems: Vec<String>,
    /// Sources before the file that is being read.
    before: usize,
}

impl Whole {
    pub(super) fn begin(name: &str, kind: &str, gather: &mut Gather) -> Whole {
        Whole {
            source: gather.begin_whole(name, kind),
            files: Files::default(),
            special: Skipped::default(),
            elsewhere: Skipped::default(),
            problems: Vec::new(),
            before: 0,
        }
    }

    /// A file comes; whether it may be read.
    pub(super) fn next(&mut self, gather: &Gather, allowance: &mut Allowance) -> bool {
        self.before = gather.sources();
        match allowance.files.checked_sub(1) {
            Some(left) => {
                allowance.files = left;
                true
            }
            None => {
                self.problem(format!("more than {} files: the rest is not read", super::FILES));
                false
            }
        }
    }

    /// The file was read.
    pub(super) fn done(&mut self, name: &str, gather: &mut Gather) {
        if gather.sources() > self.before + 1 {
            self.files.read += 1;
            return;
        }
        match gather.take_back() {
            None => self.files.read += 1,
            Some(account) => {
                // Of one file of many it is enough that it is counted.
                for problem in account.problems.into_iter().filter(|problem| problem != BINARY) {
                    self.problem(format!("{name}: {problem}"));
                }
                // An empty file is of no format and of every one.
                if account.bytes > 0 {
                    self.files.not_recognised(name);
                }
            }
        }
    }

    /// A symbolic or hard link.
    pub(super) fn link(&mut self) {
        self.files.links += 1;
    }

    /// A FIFO, a device, a socket.
    pub(super) fn special(&mut self, name: &str) {
        self.special.add(name);
    }

    /// A folder that is a mount point.
    pub(super) fn elsewhere(&mut self, name: &str) {
        self.elsewhere.add(name);
    }

    pub(super) fn problem(&mut self, sentence: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(sentence);
        }
    }

    pub(super) fn end(self, gather: &mut Gather) {
        let mut out = gather.out_of(self.source);
        out.account().files = Some(self.files);
        let skipped = [
            self.special.sentence("no file but a FIFO, device or socket"),
            self.elsewhere.sentence("on another file system"),
        ];
        for problem in self.problems.into_iter().chain(skipped.into_iter().flatten()) {
            out.problem(problem);
        }
    }
}
