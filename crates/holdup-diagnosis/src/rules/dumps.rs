//! The words of findings that rest on thread dumps: who, where, and what it holds.

use super::run::Run;
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, Graph};
use holdup_evidence::Cause;
use holdup_evidence::observed::{LockRef, LockWait, SnapshotKind};
use holdup_model::attributed::Address;
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::Evidence;

/// What a rule about the threads of a program lacks where there is no dump.
pub(super) const NO_DUMP: &str = "what the threads of the program do: a thread dump (`jcmd PID Thread.print -l`, `gdb -p PID -batch -ex 'thread \
     apply all bt'`, `py-spy dump --pid PID`, a Go program's goroutines)";

/// Locks that are named at most.
const LOCKS: usize = 4;

/// A thread by its name, or by its number where it has none.
pub(super) fn name(seen: &DumpThread<'_>) -> String {
    match (seen.thread.name.as_str(), seen.thread.number) {
        ("", Some(number)) => format!("thread #{number}"),
        ("", None) => "a thread without a name".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// Its ids: the runtime's and the kernel's, which `top -H` and `/proc` show.
pub(super) fn ids(seen: &DumpThread<'_>) -> String {
    let holds = |_: &u64| seen.kind == SnapshotKind::Jvm;
    let number = seen
        .thread
        .number
        .filter(holds)
        .map(|number| format!("#{number}"));
    // A JVM writes the kernel's number in hexadecimal digits, which no other tool shows.
    let tid = seen.thread.tid.map(|tid| match seen.kind {
        SnapshotKind::Jvm => format!("nid {tid:#x} is tid {tid}"),
        _ => format!("tid {tid}"),
    });
    let holds: Vec<String> = number.into_iter().chain(tid).collect();
    if holds.is_empty() {
        String::new()
    } else {
        format!(" ({})", holds.join(", "))
    }
}

/// What a thread does, in words.
pub(super) fn doing(doing: Doing) -> String {
    match doing {
        Doing::Runs => "runs".to_owned(),
        Doing::Waits(cause) => format!("is {} ({cause})", cause.phrase()),
        Doing::WaitsForPool => "waits for a free connection of a pool".to_owned(),
        Doing::WaitsForTask => "waits for the result of another thread's task".to_owned(),
        Doing::WaitsUnknown => "waits in a call whose peer the dump does not show".to_owned(),
        Doing::Idle => "has nothing to do".to_owned(),
        Doing::Unknown => "is in a state that the dump does not show".to_owned(),
    }
}

/// A thread, where it stands, and who asked.
pub(super) fn stands(run: &Run<'_>, seen: &DumpThread<'_>) -> Evidence {
    let top = seen.frames.first().copied().unwrap_or("no frame that has a name");
    let asker = seen.asker().filter(|asker| *asker != top);
    let asked = asker
        .map(|asker| format!(", asked by {asker}"))
        .unwrap_or_default();
    let text = format!("{}{} is in {top}{asked}", name(seen), ids(seen));
    Evidence::new(text, place(run, seen))
}

/// What a thread holds, so that others may wait for it.
pub(super) fn holds(run: &Run<'_>, seen: &DumpThread<'_>) -> Option<Evidence> {
    let held = &seen.thread.holds;
    // Streams lock themselves; nobody else waits for those.
    let locks: Vec<&LockRef> = held
        .iter()
        .filter(|lock| !lock.class.starts_with("java.io."))
        .collect();
    if locks.is_empty() {
        return None;
    }
    let named: Vec<String> = locks.iter().take(LOCKS).map(|lock| lock_name(lock)).collect();
    let more = match locks.len().saturating_sub(LOCKS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "it holds {}{more}: other threads that need {} wait too",
        named.join(", "),
        if locks.len() == 1 { "it" } else { "one of them" }
    );
    Some(Evidence::new(text, place(run, seen)))
}

/// A lock by class and address.
pub(super) fn lock_name(lock: &LockRef) -> String {
    match (lock.class.as_str(), lock.id.as_str()) {
        ("", "") if lock.wait == Some(LockWait::ClassInit) => "a class to be initialised".to_owned(),
        (class, id) if class.is_empty() || id.starts_with(class) => id.to_owned(),
        (class, id) => format!("{class} ({id})"),
    }
}

/// The lock that a thread waits for, as a resource.
pub(super) fn lock(lock: &LockRef) -> Resource {
    let name = if lock.class.is_empty() {
        lock_name(lock)
    } else {
        lock.class.clone()
    };
    let id = Some(lock.id.as_str()).filter(|id| !id.is_empty());
    Resource::named(ResourceKind::Lock, name).with(|facts| facts.address = id.map(Address::from))
}

/// Who asked.
pub(super) fn asker(seen: &DumpThread<'_>) -> Asker {
    Asker {
        name: ThreadName {
            pid: seen.thread.pid.unwrap_or(0),
            tid: seen.thread.tid.unwrap_or(0),
            process: program(seen).to_owned(),
            thread: name(seen),
        },
        frame: seen.asker().map(str::to_owned),
        ..Asker::default()
    }
}

/// The program whose thread it is, as far as its dump tells.
pub(super) fn program<'a>(seen: &DumpThread<'a>) -> &'a str {
    match seen.kind {
        SnapshotKind::Jvm => "java",
        _ => seen.program.unwrap_or_default(),
    }
}

