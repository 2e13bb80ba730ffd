//! Stacks of threads that still sleep, read from outside as observation ends.
//!
//! In: a thread and where its stack is. Out: what lies there, and how often the thread had blocked by then; nothing where that
//! took too long ([`super::behind`]).

use super::behind::Readers;
use holdup_detached::Bytes;
use holdup_proc::{Root, memory};

/// At most so much of a sleeping thread's stack is read, bytes. The programs copy 16 KiB, because a record needs room for
/// the most; here nothing does, and one function of Node.js alone has 20 KiB.
const STACK_BYTES: usize = 64 * 1024;

/// What was read of a thread.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Read {
    /// Memory from the stack pointer upward.
    pub(super) bytes: Bytes,
    /// Its voluntary context switches after that.
    pub(super) switches: u64,
}

/// Reads stacks, one at a time.
#[derive(Debug)]
pub(super) struct Reader(Readers<(u32, u64), Option<Read>>);

impl Default for Reader {
    fn default() -> Reader {
        Reader(Readers::new(|| Box::new(read)))
    }
}

impl Reader {
    /// The stack of a thread of a process, and its count of switches.
    pub(super) fn read(&mut self, pid: u32, tid: u32, at: u64) -> Option<Read> {
        self.0.ask(pid, (tid, at)).flatten()
    }

    /// Processes whose memory could not be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.0.stuck()
    }
}

fn read((tid, at): (u32, u64)) -> Option<Read> {
    let bytes = Bytes(memory::read(tid, at, STACK_BYTES)?);
    let switches = memory::voluntary_switches(&Root::system(), tid)?;
    Some(Read { bytes, switches })
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn an_own_thread_is_read() {
        let known = *b"what this stack holds";
        let own = std::process::id();
        let read = Reader::default().read(own, own, known.as_ptr() as u64);
        assert_eq!(&read.unwrap().bytes.0[..known.len()], known);
    }
}
