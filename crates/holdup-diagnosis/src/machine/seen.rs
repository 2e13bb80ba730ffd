//! The same roots by the kernel's own tables, where no wait was observed: `holdup host`.
//!
//! In: which process waits for which. Out: roots, each with who waits behind it. A wait for a process that waits itself is followed on, as
//! far as it is sure that the one is because of the other. Circles end the way, and it has at most [`MAX_STEPS`] steps.

use holdup_evidence::Ns;
use holdup_evidence::observed::{Awaited, Doing, SeenProcess, SeenWait, Short};
use std::collections::{BTreeMap, HashMap};

/// Steps of a way.
const MAX_STEPS: usize = 16;

/// A process that is asked, and asks another one for that, does so at once: the later question is at most so much older than the first.
const PASSES_ON_NS: Ns = 200_000_000;

/// A wait from which somebody notices.
const MIN_LONGEST_NS: Ns = 1_000_000_000;

/// By what roots are one and the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A process that is stopped, held by a tracer or frozen.
    Halted(u32),
    /// A process that runs all the time, while requests to it wait for their turn.
    Busy(u32),
    /// A process that has something that others wait for.
    Has(u32),
    /// Something of which nobody knows who has it.
    Nobodys(String),
}

/// A process behind a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Behind<'a> {
    pub(crate) process: &'a SeenProcess,
    pub(crate) ns: Ns,
    pub(crate) directly: bool,
    /// How many others stand between it and the root.
    pub(crate) steps: usize,
}

/// A root.
#[derive(Debug, Clone)]
pub(crate) struct Root<'a> {
    pub(crate) key: Key,
    /// The process at the end.
    pub(crate) holder: Option<&'a SeenProcess>,
    /// What it has that is waited for; `None` of an answer alone.
    pub(crate) has: Option<&'a SeenWait>,
    /// What it waits for in turn.
    pub(crate) beyond: Option<&'a SeenWait>,
    /// What the last one on that way waits for.
    pub(crate) onward: Option<&'a SeenWait>,
    /// The longest way to it, from the one who waits on.
    pub(crate) way: Vec<&'a SeenWait>,
    pub(crate) behind: Vec<Behind<'a>>,
}

impl Root<'_> {
    /// The longest wait behind it.
    pub(crate) fn longest(&self) -> Ns {
        self.behind.iter().map(|one| one.ns).max().unwrap_or(0)
    }

    /// All waits behind it.
    pub(crate) fn held(&self) -> Ns {
        self.behind.iter().map(|one| one.ns).fold(0, Ns::saturating_add)
    }
}

/// Whether the holder has something until it lets go of it, rather than owing an answer that may be long in coming.
fn is_had(on: Awaited) -> bool {
    matches!(
        on,
        Awaited::FileLock
            | Awaited::Files
            | Awaited::SessionLock
            | Awaited::Names
            | Awaited::Room
            | Awaited::Cpu
            | Awaited::Memory
            | Awaited::Device
            | Awaited::TriedLock
            | Awaited::Frozen
            | Awaited::OwnPool
            | Awaited::Standby
    )
}

/// The roots that somebody waits behind for long enough, those with most waiting first.
pub(crate) fn of(waits: &[SeenWait]) -> Vec<Root<'_>> {
    let mut by_waiter: HashMap<u32, Vec<&SeenWait>> = HashMap::new();
    for wait in waits {
        by_waiter.entry(wait.waiter.pid).or_default().push(wait);
    }
    let mut roots: BTreeMap<Key, Root<'_>> = BTreeMap::new();
    for wait in waits {
        let way = way(wait, &by_waiter);
        let Some((key, at)) = end(&way) else { continue };
        let root = roots.entry(key.clone()).or_insert_with(|| Root {
            key,
            holder: None,
            has: None,
            beyond: None,
            onward: None,
            way: Vec::new(),
            behind: Vec::new(),
        });
        let last = way[at];
        // What is had says more of a root than that somebody asked it.
        if root.holder.is_none() || (is_had(last.on) && root.has.is_none()) {
            root.holder = last.holder.as_ref();
            root.beyond = way.get(at + 1).copied();
            root.onward = way.last().copied().filter(|_| way.len() > at + 1);
            root.onward = root.onward.or_else(|| of_client(last, &by_waiter));
        }
        // The longest way tells most of what lies between.
        if root.way.len() < way.len() {
            root.way.clone_from(&way);
        }
        if is_had(last.on) {
            root.has = root.has.or(Some(last));
        }
        join(&mut root.behind, wait, at);
    }
    let mut roots: Vec<Root<'_>> = roots.into_values().collect();
    // Requests that wait for their turn again and again are trouble however short each wait is.
    roots.retain(|root| root.longest() >= MIN_LONGEST_NS || matches!(root.key, Key::Busy(_)));
    roots.sort_by_key(|root| std::cmp::Reverse((root.behind.len(), root.held())));
    roots
}

