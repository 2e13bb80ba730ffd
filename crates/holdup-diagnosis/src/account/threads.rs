//! Where the threads of a dump stand: those in one place together, who waits for whose lock, deadlocks that it reports.

use super::values::parts;
use super::{Rank, Ranked};
use crate::rules::list::many_wait_in_one_place;
use crate::rules::percent;
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, Graph, dumps};
use holdup_evidence::observed::{LockRef, SnapshotKind};
use holdup_evidence::units::duration;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::go;
use std::collections::BTreeMap;

/// Places that are reported, those with most threads or the longest wait first.
const PLACES: usize = 3;

/// Threads that are named one by one.
const NAMED: usize = 3;

/// Threads that wait for locks without a name from which on they are reported together.
const MIN_LOCK_WAITERS: usize = 2;

/// Frames below the place that are reported with it.
const CALLERS: usize = 2;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    for dump in dumps(observed) {
        add_deadlocks(observed, &dump, all);
        add_locks(observed, &dump, all);
        add_lock_waiters(observed, &dump, all);
        add_places(observed, &dump, all);
    }
}

/// What this dump's program calls its threads.
fn noun(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Go => "goroutine",
        _ => "thread",
    }
}

fn counted(kind: SnapshotKind, count: usize) -> String {
    format!("{count} {}{}", noun(kind), if count == 1 { "" } else { "s" })
}

/// A thread by name, or by number.
fn called(seen: &DumpThread<'_>) -> String {
    let number = seen.thread.number.or(seen.thread.tid.map(u64::from));
    match (seen.thread.name.as_str(), number, seen.kind) {
        ("", Some(number), kind) => format!("{} {number}", noun(kind)),
        ("", None, kind) => format!("a {}", noun(kind)),
        (name, Some(number), SnapshotKind::Native) => format!("{name} (thread {number})"),
        (name, Some(number), SnapshotKind::Python | SnapshotKind::Dotnet) => format!("{name} ({number})"),
        (name, ..) => name.to_owned(),
    }
}

/// Where a thread stands: its own code's innermost frame, what it called, and who called it.
fn stands(seen: &DumpThread<'_>) -> String {
    let Some(top) = seen.frames.first().copied() else {
        return String::new();
    };
    let own = seen.asker().unwrap_or(top);
    let outside = seen.frames.iter().skip_while(|frame| **frame != own).skip(1);
    let mut callers: Vec<&str> = Vec::new();
    for frame in outside {
        if callers.last() != Some(frame) && callers.len() < CALLERS {
            callers.push(frame);
        }
    }
    // A function of an interpreter's own has no line: what called it says for what.
    let line_of = |frame: &str| frame.contains(':') || seen.kind != SnapshotKind::Python;
    let within = match seen.frames.get(1) {
        _ if own == top => String::new(),
        Some(caller) if !line_of(top) && line_of(caller) && *caller != own => {
            format!(" ({top}, called by {caller})")
        }
        _ => format!(" ({top})"),
    };
    let by = match callers.is_empty() {
        true => String::new(),
        false => format!(", called by {}", callers.join(" < ")),
    };
    // Whoever needs a class waits until its initialiser has ended.
    let mut initialisers = seen.frames.iter().filter(|frame| frame.contains("<clinit>"));
    let initialiser = initialisers
        .next()
        .map(|frame| format!(", within the class initialiser {frame}"));
    format!("{own}{within}{by}{}", initialiser.unwrap_or_default())
}

/// What a thread does, as a verb of one or of many.
fn does(seen: &DumpThread<'_>, many: bool) -> String {
    let be = if many { "are" } else { "is" };
    let s = if many { "" } else { "s" };
    match seen.doing {
        Doing::Waits(Cause::LockMonitor | Cause::LockFutex) => format!("wait{s} for a lock"),
        Doing::Waits(cause) => format!("{be} {}", cause.phrase()),
        Doing::WaitsForPool => format!("wait{s} for a free connection of a pool"),
        Doing::WaitsForTask if seen.joins() => format!("wait{s} for another thread to end (join)"),
        Doing::WaitsForTask => format!("wait{s} for the result of another thread's task"),
        Doing::WaitsUnknown => format!("wait{s}"),
        Doing::Runs => format!("run{s}"),
        Doing::Idle => format!("{} nothing to do", if many { "have" } else { "has" }),
        Doing::Unknown => format!("stand{s}"),
    }
}

