//! Threads that come and go, by `-Xlog:os+thread`.

use super::{Line, figure};
use crate::find::find;
use crate::gather::Out;
use crate::numbers::whole;
use holdup_evidence::Ns;
use holdup_evidence::observed::{JvmEvent, Metric, What};
use std::collections::HashMap;

/// Threads whose beginning is remembered.
const ALIVE: usize = 65_536;

/// Beginnings and ends that are reported one by one; all are counted.
const MAX_EVENTS: u64 = 200;

/// Lines of ends that are remembered, to see what they fell into.
const ENDS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// When each began, by the kernel's id.
    alive: HashMap<u64, Ns>,
    reported: u64,
    ends: std::collections::VecDeque<u64>,
}

impl Threads {
    pub(super) fn take(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> bool {
        let message = line.message;
        if message.starts_with(b"Thread is alive (tid: ") {
            let Some(tid) = tid(message) else { return false };
            if self.alive.len() < ALIVE
                && let Some(ns) = line.ns
            {
                self.alive.insert(tid, ns);
            }
            self.tell(JvmEvent::ThreadStarted { tid }, line, out);
            return true;
        }
        if message.starts_with(b"Thread finished (tid: ") {
            let Some(tid) = tid(message) else { return false };
            let life = self.alive.remove(&tid).zip(line.ns);
            if let Some((began, ended)) = life.filter(|(began, ended)| began <= ended) {
                figure(Metric::ThreadLifeMs, ended - began, line, out);
            }
            if self.ends.len() == ENDS {
                self.ends.pop_front();
            }
            self.ends.push_back(out.here().line);
            self.tell(JvmEvent::ThreadEnded { tid }, line, out);
            return true;
        }
        // `started` is the maker's view of what `is alive` says, `exiting` the thread's of what `finished` says.
        message.starts_with(b"Thread started (")
            || message.starts_with(b"JavaThread exiting (")
            || (message.starts_with(b"Thread \"") && find(message, b"\" started (").is_some())
    }

    /// How many threads ended in lines after this one.
    pub(super) fn ended_after(&self, line: u64) -> usize {
        self.ends.iter().filter(|end| **end > line).count()
    }

    fn tell(&mut self, event: JvmEvent, line: &Line<'_>, out: &mut Out<'_>) {
        self.reported += 1;
        if self.reported <= MAX_EVENTS {
            out.happened(What::Jvm(event), line.at, None, line.whole);
        }
    }
}

fn tid(message: &[u8]) -> Option<u64> {
    let at = find(message, b"tid: ")? + 5;
    let rest = message.get(at..)?;
    whole(rest.get(..rest.iter().position(|byte| !byte.is_ascii_digit())?)?)
}