/// What the client of a session waits for whose transaction is open meanwhile.
fn of_client<'a>(last: &SeenWait, by_waiter: &HashMap<u32, Vec<&'a SeenWait>>) -> Option<&'a SeenWait> {
    let session = last
        .holder
        .as_ref()
        .filter(|one| one.doing == Doing::IdleInTransaction)?;
    let waits = by_waiter.get(&session.client.as_ref()?.pid)?.iter().copied();
    let others = waits.filter(|wait| {
        wait.holder
            .as_ref()
            .is_none_or(|holder| holder.pid != session.pid)
    });
    others.max_by_key(|wait| (is_had(wait.on), wait.ns))
}

/// A server that owes answers, with who waits for them; nobody knows why.
#[derive(Debug, Clone)]
pub(crate) struct Unanswered<'a> {
    pub(crate) server: &'a SeenProcess,
    /// The wait for it, of those that asked it itself, that tells most.
    pub(crate) wait: &'a SeenWait,
    /// What it waits for on another machine.
    pub(crate) elsewhere: Option<&'a SeenWait>,
    pub(crate) behind: Vec<Behind<'a>>,
}

/// Servers that owe answers to clients that have come for them, or that have not even read the request, where no root is known. Those with
/// most waiting first.
pub(crate) fn unanswered(waits: &[SeenWait]) -> Vec<Unanswered<'_>> {
    let counts = |wait: &SeenWait| {
        let asks = matches!(&wait.short, Short::Answer(owed) if owed.came || owed.unread);
        asks && wait.ns >= MIN_LONGEST_NS
    };
    owed(waits, false, counts)
}

/// Servers that owe answers for at least as long as this, to whomever, where no root is known. Those with most waiting first.
pub(crate) fn owed_for(waits: &[SeenWait], ns: Ns) -> Vec<Unanswered<'_>> {
    owed(waits, true, |wait| wait.ns >= ns)
}

/// Servers that owe answers; only waits that count are begun from. `inferred`: waits of which it is not known that they are for this server are
/// followed too, by who has more to say of its end.
fn owed<'a>(
    waits: &'a [SeenWait],
    inferred: bool,
    counts: impl Fn(&SeenWait) -> bool,
) -> Vec<Unanswered<'a>> {
    let mut by_waiter: HashMap<u32, Vec<&SeenWait>> = HashMap::new();
    let is_inferred = |wait: &SeenWait| matches!(&wait.short, Short::Answer(owed) if owed.inferred);
    let waits = || waits.iter().filter(|wait| inferred || !is_inferred(wait));
    for wait in waits() {
        by_waiter.entry(wait.waiter.pid).or_default().push(wait);
    }
    let asks = |wait: &&SeenWait| wait.on == Awaited::Answer && counts(wait);
    let mut servers: BTreeMap<u32, Unanswered<'_>> = BTreeMap::new();
    for wait in waits().filter(asks) {
        let way = way(wait, &by_waiter);
        if end(&way).is_some() {
            continue;
        }
        let Some(mut last) = way.last().copied().filter(|last| last.on == Awaited::Answer) else {
            continue;
        };
        let elsewhere = Some(last).filter(|last| last.holder.is_none());
        let mut end = way.len() - 1;
        // The last process of this machine is the one to look at.
        if elsewhere.is_some() && end > 0 {
            end -= 1;
            last = way[end];
        }
        let Some(server) = last.holder.as_ref().filter(|_| last.on == Awaited::Answer) else {
            continue;
        };
        let known = servers.entry(server.pid).or_insert_with(|| Unanswered {
            server,
            wait: last,
            elsewhere,
            behind: Vec::new(),
        });
        let is_unread = |wait: &SeenWait| matches!(&wait.short, Short::Answer(owed) if owed.unread);
        if (is_unread(last), last.ns) > (is_unread(known.wait), known.wait.ns) {
            known.wait = last;
        }
        join(&mut known.behind, wait, end);
        // Whoever stands between is one of those who wait.
        for (steps, between) in way.iter().take(end + 1).skip(1).rev().enumerate() {
            join(&mut known.behind, between, steps);
        }
    }
    merge(&mut servers);
    let mut servers: Vec<Unanswered<'_>> = servers.into_values().collect();
    servers.sort_by_key(|one| std::cmp::Reverse((one.behind.len(), one.wait.ns)));
    servers
}

