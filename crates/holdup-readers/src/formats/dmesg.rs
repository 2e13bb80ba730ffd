//! The kernel's log as `dmesg` prints it: raw, `-T`, `-x`, `-r`, `-d`, `--time-format iso`, and as `/dev/kmsg` has it.
//!
//! In: lines with a time and a message, with or without facility and level. Out: what the kernel tells, and how many lines
//! it wrote. Lines without a time are the rest of a message of several lines.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::kernel::{Kernel, Message};
use crate::manager::Manager;
use crate::stamp::{self, Stamp};
use holdup_evidence::observed::When;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("dmesg", Family::Logs, recognise)
    .about("dmesg")
    .openings(&[
        "[    0.000000] Linux version ",
        "[    0.000000] Booting Linux on ",
    ]);

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 60;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let (mut lines_seen, mut of_kernel, mut certain) = (0, 0, false);
    for line in lines.filter(|line| !line.is_empty()).take(LOOKED_AT) {
        lines_seen += 1;
        if is_bare(line) {
            // No other log has such a line without a program before it.
            return Sureness::Certain;
        }
        let Some((_, text)) = split(line) else { continue };
        if is_bare(text) {
            return Sureness::Certain;
        }
        let own = text.starts_with(b"Linux version ") || text.starts_with(b"random: ");
        of_kernel += usize::from(own || as_printed(line, text));
        certain |= own;
    }
    match (of_kernel, lines_seen) {
        (0, _) => Sureness::No,
        _ if certain => Sureness::Certain,
        (of_kernel, seen) if of_kernel * 2 >= seen => Sureness::Likely,
        _ => Sureness::No,
    }
}

/// Whether a message of the kernel stands there without a time, as people paste it.
fn is_bare(line: &[u8]) -> bool {
    const BEGIN: [&[u8]; 17] = [
        b"BUG: workqueue lockup - pool",
        b"INFO: task ",
        b"INFO: rcu_",
        b"rcu: INFO: rcu_",
        b"watchdog: BUG: soft lockup - CPU#",
        b"NMI watchdog: BUG: soft lockup - CPU#",
        b"BUG: soft lockup - CPU#",
        b"sysrq: Show Blocked State",
        b"SysRq : Show Blocked State",
        b"Out of memory: Kill",
        b"[ INFO: possible circular locking dependency detected",
        b"[ INFO: possible recursive locking detected",
        b"WARNING: possible circular locking dependency detected",
        b"WARNING: possible recursive locking detected",
        b"NMI watchdog: Watchdog detected hard LOCKUP on cpu",
        b"Watchdog detected hard LOCKUP on cpu",
        b"watchdog: Watchdog detected hard LOCKUP on cpu",
    ];
    let line = spoken(line);
    BEGIN.iter().any(|begin| line.starts_with(begin))
}

/// A line without what stands in front of its message where that has no time: which thread or CPU, that it is the kernel's.
fn spoken(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"kernel:").unwrap_or(line).trim_ascii_start();
    stamp::after_caller(line)
}

/// Bytes of a line in which the kernel's own time is looked for, behind what somebody else has put in front of it.
const IN_FRONT: usize = 200;

/// The kernel's time and message behind somebody else's words: a hypervisor's time and the name of its guest, a message to all
/// terminals (`kernel:[405108.698255] `), a prompt of a console (`/ # [90216.140000] `).
fn behind(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let head = line.get(..IN_FRONT).unwrap_or(line);
    let (at, stamp, text) = memchr::memchr_iter(b'[', head)
        .filter(|at| *at > 0)
        .find_map(|at| {
            let own = line.get(at..)?;
            let (stamp, text) = stamp::bracketed(own).filter(|_| as_printed(own, b""))?;
            stamp.since_boot.map(|_| (at, stamp, text))
        })?;
    let front = line.get(..at)?.trim_ascii_end();
    let ends = matches!(front.last(), Some(b':' | b'>' | b'#' | b'$' | b'|'));
    let others = super::journal::message(line).is_some() || super::journal::has_program(text);
    (ends && !others).then_some((stamp, text))
}

/// Whether a line's time is as dmesg prints it: microseconds since boot, or the date as `ctime` has it. Others count from
/// their own start with three digits (an X server), or put brackets behind the date (a web server).
fn as_printed(line: &[u8], text: &[u8]) -> bool {
    let Some(inner) = after_level(line).strip_prefix(b"[") else {
        return true;
    };
    match inner.trim_ascii_start().first() {
        Some(b'0'..=b'9') => {
            let part = memchr::memchr(b'.', inner).and_then(|point| inner.get(point + 1..));
            let digits = part.map(|part| part.iter().take_while(|byte| byte.is_ascii_digit()).count());
            digits == Some(6)
        }
        _ => !text.starts_with(b"["),
    }
}

