//! Performance events on one thread that say where it comes from and goes to in the kernel: registers in its own code, and its CPU time.
//!
//! `/proc` does not tell which call a running thread is in, and an ordinary user's events see nothing of the kernel. But x86-64's `syscall`
//! leaves the address after it in rcx, so a thread that is seen in its own code a moment after a call says from which place it called; and a
//! hardware breakpoint at that place sees the call's number and arguments as it begins, and that it ends. The kernel takes both from an
//! ordinary user for their own processes. What a breakpoint costs the thread is an exception of some microseconds, so each is for few
//! [`HITS`], after which the kernel itself turns it off. aarch64's `svc` leaves no such trace, so there is no probe. In: a thread's id,
//! places. Out: [`Hit`]s.

use super::arch::{self, Calls};
use holdup_perf::{Of, Ring};
use nix::errno::Errno;
use perf_event_open_sys::{bindings, ioctls};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Times that a breakpoint is hit before it is off.
pub(super) const HITS: u16 = 16;

/// CPU time between two samples while places are looked for, nanoseconds. Nearly all of a thread that the kernel works for fall into the
/// kernel, and are not taken.
const PERIOD: u64 = 250_000;

/// Page faults that are taken as samples: who has forked copies pages as it goes on.
const FAULTS: u16 = 32;

/// Bytes of `syscall`.
pub(super) const INSTRUCTION: u64 = 2;

/// `HW_BREAKPOINT_X`: an instruction that is about to be executed.
const EXECUTED: u32 = 4;

/// Data pages of a buffer: room for sixty records, and little of what a user may lock.
const PAGES: usize = 2;

/// The kernel's word for registers of a 64-bit program.
const ABI_64: u64 = 2;

/// A thread in its own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// CPU time that it has used since it is watched, nanoseconds.
    pub(super) clock: u64,
    /// Where it was.
    pub(super) ip: u64,
    /// rcx: after a call, where that returned to.
    pub(super) cx: u64,
    /// rax: a call's number as it begins.
    pub(super) ax: u64,
    /// A call's first four arguments.
    pub(super) args: [u64; 4],
}

/// Events of one thread; gone with this.
#[derive(Debug)]
pub(super) struct Probe {
    /// Counts CPU time.
    _clock: OwnedFd,
    calls: Calls,
    rings: Vec<Ring>,
}

impl Probe {
    /// Has a thread sampled in its own code.
    ///
    /// # Errors
    /// When the kernel refuses, or the processor does not tell where a call came from.
    pub(super) fn places(tid: u32) -> Result<Probe, Errno> {
        let calls = arch::CALLS.ok_or(Errno::EOPNOTSUPP)?;
        let clock = clock(tid, &calls)?;
        let mut ticks = event(
            bindings::PERF_TYPE_SOFTWARE,
            u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK),
            &calls,
        );
        ticks.__bindgen_anon_1.sample_period = PERIOD;
        let mut faults = event(
            bindings::PERF_TYPE_SOFTWARE,
            u64::from(bindings::PERF_COUNT_SW_PAGE_FAULTS),
            &calls,
        );
        faults.__bindgen_anon_1.sample_period = 1;
        faults.set_disabled(1);
        let ticks = Ring::with_pages(open(&mut ticks, tid, &clock)?, PAGES)?;
        let faults = limited(open(&mut faults, tid, &clock)?, FAULTS)?;
        Ok(Probe {
            _clock: clock,
            calls,
            rings: vec![ticks, faults],
        })
    }

    /// Has it seen as it makes calls from these places, addresses after `syscall`: [`HITS`] times before and after each.
    ///
    /// # Errors
    /// When the kernel refuses, or the CPU has no breakpoint left.
    pub(super) fn calls(tid: u32, places: &[u64]) -> Result<Probe, Errno> {
        let calls = arch::CALLS.ok_or(Errno::EOPNOTSUPP)?;
        let clock = clock(tid, &calls)?;
        let both = places
            .iter()
            .flat_map(|place| [place.saturating_sub(INSTRUCTION), *place]);
        let watch = |at: u64| {
            let mut here = event(bindings::PERF_TYPE_BREAKPOINT, 0, &calls);
            here.bp_type = EXECUTED;
            here.__bindgen_anon_3.bp_addr = at;
            here.__bindgen_anon_4.bp_len = size_of::<libc::c_long>() as u64;
            here.__bindgen_anon_1.sample_period = 1;
            here.set_disabled(1);
            open(&mut here, tid, &clock)
        };
        // All are there before the first is on.
        let events: Vec<OwnedFd> = both.map(watch).collect::<Result<_, _>>()?;
        let rings = events.into_iter().map(|event| limited(event, HITS));
        Ok(Probe {
            rings: rings.collect::<Result<_, _>>()?,
            calls,
            _clock: clock,
        })
    }

    /// What was seen since the last time, in the order of time.
    pub(super) fn drain(&mut self) -> Vec<Hit> {
        let mut hits = Vec::new();
        let calls = &self.calls;
        for ring in &mut self.rings {
            ring.drain(|record| hits.extend(hit(&record, calls)));
        }
        hits.sort_by_key(|hit| hit.clock);
        hits
    }
}

