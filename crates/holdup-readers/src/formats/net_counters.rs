//! What the kernel's network stack counted: `netstat -s`, `nstat`, `/proc/net/netstat` and `/proc/net/snmp`,
//! `/proc/net/sockstat`.
//!
//! In: counters since boot, by name. Out: those that rules look at; of several readings the differences. `nstat` without
//! `-a` prints what was added since it last ran, and does not say so: its readings are not compared.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::observed::Metric;
use memchr::memmem;

pub(crate) static STATISTICS: Format =
    Format::lines::<Statistics>("netstat-statistics", Family::Host, is_statistics).about("netstat -s");

pub(crate) static NSTAT: Format = Format::lines::<Nstat>("nstat", Family::Host, is_nstat)
    .about("nstat")
    .openings(&["#kernel"]);

pub(crate) static FILES: Format = Format::lines::<Files>("net-counters", Family::Host, is_files)
    .about("/proc/net/netstat and snmp")
    .openings(&["TcpExt: Syncookies", "Ip: Forwarding "]);

pub(crate) static SOCKSTAT: Format = Format::new(
    "sockstat",
    Family::Host,
    is_sockstat,
    Shape::Lines(|| Box::new(Sockstat)),
)
.about("/proc/net/sockstat")
.openings(&["sockets: used "]);

/// What is looked at: the kernel's group and name, the metric, and which part of it is meant.
const COUNTERS: [(&[u8], &[u8], Metric, &str); 5] = [
    (b"Tcp", b"OutSegs", Metric::TcpSegmentsSent, ""),
    (b"Tcp", b"RetransSegs", Metric::TcpSegmentsSentAgain, ""),
    (b"TcpExt", b"ListenOverflows", Metric::ListenQueueOverflows, ""),
    // A request that finds the queue full is answered with a cookie or dropped, as net.ipv4.tcp_syncookies says.
    (
        b"TcpExt",
        b"TCPReqQFullDoCookies",
        Metric::SynQueueOverflows,
        "answered with a cookie",
    ),
    (
        b"TcpExt",
        b"TCPReqQFullDrop",
        Metric::SynQueueOverflows,
        "dropped",
    ),
];

/// The counters of an artefact, over its readings.
#[derive(Debug, Default)]
struct Counters {
    last: [Option<u64>; COUNTERS.len()],
    /// Those of the current reading.
    now: [Option<u64>; COUNTERS.len()],
    readings: u64,
    /// Whether the readings may be compared.
    apart: bool,
}

impl Counters {
    /// A reading begins.
    fn begin(&mut self, out: &mut Out<'_>) {
        for (last, now) in self.last.iter_mut().zip(self.now) {
            *last = now.or(*last);
        }
        self.now = Default::default();
        self.readings += 1;
        out.report(None, None, self.readings == 1 || self.apart);
    }

    /// A counter of it, by its place. The first of a name that is there twice in one reading begins the next one.
    fn put(&mut self, at: usize, count: u64, out: &mut Out<'_>) {
        let twice = self.now.get(at).is_some_and(Option::is_some);
        if self.readings == 0 || twice {
            self.begin(out);
        }
        let (Some(now), Some(last), Some((_, _, metric, of))) =
            (self.now.get_mut(at), self.last.get(at), COUNTERS.get(at))
        else {
            return;
        };
        *now = Some(count);
        let value = match last.filter(|_| !self.apart) {
            Some(last) => count.checked_sub(last),
            None if self.readings == 1 || self.apart => Some(count),
            None => None,
        };
        if let Some(value) = value {
            out.figure(*metric, of, value as f64);
        }
    }
}

fn place(group: &[u8], name: &[u8]) -> Option<usize> {
    COUNTERS
        .iter()
        .position(|(own, counter, ..)| *own == group && *counter == name)
}

// netstat -s

/// Sections of it.
const SECTIONS: &[&[u8]] = &[
    b"Ip:",
    b"Ip6:",
    b"Icmp:",
    b"Icmp6:",
    b"IcmpMsg:",
    b"Tcp:",
    b"Udp:",
    b"Udp6:",
    b"UdpLite:",
    b"UdpLite6:",
    b"TcpExt:",
    b"IpExt:",
    b"MPTcpExt:",
    b"Sctp:",
];