/// Clients of a server that waits itself wait for the same one, if they asked later than the longest of those that it has asked for.
fn merge(servers: &mut BTreeMap<u32, Unanswered<'_>>) {
    let pids: Vec<u32> = servers.keys().copied().collect();
    for pid in pids {
        let waits = |other: &&Unanswered<'_>| {
            other.server.pid != pid && other.behind.iter().any(|one| one.process.pid == pid)
        };
        let Some(of) = servers.values().find(waits).map(|other| other.server.pid) else {
            continue;
        };
        let Some(own) = servers.remove(&pid) else { continue };
        let Some(other) = servers.get_mut(&of) else {
            continue;
        };
        for one in own.behind {
            if one.process.pid != of
                && other
                    .behind
                    .iter()
                    .all(|known| known.process.pid != one.process.pid)
            {
                other.behind.push(Behind {
                    steps: one.steps + 1,
                    directly: false,
                    ..one
                });
            }
        }
    }
}

fn join<'a>(behind: &mut Vec<Behind<'a>>, wait: &'a SeenWait, steps: usize) {
    match behind.iter_mut().find(|one| one.process.pid == wait.waiter.pid) {
        Some(known) => {
            known.ns = known.ns.max(wait.ns);
            known.steps = known.steps.min(steps);
            known.directly = known.steps == 0;
        }
        None => behind.push(Behind {
            process: &wait.waiter,
            ns: wait.ns,
            directly: steps == 0,
            steps,
        }),
    }
}

/// From a wait on, as long as whoever is waited for waits for somebody else because of it.
fn way<'a>(first: &'a SeenWait, by_waiter: &HashMap<u32, Vec<&'a SeenWait>>) -> Vec<&'a SeenWait> {
    let mut way = vec![first];
    while let Some(holder) = way.last().and_then(|last| last.holder.as_ref()) {
        if holder.doing != Doing::Unknown || way.len() >= MAX_STEPS {
            break;
        }
        let last = way[way.len() - 1];
        let next = by_waiter.get(&holder.pid).into_iter().flatten();
        let next = next
            .filter(|next| passes_on(last, next))
            // What somebody has says more than that an answer is awaited, too; so does who is at the far end of what lies between.
            .max_by_key(|next| (is_had(next.on), next.on == Awaited::Peer, next.ns));
        let Some(next) = next.filter(|next| way.iter().all(|one| one.waiter.pid != next.waiter.pid)) else {
            break;
        };
        way.push(next);
    }
    way
}

/// Whether the one who owes this is kept from it by that wait. Who has a lock, and waits, does not let go of it. Who owes an answer may
/// have many clients: then it must have asked on their account, which is not before them.
fn passes_on(owed: &SeenWait, next: &SeenWait) -> bool {
    if !matches!(owed.on, Awaited::Answer | Awaited::Turn) {
        return true;
    }
    // One with a single thread answers nobody meanwhile, whoever asked first.
    if next.alone && is_had(next.on) {
        return true;
    }
    let not_before = next.ns <= owed.ns.saturating_add(PASSES_ON_NS);
    not_before
        && (!matches!(next.on, Awaited::Answer | Awaited::Turn) || next.ns.saturating_mul(2) >= owed.ns)
}

