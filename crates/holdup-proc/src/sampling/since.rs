//! Since when a thread sleeps that slept before anybody looked.
//!
//! The problem: `/proc` has no instant for it. But `sched`, which anybody may read, has when the scheduler last charged a thread for time on a CPU
//! (`se.exec_start`), and of one that sleeps that is when it fell asleep. It is known by the clock of the CPU on which it ran, which
//! stands still while that CPU serves interrupts or is taken away by a hypervisor, so that each CPU's is behind by another amount. The
//! choice: a thread of our own that runs on that CPU has the same clock; the difference of both is for how long the other has slept, at
//! least: what the clock stood still since then is missing, and up to a tick.
//!
//! In: `sched` and `stat` of a thread, and threads of our own on the CPUs in question. Out: an instant by `CLOCK_MONOTONIC`.

use crate::clocks as machine;
use crate::root::{Root, text_if_there};
use holdup_evidence::Ns;
use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

/// How long is waited for a thread of our own to get to a CPU: a busy one has it wait its turn.
const LIMIT: Duration = Duration::from_millis(200);

/// CPUs that are asked at most: each takes a thread and two moves.
const MAX_CPUS: usize = 256;

/// What the CPUs' clocks say, and by which instant.
#[derive(Debug, Default)]
pub(super) struct CpuClocks {
    /// By CPU: its clock, and the instant at which that was read. `None` where it could not be.
    known: HashMap<u32, Option<(Ns, Ns)>>,
}

impl CpuClocks {
    /// The instant from which on a thread has slept that was last charged then on this CPU.
    pub(super) fn since(&mut self, cpu: u32, charged: Ns) -> Option<Ns> {
        if !self.known.contains_key(&cpu) && self.known.len() < MAX_CPUS {
            self.known.insert(cpu, ask(cpu));
        }
        let (clock, at) = (*self.known.get(&cpu)?)?;
        Some(at.saturating_sub(clock.checked_sub(charged)?))
    }
}

/// When a thread was last charged for a CPU, by that CPU's clock: `se.exec_start : 27864187.394739`, in milliseconds.
pub(super) fn charged(text: &str) -> Option<Ns> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("se.exec_start"))?;
    let (whole, part) = line.trim_start().strip_prefix(':')?.trim().split_once('.')?;
    let (whole, part): (Ns, Ns) = (
        whole.parse().ok()?,
        (part.len() == 6).then(|| part.parse().ok())??,
    );
    whole.checked_mul(1_000_000)?.checked_add(part)
}

/// The clock of a CPU, as a thread of our own there has it, and when. A thread is enough: it reads its own `sched` only, and so waits for
/// nothing but that CPU; it ends with its process, whatever runs there.
fn ask(cpu: u32) -> Option<(Ns, Ns)> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("clock".to_owned())
        .spawn(move || sender.send(read_on(cpu)))
        .ok()?;
    receiver.recv_timeout(LIMIT).ok()?
}

fn read_on(cpu: u32) -> Option<(Ns, Ns)> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;
    let mut only = CpuSet::new();
    only.set(usize::try_from(cpu).ok()?).ok()?;
    sched_setaffinity(Pid::from_raw(0), &only).ok()?;
    // Giving the CPU up has the scheduler charge this thread up to now.
    std::thread::yield_now();
    let at = machine::monotonic();
    let text = text_if_there(&Root::system().proc.join("thread-self/sched"))?;
    Some((charged(&text)?, at))
}

#[cfg(test)]
mod tests {
    use super::{CpuClocks, charged};
    use crate::clocks::monotonic;
    use crate::sampling::clocks::stat;

    #[test]
    fn what_is_not_understood_says_nothing() {
        let text = "cat (14268, #threads: 1)\n-----\nse.exec_start                   :      27864187.394739\nse.vruntime : 44446.7\n";
        assert_eq!(charged(text), Some(27_864_187_394_739));
        for text in [
            "",
            "se.exec_start : 1",
            "se.exec_start : 1.5",
            "se.exec_start 1.000000",
            "se.exec_start : x.000000",
        ] {
            assert_eq!(charged(text), None, "{text}");
        }
    }

    #[test]
    fn a_child_sleeps_since_after_it_was_made() {
        let made = monotonic();
        let mut cat = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", cat.id())).unwrap();
        while !read("wchan").contains("pipe") {
            std::thread::yield_now();
        }
        let asleep = read("sched");
        let cpu = stat(&read("stat")).unwrap().cpu;
        let since = CpuClocks::default().since(cpu, charged(&asleep).unwrap());
        let found = monotonic();
        drop(cat.stdin.take());
        cat.wait().unwrap();
        let since = since.expect("every CPU of this machine may be run on");
        assert!(made <= since && since <= found, "{made} {since} {found}");
    }
}
