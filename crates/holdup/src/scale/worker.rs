//! A worker: opens, says that it is ready, waits for the others, works, counts.
//!
//! In: the plan, its slot, the pipes of begin. Out: the slot. It runs in a process of its own and never returns. Operations are timed
//! here, one look at the clock each; what the kernel counts is looked at before the first and after the last.

use super::Plan;
use super::board::{Board, Slot};
use super::readers::{Reader, Refused, Run, open};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations before the clock starts: what is read first is not in any cache. Of programs none, they may change something.
const WARM_UP: usize = 3;

/// What the kernel has counted so far, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    now: u64,
    cpu: u64,
    queued: Option<u64>,
    user: u64,
    kernel: u64,
    /// How often the worker gave up its CPU.
    gave_up: i64,
}

/// Does its work and ends.
pub(super) fn work(plan: &Plan, board: &Board, number: usize, mut ready: File, mut go: File) -> ! {
    let slot = board.slot(number);
    let word = match prepare(plan, number) {
        Ok(reader) => {
            ready.write_all(b".").ok();
            // Nothing comes: the end is the go-ahead, for all at once.
            let _end = go.read(&mut [0]);
            let done = if plan.job.programs() {
                run(plan, board, slot, reader)
            } else {
                repeat(plan, board, slot, reader)
            };
            done.err().map(Refused::Operation)
        }
        Err(why) => Some(why),
    };
    if let Some(why) = word {
        slot.refuse(why);
        board.stop();
        ready.write_all(b"!").ok();
    }
    // SAFETY: ends this process at once, without what was set up before it was forked.
    unsafe { libc::_exit(0) }
}

fn prepare(plan: &Plan, number: usize) -> Result<Box<dyn Reader>, Refused> {
    let mut reader = open(&plan.job, number)?;
    if !plan.job.programs() {
        for _ in 0..WARM_UP {
            reader.once().map_err(Refused::Operation)?;
        }
    }
    Ok(reader)
}

/// Reads and the like: who has done all of them first ends it for all, so that as many work at any time as should.
fn repeat(plan: &Plan, board: &Board, slot: &Slot, mut reader: Box<dyn Reader>) -> Result<(), Errno> {
    let schedstat = File::open("/proc/self/schedstat").ok();
    let before = counters(schedstat.as_ref());
    let mut last = before.now;
    let mut done = 0;
    while done < plan.operations {
        reader.once()?;
        let now = clock();
        slot.count(now.saturating_sub(last));
        last = now;
        done += 1;
        if board.stopped() {
            break;
        }
    }
    board.stop();
    let after = counters(schedstat.as_ref());
    let since = |of: fn(&Counters) -> u64| of(&after).saturating_sub(of(&before));
    let (wall, cpu) = (since(|at| at.now), since(|at| at.cpu));
    let queued = after
        .queued
        .zip(before.queued)
        .map(|(after, before)| after.saturating_sub(before));
    let rest = wall.saturating_sub(cpu).saturating_sub(queued.unwrap_or(0));
    // Who never gave up its CPU never waited: what is missing then was taken by a hypervisor, or queueing that is not known.
    let blocked = if after.gave_up > before.gave_up { rest } else { 0 };
    let known = Known {
        wall,
        cpu,
        queued,
        blocked,
        user: since(|at| at.user),
        kernel: since(|at| at.kernel),
    };
    known.note(slot);
    Ok(())
}

/// Programs: each worker runs all of its own, and none begins after the time.
fn run(plan: &Plan, board: &Board, slot: &Slot, mut reader: Box<dyn Reader>) -> Result<(), Errno> {
    let mut sum = Known {
        queued: Some(0),
        ..Known::default()
    };
    for _ in 0..plan.operations {
        let before = clock();
        reader.once()?;
        let wall = clock().saturating_sub(before);
        slot.count(wall);
        let run: Run = reader.run().unwrap_or_default();
        if run.status != 0 {
            slot.unsuccessful.fetch_add(1, Ordering::Relaxed);
            slot.status.store(run.status.cast_unsigned(), Ordering::Relaxed);
        }
        let cpu = run.user + run.kernel;
        sum.wall += wall;
        sum.cpu += cpu;
        sum.user += run.user;
        sum.kernel += run.kernel;
        sum.queued = sum.queued.zip(run.queued).map(|(sum, more)| sum + more);
        // Of several threads the CPU time can be more than the time.
        sum.blocked += wall.saturating_sub(cpu).saturating_sub(run.queued.unwrap_or(0));
        if board.stopped() {
            break;
        }
    }
    sum.note(slot);
    Ok(())
}

/// What one worker's time was, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    wall: u64,
    cpu: u64,
    queued: Option<u64>,
    blocked: u64,
    user: u64,
    kernel: u64,
}

impl Known {
    fn note(&self, slot: &Slot) {
        let put = |into: &AtomicU64, what: u64| into.store(what, Ordering::Relaxed);
        put(&slot.wall, self.wall);
        put(&slot.cpu, self.cpu);
        put(&slot.queued, self.queued.unwrap_or(0));
        put(&slot.blocked, self.blocked);
        put(&slot.ticks_user, self.user);
        put(&slot.ticks_kernel, self.kernel);
        slot.queue_untold
            .store(u32::from(self.queued.is_none()), Ordering::Relaxed);
        slot.whole.store(1, Ordering::Release);
    }
}

fn counters(schedstat: Option<&File>) -> Counters {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let time = |time: nix::sys::time::TimeVal| {
        time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_usec().cast_unsigned() * 1_000
    };
    let mut text = [0; 64];
    let queued = schedstat
        .and_then(|file| file.read_at(&mut text, 0).ok())
        .and_then(|length| {
            std::str::from_utf8(&text[..length])
                .ok()?
                .split_ascii_whitespace()
                .nth(1)?
                .parse()
                .ok()
        });
    Counters {
        cpu: clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, whole),
        now: clock(),
        queued,
        user: usage.as_ref().map_or(0, |usage| time(usage.user_time())),
        kernel: usage.as_ref().map_or(0, |usage| time(usage.system_time())),
        gave_up: usage
            .as_ref()
            .map_or(0, nix::sys::resource::Usage::voluntary_context_switches),
    }
}

fn clock() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, whole)
}

fn whole(time: nix::sys::time::TimeSpec) -> u64 {
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}