/// What stands at the end of a way, and the step before it. An answer that is awaited is no trouble by itself: only what is stopped, runs
/// all the time with requests before it, or has what others wait for.
fn end(way: &[&SeenWait]) -> Option<(Key, usize)> {
    let last = way.len().checked_sub(1)?;
    if let Some(holder) = way[last]
        .holder
        .as_ref()
        .filter(|holder| holder.doing.stands_still())
    {
        return Some((Key::Halted(holder.pid), last));
    }
    let busy = way[last].holder.as_ref();
    if let Some(busy) = busy.filter(|busy| way[last].on == Awaited::Turn && busy.doing == Doing::Running) {
        return Some((Key::Busy(busy.pid), last));
    }
    let at = way.iter().rposition(|step| is_had(step.on))?;
    let step = way[at];
    let key = match &step.holder {
        Some(holder) => Key::Has(holder.pid),
        None => Key::Nobodys(format!("{:?} {}", step.on, step.name)),
    };
    Some((key, at))
}

#[cfg(test)]
mod tests {
    use super::{Key, of, unanswered};
    use holdup_evidence::observed::{Awaited, Doing, Owed, SeenProcess, SeenWait, Short};

    const S: u64 = 1_000_000_000;

    fn process(pid: u32) -> SeenProcess {
        SeenProcess {
            pid,
            name: format!("p{pid}"),
            ..SeenProcess::default()
        }
    }

    fn wait(waiter: u32, on: Awaited, holder: u32, ns: u64) -> SeenWait {
        SeenWait {
            waiter: process(waiter),
            on,
            holder: (holder > 0).then(|| process(holder)),
            ns,
            ..SeenWait::default()
        }
    }

    fn stopped(mut wait: SeenWait) -> SeenWait {
        wait.holder.as_mut().unwrap().doing = Doing::Stopped;
        wait
    }

