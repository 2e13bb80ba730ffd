//! A run as rules ask about it: waits by cause, what they cost, what could not be determined.
//!
//! In: [`Attributed`] and [`SystemFacts`]. Out: [`Waits`], never empty, whose cost is measured against the run's
//! critical path.

use super::calls::happens_in;
use super::{ALWAYS, FLOOR, say};
use holdup_evidence::{Cause, Ns, Observed, SystemFacts};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{
    Attributed, AttributedWait, Holder, How, HowKnown, ThreadName, error_together,
};
use holdup_model::connections::TcpSeen;
use holdup_model::finding::Verdict;
use std::collections::BTreeSet;

/// What rules judge.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The run, attributed.
    pub attributed: &'a Attributed,
    /// The machine.
    pub facts: &'a SystemFacts,
    /// What artefacts show; `None` of a live run.
    pub observed: Option<&'a Observed>,
    /// Whether the elapsed time is that of the boot that the artefacts tell of: then what they prove of it has a length.
    pub boot: bool,
    /// Whether it is of all that ran on a machine, and nobody has named what to look at.
    pub machine: bool,
    /// Whether shares are those of the observed time rather than of all threads': of a machine, for rules whose finding is trouble if one
    /// thread stands so.
    pub of_one_thread: bool,
}

impl<'a> Run<'a> {
    /// A run and the machine it ran on.
    #[must_use]
    pub fn new(attributed: &'a Attributed, facts: &'a SystemFacts) -> Run<'a> {
        Run {
            attributed,
            facts,
            observed: None,
            boot: false,
            machine: false,
            of_one_thread: false,
        }
    }

    /// All that ran on a machine.
    #[must_use]
    pub fn of_machine(attributed: &'a Attributed, facts: &'a SystemFacts) -> Run<'a> {
        Run {
            machine: true,
            ..Run::new(attributed, facts)
        }
    }

    /// What artefacts show, and what attribution made of the calls in them.
    #[must_use]
    pub fn of_artefacts(
        attributed: &'a Attributed,
        facts: &'a SystemFacts,
        observed: &'a Observed,
    ) -> Run<'a> {
        Run {
            observed: Some(observed),
            ..Run::new(attributed, facts)
        }
    }

    /// What artefacts show of a boot, whose length is the elapsed time.
    #[must_use]
    pub fn of_boot(attributed: &'a Attributed, facts: &'a SystemFacts, observed: &'a Observed) -> Run<'a> {
        Run {
            boot: true,
            ..Run::of_artefacts(attributed, facts, observed)
        }
    }

    /// A time as a share of the elapsed time, 0..1.
    #[must_use]
    pub fn share(&self, ns: Ns) -> f64 {
        if self.attributed.elapsed == 0 {
            return 0.0;
        }
        ns as f64 / self.attributed.elapsed as f64
    }

    /// Whether a cost is worth speaking of: at least the share `from`, and long enough unless it is most of the run.
    #[must_use]
    pub fn matters(&self, ns: Ns, from: f64) -> bool {
        let share = match self.of_one_thread && self.attributed.wall > 0 {
            true => ns as f64 / self.attributed.wall as f64,
            false => self.share(ns),
        };
        // Of a server that is idle the few microseconds in which it is not are no matter.
        share >= from && (ns >= FLOOR || share > ALWAYS && !self.attributed.of_threads)
    }

    /// The elapsed time without what went by in queues for a CPU, in nanoseconds.
    #[must_use]
    pub fn without_queueing(&self) -> Ns {
        self.attributed
            .elapsed
            .saturating_sub(self.path(Cause::SchedRunqueue))
    }

    /// A time as a share of [`Run::without_queueing`], 0..1: what it would be on a machine with nothing else to do.
    #[must_use]
    pub fn share_of_own(&self, ns: Ns) -> f64 {
        match self.without_queueing() {
            0 => 0.0,
            own => (ns as f64 / own as f64).min(1.0),
        }
    }

    /// As [`Run::matters`], of the time without queueing: what a program does on a CPU, or waits for others that do,
    /// is a small part of the elapsed time on a machine that is busy with others, and is no smaller trouble for that.
    #[must_use]
    pub fn matters_without_queueing(&self, ns: Ns, from: f64) -> bool {
        ns >= FLOOR && self.share_of_own(ns) >= from
    }

    /// All waits that satisfy `which`; `None` when there are none.
    #[must_use]
    pub fn waits(&self, which: impl Fn(&AttributedWait) -> bool) -> Option<Waits<'a>> {
        Waits::new(self.attributed.waits.iter().filter(|wait| which(wait)), *self)
    }

    /// What a wait costs the run: what the path says, or, of a long wait for a peer of the run, what the path spent
    /// with that peer; of a wait for an interpreter's lock, what the threads could do side by side; of a thread that others stand still
    /// for, what those cost; of a deadlock and of a lock that nobody can let go, all of it: nothing that the path did meanwhile could have
    /// ended it.
    #[must_use]
    pub fn cost(&self, wait: &AttributedWait) -> Ns {
        let stood = if wait.deadlock || wait.orphaned.is_some() {
            wait.ns.min(self.attributed.elapsed)
        } else {
            0
        };
        wait.cost_ns()
            .max(self.awaited(wait))
            .max(self.taking_turns(wait))
            .max(self.looked_for(wait))
            .max(self.stood_still_for(wait))
            .max(stood)
    }

    /// Of a blocked thread that a virtual machine's others stand still for: what the path spent with those others while it was so
    /// blocked: it stays with them where it can't go on to the one that stops them.
    fn stood_still_for(&self, wait: &AttributedWait) -> Ns {
        let stops = |cause: Cause| matches!(cause, Cause::RuntimeSafepoint | Cause::RuntimeGc);
        let stayed = self.path(Cause::RuntimeSafepoint) > 0 || self.path(Cause::RuntimeGc) > 0;
        if !stayed || wait.cause.on_cpu() || wait.cause == Cause::SchedRunqueue || stops(wait.cause) {
            return 0;
        }
        let (pid, tid) = (wait.asker.name.pid, wait.asker.name.tid);
        let still: Ns = self
            .attributed
            .waits
            .iter()
            .filter(|row| stops(row.cause))
            .filter_map(|row| {
                let holder = row.holders.first()?;
                let it = holder.name.pid == pid && holder.name.tid == tid && holder.doing == Some(wait.cause);
                it.then(|| row.path_ns.min(holder.ns))
            })
            .sum();
        if still == 0 {
            return 0;
        }
        // It stands in several places, and the others stood still once.
        let of_cause = |row: &&AttributedWait| {
            let asker = &row.asker.name;
            (asker.pid, asker.tid, row.cause) == (pid, tid, wait.cause)
        };
        let all: Ns = self
            .attributed
            .waits
            .iter()
            .filter(of_cause)
            .map(|row| row.ns)
            .sum();
        (u128::from(still.min(all)) * u128::from(wait.ns) / u128::from(all.max(1))) as Ns
    }

    /// Of a wait for a name by one of several threads: how long another of its process looked again and again whether it was there,
    /// by polls that only the process itself could have ended. Clients have a thread of its own ask for names so.
    fn looked_for(&self, wait: &AttributedWait) -> Ns {
        if wait.cause != Cause::NetDns {
            return 0;
        }
        let looks = |row: &&AttributedWait| {
            let polls = system_calls::is_named(row.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll);
            let (own, other) = (&row.asker.name, &wait.asker.name);
            polls && row.cause == Cause::TimerSleep && own.pid == other.pid && own.tid != other.tid
        };
        let looking = self.attributed.waits.iter().filter(looks).map(|row| row.path_ns);
        looking.fold(0, Ns::saturating_add).min(wait.ns)
    }

    /// Of a wait for an interpreter's lock: its part of what the run would save if the threads did not take turns.
    ///
    /// One of them runs at any time, and the path stays with it: on the path nobody waits. Of N threads that compute
    /// all the time each waits for N - 1 parts of N, and side by side they would need one part. So it is their waiting
    /// divided by their number: an upper bound, reached with as many free CPUs. A process whose code is not the most of
    /// the path delays nobody.
    fn taking_turns(&self, wait: &AttributedWait) -> Ns {
        if wait.cause != Cause::RuntimeInterpreter {
            return 0;
        }
        let pid = wait.asker.name.pid;
        let of_process = || {
            let rows = self.attributed.waits.iter();
            rows.filter(move |row| row.asker.name.pid == pid)
        };
        let running = of_process()
            .filter(|row| row.cause.on_cpu())
            .map(|row| row.path_ns);
        if running.fold(0, Ns::saturating_add).saturating_mul(2) < self.without_queueing() {
            return 0;
        }
        let waiters = of_process().filter(|row| row.cause == wait.cause);
        let mut tids: Vec<u32> = waiters.map(|row| row.asker.name.tid).collect();
        tids.sort_unstable();
        tids.dedup();
        wait.ns / (tids.len() as Ns).max(2)
    }

    /// Of a long wait for the other end of a pipe or socket: how much of the elapsed time went by with that end while
    /// this one can have waited for it.
    ///
    /// The path hands on only a wait through which it comes. Where the peer works to the end, the path comes through
    /// the waiter's last short wait, or not through the waiter at all, and stays with the peer before that: the long
    /// wait is off the path, although it is why the waiter could not begin. What it cost is at most its own length, at
    /// most what the path spent in the peer's process and what that waited for, and at most what the path left over
    /// for others than the waiter's own process.
    fn awaited(&self, wait: &AttributedWait) -> Ns {
        let peers = wait
            .holders
            .iter()
            .filter(|holder| matches!(holder.how_known, HowKnown::PipePeer | HowKnown::SocketPeer));
        let Some(peer) = peers.max_by_key(|holder| holder.ns) else {
            return 0;
        };
        let own = wait.asker.name.pid;
        if peer.name.pid == own || self.share(peer.ns) < ALWAYS {
            return 0;
        }
        let of_process = |pid, time: fn(&AttributedWait) -> Ns| {
            let rows = self.attributed.waits.iter();
            let times = rows.filter(|row| row.asker.name.pid == pid).map(time);
            times.fold(0, Ns::saturating_add)
        };
        let left = self
            .attributed
            .elapsed
            .saturating_sub(of_process(own, |row| row.path_ns));
        let with_peer = of_process(peer.name.pid, AttributedWait::cost_ns);
        peer.ns.min(with_peer).min(left)
    }

    /// All waits of one cause.
    #[must_use]
    pub fn of(&self, cause: Cause) -> Option<Waits<'a>> {
        self.waits(|wait| wait.cause == cause)
    }

    /// Time of the critical path under one cause.
    #[must_use]
    pub fn path(&self, cause: Cause) -> Ns {
        self.attributed.path.get(&cause).map_or(0, |tally| tally.ns)
    }

    /// The groups that matter by themselves; where none does although all together do, all together.
    #[must_use]
    pub fn worth(&self, waits: &Waits<'a>, groups: Vec<Waits<'a>>, from: f64) -> Vec<Waits<'a>> {
        let mut worth: Vec<Waits<'a>> = groups
            .into_iter()
            .filter(|group| self.matters(group.cost(), from))
            .collect();
        if worth.is_empty() {
            worth.push(waits.clone());
        }
        worth
    }

    /// The number that clears a rule about these causes.
    #[must_use]
    pub fn little(&self, causes: &[Cause]) -> String {
        let cost = self
            .waits(|wait| causes.contains(&wait.cause))
            .map_or(0, |waits| waits.cost());
        let ids: Vec<&str> = causes.iter().map(|cause| cause.id()).collect();
        if self.way_unknown() {
            let count: u64 = self.attributed.waits.iter().map(|wait| wait.count).sum();
            return format!("none of {count} waits of the trace is for {}", ids.join(", "));
        }
        if cost == 0 {
            return format!("{} took 0 % of the elapsed time", ids.join(", "));
        }
        let (cost_text, share) = (say::duration(cost), say::percent(self.share(cost)));
        format!("{} took {cost_text}, {share} of the elapsed time", ids.join(", "))
    }

    /// Whether the waits are of threads of whom nobody tells who waited for whom: an strace log that was begun in the
    /// middle of their lives. What they waited is reported, and what that cost the whole is not.
    fn way_unknown(&self) -> bool {
        let waits = &self.attributed.waits;
        self.observed.is_some() && !waits.is_empty() && waits.iter().all(|wait| self.cost(wait) == 0)
    }

    /// Of artefacts: what they do not tell of these causes, whose absence then proves nothing.
    #[must_use]
    pub fn untold(&self, causes: &[Cause]) -> Option<String> {
        self.observed?;
        // A trace of calls shows neither running nor what happens between calls.
        let between = |cause: &Cause| {
            let family = cause.id().split_once('.').map(|(family, _)| family);
            cause.on_cpu() || matches!(family, Some("sched" | "mem"))
        };
        if !causes.is_empty() && causes.iter().all(between) {
            return Some(
                "what threads did between their system calls: a profile of the CPU, or `holdup run`"
                    .to_owned(),
            );
        }
        let waits = self
            .waits(|wait| causes.contains(&wait.cause))
            .filter(|_| self.way_unknown())?;
        let longest = waits.iter().map(|wait| wait.max).max().unwrap_or(0);
        Some(format!(
            "what {} of {} together (the longest {}) cost the whole: the trace does not show which thread \
             waited for which. A trace from the beginning does: `strace -f -T -tt -yy COMMAND`",
            say::several(waits.count(), "wait"),
            say::duration(waits.own()),
            say::duration(longest)
        ))
    }

    /// What could hide these causes: unresolved time that is as long as a finding would need, in calls in which such
    /// waits happen.
    #[must_use]
    pub fn hidden(&self, causes: &[Cause], from: f64) -> Option<String> {
        let could = |wait: &AttributedWait| match (wait.cause, wait.call.as_deref()) {
            (Cause::Unknown, None) => true,
            // Who looks at nothing but what the kernel does looks at one call or another.
            (Cause::CpuKernel, None) => wait.why_unknown.is_some() && causes == [Cause::CpuKernel],
            (Cause::Unknown | Cause::PollWait, Some(call)) => {
                causes.iter().any(|cause| happens_in(*cause, call))
            }
            _ => false,
        };
        if causes
            .iter()
            .all(|cause| matches!(cause, Cause::Unknown | Cause::PollWait))
        {
            return None;
        }
        let waits = self
            .waits(could)
            .filter(|waits| self.matters(waits.cost(), from))?;
        let main = waits.main();
        let place = match (main.call.as_deref(), main.cause) {
            (Some(call), _) => format!("in {call}"),
            (None, Cause::CpuKernel) => "in the kernel".to_owned(),
            (None, _) => "outside any call".to_owned(),
        };
        let why = main
            .why_unknown
            .as_deref()
            .unwrap_or("there is no evidence of the reason");
        Some(format!(
            "the reason of {} {place}: {why}",
            say::duration(waits.cost())
        ))
    }
}

