//! Threads of InnoDB that wait for a latch or a mutex of the server's own: the section `SEMAPHORES` of its status, and what it
//! writes into its log when a wait is long.
//!
//! In: for each thread where in the code it waits, for how long and for what, and who has that. Out: a statement about the latch
//! that was waited for longest: by how many, since when, and its holder.

use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};

/// Latches that are distinguished; of more, the first.
const LATCHES: usize = 500;

/// Bytes of a line that are kept.
const KEPT: usize = 140;

/// A latch, and who waits for it.
#[derive(Debug)]
struct Latch {
    what: String,
    waiters: u64,
    longest: f64,
    /// Where in the code.
    place: String,
    holder: Option<String>,
    quote: Quote,
}

/// The waits of one report, or of all that a log has.
#[derive(Debug, Default)]
pub(super) struct Semaphores {
    latches: Vec<Latch>,
    /// A wait whose latch the next line names: seconds, place, where.
    open: Option<(f64, String, Quote)>,
    /// The latch that the lines below say more of.
    last: Option<usize>,
}

impl Semaphores {
    /// Takes a line; whether it is about a semaphore.
    pub(super) fn line(&mut self, line: &[u8], out: &Out<'_>) -> bool {
        if !(line.starts_with(b"--Thread ") || self.open.is_some() || self.last.is_some()) {
            return false;
        }
        let text = text_of(line);
        let text = text.trim();
        if let Some((_, wait)) = text.split_once(" has waited at ") {
            let Some((place, length)) = wait.split_once(" for ") else {
                return false;
            };
            let seconds = length.split(' ').next().and_then(|number| number.parse().ok());
            let place = place.chars().take(KEPT).collect();
            self.open = seconds.map(|seconds: f64| (seconds, place, out.here()));
            self.last = None;
            return self.open.is_some();
        }
        if let Some(wait) = self.open.take() {
            self.waits_for(text, wait);
            return true;
        }
        let Some(latch) = self.last.and_then(|last| self.latches.get_mut(last)) else {
            return false;
        };
        let holder = text
            .split_once("thread id ")
            .and_then(|(_, holder)| holder.split_once(')'))
            .filter(|_| text.contains("has reserved it"));
        if let Some((id, how)) = holder {
            let mode = how.rsplit_once("mode").map_or("", |(_, mode)| mode.trim());
            latch.holder = Some(format!("thread {id} ({mode})").chars().take(KEPT).collect());
            return true;
        }
        let said = [
            "number of readers",
            "Last time",
            "Holder",
            "wait has ended",
            "a writer",
        ]
        .iter()
        .any(|begin| text.starts_with(begin));
        if !said {
            self.last = None;
        }
        said
    }

    /// `X-lock on RW-latch at 0x7f01 '&index->lock'`, `Mutex at 0x7f01 created file srv0srv.c line 9, lock var 1`.
    fn waits_for(&mut self, text: &str, (seconds, place, quote): (f64, String, Quote)) {
        let what = text.split(", lock var").next().unwrap_or(text);
        let what: String = what.chars().take(KEPT).collect();
        // Several latches have one name; of those without, the address tells them apart.
        let known = self.latches.iter().position(|latch| latch.what == what);
        match known {
            Some(at) => {
                if let Some(latch) = self.latches.get_mut(at) {
                    latch.waiters += 1;
                    if seconds > latch.longest {
                        (latch.longest, latch.place) = (seconds, place);
                    }
                }
                self.last = Some(at);
            }
            None if self.latches.len() < LATCHES => {
                self.last = Some(self.latches.len());
                self.latches.push(Latch {
                    what,
                    waiters: 1,
                    longest: seconds,
                    place,
                    holder: None,
                    quote,
                });
            }
            None => self.last = None,
        }
    }

    /// Puts the longest wait into the evidence.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let latches = std::mem::take(self).latches;
        let all: u64 = latches.iter().map(|latch| latch.waiters).sum();
        let longest = latches.into_iter().max_by(|one, other| {
            one.longest
                .total_cmp(&other.longest)
                .then(one.waiters.cmp(&other.waiters))
        });
        let Some(latch) = longest else { return };
        let threads = match latch.waiters {
            1 => "1 thread waits".to_owned(),
            more => format!("{more} threads wait"),
        };
        let others = match all - latch.waiters {
            0 => String::new(),
            others => format!("; {others} more wait for other semaphores"),
        };
        let holder = latch
            .holder
            .map_or_else(String::new, |holder| format!(", held by {holder}"));
        let text = format!(
            "{threads} for a semaphore of InnoDB, the longest for {} s: {}{holder}, at {}{others}",
            latch.longest, latch.what, latch.place
        );
        let ns = (latch.longest.clamp(0.0, 1e9) * 1e9) as Ns;
        let ns = Some(ns).filter(|ns| *ns > 0);
        out.statement(statements::one(StatementKind::Stalled, ns, latch.quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_latch_that_was_waited_for_longest_and_its_holder() {
        let text = "2026-03-01 10:00:00 7f01 INNODB MONITOR OUTPUT\n----------\nSEMAPHORES\n----------\n\
            --Thread 11 has waited at buf0buf.cc line 10 for 2.0000 seconds the semaphore:\n\
            Mutex at 0x55 created file buf0buf.cc line 5, lock var 1\nwaiters flag 1\n\
            --Thread 12 has waited at btr0cur.cc line 700 for 41.000 seconds the semaphore:\n\
            SX-lock on RW-latch at 0x66 created in file dict0dict.cc line 2\n\
            a writer (thread id 77) has reserved it in mode  SX\n\
            --Thread 13 has waited at btr0cur.cc line 700 for 3.0000 seconds the semaphore:\n\
            SX-lock on RW-latch at 0x66 created in file dict0dict.cc line 2\n\
            a writer (thread id 77) has reserved it in mode  SX\nnumber of readers 0, waiters flag 1\n\
            --------\nFILE I/O\n--------\nI/O thread 0 state: waiting for i/o request (insert buffer thread)\n";
        let reading = read_text("i", text.as_bytes());
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{:?}", reading.observed.statements)
        };
        assert_eq!(
            one.text,
            "2 threads wait for a semaphore of InnoDB, the longest for 41 s: SX-lock on RW-latch at 0x66 created in file \
             dict0dict.cc line 2, held by thread 77 (SX), at btr0cur.cc line 700; 1 more wait for other semaphores"
        );
    }

    #[test]
    fn an_idle_server_states_nothing() {
        let text = "2026-03-01 10:00:00 7f01 INNODB MONITOR OUTPUT\nSEMAPHORES\nOS WAIT ARRAY INFO: reservation count 5\n\
            I/O thread 0 state: waiting for i/o request (log thread)\n--Thread x has waited at\n--Thread 1 has waited at a for b\n";
        assert_eq!(read_text("i", text.as_bytes()).observed.statements, []);
    }
}
