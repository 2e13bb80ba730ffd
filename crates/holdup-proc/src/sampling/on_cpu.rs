//! Where running threads are, by the kernel's software clock: their registers and the top of their stack, user mode only.
//!
//! `/proc` tells of a running thread that it runs, and nothing else. A performance event of one's own process needs no privilege where
//! `kernel.perf_event_paranoid` is 2 or less; some distributions have 3 or 4, and containers' filters refuse the call. In: thread ids;
//! what they make later is in it too. Out: [`OnCpu::drain`].

use super::arch;
use holdup_evidence::arch::SavedRegisters;
use holdup_perf::{Of, Ring};
use nix::errno::Errno;
use perf_event_open_sys::bindings;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// CPU time between two samples of a thread, nanoseconds: as often as two hundredths of a core's worth of unwinding can make use of.
pub(super) const PERIOD: u64 = 25_000_000;

/// Memory that goes with a sample, bytes: most stacks' whole, and few enough that a buffer holds thirty of them.
const STACK: u32 = 8 << 10;

/// CPUs beyond which no thread is watched so: each thread that is born gets an event for each.
const MOST_CPUS: usize = 128;

/// Threads that may be watched from the middle of their lives: each takes a descriptor for each CPU.
const MOST_EVENTS: usize = 2_048;

/// How many registers come with a sample.
const REGISTER_COUNT: usize = arch::STACK.count_ones() as usize;

/// The kernel's word for registers of a 64-bit program.
const ABI_64: u64 = 2;

/// A thread's registers in its own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// What functions keep for their callers.
    pub saved: SavedRegisters,
}

/// A running thread, seen once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub tid: u32,
    /// Where it was.
    pub registers: Registers,
    /// Memory from its stack pointer upward, bytes.
    pub stack: Vec<u8>,
}

/// The software clocks of the threads that are watched.
#[derive(Debug, Default)]
pub struct OnCpu {
    cpus: Vec<u32>,
    /// Events at most.
    most: usize,
    rings: Vec<Ring>,
    /// Events that write into those.
    others: Vec<OwnedFd>,
}

impl OnCpu {
    /// For these CPUs, with so many open files at most; nobody is watched yet.
    #[must_use]
    pub fn new(cpus: Vec<u32>, files: usize) -> OnCpu {
        OnCpu {
            cpus,
            most: files.min(MOST_EVENTS),
            ..OnCpu::default()
        }
    }

    /// Watches a thread, and all that it makes from now on.
    ///
    /// # Errors
    /// When the kernel refuses: permission, a filter, no memory to lock, or too many CPUs.
    pub fn watch(&mut self, tid: u32) -> Result<(), Errno> {
        if self.cpus.is_empty() {
            return Err(Errno::ENODEV);
        }
        if self.cpus.len() > MOST_CPUS {
            return Err(Errno::E2BIG);
        }
        if self.rings.len() + self.others.len() + self.cpus.len() > self.most {
            return Err(Errno::EMFILE);
        }
        if self.rings.is_empty() {
            let rings = self.cpus.iter().map(|cpu| Ring::of(open(tid, *cpu)?));
            self.rings = rings.collect::<Result<_, _>>()?;
            return Ok(());
        }
        for (cpu, ring) in self.cpus.iter().zip(&self.rings) {
            let event = open(tid, *cpu)?;
            // SAFETY: both are events of the same CPU, and live.
            let set = unsafe {
                perf_event_open_sys::ioctls::SET_OUTPUT(event.as_raw_fd(), ring.as_fd().as_raw_fd())
            };
            if set < 0 {
                return Err(Errno::last());
            }
            self.others.push(event);
        }
        Ok(())
    }

    /// Threads that were seen running since the last time.
    pub fn drain(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for ring in &mut self.rings {
            ring.drain(|record| seen.extend(sample(&record)));
        }
        seen
    }
}

/// Whether the calling thread may be watched: then a refusal has to do with whom it was for.
#[must_use]
pub fn may_watch_itself(cpu: u32) -> bool {
    /// The calling thread.
    const ITSELF: u32 = 0;
    open(ITSELF, cpu).is_ok()
}

fn open(tid: u32, cpu: u32) -> Result<OwnedFd, Errno> {
    let mut attributes = bindings::perf_event_attr {
        type_: bindings::PERF_TYPE_SOFTWARE,
        size: u32::try_from(size_of::<bindings::perf_event_attr>()).expect("a small structure"),
        config: u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK),
        sample_type: u64::from(
            bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_REGS_USER | bindings::PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: arch::STACK,
        sample_stack_user: STACK,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = PERIOD;
    attributes.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attributes.set_watermark(1);
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    holdup_perf::open(&mut attributes, Of::Thread(tid, Some(cpu)), None)
}

/// A record, if it is a sample of a 64-bit program: header, process and thread, kind of registers, registers, room for the
/// stack, that, and how much of it is filled.
fn sample(record: &[u8]) -> Option<Seen> {
    const HEADER: usize = size_of::<bindings::perf_event_header>();
    const AFTER_IDS: usize = HEADER + 8;
    const AFTER_REGISTERS: usize = AFTER_IDS + 8 + REGISTER_COUNT * 8;
    let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    if word(0)? != bindings::PERF_RECORD_SAMPLE || long(AFTER_IDS)? != ABI_64 {
        return None;
    }
    let mut values = [0; REGISTER_COUNT];
    for (index, value) in values.iter_mut().enumerate() {
        *value = long(AFTER_IDS + 8 + index * 8)?;
    }
    let (ip, sp, saved) = arch::stack(&values);
    let registers = Registers { ip, sp, saved };
    let room = usize::try_from(long(AFTER_REGISTERS)?).ok()?;
    let memory = record.get(AFTER_REGISTERS + 8..)?.get(..room)?;
    let filled = match room {
        0 => 0,
        _ => usize::try_from(long(AFTER_REGISTERS + 8 + room)?).ok()?,
    };
    Some(Seen {
        tid: word(HEADER + 4)?,
        registers,
        stack: memory.get(..filled)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::{ABI_64, OnCpu, REGISTER_COUNT, Registers, arch, sample};

    fn record(abi: u64, filled: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(9_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(8_u32.to_ne_bytes());
        bytes.extend(abi.to_ne_bytes());
        (1..=REGISTER_COUNT as u64).for_each(|value| bytes.extend(value.to_ne_bytes()));
        bytes.extend(16_u64.to_ne_bytes());
        bytes.extend([5; 16]);
        bytes.extend(filled.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_sample_is_read_and_what_is_cut_off_is_none() {
        let whole = record(ABI_64, 12);
        let seen = sample(&whole).unwrap();
        let (ip, sp, saved) = arch::stack(&std::array::from_fn(|index| index as u64 + 1));
        let registers = Registers { ip, sp, saved };
        assert_eq!((seen.tid, seen.registers, seen.stack.len()), (8, registers, 12));
        for end in 0..whole.len() {
            assert_eq!(sample(&whole[..end]), None, "{end}");
        }
        assert_eq!(sample(&record(1, 12)), None, "a 32-bit program");
        assert_eq!(sample(&record(ABI_64, 17)), None, "more than there was room for");
    }

    #[test]
    fn nobody_can_be_watched_on_no_cpu() {
        assert!(OnCpu::new(Vec::new(), 9).watch(std::process::id()).is_err());
    }
}
