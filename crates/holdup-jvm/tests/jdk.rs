//! Real machines: what is read from outside is what the machine says of itself.
//!
//! A program waits in known ways, in threads with known names. Each thread's registers and stack are taken as holdup takes
//! them, its frames told from outside, and compared with those that the JDK's own tool prints, one by one. Every JDK of this
//! machine is tried, with settings that change what code, heap and pointers look like.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "jdk/machine.rs"]
mod machine;

use holdup_jvm::Sighting;
use machine::{Java, Told, jdks};

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

/// Each thread's frames from outside, beside those that the machine prints: of how many, and those that differ.
fn compared(java: &Java) -> (usize, Vec<String>) {
    let known = |name: &str| WAITS.contains(&name) || name == "main";
    let told: Vec<_> = java.dump().into_iter().filter(|(name, _)| known(name)).collect();
    assert_eq!(told.len(), WAITS.len() + 1, "{}: {told:#?}", java.what);
    let tids: Vec<i32> = told.iter().map(|(_, told)| told.nid).collect();
    let (seen, waiting) = java.seen(&tids);
    owners(java, &told, waiting);
    let (mut all, mut differ) = (0, Vec::new());
    for ((name, told), seen) in told.iter().zip(seen) {
        assert_eq!(seen.name.as_ref(), Some(name), "{}", java.what);
        let frames = machine::java(&seen.frames);
        let most = told.frames.len().max(frames.len());
        all += most;
        for index in 0..most {
            let (printed, seen) = (told.frames.get(index), frames.get(index));
            if printed != seen {
                differ.push(format!("{} {name}: {index}: {printed:?} is {seen:?}", java.what));
            }
        }
    }
    (all, differ)
}

/// Who waits for whose locks, by what class, as the program made it.
fn owners(java: &Java, told: &[(String, Told)], waiting: Vec<Sighting>) {
    let name = |tid: u32| {
        let found = told.iter().find(|(_, told)| told.nid.cast_unsigned() == tid);
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
            let java = Java::start(&jdk, settings, "60");
            let (all, differ) = compared(&java);
            println!("{}: {} of {all} frames agree", java.what, all - differ.len());
            assert!(all > 100, "{}: the program had too few frames: {all}", java.what);
            different.extend(differ);
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
