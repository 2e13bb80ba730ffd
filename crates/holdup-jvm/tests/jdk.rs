//! Real machines: what is read from outside is what the machine says of itself.
//!
//! A program waits in known ways, in threads with known names. Each thread's registers and stack are taken as holdup takes
//! them, its frames read from outside, and compared with those that the JDK's own tool prints, one by one. Every JDK of this
//! machine is tried, with settings that change what code, heap and pointers look like.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "jdk/machine.rs"]
mod machine;

use holdup_evidence::Frame;
use holdup_jvm::{Does, Owner, Sighting};
use machine::{DumpedThread, Java, jdks};
use std::sync::Arc;

/// Threads that the program starts, each in another wait.
const WAITS: [&str; 13] = [
    "sleeper",
    "deep",
    "waiter",
    "owner",
    "enterer",
    "locker",
    "latch",
    "hot",
    "class",
    "class-too",
    "with a name that is longer than what the kernel keeps",
    "accepter",
    "reader",
];

/// Settings that change what code, heap, pointers and the archive of classes look like; a JDK leaves out what it has not.
const SETTINGS: [&[&str]; 6] = [
    &[],
    &[
        "-Xint",
        "-XX:-UseCompressedOops",
        "-XX:-UseCompressedClassPointers",
    ],
    &[
        "-Xcomp",
        "-XX:TieredStopAtLevel=1",
        "-XX:-SegmentedCodeCache",
        "-XX:+UseParallelGC",
    ],
    &["-Xcomp", "-XX:-TieredCompilation", "-XX:+UseSerialGC"],
    &["-XX:+UseZGC", "-Xshare:off"],
    &["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseCompactObjectHeaders"],
];

/// How often a program is compared with what its machine prints. Both look at different moments: a thread may still be on its way to where it
/// waits when the program says that it is ready, for long on a busy machine. What is read wrongly is so each time.
const LOOKS: usize = 5;

/// What a comparison says once nothing differs, or the last time that it may be made.
fn at_rest<T>(mut compare: impl FnMut() -> (T, Vec<String>)) -> (T, Vec<String>) {
    for _ in 1..LOOKS {
        let (all, differ) = compare();
        if differ.is_empty() {
            return (all, differ);
        }
    }
    compare()
}

/// Each thread's frames from outside, beside those that the machine prints: of how many, and those that differ.
fn compared(java: &Java) -> (usize, Vec<String>) {
    let known = |name: &str| WAITS.contains(&name) || name == "main";
    let listed: Vec<_> = java.dump().into_iter().filter(|(name, _)| known(name)).collect();
    assert_eq!(listed.len(), WAITS.len() + 1, "{}: {listed:#?}", java.what);
    let tids: Vec<i32> = listed.iter().map(|(_, listed)| listed.nid).collect();
    let (seen, waiting) = java.seen(&tids);
    owners(java, &listed, waiting);
    let (mut all, mut differ) = (0, Vec::new());
    for ((name, listed), seen) in listed.iter().zip(seen) {
        assert_eq!(seen.name.as_ref(), Some(name), "{}", java.what);
        let frames = machine::java(&seen.frames);
        let most = listed.frames.len().max(frames.len());
        all += most;
        for index in 0..most {
            let (printed, seen) = (listed.frames.get(index), frames.get(index));
            if printed != seen {
                differ.push(format!("{} {name}: {index}: {printed:?} is {seen:?}", java.what));
            }
        }
    }
    (all, differ)
}

/// Who waits for whose locks, by what class, as the program made it.
fn owners(java: &Java, rows: &[(String, DumpedThread)], waiting: Vec<Sighting>) {
    let name = |tid: u32| {
        let found = rows.iter().find(|(_, rows)| rows.nid.cast_unsigned() == tid);
        found.map_or("", |(name, _)| name.as_str()).to_owned()
    };
    let mut seen: Vec<_> = waiting
        .into_iter()
        .map(|one| (name(one.tid), one.class, one.owner.map(name).unwrap_or_default()))
        .collect();
    seen.sort();
    let lock = "java.util.concurrent.locks.ReentrantLock";
    let made = [
        ("class-too", "java.lang.Class", "class"),
        ("enterer", "java.lang.Object", "owner"),
        ("locker", lock, "owner"),
    ];
    let made = made.map(|(waiter, class, owner)| (waiter.to_owned(), class.to_owned(), owner.to_owned()));
    assert_eq!(seen, made, "{}", java.what);
}