/// Threads that wait for each other, by the dump's own words or by its locks.
fn add_deadlocks(observed: &Observed, dump: &Dump<'_>, all: &mut Vec<Ranked>) {
    let circles = Graph::of(dump).circles();
    let of_circle = |circle: &Vec<usize>| {
        circle
            .iter()
            .filter_map(|at| dump.threads.get(*at))
            .map(called)
            .collect()
    };
    let mut listed: Vec<Vec<String>> = circles.iter().map(of_circle).collect();
    if listed.is_empty() {
        listed.clone_from(&dump.snapshot.deadlocks);
    }
    for names in listed.into_iter().take(PLACES) {
        let text = format!("{} wait for each other's locks: a deadlock", parts(&names));
        all.push(Ranked::new(
            Rank::Stops,
            "deadlock",
            text,
            (observed, &dump.snapshot.quote),
        ));
    }
}

/// The lock for which most threads wait, and who has it.
fn add_locks(observed: &Observed, dump: &Dump<'_>, all: &mut Vec<Ranked>) {
    let graph = Graph::of(dump);
    let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut unheld: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, seen) in dump.threads.iter().enumerate() {
        let Some(lock) = &seen.thread.waits_for else {
            continue;
        };
        match (graph.holder(at), graph.root(at)) {
            (Some(_), Some(root)) => behind.entry(root).or_default().push(at),
            (None, _) if is_lock(seen) && !lock.id.is_empty() => unheld.entry(&lock.id).or_default().push(at),
            _ => {}
        }
    }
    let busy = busy(dump);
    let held = behind.into_iter().max_by_key(|(_, waiters)| waiters.len());
    if let Some((root, waiters)) = held
        && let (Some(holder), Some(first)) = (
            dump.threads.get(root),
            waiters.first().and_then(|at| dump.threads.get(*at)),
        )
    {
        let lock = first.thread.waits_for.as_ref().map(lock_name).unwrap_or_default();
        let who = match waiters.len() {
            1 => called(first),
            count => format!("{count} of {}", counted(dump.snapshot.kind, busy)),
        };
        let waits = if waiters.len() == 1 { "waits" } else { "wait" };
        let text = format!(
            "{who} {waits} for {lock}{}, held by {}, which {} in {}",
            waited(&dump.threads, &waiters),
            called(holder),
            does(holder, false),
            stands(holder)
        );
        let line = Ranked::new(
            Rank::Waits,
            called(holder),
            text,
            (observed, &holder.thread.quote),
        );
        all.push(line.share(waiters.len() as f64 / busy.max(1) as f64));
    }
    let alone = unheld.into_iter().max_by_key(|(_, waiters)| waiters.len());
    if let Some((_, waiters)) = alone
        && let Some(first) = longest(&dump.threads, &waiters)
    {
        let lock = first.thread.waits_for.as_ref().map(lock_name).unwrap_or_default();
        let who = match waiters.len() {
            1 => called(first),
            count => counted(dump.snapshot.kind, count),
        };
        let waits = if waiters.len() == 1 { "waits" } else { "wait" };
        let text = format!(
            "{who} {waits} for {lock}{}, a lock that another {} has or never gave back (the dump does not say which), in {}",
            waited(&dump.threads, &waiters),
            noun(dump.snapshot.kind),
            stands(first)
        );
        let line = Ranked::new(Rank::Waits, called(first), text, (observed, &first.thread.quote));
        all.push(line.share(waiters.len() as f64 / busy.max(1) as f64));
    }
}

/// The one of them that has waited longest; the first where nothing tells.
fn longest<'a, 'b>(threads: &'a [DumpThread<'b>], of: &[usize]) -> Option<&'a DumpThread<'b>> {
    let of = of.iter().rev().filter_map(|at| threads.get(*at));
    of.max_by_key(|seen| seen.thread.waited)
}