fn is_statistics(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let section = lines.any(|line| matches!(line, b"Tcp:" | b"TcpExt:"));
    // With figures below it.
    let figures = lines
        .next()
        .is_some_and(|line| line.iter().any(u8::is_ascii_digit));
    if section && figures {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

#[derive(Debug, Default)]
struct Statistics {
    counters: Counters,
    section: Vec<u8>,
}

impl LineReader for Statistics {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if SECTIONS.contains(&line) {
            self.section = line.to_vec();
            return Understood::Ignorable;
        }
        let first = words(line).next().and_then(whole);
        let has = |text: &[u8]| memmem::find(line, text).is_some();
        let at = match &*self.section {
            b"Tcp:" if has(b"segments sent out") || has(b"segments send out") => place(b"Tcp", b"OutSegs"),
            b"Tcp:" if has(b"segments retransmit") => place(b"Tcp", b"RetransSegs"),
            b"TcpExt:" if has(b"times the listen queue of a socket overflowed") => {
                place(b"TcpExt", b"ListenOverflows")
            }
            b"" => return Understood::No,
            // What has no words of its own is there by its name.
            b"TcpExt:" if line.starts_with(b"TCPReqQFull") => {
                let mut parts = words(line);
                let at = parts
                    .next()
                    .and_then(|name| place(b"TcpExt", name.strip_suffix(b":")?));
                if let (Some(at), Some(count)) = (at, parts.next().and_then(whole)) {
                    self.counters.put(at, count, out);
                }
                return Understood::Evidence;
            }
            // All other lines of a section are a figure and its name, or a name and its figure, or a heading.
            _ if line.iter().any(u8::is_ascii_digit) || line.ends_with(b":") => return Understood::Ignorable,
            _ => return Understood::No,
        };
        match (at, first) {
            (Some(at), Some(count)) => {
                self.counters.put(at, count, out);
                Understood::Evidence
            }
            _ => Understood::No,
        }
    }
}

// nstat

fn nstat_row(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut words = words(line);
    let (name, count, rate) = (words.next()?, words.next()?, words.next()?);
    let is_name =
        name.first().is_some_and(u8::is_ascii_uppercase) && name.iter().all(u8::is_ascii_alphanumeric);
    let is_it = is_name && decimal(rate).is_some() && words.next().is_none();
    is_it.then(|| Some((name, whole(count)?)))?
}

fn is_nstat(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    if lines.clone().any(|line| line.trim_ascii() == b"#kernel") {
        return Sureness::Certain;
    }
    let groups: [&[u8]; 4] = [b"IpIn", b"IpOut", b"TcpOut", b"TcpExt"];
    let known = |line: &[u8]| {
        nstat_row(line).is_some_and(|(name, _)| groups.iter().any(|group| name.starts_with(group)))
    };
    if lines.any(known) {
        Sureness::Likely
    } else {
        Sureness::No
    }
}

#[derive(Debug, Default)]
struct Nstat {
    counters: Counters,
}

impl LineReader for Nstat {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        // `#kernel`, or `#15.1804289383 sampling_interval=1 time_const=60` of its daemon.
        if line.is_empty() || line.first() == Some(&b'#') {
            if self.counters.readings == 0 {
                let tool = out.source().tool.clone().unwrap_or_default();
                let absolute = tool
                    .split_whitespace()
                    .any(|word| word.starts_with('-') && word.contains('a'));
                self.counters.apart = !absolute;
            }
            return Understood::Ignorable;
        }
        let Some((name, count)) = nstat_row(line) else {
            return Understood::No;
        };
        let at = COUNTERS
            .iter()
            .position(|(group, counter, ..)| name.strip_prefix(*group).is_some_and(|rest| rest == *counter));
        match at {
            Some(at) => {
                self.counters.put(at, count, out);
                Understood::Evidence
            }
            None => Understood::Ignorable,
        }
    }
}

// /proc/net/netstat, /proc/net/snmp

/// The group of a line.
fn group(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b':', line)?;
    let (name, rest) = (line.get(..at)?, line.get(at + 1..)?);
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_alphanumeric);
    is_name.then_some((name, rest))
}

fn is_files(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let names: [(&[u8], &[u8]); 2] = [(b"TcpExt", b"ListenOverflows"), (b"Tcp", b"RetransSegs")];
    let found = lines.any(|line| {
        let Some((group, rest)) = group(line) else {
            return false;
        };
        names
            .iter()
            .any(|(own, counter)| group == *own && words(rest).any(|word| word == *counter))
    });
    if found { Sureness::Certain } else { Sureness::No }
}

#[derive(Debug, Default)]
struct Files {
    counters: Counters,
    /// The line of names that the next line has the numbers to.
    names: Vec<u8>,
}

/// Bytes of a line of names: a kernel has some 200 counters in a group.
const NAMES: usize = 16_384;

