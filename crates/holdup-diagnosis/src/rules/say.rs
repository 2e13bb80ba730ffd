//! The words that rules share: lengths, shares, names of threads, and evidence that most findings have.
//!
//! Names come from observed programs and are passed on as they are; views make them printable.

use super::{Run, Waits, clock_of};
use holdup_attribution::attribution::choose;
pub(crate) use holdup_evidence::units::bytes;
pub use holdup_evidence::units::{duration, share as percent};
use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::cpp;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, Link, Resource, ResourceKind, ThreadName};
use holdup_model::finding::Evidence;

/// Source of times: who left which CPU when, and who woke it.
pub(super) const SCHEDULER: &str = "sched_switch and sched_waking";

/// `1 wait`, `12 waits`, `2 stretches`.
pub(crate) fn several(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ if one.ends_with("ch") || one.ends_with('s') => format!("{count} {one}es"),
        _ => format!("{count} {one}s"),
    }
}

/// How many of the waits ended because their time ran out.
pub(super) fn ran_out(timed_out: u64, count: u64) -> String {
    match (timed_out, count) {
        (1, 1) => "it timed out".to_owned(),
        (all, count) if all == count => format!("all {count} timed out"),
        (some, count) => format!("{some} of {} timed out", several(count, "wait")),
    }
}

/// How long an event loop had something outstanding, where that is longer than each of its waits. `what`: "a connection".
pub(super) fn outstanding(waits: &Waits<'_>, what: &str) -> Option<Evidence> {
    let longest = waits.outstanding();
    (longest > waits.longest().max).then(|| {
        let (length, count) = (duration(longest), several(waits.count(), "wait"));
        Evidence::new(
            format!("{what} was outstanding for {length}, over {count} of the event loop"),
            SCHEDULER,
        )
    })
}

/// A thread's process, and its own name where that differs: `nginx`, `java/GC Thread#0`.
pub(super) fn who(name: &ThreadName) -> String {
    match (name.process.as_str(), name.thread.as_str()) {
        ("", "") => format!("process {}", name.pid),
        ("", thread) => thread.to_owned(),
        (process, thread) if thread.is_empty() || thread == process => process.to_owned(),
        (process, thread) => format!("{process}/{thread}"),
    }
}

/// The same with the process id.
pub(super) fn who_with_pid(name: &ThreadName) -> String {
    match name.pid {
        0 => who(name),
        pid if name.process.is_empty() && name.thread.is_empty() => format!("process {pid}"),
        pid => format!("{} (pid {pid})", who(name)),
    }
}

/// A thread's process by what a person knows: of an interpreter its script, with the process id, since others may have the same.
pub(super) fn program(run: &Run<'_>, name: &ThreadName) -> String {
    match script(run, name.pid).filter(|script| script.starts_with(name.process.as_str())) {
        Some(script) => format!("{script} (pid {})", name.pid),
        None => who(name),
    }
}

/// What an interpreter interprets, with its own name: `python3 app.py`.
pub(super) fn script<'a>(run: &Run<'a>, pid: u32) -> Option<&'a str> {
    let mut programs = run.facts.programs.iter();
    programs.find(|one| one.pid == pid).map(|one| one.name.as_str())
}

/// A name, or what to say when there is none.
pub(super) fn name_or<'a>(name: &'a str, otherwise: &'a str) -> &'a str {
    if name.is_empty() { otherwise } else { name }
}

/// Our own words at the beginning of a sentence. Names of programs and paths stay as they are.
pub(super) fn capital(words: &str) -> String {
    match words.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => words.to_owned(),
    }
}

/// A string as one word of a shell command, whatever it contains.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// First evidence of most findings: how often, how long, in which call.
pub(super) fn how_long(waits: &Waits<'_>) -> Evidence {
    let main = waits.main();
    let on_cpu = main.cause.on_cpu();
    // Of a mixture the costliest call would stand for the count of all.
    let mixed = waits.iter().any(|wait| wait.call != main.call);
    let call = main
        .call
        .as_deref()
        .map(|call| format!("{} in {call}", if mixed { ", mostly" } else { "" }))
        .unwrap_or_default();
    let count = several(waits.count().max(1), if on_cpu { "stretch" } else { "wait" });
    let own = length(waits);
    let longest = waits.longest();
    let text = match waits.count() {
        0 | 1 if longest.open && longest.max > longest.ns => format!(
            "{count}{call} that has lasted for at least {} and is not over, {own} of it observed",
            duration(longest.max)
        ),
        0 | 1 => format!("{count}{call} of {own}"),
        _ if on_cpu => format!("{count}{call}, {own} in total"),
        _ if let Some(standing) = standing(waits) => format!("{count}{call}, {standing}"),
        _ => {
            let (median, longest) = (duration(waits.median()), duration(longest.max));
            match waits.estimated() {
                true => {
                    format!("about {count}{call}, {own} in total; median about {median}, longest {longest}")
                }
                false => format!("{count}{call}, {own} in total, median {median}, longest {longest}"),
            }
        }
    };
    Evidence::new(text, source(main))
}

