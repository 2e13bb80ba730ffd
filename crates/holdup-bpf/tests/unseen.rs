//! Live: there are kernels that do not show every switch to programs. A clock that was reported meanwhile stands all the same. Needs
//! root and BPF.
//!
//! No kernel can be asked to hide a switch, so the observed thread takes it out of what the programs remember of it: its books
//! are set back to before it got the CPU that it has, and then it forks, so that its clock is reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdup_bpf::{Options, RawEvent, Tracer};
use holdup_evidence::{Clock, LossClass, Ns, Role, ThreadId, Waker};
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe};
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// How often a switch is taken out of the books.
const TIMES: usize = 60;

/// Of these so many must have led to a fork with nothing in between: a busy machine takes the CPU away now and then.
const WHOLE: i32 = 10;

/// How often all of it is tried. A switch just when the books are set back makes them wrong, and so does a record that has reported what is
/// taken out of them.
const ATTEMPTS: usize = 20;

/// What the observed process returns then.
const SPOILED: i32 = 255;

/// `enum holdup_phase`.
const RUNNING: u32 = 1;
const QUEUED: u32 = 2;
const BLOCKED: u32 = 3;

/// Where the fields of `struct thread` lie.
#[derive(Clone, Copy)]
struct Fields {
    phase: usize,
    since: usize,
    queued: usize,
}

impl Fields {
    fn of_object() -> Fields {
        let types = Btf::from_path(concat!(env!("OUT_DIR"), "/trace.bpf.o")).unwrap();
        let place = |of: &str, field: &str| {
            let of: Struct<'_> = types.type_by_name(of).unwrap();
            let member = of
                .iter()
                .find(|member| member.name.is_some_and(|name| name == field))
                .unwrap();
            let MemberAttr::Normal { offset } = member.attr else {
                panic!("{field} is a bit field")
            };
            usize::try_from(offset).unwrap() / 8
        };
        let phases: BtfType<'_> = types.type_by_name("holdup_phase").unwrap();
        let phases = libbpf_rs::btf::types::Enum::try_from(phases).unwrap();
        let value = |name: &str| {
            let found = phases
                .iter()
                .find(|one| one.name.is_some_and(|known| known == name));
            found.unwrap().value
        };
        assert_eq!(
            ["HOLDUP_RUNNING", "HOLDUP_QUEUED", "HOLDUP_BLOCKED"].map(value),
            [RUNNING, QUEUED, BLOCKED].map(i64::from)
        );
        let clock = place("thread", "clock");
        Fields {
            phase: place("thread", "phase"),
            since: place("thread", "since"),
            queued: clock + place("holdup_clock", "queued"),
        }
    }
}

fn word(state: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(state[at..at + 8].try_into().unwrap())
}

fn set_word(state: &mut [u8], at: usize, value: u64) {
    state[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// What the programs remember of threads, of this process's own tracer.
fn remembered() -> MapHandle {
    for entry in std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let id = text.lines().find_map(|line| line.strip_prefix("map_id:"));
        let Some(id) = id.and_then(|id| id.trim().parse().ok()) else {
            continue;
        };
        let map = MapHandle::from_map_id(id).unwrap();
        if map.map_type() == MapType::TaskStorage && map.name() == "threads" {
            return map;
        }
    }
    panic!("the programs keep nothing with tasks on this kernel");
}

/// How often this process left a CPU, and was taken off one.
fn switches() -> (i64, i64) {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
    (
        usage.voluntary_context_switches(),
        usage.involuntary_context_switches(),
    )
}

/// When the books were set back, and the queueing that was left in them.
#[derive(Debug, Clone, Copy)]
struct SetBack {
    at: Ns,
    queued: Ns,
}

impl SetBack {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        set_word(&mut bytes, 0, self.at);
        set_word(&mut bytes, 8, self.queued);
        bytes
    }

    fn read_all(notes: OwnedFd) -> Vec<SetBack> {
        let mut bytes = Vec::new();
        std::fs::File::from(notes).read_to_end(&mut bytes).unwrap();
        let one = |bytes: &[u8]| SetBack {
            at: word(bytes, 0),
            queued: word(bytes, 8),
        };
        bytes.chunks_exact(16).map(one).collect()
    }
}

/// In the observed process: again and again sleeps, takes how it got its CPU out of the books, and forks. Returns how often
/// nothing came in between, or [`SPOILED`].
fn hide_and_fork(map: &MapHandle, fields: Fields, note: &OwnedFd) -> i32 {
    // SAFETY: makes a descriptor of this process, that nobody else has.
    let own = unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0);
        OwnedFd::from_raw_fd(i32::try_from(descriptor).unwrap())
    };
    let key = own.as_raw_fd().to_ne_bytes();
    let mut whole = 0;
    for time in 0..TIMES {
        // A switch that is shown puts the books right: a child that ended before it was waited for leaves them as they were set back.
        std::thread::sleep(Duration::from_millis(1));
        let slept = switches();
        let queued_before = word(&map.lookup(&key, MapFlags::ANY).unwrap().unwrap(), fields.queued);
        std::thread::sleep(Duration::from_millis(2));
        let before = switches();
        let mut state = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let phase = u32::from_ne_bytes(state[fields.phase..fields.phase + 4].try_into().unwrap());
        // What it queued since it was woken, which no record has reported so far; with another switch in between some of it was.
        let queued = word(&state, fields.queued) - queued_before;
        if phase != RUNNING || queued == 0 || before != (slept.0 + 1, slept.1) {
            continue;
        }
        // Whether it was woken is hidden every second time.
        let hidden = match time % 2 {
            0 => QUEUED,
            _ => BLOCKED,
        };
        let since = word(&state, fields.since) - queued;
        state[fields.phase..fields.phase + 4].copy_from_slice(&hidden.to_ne_bytes());
        set_word(&mut state, fields.since, since);
        set_word(&mut state, fields.queued, queued_before);
        if switches() != before {
            continue;
        }
        let set_back = SetBack {
            at: now(),
            queued: queued_before,
        };
        nix::unistd::write(note, &set_back.bytes()).unwrap();
        map.update(&key, &state, MapFlags::ANY).unwrap();
        if switches() != before {
            return SPOILED;
        }
        // SAFETY: this process has one thread; the child ends at once.
        match unsafe { fork() }.unwrap() {
            // SAFETY: ends the child without running what its parent has set up.
            ForkResult::Child => unsafe { libc::_exit(0) },
            ForkResult::Parent { child } => {
                whole += i32::from(switches() == before);
                waitpid(child, None).unwrap();
            }
        }
    }
    whole
}