/// What this dump's program calls its threads.
pub(super) fn threads(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Go => "goroutines",
        _ => "threads",
    }
}

/// The cause of a wait for a lock of this dump's program.
pub(super) fn lock_cause(kind: SnapshotKind) -> Cause {
    match kind {
        SnapshotKind::Jvm => Cause::LockMonitor,
        _ => Cause::LockFutex,
    }
}

/// How to find who has a lock, where the dump does not tell.
pub(super) fn who_holds(kind: SnapshotKind, lock: &LockRef) -> String {
    match kind {
        SnapshotKind::Native => format!(
            "find the holder in gdb: `print ((pthread_mutex_t *) {})->__data.__owner` prints its thread id \
             (LWP in `info threads`); a reader-writer lock has the writer in `__cur_writer`",
            lock.id
        ),
        SnapshotKind::Go => "find the holder: a Go mutex does not store it, so look for a goroutine that is \
         past the code that takes this lock"
            .to_owned(),
        SnapshotKind::Dotnet => {
            "find the holder: `syncblk` in `dotnet-dump analyze` lists each lock that is held, with \
         the thread that holds it"
                .to_owned()
        }
        SnapshotKind::Ruby => {
            "find the holder: look for a thread that is past the code that takes this lock".to_owned()
        }
        _ => "find the holder: `jcmd PID Thread.print -l` names the locks of platform threads, but not of \
         virtual threads: for those, look for a thread that is past the code that takes this lock"
            .to_owned(),
    }
}

/// Whether a thread of a JVM waits until another notifies it. It has given up the one monitor that it waits on, and keeps the others: who
/// is to notify it may be among those who wait for them.
pub(super) fn awaits_notice(holder: &DumpThread<'_>) -> bool {
    holder.kind == SnapshotKind::Jvm
        && holder
            .frames
            .first()
            .is_some_and(|top| top.starts_with("java.lang.Object.wait"))
}

/// Whether a thread waits for a lock that somebody has.
pub(super) fn wants_lock(seen: &DumpThread<'_>) -> bool {
    seen.doing == Doing::Waits(lock_cause(seen.kind))
}

/// Where a thread was read.
pub(super) fn place(run: &Run<'_>, seen: &DumpThread<'_>) -> String {
    match run.observed.map(|observed| observed.place(&seen.thread.quote)) {
        Some(place) if !place.is_empty() => place,
        _ => "a thread dump".to_owned(),
    }
}

/// How many threads wait, behind this one's locks, directly or through others.
pub(super) fn behind(dump: &Dump<'_>, graph: &Graph, root: usize) -> usize {
    (0..dump.threads.len())
        .filter(|place| graph.root(*place) == Some(root))
        .count()
}
