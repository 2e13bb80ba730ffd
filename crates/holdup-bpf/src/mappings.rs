//! Which file is mapped where in which process, from the kernel's own announcements: complete even for
//! processes that live for a millisecond, and without ever reading `/proc/PID/maps`, which can block.

use holdup_evidence::Ns;
use holdup_perf::{Of, Ring};
use nix::errno::Errno;
use perf_event_open_sys::bindings;
use std::os::fd::OwnedFd;

/// Something that changed a process's address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// When.
    pub at: Ns,
    /// Process id.
    pub pid: u32,
    /// What.
    pub change: Change,
}

/// What happened to an address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An exec: everything mapped before is gone.
    Exec,
    /// An executable mapping was made.
    Map(Mapping),
}

/// An executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Device of the file, major and minor.
    pub device: (u32, u32),
    /// Inode of the file; 0 for what is none.
    pub inode: u64,
    /// Path as the process's mount namespace has it. Hostile text.
    pub path: String,
}

/// The announcements of all CPUs.
pub struct Mappings {
    rings: Vec<Ring>,
    /// Announcements that the kernel dropped.
    pub lost: u64,
}

impl Mappings {
    /// Listens on each of these CPUs, all processes.
    ///
    /// # Errors
    /// When the kernel refuses performance events (permission, or no support).
    pub fn listen(cpus: &[u32]) -> Result<Mappings, Errno> {
        Ok(Mappings {
            rings: cpus
                .iter()
                .map(|cpu| Ring::of(announcements(*cpu)?))
                .collect::<Result<_, _>>()?,
            lost: 0,
        })
    }

    /// Everything announced since the last call, in order of time.
    pub fn drain(&mut self) -> Vec<Mapped> {
        let mut mapped = Vec::new();
        for ring in &mut self.rings {
            ring.drain(|record| {
                if kind(&record) == bindings::PERF_RECORD_LOST {
                    self.lost += number(&record, 16).unwrap_or(0);
                }
                mapped.extend(announced(&record));
            });
        }
        mapped.sort_by_key(|one| one.at);
        mapped
    }
}

/// The event that announces mappings on a CPU.
fn announcements(cpu: u32) -> Result<OwnedFd, Errno> {
    let mut attributes = bindings::perf_event_attr {
        type_: bindings::PERF_TYPE_SOFTWARE,
        size: u32::try_from(size_of::<bindings::perf_event_attr>()).expect("a small structure"),
        config: u64::from(bindings::PERF_COUNT_SW_DUMMY),
        sample_type: u64::from(bindings::PERF_SAMPLE_TIME),
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    open_event(&mut attributes, cpu)
}

/// Opens a software event on one CPU, for all processes.
pub(crate) fn open_event(attributes: &mut bindings::perf_event_attr, cpu: u32) -> Result<OwnedFd, Errno> {
    holdup_perf::open(attributes, Of::Cpu(cpu), None)
}

fn number(record: &[u8], at: usize) -> Option<u64> {
    record
        .get(at..)?
        .first_chunk()
        .map(|bytes| u64::from_ne_bytes(*bytes))
}

fn word(record: &[u8], at: usize) -> Option<u32> {
    record
        .get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_ne_bytes(*bytes))
}

/// What one record of the kernel's buffer announces, its header included; `None` where that is no change of an address
/// space, or makes no sense.
#[must_use]
pub fn announced(record: &[u8]) -> Option<Mapped> {
    let flags = u32::from(u16::from_ne_bytes(*record.get(4..)?.first_chunk()?));
    match kind(record) {
        bindings::PERF_RECORD_COMM if flags & bindings::PERF_RECORD_MISC_COMM_EXEC != 0 => exec(record),
        bindings::PERF_RECORD_MMAP2 => mmap2(record),
        _ => None,
    }
}

/// A record's type number; 0, which is none, where not even that is there.
fn kind(record: &[u8]) -> u32 {
    word(record, 0).unwrap_or(0)
}

/// A new name because of an exec: header 8, pid, tid, name padded to 8, time.
fn exec(record: &[u8]) -> Option<Mapped> {
    let time = record.len().checked_sub(8)?;
    Some(Mapped {
        at: number(record, time)?,
        pid: word(record, 8)?,
        change: Change::Exec,
    })
}

/// A mapping: header 8, pid, tid, start, length, offset, major, minor, inode, generation, prot, flags, path
/// padded to 8, time.
fn mmap2(record: &[u8]) -> Option<Mapped> {
    const PATH: usize = 72;
    let time = record.len().checked_sub(8)?;
    let path = record.get(PATH..time)?;
    let start = number(record, 16)?;
    let mapping = Mapping {
        start,
        end: start.checked_add(number(record, 24)?)?,
        offset: number(record, 32)?,
        device: (word(record, 40)?, word(record, 44)?),
        inode: number(record, 48)?,
        path: String::from_utf8_lossy(path.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned(),
    };
    Some(Mapped {
        at: number(record, time)?,
        pid: word(record, 8)?,
        change: Change::Map(mapping),
    })
}

#[cfg(test)]
mod tests {
    use super::{Change, Mapped, Mapping, mmap2};

    #[test]
    fn an_announcement_is_read_field_by_field() {
        let mut record = vec![0; 8];
        for word in [42u32, 43] {
            record.extend(word.to_ne_bytes());
        }
        for number in [0x1000u64, 0x2000, 0x3000] {
            record.extend(number.to_ne_bytes());
        }
        for word in [8u32, 1] {
            record.extend(word.to_ne_bytes());
        }
        for number in [77u64, 1] {
            record.extend(number.to_ne_bytes());
        }
        record.extend([0; 8]);
        record.extend(b"/lib/a.so\0\0\0\0\0\0\0");
        record.extend(99u64.to_ne_bytes());
        let mapping = Mapping {
            start: 0x1000,
            end: 0x3000,
            offset: 0x3000,
            device: (8, 1),
            inode: 77,
            path: "/lib/a.so".to_owned(),
        };
        assert_eq!(
            mmap2(&record),
            Some(Mapped {
                at: 99,
                pid: 42,
                change: Change::Map(mapping)
            })
        );
        for len in 0..record.len() - 8 {
            // Cut short it is refused or read within its bounds; never past them.
            let _ = mmap2(&record[..len]);
        }
        assert_eq!(mmap2(&record[..40]), None);
    }
}
