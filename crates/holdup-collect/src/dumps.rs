//! Java virtual machines that are asked what their threads do, where their structures can't be read: the last resort.
//!
//! A dump stops the machine. So it is asked only if one of the program's threads waits, and only as often as all its pauses together
//! stay below a thousandth of the time that it has been observed; what a dump takes is estimated first, and what it took counts after.
//! Each machine is asked by a child process that has its ids ([`asker`]); nothing here waits for it, but for a moment at the end.
//!
//! In: the machines whose structures can't be read, and why. Out: what they said ([`Dumped`]), what it cost them, and of those that
//! were not asked or did not answer, why.

mod asker;
mod text;

pub(super) use text::SaidThread;

use asker::{Asker, Outcome, ReceivedDump};
use holdup_attribution::attribution::is_own_thread;
use holdup_evidence::{Jvm, JvmDump, NotMeasured, Ns};
use holdup_jvm::Unread;
use holdup_jvm::attach::{Question, Refused};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Whether machines may be asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Where nothing else tells.
    LastResort,
    /// Not at all.
    Never,
}

/// Of the time that a machine is observed it may stand still for one part in so many.
const SPARED: Ns = 1_000;

/// Between two dumps of a machine lies at least one part in so many of the time that it has been observed: then a day has some six
/// hundred, and each is in the report.
const RARELY: Ns = 64;

/// Between two tries, nanoseconds.
const TRY_AGAIN: Ns = 1_000_000_000;

/// A wait is worth a dump if it has lasted for so long.
const WORTH: Duration = Duration::from_millis(20);

/// How long an answer is waited for when observation ends.
const LAST: Duration = Duration::from_millis(300);

/// What a machine said of its threads.
#[derive(Debug)]
pub(super) struct Dumped {
    /// Which process.
    pub(super) pid: u32,
    /// When it was asked, and when it had answered.
    pub(super) from: Ns,
    pub(super) to: Ns,
    /// Its threads.
    pub(super) threads: Vec<SaidThread>,
}

/// A machine whose structures can't be read.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    /// Which process.
    pub(super) pid: u32,
    /// Why they can't.
    pub(super) unread: Unread,
    /// What it says of itself otherwise, if anything.
    pub(super) jvm: Option<&'a Jvm>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Dumps {
    ask: Ask,
    machines: BTreeMap<u32, Machine>,
}

#[derive(Debug)]
struct Machine {
    /// `None` where nobody may be asked.
    asker: Option<Asker>,
    unread: Unread,
    made: Vec<JvmDump>,
    refused: Option<Refused>,
    /// When it may be asked again; `None`: no more.
    next: Option<Ns>,
    /// How long it has stood still.
    stood: Ns,
}

impl Dumps {
    pub(super) fn new(ask: Ask) -> Dumps {
        Dumps {
            ask,
            machines: BTreeMap::new(),
        }
    }

    /// Asks a machine, if it is time to. `started`: when observation began; `last`: there will be no other chance.
    pub(super) fn consider(&mut self, closed: &Closed<'_>, started: Ns, now: Ns, last: bool) {
        let ask = self.ask;
        let machine = self.machines.entry(closed.pid).or_insert_with(|| Machine {
            asker: (ask == Ask::LastResort).then(|| Asker::of(closed.pid)),
            unread: closed.unread,
            made: Vec::new(),
            refused: None,
            next: Some(0),
            stood: 0,
        });
        machine.unread = closed.unread;
        let Some(asker) = &mut machine.asker else { return };
        let due = machine.next.is_some_and(|next| last || now >= next);
        if asker.is_asked() || !due {
            return;
        }
        let observed = now.saturating_sub(started);
        asker.ask(Question {
            budget: (observed / SPARED).saturating_sub(machine.stood),
            java: closed.jvm.and_then(feature),
            options: closed
                .jvm
                .filter(|jvm| jvm.version.is_some())
                .map(|jvm| jvm.options.clone()),
        });
        machine.next = Some(now.saturating_add(TRY_AGAIN.max(observed / RARELY)));
    }

    /// What has been said since the last time.
    pub(super) fn take(&mut self) -> Vec<Dumped> {
        self.said(Instant::now())
    }

    /// The same for the last time: who has been asked is waited for a moment, and then left.
    pub(super) fn take_last(&mut self) -> Vec<Dumped> {
        self.said(Instant::now() + LAST)
    }

    fn said(&mut self, until: Instant) -> Vec<Dumped> {
        let mut said = Vec::new();
        for (pid, machine) in &mut self.machines {
            let Some(asker) = &mut machine.asker else { continue };
            if let Some(outcome) = asker.answer(until) {
                said.extend(machine.learns(*pid, outcome));
            }
        }
        said
    }

    /// What each was asked for.
    pub(super) fn made(&self, pid: u32) -> Vec<JvmDump> {
        let machine = self.machines.get(&pid);
        machine.map(|machine| machine.made.clone()).unwrap_or_default()
    }

    /// What could not be had, and why.
    pub(super) fn not_measured(&self) -> Vec<NotMeasured> {
        let silent = self
            .machines
            .iter()
            .filter(|(_, machine)| machine.made.is_empty());
        silent
            .map(|(pid, machine)| machine.missing(*pid, self.ask))
            .collect()
    }
}

impl Drop for Dumps {
    /// Whoever still asks puts away what it has put into the machine's `/tmp`.
    fn drop(&mut self) {
        let machines = self.machines.values_mut();
        machines
            .filter_map(|machine| machine.asker.as_mut())
            .for_each(Asker::leave_it);
        self.said(Instant::now() + LAST);
    }
}

