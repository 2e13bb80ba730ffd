//! Live: what the programs add up agrees with the kernel's own accounts, thread by thread. Needs root and BPF.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdup_bpf::{Options, RawEvent, Tracer};
use holdup_evidence::{End, Loss, LossClass, Ns, ThreadId, Waker};
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// How far apart the two may lie, each time a thread is switched: both read the clock on the way through the
/// scheduler, at two places some microseconds apart; a machine that is itself preempted stretches that.
const APART_PER_SWITCH: Ns = 100_000;
/// And once a thread: birth and end are counted from different places in the kernel.
const APART_AT_ALL: Ns = 5_000_000;

fn now() -> Ns {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

/// Of a run in which the kernel did not show every switch (ARCHITECTURE.md, "The ledger") no single wait can be
/// expected; such a run is made again, so often at most.
const TRIES: usize = 5;

/// Runs a script under observation to its end and returns all its records, none of them lost.
fn observe(script: &str) -> Vec<RawEvent> {
    for _ in 0..TRIES {
        let (events, losses) = observe_once(script);
        if losses.is_empty() {
            return events;
        }
    }
    panic!("something was lost each of {TRIES} times");
}

/// Runs a script under observation to its end and returns all its records and what of them was lost.
fn observe_once(script: &str) -> (Vec<RawEvent>, Vec<Loss>) {
    let mut tracer =
        Tracer::load(Options::default()).expect("tracing works here (as root, see holdup doctor)");
    let mut shell = Command::new("sh")
        .args(["-c", &format!("read go; {script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let stat = format!("/proc/{}/stat", shell.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
    tracer.watch(shell.id(), None).unwrap();
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut events = Vec::new();
    while shell.try_wait().unwrap().is_none() {
        drain(&mut tracer, &mut events);
        std::thread::yield_now();
    }
    tracer.freeze(now());
    drain(&mut tracer, &mut events);
    // A stack that the kernel refused to copy is a coarser sample, and no time.
    let mut losses = tracer.report().losses;
    losses.retain(|loss| !matches!(loss.class, LossClass::StackSample | LossClass::CpuSample));
    (events, losses)
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

fn ends(events: &[RawEvent]) -> Vec<&End> {
    events
        .iter()
        .filter_map(|event| match event {
            RawEvent::End { end, .. } => Some(&**end),
            _ => None,
        })
        .collect()
}

fn waits_by_thread(events: &[RawEvent]) -> HashMap<ThreadId, (u64, Ns)> {
    let mut waits: HashMap<ThreadId, (u64, Ns)> = HashMap::new();
    for event in events {
        if let RawEvent::Wait(wait) | RawEvent::OpenWait(wait) = event {
            let sum = waits.entry(wait.thread).or_default();
            sum.0 += 1;
            sum.1 += wait.end - wait.start;
        }
    }
    waits
}

/// Forks, pipes, sleeps, spins and blocks.
const SCRIPT: &str = "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero bs=64k count=40 2>&- | cat | cksum; sleep 0.01; done; \
     perl -e 'for (1..20) { my $p = fork; if (!$p) { my $x = 0; $x += $_ for 1..20000; select undef, undef, undef, 0.003; exit } } \
     1 while wait > 0'";

#[test]
fn every_threads_life_is_tiled_exactly_and_agrees_with_the_kernel() {
    let (events, mut losses) = observe_once(SCRIPT);
    // Who woke is not known then, but when is.
    losses.retain(|loss| loss.class != LossClass::Waking);
    let waits = waits_by_thread(&events);
    let ends = ends(&events);
    let unseen: u64 = ends.iter().map(|end| end.lost.1).sum();
    let counted: Vec<Loss> = (unseen > 0)
        .then_some(Loss {
            class: LossClass::Switch,
            count: unseen,
            ns: ends.iter().map(|end| end.lost.0).sum(),
        })
        .into_iter()
        .collect();
    assert_eq!(
        losses, counted,
        "in so small a run only context switches not reported by the kernel are lost, and counted"
    );
    assert!(ends.len() > 50, "only {} threads", ends.len());
    let mut compared = 0;
    for end in ends {
        let name = &end.task.name;
        assert_eq!(
            end.born + end.clock.total(),
            end.at,
            "{name}: life is not the sum of its parts"
        );
        assert!(
            end.clock.interrupt <= end.clock.cpu && end.clock.throttled <= end.clock.queued,
            "{name}: a part is more than the whole: {:?}",
            end.clock
        );
        let (count, blocked) = waits.get(&end.thread).copied().unwrap_or_default();
        assert_eq!(
            blocked + end.lost.0,
            end.clock.blocked,
            "{name}: the records and what was lost do not add up to the time blocked"
        );
        assert!(count <= end.blockings, "{name}: more waits than blockings");
        // The shell itself lived before it was watched.
        // How a stretch splits whose beginning was not shown is not known.
        let whole = end.thread != ThreadId(0) && end.lost.1 == 0;
        let Some(account) = end.account.filter(|_| whole) else {
            continue;
        };
        // The last switch, of the dead, is a voluntary one to the kernel.
        assert_eq!(end.blockings + 1, account.voluntary_switches, "{name}: blockings");
        let apart =
            APART_AT_ALL + APART_PER_SWITCH * (account.voluntary_switches + account.involuntary_switches);
        let cpu = end.clock.cpu.abs_diff(account.runtime);
        assert!(
            cpu <= apart,
            "{name}: {} ns on a CPU, the kernel says {}",
            end.clock.cpu,
            account.runtime
        );
        if let Some(run_delay) = account.run_delay {
            let queued = end.clock.queued.abs_diff(run_delay);
            assert!(
                queued <= apart,
                "{name}: {} ns queued, the kernel says {run_delay}",
                end.clock.queued
            );
        }
        compared += 1;
    }
    // Threads of which a switch was not shown are left out, one at most for each such switch.
    assert!(compared + unseen > 50, "only {compared} threads compared");
}

#[test]
fn a_thread_that_lives_on_is_open_and_its_wait_too() {
    let events = observe("sleep 1000 <&- >&- & exit 3");
    let open: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, RawEvent::OpenWait(_)))
        .collect();
    let ends = ends(&events);
    let sleeper = ends
        .iter()
        .find(|end| end.open.is_some())
        .expect("sleep lives on");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(sleeper.task.pid.cast_signed()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    assert_eq!(sleeper.born + sleeper.clock.total(), sleeper.at);
    assert!(sleeper.account.is_none());
    // It may not have come to its sleep yet; if it has, its wait is handed over.
    assert!(open.len() <= 1);
}

#[test]
fn a_pipe_names_the_process_at_its_other_end_and_a_timer_names_nobody() {
    let events = observe("sleep 0.05 | cat");
    let names: HashMap<ThreadId, &str> = ends(&events)
        .into_iter()
        .map(|end| (end.thread, end.task.name.as_str()))
        .collect();
    let mut piped = 0;
    let mut slept = 0;
    for event in &events {
        let RawEvent::Wait(wait) = event else { continue };
        match wait.call.name() {
            Some("read") if names.get(&wait.thread) == Some(&"cat") => {
                let Waker::Thread { thread, .. } = &wait.waker else {
                    panic!("woken by {:?}", wait.waker)
                };
                assert_eq!(
                    names.get(thread),
                    Some(&"sleep"),
                    "the exit of sleep closes the pipe"
                );
                piped += 1;
            }
            Some("clock_nanosleep") => {
                assert!(
                    matches!(wait.waker, Waker::Interrupt { soft: false, .. }),
                    "woken by {:?}",
                    wait.waker
                );
                slept += 1;
            }
            _ => {}
        }
    }
    assert_eq!((piped, slept), (1, 1));
}