#[test]
fn frames_from_outside_are_those_that_the_machine_prints() {
    let mut different = Vec::new();
    for jdk in jdks() {
        for settings in SETTINGS {
            let java = Java::start(&jdk, settings, "Waits", "60");
            let (all, differ) = at_rest(|| compared(&java));
            println!("{}: {} of {all} frames agree", java.what, all - differ.len());
            assert!(all > 100, "{}: the program had too few frames: {all}", java.what);
            different.extend(differ);
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// Frames that the JDK's own tool leaves out: those that take a virtual thread off its carrier, that begin it, and of lambdas.
fn is_hidden(frame: &str) -> bool {
    let hidden = [
        "java.lang.VirtualThread.yieldContinuation",
        "java.lang.Thread.runWith",
    ];
    frame.contains("$$Lambda") || hidden.iter().any(|start| frame.starts_with(start))
}

/// Virtual threads came with JDK 21, which Debian 12 does not have; each later one that is here is tried.
#[test]
fn virtual_threads_stand_where_the_machine_says() {
    for jdk in jdks() {
        if !jdk.join("release").is_file() || machine::feature(&jdk) < 21 {
            continue;
        }
        for settings in SETTINGS {
            let java = Java::start(&jdk, settings, "Virtuals", "200");
            let (all, differ) = at_rest(|| virtuals_compared(&java, settings));
            println!("{}: {all} frames", java.what);
            assert!(differ.is_empty(), "{differ:#?}");
            assert!(all > 400, "{}: {all} frames", java.what);
        }
    }
}

/// Frames of virtual threads, and what differs from what the machine writes.
fn virtuals_compared(java: &Java, settings: &[&str]) -> (usize, Vec<String>) {
    let main = java.dump().into_iter().find(|(name, _)| name == "main").unwrap();
    let seen = java.virtuals(main.1.nid);
    let printed = java.dump_of_virtuals();
    let (mut all, mut differ) = (0, Vec::new());
    for (number, frames) in printed {
        let Some(one) = seen.listed.iter().find(|one| one.id == number) else {
            differ.push(format!("{}: #{number} is missing", java.what));
            continue;
        };
        let begins = |frame: &&String| !frame.starts_with("java.lang.VirtualThread.run(");
        let frames: Vec<String> = frames.into_iter().take_while(|frame| begins(&frame)).collect();
        let seen = machine::java(&one.frames).into_iter();
        let seen: Vec<String> = seen.filter(|frame| !is_hidden(frame)).collect();
        all += frames.len();
        // Of one that is mounted the frames are those up to the first that native code has called.
        let same = match one.does {
            Does::Pinned => !seen.is_empty() && frames.starts_with(&seen),
            // Pieces of stacks in ZGC's heap are not read yet: then there are no frames, and no wrong ones.
            _ if settings.contains(&"-XX:+UseZGC") => seen.is_empty() || seen == frames,
            _ => seen == frames,
        };
        if !same {
            differ.push(format!(
                "{} #{number} ({:?}): {frames:?} is {seen:?}",
                java.what, one.does
            ));
        }
    }
    // The first thread has the lock that some of them want.
    let pays = |frame: &Arc<Frame>| frame.symbol.as_deref() == Some("Virtuals.pays");
    let wants = seen.listed.iter().filter(|one| one.frames.iter().any(pays));
    let owners: Vec<_> = wants.map(|one| one.owner).collect();
    let first = Some(Owner::Thread(u32::try_from(main.1.nid).unwrap()));
    let read = settings.contains(&"-XX:+UseZGC") || owners.len() == 20;
    if !read || owners.iter().any(|owner| *owner != first) {
        differ.push(format!("{}: owners are {owners:?}", java.what));
    }
    (all, differ)
}