/// Of several waits that are not all over: how many are, and for how long the others have lasted. Their lengths may count from before the
/// observation, and their sum does not: beside each other, a total would be less than its parts. None where it is not.
fn standing(waits: &Waits<'_>) -> Option<String> {
    let open = waits.iter().filter(|wait| wait.open).count() as u64;
    let (count, longest) = (waits.count(), waits.longest());
    let all_stand = || waits.iter().all(|wait| wait.open && wait.count == 1);
    let has_total = longest.max <= waits.own() && !all_stand();
    if open == 0 || waits.estimated() || has_total {
        return None;
    }
    let length = duration(longest.max);
    let longest = match (longest.open, longest.count) {
        (true, 1) => format!("the longest has lasted for at least {length}"),
        // Of several of one thread it is not known whether the longest is the one that stands.
        (true, _) => format!("the longest is at least {length}"),
        (false, _) => format!("the longest took {length}"),
    };
    Some(match count.saturating_sub(open) {
        0 => format!("none of them over: {longest}"),
        over => format!(
            "{over} of them over: {longest}; {} of all of them was observed",
            duration(waits.own())
        ),
    })
}

/// How long waits were: `1.01 s`, and where that is an estimate how good: `about 1.01 s ± 20.0 ms`.
pub(super) fn length(waits: &Waits<'_>) -> String {
    match (waits.estimated(), waits.error()) {
        (false, _) => duration(waits.own()),
        (true, 0) => format!("about {}", duration(waits.own())),
        (true, error) => format!("about {} ± {}", duration(waits.own()), duration(error)),
    }
}

/// What they cost the run, for a title: `1.01 s`, and where that is an estimate `about 1.01 s`.
pub(super) fn cost(waits: &Waits<'_>) -> String {
    let about = if waits.estimated() { "about " } else { "" };
    format!("{about}{}", duration(waits.cost()))
}

/// Where the times of a wait were seen.
pub(super) fn source(wait: &AttributedWait) -> &str {
    if wait.read_at.is_empty() {
        SCHEDULER
    } else {
        &wait.read_at
    }
}

/// The clock that the length of these waits names: the median's, or the longest's.
pub(super) fn clock(run: &Run<'_>, waits: &Waits<'_>) -> Option<Evidence> {
    let wait = waits.longest();
    [waits.median(), wait.max].into_iter().find_map(|length| {
        let clock = clock_of(length, wait, run.facts)?;
        Some(Evidence::new(
            format!("a wait took {}, which is {clock}", duration(length)),
            source(wait),
        ))
    })
}

/// A function, and where it stands: `pay (shop.py:41)`.
pub(super) fn place(frame: &Frame) -> String {
    // What types C++ makes of the arguments is longer than all the rest.
    let named = |symbol| match frame.language == Language::Native && cpp::takes_arguments(symbol) {
        true => cpp::qualified(symbol),
        false => symbol,
    };

    let function = frame.symbol.as_deref().map_or("an unknown function", named);
    let file = frame.file.as_deref().and_then(|file| file.rsplit('/').next());
    match (file, frame.line) {
        (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
        _ => function.to_owned(),
    }
}

/// How it is known that someone is in the way, for the reader.
pub(super) fn how_known(how: HowKnown) -> &'static str {
    match how {
        HowKnown::MutexOwner => "owner in the mutex",
        HowKnown::PiFutex => "owner in the futex",
        HowKnown::FileLock => "the kernel's list of file locks",
        HowKnown::Semaphore => "the kernel's note of who used the semaphore last",
        HowKnown::SessionLock => "the database server's table of locks, in its memory",
        HowKnown::QueueReceiver => "the kernel's note of who received from the queue last",
        HowKnown::PipePeer => "the user of the other end of the pipe",
        HowKnown::SocketPeer => "the peer of the socket",
        HowKnown::FuseDaemon => "the FUSE daemon that answered",
        HowKnown::Tracer => "its tracer",
        HowKnown::Child => "the awaited child",
        HowKnown::KernelLock => "owner of the kernel lock",
        HowKnown::RobustList => "its list of held locks",
        HowKnown::Vmstructs => "the JVM's structures",
        HowKnown::Dump => "a thread dump",
        HowKnown::Monitor => "owner of the monitor",
        HowKnown::Interpreter => "the interpreter's structures",
        HowKnown::LastToStop => "the last thread to reach the safepoint",
        HowKnown::Waker => "the waker",
    }
}

