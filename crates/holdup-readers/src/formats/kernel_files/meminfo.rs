//! `/proc/meminfo`.

use super::clock::Clock;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("meminfo", Family::Host, recognise)
    .about("/proc/meminfo")
    .openings(&["MemTotal: "]);

/// KiB that a machine can have at most: a figure above it is none.
const MOST_KIB: u64 = 1 << 42;

fn recognise(head: &[u8]) -> Sureness {
    let mut names = head
        .split(|byte| *byte == b'\n')
        .filter_map(|line| Some(pair(line)?.0));
    if names.clone().any(|name| name == b"MemTotal") && names.any(|name| name == b"MemFree") {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// `MemFree:  12 kB`.
fn pair(line: &[u8]) -> Option<(&[u8], u64)> {
    let at = memchr::memchr(b':', line)?;
    let (name, rest) = (line.get(..at)?.trim_ascii(), line.get(at + 1..)?);
    let mut words = words(rest);
    let number = whole(words.next()?)?;
    let unit = matches!(words.next(), None | Some(b"kB"));
    (unit && words.next().is_none() && is_name(name)).then_some((name, number))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && {
        let mut bytes = name.iter();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'(' | b')'))
    }
}

#[derive(Debug, Default)]
struct Reader {
    clock: Clock,
    swap: Option<u64>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() || self.clock.line(line) {
            return Understood::Ignorable;
        }
        let Some((name, kib)) = pair(line) else {
            return Understood::No;
        };
        if kib > MOST_KIB {
            // VmallocTotal is the size of an address space.
            return if name.starts_with(b"Vmalloc") {
                Understood::Ignorable
            } else {
                Understood::No
            };
        }
        if name == b"MemTotal" {
            let (at, _) = self.clock.reading();
            out.report(at, None, false);
        }
        let metric = match name {
            b"MemTotal" => Metric::MemoryTotalKib,
            b"MemFree" => Metric::MemoryFreeKib,
            b"MemAvailable" => Metric::MemoryAvailableKib,
            b"Buffers" => Metric::MemoryBuffersKib,
            b"Cached" => Metric::MemoryCachedKib,
            b"Dirty" => Metric::MemoryDirtyKib,
            b"Writeback" => Metric::MemoryWritebackKib,
            b"Committed_AS" => Metric::MemoryCommittedKib,
            b"CommitLimit" => Metric::MemoryCommitLimitKib,
            b"Mlocked" => Metric::MemoryLockedKib,
            b"SUnreclaim" => Metric::MemorySlabUnreclaimableKib,
            b"SwapTotal" => {
                self.swap = Some(kib);
                Metric::SwapTotalKib
            }
            b"SwapFree" => {
                let Some(used) = self.swap.take().and_then(|total| total.checked_sub(kib)) else {
                    return Understood::No;
                };
                out.figure(Metric::SwapUsedKib, "", used as f64);
                return Understood::Evidence;
            }
            _ => return Understood::Ignorable,
        };
        out.figure(metric, "", kib as f64);
        Understood::Evidence
    }
}