impl LineReader for Files {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some((own, rest)) = group(line) else {
            return Understood::No;
        };
        let names = words(rest)
            .next()
            .is_some_and(|word| word.iter().any(u8::is_ascii_alphabetic));
        if names {
            self.names.clear();
            self.names.extend_from_slice(line.get(..NAMES).unwrap_or(line));
            return Understood::Evidence;
        }
        let names = std::mem::take(&mut self.names);
        let Some((of, counters)) = group(&names).filter(|(of, _)| *of == own) else {
            return Understood::No;
        };
        for (name, number) in words(counters).zip(words(rest)) {
            if let (Some(at), Some(count)) = (place(of, name), whole(number)) {
                self.counters.put(at, count, out);
            }
        }
        Understood::Evidence
    }
}

// /proc/net/sockstat

fn is_sockstat(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let found = lines.any(|line| line.starts_with(b"TCP: inuse ") && memmem::find(line, b" tw ").is_some());
    if found { Sureness::Certain } else { Sureness::No }
}

#[derive(Debug)]
struct Sockstat;

impl LineReader for Sockstat {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let after = |name: &[u8]| {
            let mut words = words(line).skip_while(|word| *word != name);
            words.next()?;
            whole(words.next()?)
        };
        let first = words(line).next().unwrap_or_default();
        match first {
            b"TCP:" => {
                let (Some(used), Some(waiting)) = (after(b"inuse"), after(b"tw")) else {
                    return Understood::No;
                };
                out.report(None, None, false);
                out.figure(Metric::TcpSocketsInUse, "", used as f64);
                out.figure(Metric::TcpSocketsTimeWait, "", waiting as f64);
                Understood::Evidence
            }
            b"sockets:" | b"UDP:" | b"UDPLITE:" | b"RAW:" | b"FRAG:" | b"TCP6:" | b"UDP6:" | b"UDPLITE6:"
            | b"RAW6:" | b"FRAG6:" => Understood::Ignorable,
            _ => Understood::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Reading, read_text};
    use holdup_evidence::observed::Metric;

    fn values(reading: &Reading, metric: Metric) -> Vec<(f64, bool)> {
        let series = reading.observed.of(metric);
        series
            .flat_map(|series| series.points.iter().map(|point| (point.value, point.since_boot)))
            .collect()
    }

    const FILE: &str =
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDrop\nTcpExt: 0 42 42 42\n";
    const STATISTICS: &str = "Tcp:\n    122 active connection openings\n    1000 segments sent out\n    81 segments retransmitted\nTcpExt:\n    42 times the listen queue of a socket overflowed\n    TCPTimeouts: 80\n    TCPReqQFullDrop: 42\n";

    #[test]
    fn the_first_reading_is_since_boot_and_the_next_a_difference() {
        for (text, format) in [
            (FILE.replace("42", "40") + FILE, "net-counters"),
            (STATISTICS.replace("42", "40") + STATISTICS, "netstat-statistics"),
            (
                "$ nstat -a\n#kernel\nTcpExtListenOverflows 40 0.0\nTcpExtTCPReqQFullDrop 40 0.0\n#kernel\nTcpExtListenOverflows 42 0.0\nTcpExtTCPReqQFullDrop 42 0.0\n"
                    .to_owned(),
                "nstat",
            ),
        ] {
            let reading = read_text("a", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, format);
            for metric in [Metric::ListenQueueOverflows, Metric::SynQueueOverflows] {
                assert_eq!(values(&reading, metric), [(40.0, true), (2.0, false)], "{text}");
            }
            assert_eq!(reading.accounts[0].not_understood, 0, "{:?}", reading.accounts);
        }
    }

    #[test]
    fn readings_of_nstat_are_not_compared_where_it_may_tell_differences() {
        let text = "#kernel\nTcpExtListenOverflows 40 0.0\n#kernel\nTcpExtListenOverflows 42 0.0\n";
        let reading = read_text("a", text.as_bytes());
        assert!(
            values(&reading, Metric::ListenQueueOverflows)
                .iter()
                .all(|(_, since_boot)| *since_boot)
        );
    }

    #[test]
    fn sockets_in_use() {
        let text = "sockets: used 85\nTCP: inuse 72 orphan 0 tw 100 alloc 73 mem 1184\nUDP: inuse 0 mem 0\n";
        let reading = read_text("a", text.as_bytes());
        assert_eq!(values(&reading, Metric::TcpSocketsTimeWait), [(100.0, false)]);
    }

    #[test]
    fn rubbish_and_counters_that_begin_again() {
        let text = format!(
            "{FILE}TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 7\nTcpExt: 1 2 3\nTcpExt: a\nTcp: 1\n\0\0:\n:\nTcpExt: ListenOverflows\nTcpExt: 99999999999999999999999\n"
        );
        let reading = read_text("a", text.as_bytes());
        assert_eq!(values(&reading, Metric::ListenQueueOverflows), [(42.0, true)]);
        assert!(reading.accounts[0].not_understood > 0);
    }
}
