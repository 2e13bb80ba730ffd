//! A pipeline whose members all move on, as fast as the one that works.
//!
//! The problem: whoever feeds a compressor waits for room nearly all the time, and nothing is stuck. In: waits for one end of pipes, again and
//! again and never for long, and what their process moved meanwhile ([`Moved`](holdup_evidence::facts::Moved)). Out: who takes the time, and how
//! much goes through in a second.

use super::root::Root;
use super::{Run, Waits, duration, say, streams};
use holdup_evidence::Ns;
use holdup_model::finding::Remedy;

/// Waits that ended, from which data moves on.
const MIN_WAITS: u64 = 4;

/// In nanoseconds.
const SECOND: Ns = 1_000_000_000;

/// The longest pause of what moves on: one part of the observed time.
const PAUSES: Ns = 4;

/// A pipeline that moves on.
pub(super) struct Flow<'a> {
    root: Root<'a>,
    who: String,
    pid: u32,
    bytes: u64,
    elapsed: Ns,
    writes: bool,
    /// Whether most of the time goes to the one that works: the other one waits for it as long.
    pub(super) most: bool,
}

/// The pipeline that these waits are of, where whoever is at the end of their chain works: on a CPU or with a disk. `writes`: whether they are
/// for room.
pub(super) fn of<'a>(
    run: &Run<'a>,
    waits: &Waits<'a>,
    root: Option<Root<'a>>,
    writes: bool,
) -> Option<Flow<'a>> {
    let root = root.filter(Root::works)?;
    let elapsed = run.attributed.wall;
    let ended = waits.count().saturating_sub(u64::from(waits.open()));
    let moves_on = ended >= MIN_WAITS && waits.longest().max.saturating_mul(PAUSES) <= elapsed;
    let name = &waits.main().asker.name;
    let moved = run.facts.moved.iter().find(|one| one.pid == name.pid)?;
    let bytes = if writes { moved.written } else { moved.read };
    // Whoever is asked for something and waits for its log's reader does not merely move on slowly.
    let alone = !streams::clients_wait(run);
    (run.attributed.of_threads && alone && moves_on && bytes > 0).then(|| Flow {
        root,
        who: say::who(name),
        pid: name.pid,
        bytes,
        elapsed,
        writes,
        most: waits.own().saturating_mul(2) >= elapsed,
    })
}

impl Flow<'_> {
    /// In a sentence.
    pub(super) fn title(&self) -> String {
        let stands = self.root.stands();
        let works = stands.strip_prefix(": ").unwrap_or(&stands);
        let (what, did) = match self.writes {
            true => ("which feeds it", "written"),
            false => ("which reads from it", "read"),
        };
        let takes = match self.most {
            true => ", and is what takes the time",
            false => "",
        };
        format!(
            "{works}{takes}: {}, {what}, waits for it, and has {did} {} in {}, {} a second",
            self.who,
            say::bytes(self.bytes),
            duration(self.elapsed),
            say::bytes(self.a_second())
        )
    }

    fn a_second(&self) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(SECOND) / u128::from(self.elapsed.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }

    /// What can be done, first what is mostly right.
    pub(super) fn remedies(&self) -> [Remedy; 2] {
        let who = self.root.who();
        let alone = match self.most {
            true => ": the others wait for it alone",
            false => ", if that is too slow",
        };
        [
            Remedy::safe(format!(
                "wait, if {} a second is what it should do: all members move on",
                say::bytes(self.a_second())
            ))
            .with_command(format!(
                "grep char /proc/{}/io; sleep 5; grep char /proc/{}/io",
                self.pid, self.pid
            )),
            Remedy::safe(format!(
                "give {who} less to do, a better share of the CPUs or disk, or several threads{alone}"
            ))
            .with_command(format!("holdup attach -p {}", self.root.pid())),
        ]
    }
}
