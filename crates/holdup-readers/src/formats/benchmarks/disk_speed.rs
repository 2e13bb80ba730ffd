//! `ioping` and `hdparm -t`: how long one request to a disk takes, and how fast it reads.
//!
//! In: `min/avg/max/mdev = 388.1 ms / 451.3 ms / …` below ioping's statistics; `Timing buffered disk reads: 14 MB in 3.41 seconds = 4.11 MB/sec`.
//! Out: one statement for each, with its norm. Even a disk that turns answers within some 20 ms and reads more than 30 MB in a second.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, name_of, number};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("disk-speed", Family::Times, recognise).about("ioping, hdparm -t");

/// The mean of a request from which a disk is slow.
const SLOW_NS: Ns = 50_000_000;

/// Megabytes a second below which a disk reads slowly.
const SLOW_MB: f64 = 20.0;

const OF_READS: &str = "Timing buffered disk reads:";
/// Parts of the tools' other lines, which say the same in other words or nothing of the disk.
const OTHERS: [&str; 4] = [
    " <<< ",
    "requests completed in",
    " iops, ",
    "Timing cached reads:",
];

const OF_TIMES: &str = "min/avg/max/mdev = ";

fn recognise(head: &[u8]) -> Sureness {
    let ioping = any_line(head, |line| line.contains(" ioping statistics ---"));
    Sureness::certain_if(ioping || any_line(head, |line| line.starts_with(OF_READS)))
}

#[derive(Debug, Default)]
struct Reader {
    disk: String,
    of_ioping: bool,
}

/// `451.3 ms` in nanoseconds.
fn length(text: &str) -> Option<Ns> {
    let mut words = text.split_whitespace();
    let value = number(words.next()?)?;
    let factor = match words.next()? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 6e10,
        _ => return None,
    };
    Some((value * factor).min(1e18) as Ns)
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(disk) = text
            .strip_prefix("--- ")
            .and_then(|rest| rest.strip_suffix(" ioping statistics ---"))
        {
            self.disk = name_of(disk);
            self.of_ioping = true;
            return Understood::Evidence;
        }
        if text.starts_with("/dev/") && text.ends_with(':') {
            self.disk = name_of(text.trim_end_matches(':'));
            return Understood::Evidence;
        }
        if let Some(times) = text.strip_prefix(OF_TIMES).filter(|_| self.of_ioping) {
            self.times(times, out);
            return Understood::Evidence;
        }
        if let Some(told) = text.strip_prefix(OF_READS)
            && let Some((_, rate)) = told.rsplit_once('=')
        {
            self.rate(rate, out);
            return Understood::Evidence;
        }
        match OTHERS.iter().any(|part| text.contains(part)) {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }
}

impl Reader {
    fn called(&self) -> &str {
        match self.disk.as_str() {
            "" => "the disk",
            disk => disk,
        }
    }

    fn times(&self, times: &str, out: &mut Out<'_>) {
        let each: Vec<Ns> = times.split('/').filter_map(length).collect();
        let [_, mean, most, ..] = each.as_slice() else {
            return;
        };
        let (kind, more) = match *mean >= SLOW_NS {
            true => (StatementKind::Stalled, ": the disk is slow or overloaded"),
            false => (StatementKind::WithinNorm, ""),
        };
        let text = format!(
            "a request to {} takes {} at the mean and {} at most{more} (less than {} is well)",
            self.called(),
            duration(*mean),
            duration(*most),
            duration(SLOW_NS)
        );
        out.statement(Statement {
            ns: Some(*mean),
            ..statements::one(kind, None, out.here(), text)
        });
    }

    fn rate(&self, rate: &str, out: &mut Out<'_>) {
        let mut words = rate.split_whitespace();
        let Some(value) = words.next().and_then(number) else {
            return;
        };
        let mb = match words.next() {
            Some("kB/sec") => value / 1_000.0,
            Some("MB/sec") => value,
            Some("GB/sec") => value * 1_000.0,
            _ => return,
        };
        let (kind, more) = match mb < SLOW_MB {
            true => (
                StatementKind::Stalled,
                ": the disk is slow, failing or overloaded",
            ),
            false => (StatementKind::WithinNorm, ""),
        };
        let text = format!(
            "{} reads {mb:.1} MB a second{more} (more than {SLOW_MB:.0} is well)",
            self.called()
        );
        out.statement(statements::one(kind, None, out.here(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "disk-speed");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn a_disk_that_is_slow_to_answer_or_to_read() {
        let text = "--- /var (ext4 /dev/sda1) ioping statistics ---\n3 requests completed in 1.35 s, 12 KiB read, 2 iops, 8.9 KiB/s\n\
            min/avg/max/mdev = 388.1 ms / 451.3 ms / 1.1 s / 50.2 ms\n";
        let told = "a request to /var (ext4 /dev/sda1) takes 451 ms at the mean and 1.10 s at most: the disk is slow or overloaded (less than 50.0 ms is well)";
        assert_eq!(said(text), [(StatementKind::Stalled, told.to_owned())]);
        let text = "/dev/sda:\n Timing cached reads:   11524 MB in  2.00 seconds = 5768.27 MB/sec\n Timing buffered disk reads:  14 MB in  3.41 seconds =   4.11 MB/sec\n";
        let told =
            "/dev/sda reads 4.1 MB a second: the disk is slow, failing or overloaded (more than 20 is well)";
        assert_eq!(said(text), [(StatementKind::Stalled, told.to_owned())]);
    }

    #[test]
    fn a_healthy_disk_is_well() {
        let text = "--- . (ext4 /dev/nvme0n1) ioping statistics ---\nmin/avg/max/mdev = 90.1 us / 451.3 us / 11.1 ms / 50.2 us\n";
        assert_eq!(said(text)[0].0, StatementKind::WithinNorm);
        let text = "/dev/sdb:\n Timing buffered disk reads: 520 MB in  3.01 seconds = 172.76 MB/sec\n";
        assert_eq!(said(text)[0].0, StatementKind::WithinNorm);
        let _ = read_text(
            "d",
            b"--- ioping statistics ---\nmin/avg/max/mdev = /\n Timing buffered disk reads: = =\n",
        );
    }
}