/// A line's time and message. `None` where it has no time, or is of a journal with the time since boot: that has a host
/// and a program before the message.
fn split(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let line = after_level(line.trim_ascii_start());
    if line.first() == Some(&b'[') {
        return stamp::bracketed(line).filter(|(_, text)| !super::journal::has_program(text));
    }
    if let Some(kmsg) = kmsg(line) {
        return Some(kmsg);
    }
    // A collector of consoles puts its own time before the kernel's.
    if let Some((_, rest)) = stamp::iso(line)
        && let Some((stamp, text)) = stamp::bracketed(rest.trim_ascii_start())
        && stamp.since_boot.is_some()
    {
        return (!super::journal::has_program(text)).then_some((stamp, text));
    }
    // `2019-04-17T12:05:06,123456+03:00`, which hardly anybody else writes: microseconds behind a comma, and the zone.
    let micros = line
        .get(20..26)
        .is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let shape = line.get(10) == Some(&b'T') && line.get(19) == Some(&b',') && micros;
    let found = stamp::iso(line).filter(|(stamp, _)| shape && matches!(stamp.at, Some(When::Unix(_))));
    match found {
        Some((stamp, text)) => (!super::journal::has_program(text)).then_some((stamp, text)),
        None => behind(line),
    }
}

/// Passes over `<6>` and `kern  :info  : `.
fn after_level(line: &[u8]) -> &[u8] {
    if let Some(rest) = line.strip_prefix(b"<") {
        let end = rest.iter().take(4).position(|byte| *byte == b'>');
        return end.and_then(|end| rest.get(end + 1..)).unwrap_or(line);
    }
    // Both names are padded: facility to six, level to six.
    const WIDTH: usize = 15;
    let decoded = || {
        let head = line.get(..WIDTH)?;
        let shape = head.get(6) == Some(&b':') && head.ends_with(b": ");
        shape.then_some(line.get(WIDTH..)?)
    };
    decoded().unwrap_or(line)
}

/// Facility of what the kernel itself wrote; a program's write to `/dev/kmsg` can't have it.
const KERNEL_FACILITY: u64 = 0;

/// The facility, where a line tells it as a number: `<30>` and in `/dev/kmsg`, above the three bits of the level.
fn facility(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"<").unwrap_or(line);
    let count = digits
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = crate::numbers::whole(digits.get(..count)?)?;
    let ended = matches!(
        (line.first(), digits.get(count)),
        (Some(b'<'), Some(b'>')) | (Some(b'0'..=b'9'), Some(b','))
    );
    ended.then_some(number >> 3)
}

/// `6,339,5140900,-;message` as `/dev/kmsg` has it: level and facility, number, microseconds, flag.
fn kmsg(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let end = memchr::memchr(b';', line.get(..line.len().min(80))?)?;
    let mut fields = line.get(..end)?.split(|byte| *byte == b',');
    crate::numbers::whole(fields.next()?)?;
    crate::numbers::whole(fields.next()?)?;
    let ns = crate::numbers::whole(fields.next()?)?.checked_mul(1_000)?;
    fields.next()?;
    let stamp = Stamp {
        at: Some(When::SinceBoot(ns)),
        since_boot: Some(ns),
    };
    Some((stamp, line.get(end + 1..)?))
}

#[derive(Debug, Default)]
struct Reader {
    kernel: Kernel,
    manager: Manager,
    last: Stamp,
    /// Whether a line with a time has been seen: one without is then the rest of a message.
    timed: bool,
    /// Whether messages stand there without times.
    bare: bool,
}