/// Of somebody who was never seen to do anything.
pub(super) const NOT_OBSERVED: &str = "is not part of the run and was not observed";

/// What the one in the way did meanwhile.
pub(super) fn meanwhile(holder: &Holder) -> Evidence {
    let doing = match holder.doing {
        // Of a process only its first thread is known to be there, and that one takes in clients.
        Some(Cause::NetAccept | Cause::Idle) if holder.how_known == HowKnown::SocketPeer => {
            let others = match holder.others_busy {
                0 => String::new(),
                count => format!(
                    " ({} of it waited for something or ran)",
                    several(count, "other thread")
                ),
            };
            format!("accepts clients with this thread; the thread that has the request is not known{others}")
        }
        Some(cause) => format!("was mostly {} ({cause}){}", cause.phrase(), stands(holder)),
        None => NOT_OBSERVED.to_owned(),
    };
    Evidence::new(
        format!("{} {doing}", who_with_pid(&holder.name)),
        how_known(holder.how_known),
    )
}

/// Where in the program's own code it stood: `, in Feed.load (Feed.java:11)`. Of one that rests, that says nothing, nor where it stood at
/// some other time of one that only ended a wait.
fn stands(holder: &Holder) -> String {
    if holder.doing == Some(Cause::Idle) {
        return String::new();
    }
    let holds = holder.how_known.holds();
    let known = holder
        .place
        .as_ref()
        .filter(|place| holds && place.line.is_some());
    let stood = || {
        let asking = choose(&holder.stack);
        let mut frames = holder.stack.iter();
        let frame = frames.find(|frame| asking.named && frame.symbol == asking.frame)?;
        frame.file.is_some().then_some(frame)
    };
    match known.or_else(stood) {
        Some(frame) => format!(", in {}", place(frame)),
        None => String::new(),
    }
}

/// The end of the chain of the costliest wait, where it goes further than the one in the way.
pub(super) fn way(waits: &Waits<'_>) -> Option<Evidence> {
    let main = waits.main();
    if let [_, .., before, last] = main.chain.as_slice()
        && last.name == main.asker.name
    {
        let text = format!(
            "{} waits for {} in turn: while that lasts, no thread of this circle continues",
            who(&before.name),
            who(&last.name)
        );
        return Some(Evidence::new(text, "the critical path"));
    }
    let after = main.chain.iter().filter(|link| link.name != main.asker.name);
    let after: Vec<&Link> = after.collect();
    let [_, .., end] = after.as_slice() else {
        return None;
    };
    if after.len() >= LONG_CHAIN {
        return Some(long_way(&after, end));
    }
    let steps: Vec<String> = after.iter().map(|link| who(&link.name)).collect();
    // One after another of the same name is a queue: how long it is tells more than its name again and again.
    let steps: Vec<String> = steps
        .chunk_by(|one, next| one == next)
        .map(|same| match same {
            [one] => one.clone(),
            [one, ..] => format!("{} of {one} in turn", same.len()),
            [] => String::new(),
        })
        .collect();
    let text = format!(
        "the chain of waits continues in {}: {} of it {} ({})",
        steps.join(", then "),
        duration(end.ns),
        end.cause.phrase(),
        end.cause
    );
    Some(Evidence::new(text, "the chain of waits"))
}

/// Steps beyond the waiter from which each is reported with its process and its wait. Of a shorter chain the first is in the title, and the
/// last with its wait in the words above.
const LONG_CHAIN: usize = 3;

/// A chain step by step. One after another of the same name is a queue, and reported once.
fn long_way(after: &[&Link], end: &Link) -> Evidence {
    let same = |one: &&Link, next: &&Link| who(&one.name) == who(&next.name) && one.cause == next.cause;
    let step = |links: &[&Link]| {
        let first = links.first()?;
        let (phrase, cause) = (first.cause.phrase(), first.cause);
        Some(match links.len() {
            1 => format!("{} was {phrase} ({cause})", who_with_pid(&first.name)),
            many => format!("{many} of {} in turn were {phrase} ({cause})", who(&first.name)),
        })
    };
    let steps: Vec<String> = after.chunk_by(same).filter_map(step).collect();
    let text = format!(
        "the chain of waits continues: {}; the last step took {}",
        steps.join(", then "),
        duration(end.ns)
    );
    Evidence::new(text, "the chain of waits")
}

/// Kernel functions through which holdup itself looks on: they are not what the program asked the kernel for.
fn looks_on(function: &str) -> bool {
    const LOOKING: [&str; 4] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];
    LOOKING.iter().any(|start| function.starts_with(start))
}