/// For how long they wait, from the shortest to the longest, where the runtime tells.
fn waited(threads: &[DumpThread<'_>], of: &[usize]) -> String {
    let each = || of.iter().filter_map(|at| threads.get(*at)?.thread.waited);
    match each().min().zip(each().max()) {
        None => String::new(),
        Some((shortest, longest)) if shortest == longest => format!(" for at least {}", duration(longest)),
        Some((shortest, longest)) => {
            format!(" for at least {} to {}", duration(shortest), duration(longest))
        }
    }
}

/// Threads that wait for locks of which the dump does not tell which: how many of all, where, and whether anything else goes on.
fn add_lock_waiters(observed: &Observed, dump: &Dump<'_>, all: &mut Vec<Ranked>) {
    let untold = |seen: &&DumpThread<'_>| {
        let lock = seen.thread.waits_for.as_ref();
        is_lock(seen) && lock.is_none_or(|lock| lock.id.is_empty())
    };
    let waiters: Vec<&DumpThread<'_>> = dump.threads.iter().filter(untold).collect();
    let Some(first) = waiters.first().filter(|_| waiters.len() >= MIN_LOCK_WAITERS) else {
        return;
    };
    let mut named: Vec<String> = waiters
        .iter()
        .take(NAMED)
        .map(|seen| format!("{} in {}", called(seen), stands(seen)))
        .collect();
    if waiters.len() > NAMED {
        named.push(format!("{} more", waiters.len() - NAMED));
    }
    let busy = busy(dump);
    // Whoever has the lock is one of them, or is not in the dump.
    let others = match waiters.len() == busy {
        true => ": nothing else goes on",
        false => "",
    };
    let text = format!(
        "{} of {} wait for locks{others} ({})",
        waiters.len(),
        counted(dump.snapshot.kind, busy),
        parts(&named)
    );
    let line = Ranked::new(Rank::Waits, "locks", text, (observed, &first.thread.quote));
    all.push(line.share(waiters.len() as f64 / busy.max(1) as f64));
}

/// Whether a thread wants a lock, and not a condition that somebody will signal.
fn is_lock(seen: &DumpThread<'_>) -> bool {
    matches!(seen.doing, Doing::Waits(Cause::LockMonitor | Cause::LockFutex))
}

fn lock_name(lock: &LockRef) -> String {
    match (lock.class.as_str(), lock.id.as_str()) {
        ("", "") => "a lock".to_owned(),
        ("", id) => format!("lock {id}"),
        (class, "") => format!("a {class}"),
        (class, id) => format!("{class} {id}"),
    }
}

/// Threads that are not without work.
fn busy(dump: &Dump<'_>) -> usize {
    let idle = |seen: &&DumpThread<'_>| seen.doing != Doing::Idle && !seen.frames.is_empty();
    dump.threads.iter().filter(idle).count()
}

/// Of a thread that waits for another one to end, or for its result: the only other one that has something to do. Of several any may be meant.
fn awaited(dump: &Dump<'_>, waiter: &DumpThread<'_>) -> String {
    if waiter.doing != Doing::WaitsForTask || dump.snapshot.kind == SnapshotKind::Go {
        return String::new();
    }
    let has_work = |seen: &&DumpThread<'_>| {
        !matches!(seen.doing, Doing::Idle | Doing::WaitsForTask) && !seen.frames.is_empty()
    };
    let mut others = dump.threads.iter().filter(has_work);
    match (others.next(), others.next()) {
        (Some(other), None) => format!(
            "; meanwhile {} {} in {}",
            called(other),
            does(other, false),
            stands(other)
        ),
        _ => String::new(),
    }
}

