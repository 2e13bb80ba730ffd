//! `/proc/vmstat`: counters since boot. Of several readings with times the differences a second are taken.

use super::clock::Clock;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("vmstat-counters", Family::Host, recognise)
    .about("/proc/vmstat")
    .openings(&["nr_free_pages "]);

/// What is looked at: the counter and what it is a second.
const COUNTERS: [(&[u8], Metric); 5] = [
    (b"pgpgin", Metric::BlocksInPerSecond),
    (b"pgpgout", Metric::BlocksOutPerSecond),
    (b"pswpin", Metric::SwapInPagesPerSecond),
    (b"pswpout", Metric::SwapOutPagesPerSecond),
    (b"pgmajfault", Metric::MajorFaultsPerSecond),
];

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    Sureness::certain_if(has(b"nr_free_pages ") && (has(b"nr_zone_inactive_anon ") || has(b"pgpgin ")))
}

#[derive(Debug, Default)]
struct Reader {
    clock: Clock,
    last: [Option<u64>; COUNTERS.len()],
    over: Option<Ns>,
    readings: u64,
    timed: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() || self.clock.line(line) {
            return Understood::Ignorable;
        }
        let mut words = words(line);
        let (Some(name), Some(number), None) = (words.next(), words.next().and_then(whole), words.next())
        else {
            return Understood::No;
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if !name.iter().all(is_name) {
            return Understood::No;
        }
        if name == b"nr_free_pages" {
            self.readings += 1;
            let (at, over) = self.clock.reading();
            self.over = over;
            self.timed |= over.is_some();
            out.report(at, over, self.readings == 1);
            return Understood::Evidence;
        }
        let Some(at) = COUNTERS.iter().position(|(counter, _)| *counter == name) else {
            return Understood::Ignorable;
        };
        let (Some((_, metric)), Some(last)) = (COUNTERS.get(at), self.last.get_mut(at)) else {
            return Understood::No;
        };
        let before = last.replace(number);
        if let (Some(over), Some(grown)) = (self.over, before.and_then(|before| number.checked_sub(before))) {
            out.figure(*metric, "", grown as f64 * 1e9 / over as f64);
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if self.readings > 0 && !self.timed {
            out.problem(SINCE_BOOT);
        }
    }
}

/// Said of counters that were read once, or without a time.
pub(super) const SINCE_BOOT: &str = "counters since boot: what happens now shows only in two readings, each behind its time (`cat /proc/uptime`)";