/// Clocks that the records tell, in their order.
fn requests(events: &[RawEvent]) -> Vec<(ThreadId, Ns, Clock)> {
    let mut listed = Vec::new();
    for event in events {
        match event {
            RawEvent::Start(start) => {
                listed.extend(start.parent.map(|(parent, clock)| (parent, start.at, clock)));
            }
            RawEvent::Wait(wait) | RawEvent::OpenWait(wait) => {
                if let Waker::Thread { thread, clock, .. } = &wait.waker {
                    listed.push((*thread, wait.end, *clock));
                }
                listed.push((wait.thread, wait.end, wait.clock));
            }
            RawEvent::End { end, .. } => listed.push((end.thread, end.at, end.clock)),
            _ => {}
        }
    }
    listed
}

fn now() -> Ns {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

fn drain(tracer: &mut Tracer, events: &mut Vec<RawEvent>) {
    loop {
        let (_, batch) = tracer.drain();
        if batch.is_empty() {
            return;
        }
        events.extend(batch);
    }
}

#[test]
fn a_clock_that_was_told_does_not_go_back_when_a_switch_was_not_shown() {
    assert!(
        (0..ATTEMPTS).any(|_| attempt()),
        "each time something came in between when the books were set back"
    );
}

/// Whether it could be tried.
fn attempt() -> bool {
    let fields = Fields::of_object();
    let mut tracer =
        Tracer::load(Options::default()).expect("tracing works here (as root, see holdup doctor)");
    let map = remembered();
    let (wait_for_word, word) = pipe().unwrap();
    let (set_backs, note) = pipe().unwrap();
    // SAFETY: the child is single-threaded, and uses nothing that another thread of this process may hold.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            drop(word);
            nix::unistd::read(&wait_for_word, &mut [0]).ok();
            let whole = hide_and_fork(&map, fields, &note);
            // SAFETY: ends this process without running what its parent has set up.
            unsafe { libc::_exit(whole) }
        }
        ForkResult::Parent { child } => child,
    };
    drop((wait_for_word, note));
    let pid = child.as_raw().cast_unsigned();
    tracer.adopt(&[(pid, Role::Subject)], &[]).unwrap();
    nix::unistd::write(&word, b"!").unwrap();
    let mut events = Vec::new();
    let whole = until_end(child, &mut tracer, &mut events);
    tracer.freeze(now());
    drain(&mut tracer, &mut events);
    if whole == SPOILED {
        return false;
    }
    let set_backs = SetBack::read_all(set_backs);
    assert!(whole >= WHOLE, "{whole} of {TIMES} switches could be hidden");

    let mut clocks: HashMap<ThreadId, (Ns, Clock)> = HashMap::new();
    let listed = requests(&events);
    assert!(listed.len() > TIMES, "{} clocks were told", listed.len());
    for (thread, at, clock) in listed {
        if let Some((before_at, before)) = clocks.insert(thread, (at, clock)) {
            // What a record had reported already was taken out of the books: then they are wrong, and not the programs.
            let between = |one: &&SetBack| before_at < one.at && one.at <= at;
            if set_backs
                .iter()
                .filter(between)
                .any(|one| one.queued < before.queued)
            {
                return false;
            }
            assert!(
                before_at <= at
                    && before.cpu <= clock.cpu
                    && before.queued <= clock.queued
                    && before.blocked <= clock.blocked,
                "{thread:?} at {before_at}: {before:?}; then at {at}: {clock:?}"
            );
            assert_eq!(
                clock.total() - before.total(),
                at - before_at,
                "{thread:?}: what passed is not the sum of its parts"
            );
        }
    }
    let losses = tracer.report().losses;
    assert!(
        losses
            .iter()
            .all(|loss| !matches!(loss.class, LossClass::WaitRecord | LossClass::ThreadRecord)),
        "nothing found the buffer full: {losses:?}"
    );
    true
}

/// Takes records until the process has ended; returns its status.
fn until_end(child: Pid, tracer: &mut Tracer, events: &mut Vec<RawEvent>) -> i32 {
    use nix::sys::wait::{WaitPidFlag, WaitStatus};
    loop {
        drain(tracer, events);
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).unwrap() {
            WaitStatus::Exited(_, status) => return status,
            WaitStatus::StillAlive => std::thread::yield_now(),
            other => panic!("it ended with {other:?}"),
        }
    }
}