/// Where most threads stand.
fn add_places(observed: &Observed, dump: &Dump<'_>, all: &mut Vec<Ranked>) {
    let kind = dump.snapshot.kind;
    let busy = busy(dump);
    let mut places: BTreeMap<(&str, Doing), Vec<&DumpThread<'_>>> = BTreeMap::new();
    // Where nothing tells more of any thread, where it stands is what there is.
    let holds = |seen: &&DumpThread<'_>| !matches!(seen.doing, Doing::Idle | Doing::Unknown);
    let untold = !dump.threads.iter().any(|seen| holds(&seen));
    let stand = dump
        .threads
        .iter()
        .filter(|seen| (holds(seen) || untold && seen.doing == Doing::Unknown) && !seen.frames.is_empty());
    for seen in stand {
        let place = seen
            .asker()
            .or_else(|| seen.frames.first().copied())
            .unwrap_or_default();
        places.entry((place, seen.doing)).or_default().push(seen);
    }
    let mut places: Vec<Vec<&DumpThread<'_>>> = places.into_values().collect();
    let grade = |threads: &Vec<&DumpThread<'_>>| {
        let waited = threads.iter().filter_map(|seen| seen.thread.waited).max();
        // What somebody waits for comes before what runs, and before a sleep that is on purpose.
        let waits = match threads[0].doing {
            Doing::Waits(Cause::TimerSleep) => 1,
            // A goroutine that reads from a connection mostly waits for the next request.
            Doing::Waits(Cause::NetReceive | Cause::PollWait) if kind == SnapshotKind::Go => 1,
            Doing::Waits(_) | Doing::WaitsForPool => 4,
            Doing::WaitsForTask => 3,
            Doing::WaitsUnknown if go::sends(&threads[0].thread.words) => 3,
            // A wait with a limit is mostly for the next piece of work.
            Doing::WaitsUnknown
                if threads[0]
                    .frames
                    .first()
                    .is_some_and(|top| top.contains("timedwait")) =>
            {
                1
            }
            Doing::WaitsUnknown => 2,
            Doing::Runs => 1,
            Doing::Idle | Doing::Unknown => 0,
        };
        let many = threads.len() >= many_wait_in_one_place::MIN_THREADS && kind != SnapshotKind::Go;
        (many, waits, threads.len(), waited)
    };
    places.sort_by_key(|threads| std::cmp::Reverse(grade(threads)));
    for (at, threads) in places.iter().take(PLACES).enumerate() {
        let first = threads[0];
        let count = threads.len();
        let who = match count {
            1 => called(first),
            _ => {
                let mut names: Vec<String> = threads.iter().take(NAMED).map(|seen| called(seen)).collect();
                if count > NAMED {
                    names.push(format!("{} more", count - NAMED));
                }
                format!("{} of {} ({})", count, counted(kind, busy), parts(&names))
            }
        };
        let waited = threads.iter().filter_map(|seen| seen.thread.waited).max();
        let waited_words = waited.map(|waited| format!(" for at least {}", duration(waited)));
        let share = count as f64 / busy.max(1) as f64;
        let part = match count {
            1 => String::new(),
            _ => format!(", {} of those that are not idle", percent(share)),
        };
        let words = match first.thread.words.as_str() {
            "" => String::new(),
            words => format!(" ({words})"),
        };
        let text = format!(
            "{who} {}{words}{} in {}{part}",
            does(first, count > 1),
            waited_words.unwrap_or_default(),
            stands(first)
        ) + &awaited(dump, first);
        let waits = matches!(first.doing, Doing::Waits(cause) if cause != Cause::TimerSleep);
        let much =
            count >= many_wait_in_one_place::MIN_THREADS && (waits || first.doing == Doing::WaitsForPool);
        // Blocked for so long that its runtime tells how long.
        let long = waited.is_some() && grade(threads).1 >= 3;
        let rank = if much || long {
            Rank::Saturated
        } else {
            Rank::Largest
        };
        let line = Ranked::new(rank, called(first), text, (observed, &first.thread.quote));
        // Their order is that of what they wait for.
        all.push(if at == 0 { line.share(share) } else { line });
    }
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{LockRef, LockWait, Quote, SeenThread, Snapshot, SnapshotKind, State};

    fn dump(kind: SnapshotKind, threads: impl FnOnce(&mut Observed) -> Vec<SeenThread>) -> Observed {
        let mut observed = Observed::default();
        let threads = threads(&mut observed);
        observed.snapshots.push(Snapshot {
            threads,
            states: false,
            ..Snapshot::new(kind, Quote::default())
        });
        observed
    }

    #[test]
    fn waiters_are_told_with_the_one_that_has_the_lock_and_where_it_stands() {
        let observed = dump(SnapshotKind::Jvm, |observed| {
            let reads = observed.stacks.intern([
                "java.net.SocketInputStream.socketRead0(SocketInputStream.java)",
                "app.Mail.send(Mail.java:9)",
            ]);
            let enters = observed.stacks.intern(["app.Mail.lock(Mail.java:3)"]);
            let lock = |wait| LockRef {
                id: "0x1".to_owned(),
                class: "app.Mail".to_owned(),
                wait,
                owner: None,
            };
            let mut all = vec![SeenThread {
                name: "worker-3".to_owned(),
                state: State::Runnable,
                stack: Some(reads),
                holds: vec![lock(None)],
                ..SeenThread::default()
            }];
            all.extend((0..5).map(|number| SeenThread {
                name: format!("http-{number}"),
                state: State::Blocked,
                stack: Some(enters),
                waits_for: Some(lock(Some(LockWait::Enter))),
                ..SeenThread::default()
            }));
            all
        });
        let first = &account(&observed)[0].text;
        assert!(
            first.starts_with("5 of 6 threads wait for app.Mail 0x1, held by worker-3, which "),
            "{first}"
        );
        assert!(first.contains("app.Mail.send"), "{first}");
    }

    #[test]
    fn who_waits_for_another_thread_is_told_with_the_only_one_that_works() {
        let observed = |workers: u32| {
            dump(SnapshotKind::Python, |observed| {
                let joins = observed.stacks.intern([
                    "_wait_for_tstate_lock(threading.py:1169)",
                    "join(threading.py:1149)",
                    "close_all(/srv/app/importer.py:31)",
                ]);
                let writes = observed
                    .stacks
                    .intern(["push(/srv/app/bucket.py:77)", "run(threading.py:953)"]);
                let thread = |name: String, stack| SeenThread {
                    name,
                    stack: Some(stack),
                    ..SeenThread::default()
                };
                let mut all = vec![thread("MainThread".to_owned(), joins)];
                all.extend((0..workers).map(|number| thread(format!("upload-{number}"), writes)));
                all
            })
        };
        let all = |workers| {
            account(&observed(workers))
                .into_iter()
                .map(|one| one.text)
                .collect::<Vec<_>>()
        };
        let one = all(1);
        let main = one.iter().find(|text| text.starts_with("MainThread ")).unwrap();
        assert!(
            main.contains("for another thread to end (join) in close_all(/srv/app/importer.py:31)"),
            "{main}"
        );
        assert!(
            main.contains("; meanwhile upload-0 ") && main.contains("push(/srv/app/bucket.py:77)"),
            "{main}"
        );
        assert!(
            all(2).iter().all(|text| !text.contains("meanwhile")),
            "any of them may be meant"
        );
    }

    #[test]
    fn a_goroutine_is_told_with_its_minutes() {
        let observed = dump(SnapshotKind::Go, |observed| {
            let stack = observed.stacks.intern([
                "sync.runtime_Semacquire",
                "sync.(*WaitGroup).Wait",
                "etcd3.TestWatch",
                "testing.tRunner",
            ]);
            vec![SeenThread {
                number: Some(43),
                words: "semacquire".to_owned(),
                waited: Some(540_000_000_000),
                stack: Some(stack),
                ..SeenThread::default()
            }]
        });
        let first = &account(&observed)[0].text;
        assert!(first.starts_with("goroutine 43 "), "{first}");
        assert!(
            first.contains("for at least 9 min 0 s in etcd3.TestWatch"),
            "{first}"
        );
    }

    #[test]
    fn the_place_with_most_threads_is_first() {
        let observed = dump(SnapshotKind::Python, |observed| {
            let one = observed.stacks.intern([
                "broadcast (torch/distributed/distributed_c10d.py:1191)",
                "_aggregate_total_loss (engine.py:540)",
            ]);
            let other = observed
                .stacks
                .intern(["train (training.py:915)", "pretrain (training.py:187)"]);
            let thread = |number: u32, stack| SeenThread {
                name: "MainThread".to_owned(),
                tid: Some(number),
                state: State::Runnable,
                stack: Some(stack),
                ..SeenThread::default()
            };
            vec![
                thread(1, other),
                thread(2, one),
                thread(3, one),
                thread(4, one),
                thread(5, one),
            ]
        });
        let lines = account(&observed);
        assert!(
            lines[0].text.starts_with(
                "4 of 5 threads (MainThread (2), MainThread (3), MainThread (4) and 1 more) run in broadcast"
            ),
            "{}",
            lines[0].text
        );
        assert!(
            lines[1].text.contains("in train (training.py:915)"),
            "{}",
            lines[1].text
        );
    }
}