/// The kernel functions at the top of the stack that the most of the time was seen in.
pub(super) fn kernel_top(waits: &Waits<'_>) -> Option<Evidence> {
    /// Frames that are enough to recognise a wait.
    const FRAMES: usize = 3;
    let stack = &waits.main().kernel_stack;
    let looking = stack.iter().rposition(|function| looks_on(function));
    let own = stack.iter().skip(looking.map_or(0, |last| last + 1));
    let top: Vec<&str> = own.take(FRAMES).map(String::as_str).collect();
    (!top.is_empty()).then(|| Evidence::new(format!("in the kernel: {}", top.join(" < ")), "kernel stacks"))
}

/// The one in the way, as what a wait was for.
pub(super) fn in_the_way(holder: &Holder) -> Resource {
    let pid = (holder.name.pid != 0).then_some(holder.name.pid);
    Resource::named(ResourceKind::Process, who(&holder.name)).with(|facts| facts.pid = pid)
}

/// The other end of a socket; its name, where its address is not known.
pub(super) fn peer(resource: &Resource) -> String {
    let peer = resource.detail.peer.as_ref();
    peer.map_or_else(|| resource.name.clone(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::{capital, how_long, quoted, who_with_pid};
    use crate::rules::Run;
    use holdup_evidence::facts::SystemFacts;
    use holdup_model::attributed::{Attributed, AttributedWait, ThreadName};

    /// Waits of a thread: how many, how long they were in the observed time together, the longest, and whether the last is not over.
    fn waits(tid: u32, count: u64, ns: u64, max: u64, open: bool) -> AttributedWait {
        let mut wait = AttributedWait {
            count,
            ns: ns * 1_000_000_000,
            max: max * 1_000_000_000,
            open,
            ..crate::rules::tests::wait()
        };
        wait.asker.name.tid = tid;
        wait
    }

    fn said(waits: Vec<AttributedWait>) -> String {
        let attributed = Attributed {
            waits,
            ..Attributed::default()
        };
        let facts = SystemFacts::default();
        let run = Run::new(&attributed, &facts);
        how_long(&run.waits(|_| true).unwrap()).text
    }

    #[test]
    fn of_waits_that_are_not_over_there_is_no_total_below_its_parts() {
        let both = vec![waits(1, 1, 5, 15, true), waits(2, 1, 5, 10, true)];
        assert_eq!(
            said(both),
            "2 waits, none of them over: the longest has lasted for at least 15.00 s"
        );
    }

    #[test]
    fn of_some_that_are_over_it_is_said_how_many() {
        let some = vec![waits(1, 9, 3, 1, false), waits(2, 1, 5, 10, true)];
        assert_eq!(
            said(some),
            "10 waits, 9 of them over: the longest has lasted for at least 10.00 s; 8.00 s of all of them was observed"
        );
        let longest_is_over = vec![waits(1, 4, 3, 6, false), waits(2, 1, 2, 2, true)];
        assert!(said(longest_is_over).contains("the longest took 6.00 s"));
    }

    #[test]
    fn one_of_several_of_a_thread_that_stands_is_not_said_to_be_over() {
        let reads = vec![waits(1, 5, 6, 20, true)];
        assert_eq!(
            said(reads),
            "5 waits, 4 of them over: the longest is at least 20.00 s; 6.00 s of all of them was observed"
        );
    }

    #[test]
    fn a_total_that_has_all_its_parts_is_told_although_one_is_not_over() {
        for some in [
            vec![waits(1, 4, 8, 6, false), waits(2, 1, 2, 2, true)],
            vec![waits(1, 5, 20, 15, true)],
        ] {
            let said = said(some);
            assert!(said.contains(" s in total, median "), "{said}");
            assert!(!said.contains("took"), "{said}");
        }
    }

    #[test]
    fn waits_that_are_over_have_their_total() {
        let over = vec![waits(1, 2, 4, 3, false), waits(2, 2, 2, 1, false)];
        assert!(said(over).starts_with("4 waits, 6.00 s in total, median "));
    }

    #[test]
    fn a_sentence_begins_with_a_capital_unless_a_name_begins_it() {
        assert_eq!(capital("the file system /mnt/nas"), "The file system /mnt/nas");
        assert_eq!(capital("thermald"), "thermald");
        assert_eq!(capital("/mnt/nas"), "/mnt/nas");
    }

    #[test]
    fn a_hostile_name_stays_one_word_of_a_command() {
        assert_eq!(quoted("/data/plain-file.db"), "/data/plain-file.db");
        assert_eq!(quoted("a'; rm -rf /"), r"'a'\''; rm -rf /'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_thread_without_a_name_is_still_somebody() {
        let name = ThreadName {
            pid: 7,
            tid: 7,
            ..ThreadName::default()
        };
        assert_eq!(who_with_pid(&name), "process 7");
        let name = ThreadName {
            pid: 7,
            tid: 9,
            process: "java".into(),
            thread: "GC".into(),
        };
        assert_eq!(who_with_pid(&name), "java/GC (pid 7)");
    }
}