/// What counts the thread's CPU time, and leads the others, so that each of their records has it.
fn clock(tid: u32, calls: &Calls) -> Result<OwnedFd, Errno> {
    let mut clock = event(
        bindings::PERF_TYPE_SOFTWARE,
        u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK),
        calls,
    );
    clock.sample_type = 0;
    holdup_perf::open(&mut clock, Of::Thread(tid, None), None)
}

fn limited(event: OwnedFd, times: u16) -> Result<Ring, Errno> {
    let ring = Ring::with_pages(event, PAGES)?;
    // SAFETY: an event that lives; it is on for so many records.
    let on = unsafe { ioctls::REFRESH(ring.as_fd().as_raw_fd(), times.into()) };
    if on < 0 {
        return Err(Errno::last());
    }
    Ok(ring)
}

fn event(kind: u32, config: u64, calls: &Calls) -> bindings::perf_event_attr {
    let mut attributes = bindings::perf_event_attr {
        type_: kind,
        size: u32::try_from(size_of::<bindings::perf_event_attr>()).expect("a small structure"),
        config,
        sample_type: u64::from(
            bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_READ | bindings::PERF_SAMPLE_REGS_USER,
        ),
        read_format: u64::from(bindings::PERF_FORMAT_GROUP),
        sample_regs_user: calls.mask,
        ..Default::default()
    };
    attributes.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attributes.set_watermark(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes
}

fn open(attributes: &mut bindings::perf_event_attr, tid: u32, leader: &OwnedFd) -> Result<OwnedFd, Errno> {
    holdup_perf::open(attributes, Of::Thread(tid, None), Some(leader.as_fd()))
}

/// A record, if it is a sample of a 64-bit program: header, process and thread, how many values and these, kind of registers, registers.
fn hit(record: &[u8], calls: &Calls) -> Option<Hit> {
    const HEADER: usize = size_of::<bindings::perf_event_header>();
    const COUNT: usize = HEADER + 8;
    let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    if word(0)? != bindings::PERF_RECORD_SAMPLE {
        return None;
    }
    let values = usize::try_from(long(COUNT)?).ok().filter(|count| *count > 0)?;
    let kind = values.checked_mul(8)?.checked_add(COUNT + 8)?;
    if long(kind)? != ABI_64 {
        return None;
    }
    let register = |index: usize| long(kind + 8 + index * 8);
    let [first, second, third, fourth] = calls.args;
    Some(Hit {
        clock: long(COUNT + 8)?,
        ax: register(calls.number)?,
        cx: register(calls.returned_to)?,
        args: [
            register(first)?,
            register(second)?,
            register(third)?,
            register(fourth)?,
        ],
        ip: register(calls.ip)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{ABI_64, Hit};
    use crate::sampling::arch::X86_64_CALLS;

    fn hit(record: &[u8]) -> Option<Hit> {
        super::hit(record, &X86_64_CALLS)
    }

    fn record(values: u64, abi: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(9_u32.to_ne_bytes());
        bytes.extend([0; 12]);
        bytes.extend(values.to_ne_bytes());
        (0..values).for_each(|value| bytes.extend((100 + value).to_ne_bytes()));
        bytes.extend(abi.to_ne_bytes());
        (1..=7_u64).for_each(|value| bytes.extend(value.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_record_is_read_and_what_is_cut_off_is_none() {
        let whole = record(3, ABI_64);
        let seen = Hit {
            clock: 100,
            ax: 1,
            cx: 2,
            args: [5, 4, 3, 7],
            ip: 6,
        };
        assert_eq!(hit(&whole), Some(seen));
        for end in 0..whole.len() {
            assert_eq!(hit(&whole[..end]), None, "{end}");
        }
        assert_eq!(hit(&record(3, 1)), None, "a 32-bit program");
        assert_eq!(hit(&record(0, ABI_64)), None, "no clock");
        let mut many = whole;
        many[16..24].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(hit(&many), None);
    }
}