/// Waits that belong together: never empty, costliest first.
#[derive(Debug, Clone)]
pub struct Waits<'a> {
    /// With what each costs.
    list: Vec<(Ns, &'a AttributedWait)>,
    pub(super) run: Run<'a>,
}

impl<'a> Waits<'a> {
    fn new(list: impl Iterator<Item = &'a AttributedWait>, run: Run<'a>) -> Option<Waits<'a>> {
        Waits::costliest_first(list.map(|wait| (run.cost(wait), wait)).collect(), run)
    }

    // Apart from `new`: within it, the compiler would make a sort for each of a hundred kinds of iterators.
    fn costliest_first(mut list: Vec<(Ns, &'a AttributedWait)>, run: Run<'a>) -> Option<Waits<'a>> {
        list.sort_by_key(|(cost, wait)| std::cmp::Reverse((*cost, wait.ns)));
        (!list.is_empty()).then_some(Waits { list, run })
    }

    // Apart from `split`, for the same reason.
    fn costliest_group_first(groups: &mut [Waits<'a>]) {
        groups.sort_by_key(|group| std::cmp::Reverse(group.cost()));
    }

    /// Each of them, costliest first.
    pub fn iter(&self) -> impl Iterator<Item = &'a AttributedWait> + '_ {
        self.list.iter().map(|(_, wait)| *wait)
    }

    /// The costliest.
    #[must_use]
    pub fn main(&self) -> &'a AttributedWait {
        self.list[0].1
    }

    /// The cause of the costliest.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.main().cause
    }

    /// What they cost the run ([`Run::cost`]): of the elapsed time, on the path themselves or handed on. At most the
    /// elapsed time, since threads that wait for each other hand on the same stretch of it.
    #[must_use]
    pub fn cost(&self) -> Ns {
        let all = self.list.iter().map(|(cost, _)| *cost);
        all.fold(0, Ns::saturating_add).min(self.run.attributed.elapsed)
    }

    /// What is on the critical path itself.
    #[must_use]
    pub fn path(&self) -> Ns {
        self.sum(|wait| wait.path_ns)
    }

    /// Whether most of the cost was spent in other threads of the run, so that their own time is judged too.
    #[must_use]
    pub fn handed_on(&self) -> bool {
        self.cost().saturating_sub(self.path()) > self.path()
    }

    /// One standard error of the threads' own time, nanoseconds: 0 where it is exact.
    #[must_use]
    pub fn error(&self) -> Ns {
        let these: BTreeSet<*const AttributedWait> = self.iter().map(std::ptr::from_ref).collect();
        let all = self.run.attributed.waits.iter();
        let error =
            error_together(all.map(|wait| wait.uncertainty(these.contains(&std::ptr::from_ref(wait)))));
        error.min(self.own())
    }

    /// Whether figures of single waits, and how many there were, are estimates.
    #[must_use]
    pub fn estimated(&self) -> bool {
        let sampled = |wait: &AttributedWait| wait.how == How::Sampled && !wait.cause.on_cpu();
        !self.run.attributed.source.records_each_wait() && self.iter().any(sampled)
    }

    /// The threads' own time, on the path or not.
    #[must_use]
    pub fn own(&self) -> Ns {
        self.sum(|wait| wait.ns)
    }

    /// How often a thread blocked.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sum(|wait| wait.count)
    }

    /// How many ended because their time ran out.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.sum(|wait| wait.timed_out)
    }

    /// The one with the longest single wait.
    #[must_use]
    pub fn longest(&self) -> &'a AttributedWait {
        self.iter()
            .max_by_key(|wait| wait.max)
            .expect("waits are never empty")
    }

    /// Of event loops: how long the oldest connection or answer was outstanding, over all waits; 0 where that is not known.
    #[must_use]
    pub fn outstanding(&self) -> Ns {
        self.iter().map(|wait| wait.outstanding).max().unwrap_or(0)
    }

    /// Whether one had not ended when observation did.
    #[must_use]
    pub fn open(&self) -> bool {
        self.iter().any(|wait| wait.open)
    }

    /// Median of single waits: the median of each group's median, weighted by how often.
    #[must_use]
    pub fn median(&self) -> Ns {
        let mut medians: Vec<(Ns, u64)> = self.iter().map(|wait| (wait.p50, wait.count.max(1))).collect();
        medians.sort_unstable();
        let half = medians.iter().map(|(_, count)| count).sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let middle = medians.iter().find(|(_, count)| {
            seen += count;
            seen >= half
        });
        middle.map_or(0, |(median, _)| *median)
    }

    /// What the state of their TCP connections said.
    #[must_use]
    pub fn tcp(&self) -> TcpSeen {
        let mut all = TcpSeen::default();
        for seen in self.iter().filter_map(|wait| wait.tcp.as_ref()) {
            all.absorb(seen);
        }
        all
    }

    /// That nothing can be known by the state of their TCP connections, where most of the time was on such and none is known: who looks
    /// now and then does not see it.
    #[must_use]
    pub fn without_tcp(&self) -> Option<Verdict> {
        let over_tcp = |wait: &AttributedWait| {
            wait.resource.detail.protocol.as_deref() == Some("tcp") && wait.tcp.is_none()
        };
        let untold = self.only(over_tcp)?;
        (self.tcp().seen == 0 && untold.cost().saturating_mul(2) > self.cost()).then(|| {
            Verdict::CannotTell(
                "the state of these TCP connections: sock_diag shows it only for the network namespace of \
                 holdup, tracing shows all"
                    .to_owned(),
            )
        })
    }

    /// Those of which, by the state of their TCP connections, most of the time was of this kind.
    #[must_use]
    pub fn mostly(&self, of: impl Fn(&TcpSeen) -> Ns) -> Option<Waits<'a>> {
        self.only(|wait| {
            let seen = wait.tcp.as_ref();
            seen.is_some_and(|seen| of(seen).saturating_mul(2) > wait.ns)
        })
    }

    /// Those that satisfy `which`; `None` when none does.
    #[must_use]
    pub fn only(&self, which: impl Fn(&AttributedWait) -> bool) -> Option<Waits<'a>> {
        Waits::new(self.iter().filter(|wait| which(wait)), self.run)
    }

    /// Groups of equal `key`, costliest first.
    #[must_use]
    pub fn split<K: Ord>(&self, key: impl Fn(&'a AttributedWait) -> K) -> Vec<Waits<'a>> {
        let mut by_key: std::collections::BTreeMap<K, Vec<&'a AttributedWait>> = Default::default();
        for wait in self.iter() {
            by_key.entry(key(wait)).or_default().push(wait);
        }
        let mut groups: Vec<Waits<'a>> = by_key
            .into_values()
            .filter_map(|list| Waits::new(list.into_iter(), self.run))
            .collect();
        Waits::costliest_group_first(&mut groups);
        groups
    }

    /// Who was in the way, longest first; one entry a thread and way of knowing. A thread that has run several
    /// programs has the name under which it was in the way longest. The threads of a peer that did the same meanwhile are one:
    /// a server that takes a thread for each request.
    #[must_use]
    pub fn holders(&self) -> Vec<Holder> {
        let mut merged: Vec<Holder> = Vec::new();
        let mut all: Vec<&Holder> = self.iter().flat_map(|wait| &wait.holders).collect();
        all.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
        let same = |one: &ThreadName, other: &ThreadName| match (one.pid, one.tid) {
            (0, _) | (_, 0) => one == other,
            ids => ids == (other.pid, other.tid),
        };
        let one_peer = |one: &Holder, other: &Holder| {
            let peers = one.how_known == HowKnown::SocketPeer && one.name.pid == other.name.pid;
            peers && one.name.pid != 0 && one.doing == other.doing
        };
        for holder in all {
            let known = |h: &&mut Holder| {
                h.how_known == holder.how_known && (same(&h.name, &holder.name) || one_peer(h, holder))
            };
            match merged.iter_mut().find(known) {
                Some(same) => same.ns = same.ns.saturating_add(holder.ns),
                None => merged.push(holder.clone()),
            }
        }
        merged.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
        merged
    }

    fn sum(&self, of: impl Fn(&AttributedWait) -> u64) -> u64 {
        self.iter().map(of).fold(0, u64::saturating_add)
    }
}