    /// Roots, and who is behind them, directly first.
    fn groups(waits: &[SeenWait]) -> Vec<(Key, Vec<(u32, bool)>)> {
        let of_root = |root: super::Root<'_>| {
            let behind = root
                .behind
                .iter()
                .map(|one| (one.process.pid, one.directly))
                .collect();
            (root.key, behind)
        };
        of(waits).into_iter().map(of_root).collect()
    }

    #[test]
    fn who_has_the_lock_and_waits_for_a_stopped_process_is_no_root() {
        let waits = [
            wait(2, Awaited::FileLock, 1, 9 * S),
            wait(3, Awaited::FileLock, 1, 9 * S),
            stopped(wait(1, Awaited::Answer, 7, 20 * S)),
        ];
        assert_eq!(
            groups(&waits),
            [(Key::Halted(7), vec![(2, false), (3, false), (1, true)])]
        );
    }

    #[test]
    fn a_lock_whose_holder_waits_for_an_ordinary_answer_is_the_root() {
        let waits = [
            wait(2, Awaited::FileLock, 1, 9 * S),
            wait(1, Awaited::Answer, 7, 20 * S),
        ];
        let roots = of(&waits);
        assert_eq!(roots.len(), 1);
        assert_eq!((&roots[0].key, roots[0].behind.len()), (&Key::Has(1), 1));
        assert_eq!(roots[0].beyond.unwrap().holder.as_ref().unwrap().pid, 7);
    }

    #[test]
    fn clients_of_clients_wait_behind_a_session_if_they_asked_before() {
        let waits = [
            wait(30, Awaited::SessionLock, 9, 10 * S),
            wait(20, Awaited::Answer, 30, 40 * S),
            wait(10, Awaited::Answer, 20, 40 * S + 3_000_000),
            // This one has asked the same proxy long before, for something else; that one asks another server.
            wait(11, Awaited::Answer, 20, 400 * S),
            wait(12, Awaited::Answer, 5, 40 * S),
        ];
        assert_eq!(
            groups(&waits),
            [(Key::Has(9), vec![(30, true), (20, false), (10, false)])]
        );
    }

    #[test]
    fn answers_alone_circles_and_short_waits_are_no_trouble() {
        assert!(
            groups(&[
                wait(1, Awaited::Answer, 2, 90 * S),
                wait(2, Awaited::Answer, 1, 90 * S)
            ])
            .is_empty()
        );
        assert!(groups(&[wait(1, Awaited::FileLock, 2, S / 2)]).is_empty());
        let circle = [
            wait(1, Awaited::FileLock, 2, 9 * S),
            wait(2, Awaited::FileLock, 1, 9 * S),
        ];
        assert_eq!(groups(&circle).len(), 2);
        let nobody = [
            wait(1, Awaited::Files, 0, 9 * S),
            wait(2, Awaited::Files, 0, 9 * S),
        ];
        assert_eq!(groups(&nobody).len(), 1);
    }

    #[test]
    fn who_waits_for_its_turn_and_who_waits_for_that_one_are_behind_a_server_that_runs_all_the_time() {
        let runs = |mut wait: SeenWait| {
            wait.holder.as_mut().unwrap().doing = Doing::Running;
            wait
        };
        let ms = S / 1000;
        let waits = [
            runs(wait(20, Awaited::Turn, 7, 400 * ms)),
            wait(10, Awaited::Answer, 20, 402 * ms),
            // This one's request was read: it is answered, or waits for work. That one asked long before.
            runs(wait(21, Awaited::Answer, 7, 900 * ms)),
            wait(11, Awaited::Answer, 20, 90 * S),
        ];
        assert_eq!(groups(&waits), [(Key::Busy(7), vec![(20, true), (10, false)])]);
    }

    #[test]
    fn who_waits_for_room_waits_for_the_last_one_who_does_not_read() {
        let alone = |wait: SeenWait| SeenWait { alone: true, ..wait };
        let waits = [
            alone(wait(20, Awaited::Room, 7, 10 * S)),
            alone(wait(21, Awaited::Room, 7, 10 * S)),
            wait(7, Awaited::Answer, 5, 11 * S),
            wait(7, Awaited::Room, 5, 10 * S),
            // It has asked a worker that could not answer any more; of one with several threads nobody knows.
            wait(30, Awaited::Answer, 20, 2 * S),
            wait(31, Awaited::Answer, 7, 2 * S),
        ];
        assert_eq!(
            groups(&waits),
            [(
                Key::Has(5),
                vec![(20, false), (21, false), (7, true), (30, false)]
            )]
        );
    }

    #[test]
    fn what_keeps_a_lock_for_so_long_is_found_behind_a_child() {
        let waits = [
            wait(2, Awaited::FileLock, 1, 9 * S),
            wait(1, Awaited::Child, 3, 9 * S),
            wait(3, Awaited::Answer, 7, 20 * S),
        ];
        let roots = of(&waits);
        assert_eq!((&roots[0].key, roots[0].behind.len()), (&Key::Has(1), 1));
        assert_eq!(roots[0].onward.unwrap().holder.as_ref().unwrap().pid, 7);
    }

    #[test]
    fn a_long_way_ends() {
        let waits: Vec<SeenWait> = (1..2000)
            .map(|pid| wait(pid, Awaited::FileLock, pid + 1, 2 * S))
            .collect();
        assert!(!of(&waits).is_empty());
    }

    #[test]
    fn who_has_come_for_an_answer_waits_for_the_last_one_that_owes_it() {
        let owed = |mut wait: SeenWait, came: bool| {
            wait.short = Short::Answer(Owed {
                came,
                ..Owed::default()
            });
            wait
        };
        let waits = [
            owed(wait(20, Awaited::Answer, 7, 4 * S), true),
            owed(wait(21, Awaited::Answer, 7, 5 * S), true),
            owed(wait(7, Awaited::Answer, 9, 4 * S), false),
            // It has asked later than the others that 7 has asked for.
            owed(wait(22, Awaited::Answer, 7, 2 * S), true),
            // It waits for whatever comes.
            owed(wait(30, Awaited::Answer, 8, 90 * S), false),
            // Of this one the root is known.
            owed(wait(40, Awaited::Answer, 41, 5 * S), true),
            wait(41, Awaited::FileLock, 42, 5 * S),
        ];
        let found = unanswered(&waits);
        assert_eq!(found.len(), 1);
        let mut behind: Vec<(u32, usize)> = (found[0].behind.iter())
            .map(|one| (one.process.pid, one.steps))
            .collect();
        behind.sort_unstable();
        assert_eq!(
            (found[0].server.pid, behind),
            (9, vec![(7, 0), (20, 1), (21, 1), (22, 1)])
        );
    }
}