impl Reader {
    /// A line without a time and not indented: of the kernel's only where it goes on with a report.
    fn wrapped(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        match self.kernel.goes_on(line, out) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let (stamp, text) = match split(line) {
            Some((stamp, text)) => {
                self.timed = true;
                (stamp, text)
            }
            None if line.iter().all(u8::is_ascii_whitespace) => return Understood::Ignorable,
            // A message of several lines is indented, or in `/dev/kmsg` has its fields on lines of their own.
            None if self.timed && line.first().is_some_and(u8::is_ascii_whitespace) => (self.last, line),
            None if self.bare || is_bare(line) => {
                self.bare = true;
                (self.last, spoken(line))
            }
            // The rest of a line that a mail program has wrapped.
            None if self.timed => return self.wrapped(line, out),
            None => return Understood::No,
        };
        self.last = stamp;
        // Whatever a program wrote there, it is not the kernel that says it; systemd is known by its name below.
        let programs = facility(line).is_some_and(|facility| facility != KERNEL_FACILITY);
        if programs && !text.starts_with(b"systemd[1]: ") {
            return Understood::Ignorable;
        }
        // systemd writes there until the journal's daemon runs; the kernel begins no message so.
        if let Some(said) = text.strip_prefix(b"systemd[1]: ") {
            return self.manager.message(said, stamp, line, out);
        }
        self.kernel.message(Message { text, stamp, line }, out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.kernel.end(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{KernelEvent, UnitEvent, What, When};

    #[test]
    fn the_minute_and_the_time_since_the_line_before_stand_in_front_of_messages() {
        let text = "[Sep11 18:40] INFO: task flush:1357 blocked for more than 120 seconds.\n[  +0.000015]       Not tainted 4.14.69 #1\n[  +0.000008] flush D    0  1357      2 0x00000000\n[  +0.000046] [<8079d990>] (__schedule) from [<8079dff8>] (schedule+0x50/0xa8)\n";
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "dmesg");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let found = &reading.observed.happenings[0];
        assert!(matches!(&found.what, What::Kernel(_)), "{found:?}");
        let other = read_text("d", b"[+0.5] started\n[+1.25] ended\n[Sep11] x\n");
        assert_ne!(other.observed.sources[0].format, "dmesg");
    }

    #[test]
    fn one_line_in_all_its_forms() {
        for (line, when) in [
            ("[    5.020000] random: crng init done", true),
            ("<5>[    5.020000] random: crng init done", true),
            ("kern  :notice: [    5.020000] random: crng init done", true),
            ("5,339,5020000,-;random: crng init done", true),
            ("[Wed Apr 17 12:05:06 2019] random: crng init done", false),
            ("2019-04-17T12:05:06,123456+03:00 random: crng init done", false),
        ] {
            let reading = read_text("d", line.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "dmesg", "{line}");
            let [happening] = reading.observed.happenings.as_slice() else {
                panic!("{line}: {reading:?}")
            };
            let seeded = KernelEvent::RandomSeeded { fully: true };
            assert_eq!(happening.what, What::Kernel(seeded), "{line}");
            assert_eq!(
                happening.at == Some(When::SinceBoot(5_020_000_000)),
                when,
                "{line}"
            );
            assert_eq!(reading.observed.sources[0].kernel_lines, 1);
        }
    }

    #[test]
    fn what_a_program_wrote_is_not_the_kernels() {
        let text = "6,1,0,-;Linux version 6.1.0
12,2,5020000,-;random: crng init done
<30>[    6.020000] random: crng init done
30,3,7020000,-;systemd[1]: Starting a.service - A...
";
        let reading = read_text("d", text.as_bytes());
        let whats: Vec<_> = reading.observed.happenings.iter().map(|one| &one.what).collect();
        let starting = What::Unit(UnitEvent::Starting {
            unit: "a.service".to_owned(),
        });
        assert_eq!(whats.get(1..), Some(&[&starting][..]), "{whats:?}");
    }

    #[test]
    fn what_others_put_in_front_of_the_kernels_time_is_passed_over() {
        let lockup = "watchdog: BUG: soft lockup - CPU#2 stuck for 22s! [crunch:29632]";
        for front in [
            "kernel:[405108.698255] ",
            " kernel: ",
            "/ # [90216.140000] ",
            "2023-12-04T10:49:30.127Z In(05) vcpu-5 - Guest: <6>[39291577.009360] ",
            "[  240.] ",
        ] {
            let text = format!("Message from syslogd@box at Jun 17 13:06:42 ...\n{front}{lockup}\n");
            let reading = read_text("d", text.as_bytes());
            let found = reading.observed.happenings.iter().any(|one| {
                matches!(&one.what, What::Kernel(KernelEvent::SoftLockup { process, .. }) if process == "crunch:29632")
            });
            assert!(found, "{front}: {reading:?}");
        }
    }

    #[test]
    fn logs_of_others_are_not_for_this_reader() {
        for text in [
            "2026-01-01 10:00:00 a\n2026-01-01 10:00:01 b\n",
            "2026-01-01T10:00:00,123+00:00 INFO a\n",
            "[     5.020] (II) LoadModule: \"glx\"\n[     5.031] (II) Loading glx\n",
            "[Wed Oct 11 14:32:52 2000] [error] [client 127.0.0.1] denied\n",
        ] {
            assert_ne!(
                read_text("d", text.as_bytes()).observed.sources[0].format,
                "dmesg",
                "{text}"
            );
        }
    }

    #[test]
    fn hostile_lines_are_counted_and_the_next_is_read() {
        let text = b"[    0.000000] Linux version 6.1.0\n\x01\x02\n[    5.0\n[99999999999999999999.1] x\n\xff\xfe[\n<\n<6\nINFO: task\n[    1.0] INFO: task :\n[    1.1] INFO: task x: blocked for more than s\n[    1.2] BUG: soft lockup - CPU# stuck for\n[    1.3] Killed process\n[    1.4] Killed process 99999999999999 (x\n[    5.020000] random: crng init done\n[    5.1";
        let reading = read_text("d", text);
        assert_eq!(reading.observed.happenings.len(), 2, "{reading:?}");
        let account = &reading.accounts[0];
        assert_eq!(account.lines, 15);
        assert_eq!(account.not_understood, 8, "{account:?}");
    }
}