impl Machine {
    fn learns(&mut self, pid: u32, outcome: Outcome) -> Option<Dumped> {
        match outcome {
            Outcome::NobodyWaits => None,
            Outcome::Refused(Refused::Gone) if self.refused.is_some() => None,
            Outcome::Refused(refused) => {
                if !refused.may_pass() {
                    self.next = None;
                }
                self.refused = Some(refused);
                None
            }
            Outcome::Received(ReceivedDump {
                from,
                to,
                count,
                threads,
            }) => {
                let pause = to.saturating_sub(from);
                self.stood = self.stood.saturating_add(pause);
                self.made.push(JvmDump {
                    pause,
                    threads: count,
                    why: format!(
                        "a thread waited, and its structures could not be read: {}",
                        self.unread
                    ),
                });
                Some(Dumped {
                    pid,
                    from,
                    to,
                    threads,
                })
            }
        }
    }

    fn missing(&self, pid: u32, ask: Ask) -> NotMeasured {
        let asked = self.asker.as_ref().is_some_and(Asker::is_asked);
        let (why, fix) = match (&self.refused, ask) {
            (_, Ask::Never) => (
                "it was not asked for a thread dump, by --jvm-attach never".to_owned(),
                "leave out --jvm-attach never: a dump stops it for a thousandth of the time at most"
                    .to_owned(),
            ),
            (Some(refused), _) => (
                format!("it was not asked for a thread dump: {refused}"),
                refused.fix(pid),
            ),
            (None, _) if asked => (
                "it has not answered yet".to_owned(),
                "observe for longer, for instance with attach -d 10".to_owned(),
            ),
            (None, _) => (
                "no thread of the program was observed in a wait, so holdup did not ask for a thread dump"
                    .to_owned(),
                "none is needed for causes".to_owned(),
            ),
        };
        NotMeasured {
            what: format!("Java frames and locks of process {pid}"),
            why: format!("its structures could not be read ({}), and {why}", self.unread),
            fix,
        }
    }
}

/// Java's feature version: 17 of `17.0.15`, 8 of `1.8.0_402`.
fn feature(jvm: &Jvm) -> Option<u32> {
    let mut numbers = jvm.version.as_deref()?.split(|c: char| !c.is_ascii_digit());
    let first = numbers.next()?.parse().ok()?;
    match first {
        1 => numbers.next()?.parse().ok(),
        feature => Some(feature),
    }
}

/// Whether a thread is one whose waits are nobody's trouble.
fn is_machines(name: &str) -> bool {
    is_own_thread(name) || AT_REST.iter().any(|begins| name.starts_with(begins))
}

/// Threads of every machine that wait for as long as it runs.
const AT_REST: [&str; 5] = [
    "Reference Handl",
    "Finalizer",
    "Common-Cleaner",
    "Notification Th",
    "Attach Listener",
];

#[cfg(test)]
mod tests {
    use super::{Ask, Closed, Dumps, Machine, Outcome, ReceivedDump, feature};
    use holdup_evidence::Jvm;
    use holdup_jvm::Unread;
    use holdup_jvm::attach::Refused;

    fn machine() -> Machine {
        Machine {
            asker: None,
            unread: Unread::NoTables,
            made: Vec::new(),
            refused: None,
            next: Some(0),
            stood: 0,
        }
    }

    #[test]
    fn a_version_has_a_feature_number() {
        let of = |version: &str| {
            feature(&Jvm {
                version: Some(version.to_owned()),
                ..Jvm::default()
            })
        };
        assert_eq!(
            [of("17.0.15"), of("25"), of("1.8.0_402")],
            [Some(17), Some(25), Some(8)]
        );
        assert_eq!([of("x"), of("")], [None, None]);
    }

    #[test]
    fn every_dump_is_told_with_its_pause() {
        let mut machine = machine();
        let outcome = Outcome::Received(ReceivedDump {
            from: 100,
            to: 400,
            count: 30,
            threads: Vec::new(),
        });
        let dumped = machine.learns(7, outcome).unwrap();
        assert_eq!((dumped.pid, dumped.from, dumped.to), (7, 100, 400));
        assert_eq!(
            (machine.made[0].pause, machine.made[0].threads, machine.stood),
            (300, 30, 300)
        );
        assert!(
            machine.made[0].why.contains("does not describe them"),
            "{:?}",
            machine.made
        );
    }

    #[test]
    fn who_can_not_answer_is_not_asked_again_unless_that_may_pass() {
        let mut machine = machine();
        machine.learns(7, Outcome::Refused(Refused::Stopped));
        assert_eq!(machine.next, Some(0));
        let missing = machine.missing(7, Ask::LastResort);
        assert!(missing.why.contains("it is stopped"), "{missing:?}");
        assert!(missing.fix.contains("kill -CONT 7"), "{missing:?}");
        // That it is gone by the end is no news.
        machine.learns(7, Outcome::Refused(Refused::Gone));
        assert_eq!(machine.refused, Some(Refused::Stopped));
        machine.learns(7, Outcome::Refused(Refused::Disabled));
        assert_eq!(machine.next, None);
    }

    #[test]
    fn never_means_never_and_is_said() {
        let mut dumps = Dumps::new(Ask::Never);
        let closed = Closed {
            pid: 7,
            unread: Unread::NoMemory,
            jvm: None,
        };
        dumps.consider(&closed, 0, u64::MAX, true);
        assert!(dumps.machines[&7].asker.is_none());
        assert!(dumps.take_last().is_empty() && dumps.made(7).is_empty());
        let missing = &dumps.not_measured()[0];
        assert!(missing.why.contains("--jvm-attach never"), "{missing:?}");
        assert!(missing.why.contains("its memory may not be read"), "{missing:?}");
    }
}
