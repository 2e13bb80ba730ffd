//! `journalctl` in its short forms, and what syslog writes: `/var/log/messages` and its like.
//!
//! In: lines with a time, a host, a program and a message; between them the journal's own lines about boots. Out: what the
//! kernel and the service manager tell, and services that say that they listen. Messages of other programs are read and
//! say nothing to us here.

use crate::find::find;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::kernel::{Kernel, Message};
use crate::manager::{self, Manager};
use crate::stamp::{self, Stamp};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("journal", Family::Logs, recognise)
    .about("journalctl or syslog")
    .openings(&["-- Logs begin at ", "-- Journal begins at ", "-- Boot "]);

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let (mut seen, mut of_it, mut of_system) = (0, 0, false);
    let mut status = false;
    for line in lines.filter(|line| !line.is_empty()).take(LOOKED_AT) {
        if is_explanation(line) {
            continue;
        }
        status |= is_status(line);
        if status && entry(line).is_none() {
            continue;
        }
        status = false;
        seen += 1;
        if FORMAT
            .openings
            .iter()
            .any(|opening| line.starts_with(opening.as_bytes()))
        {
            return Sureness::Certain;
        }
        if let Some(entry) = entry(line) {
            of_it += 1;
            of_system |= matches!(entry.writer(), Writer::Kernel | Writer::Manager);
        }
    }
    // Logs of one application in this form are for those who look for gaps.
    match of_system && of_it * 2 >= seen {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

/// A line of the explanations of `journalctl -x`.
fn is_explanation(line: &[u8]) -> bool {
    line.starts_with("░".as_bytes())
}

/// The first line of what `systemctl status` says of a unit, below which its last entries stand.
fn is_status(line: &[u8]) -> bool {
    let marked = ["●", "○", "×", "↻", "*"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark.as_bytes())?.strip_prefix(b" "));
    let named = marked.and_then(|rest| rest.split(|byte| *byte == b' ').next());
    named.is_some_and(manager::is_unit)
}

/// Who wrote an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Kernel,
    Manager,
    Service,
}

impl Writer {
    /// By the name of the program.
    pub(crate) fn named(program: &[u8]) -> Writer {
        match program {
            b"kernel" => Writer::Kernel,
            b"systemd" | b"init.scope" => Writer::Manager,
            _ => Writer::Service,
        }
    }
}

/// A line in its parts.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    stamp: Stamp,
    host: &'a [u8],
    program: &'a [u8],
    message: &'a [u8],
}

impl Entry<'_> {
    fn writer(&self) -> Writer {
        Writer::named(self.program)
    }
}

/// Who wrote an entry, and its message.
pub(crate) fn message(line: &[u8]) -> Option<(&[u8], &[u8])> {
    // Most lines of other texts end the look here.
    let first = line.first()?;
    (first.is_ascii_alphanumeric() || *first == b'<').then_some(())?;
    let entry = entry(line)?;
    Some((entry.program, entry.message))
}

fn entry(line: &[u8]) -> Option<Entry<'_>> {
    let (line, version) = after_priority(line);
    let (mut stamp, text) = stamp::leading(line)?;
    let (host, program, mut message) = if version { fields(text)? } else { program(text)? };
    // Syslog keeps the kernel's own time in the message.
    if program == b"kernel"
        && message.first() == Some(&b'[')
        && let Some((own, rest)) = stamp::bracketed(message)
        && own.since_boot.is_some()
    {
        stamp.since_boot = own.since_boot;
        message = rest;
    }
    Some(Entry {
        stamp,
        host,
        program,
        message,
    })
}

/// Passes over `<30>`, and the `1 ` behind it that says that fields follow as in RFC 5424.
fn after_priority(line: &[u8]) -> (&[u8], bool) {
    let inner = || {
        let rest = line.strip_prefix(b"<")?;
        let end = rest.iter().take(4).position(|byte| *byte == b'>')?;
        rest.get(end + 1..)
    };
    match inner() {
        Some(rest) => match rest.strip_prefix(b"1 ") {
            Some(rest) => (rest, true),
            None => (rest, false),
        },
        None => (line, false),
    }
}

/// Host, program and message of `host program[12]: message`.
fn program(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // Somebody took the host's name out.
    if let Some(message) = text.strip_prefix(b"kernel: ") {
        return Some((b"", b"kernel", message));
    }
    let (host, rest) = word(text)?;
    let end = find(rest, b": ").or_else(|| rest.ends_with(b":").then(|| rest.len() - 1))?;
    let tag = rest.get(..end)?;
    let message = rest.get(end + 1..)?;
    let message = message.strip_prefix(b" ").unwrap_or(message);
    let name = tag.split(|byte| *byte == b'[').next()?;
    let blanks = tag.iter().any(u8::is_ascii_whitespace) || host.ends_with(b":");
    (!blanks && !name.is_empty()).then_some((host, name, message))
}

/// The same of RFC 5424: host, program, process, kind, data, message.
fn fields(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (host, rest) = word(text)?;
    let (program, rest) = word(rest)?;
    let (_process, rest) = word(rest)?;
    let (_kind, rest) = word(rest)?;
    let message = match rest.strip_prefix(b"- ") {
        Some(message) => message,
        None => rest.get(find(rest, b"] ")? + 2..)?,
    };
    Some((
        host,
        program,
        message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message),
    ))
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text)?;
    let word = text.get(..end).filter(|word| !word.is_empty())?;
    Some((word, text.get(end + 1..)?))
}

/// Whether what follows a time is a host and a program, and not a message of the kernel's: messages have colons too, but
/// hardly a second word that is `kernel:` or ends with a process id.
pub(crate) fn has_program(text: &[u8]) -> bool {
    // `x86/fpu: xstate_offset[2]:  576` has no host.
    let Some((_, rest)) = word(text).filter(|(host, _)| !host.ends_with(b":")) else {
        return false;
    };
    let tag = word(rest).map_or(rest, |(tag, _)| tag);
    let with_pid = || {
        let inner = tag.strip_suffix(b"]:")?;
        let open = memchr::memrchr(b'[', inner)?;
        let pid = inner.get(open + 1..)?;
        Some(!pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
    };
    tag == b"kernel:" || with_pid().unwrap_or(false)
}

#[derive(Debug, Default)]
struct Reader {
    kernel: Kernel,
    manager: Manager,
    /// Of the last entry: when, and whether the kernel wrote it.
    last: Option<(Stamp, Writer)>,
    host_known: bool,
    /// In what `systemctl status` says of a unit.
    status: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(entry) = entry(line) else {
            return self.without_entry(line, out);
        };
        self.status = false;
        if !self.host_known && !entry.host.is_empty() {
            self.host_known = true;
            out.source().host = Some(String::from_utf8_lossy(entry.host).into_owned());
        }
        let writer = entry.writer();
        self.last = Some((entry.stamp, writer));
        match writer {
            Writer::Kernel => self.kernel.message(
                Message {
                    text: entry.message,
                    stamp: entry.stamp,
                    line,
                },
                out,
            ),
            Writer::Manager => self.manager.message(entry.message, entry.stamp, line, out),
            Writer::Service => self
                .manager
                .of_service(entry.program, entry.message, entry.stamp, line, out),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.kernel.end(out);
    }
}

impl Reader {
    /// A line that is no entry: the journal's own, or the rest of a message.
    fn without_entry(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Understood::Ignorable;
        }
        if let Some(own) = line.strip_prefix(b"-- ") {
            if let Some(id) = own.strip_prefix(b"Boot ") {
                let id = id.split(|byte| *byte == b' ').next().unwrap_or_default();
                let known = !id.is_empty() && id.iter().all(u8::is_ascii_hexdigit);
                let id = known.then(|| String::from_utf8_lossy(id).into_owned());
                self.another_boot(id, line, out);
                return Understood::Evidence;
            }
            if own.starts_with(b"Reboot") {
                self.another_boot(None, line, out);
                return Understood::Evidence;
            }
            return Understood::Ignorable;
        }
        self.status |= is_status(line);
        if self.status || is_explanation(line) {
            return Understood::Ignorable;
        }
        match self.last {
            Some((stamp, Writer::Kernel)) if line.first().is_some_and(u8::is_ascii_whitespace) => {
                self.kernel.message(
                    Message {
                        text: line,
                        stamp,
                        line,
                    },
                    out,
                )
            }
            Some(_) if line.first().is_some_and(u8::is_ascii_whitespace) => Understood::Ignorable,
            // `box last message repeated 3 times`: by syslog itself.
            _ if find(line, b"message repeated ").is_some() => Understood::Ignorable,
            _ => Understood::No,
        }
    }

    fn another_boot(&mut self, id: Option<String>, line: &[u8], out: &mut Out<'_>) {
        self.manager.another_boot();
        self.kernel.another_boot(id, line, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Reading, read_text};
    use holdup_evidence::observed::{KernelEvent, UnitEvent, What};

    fn whats(reading: &Reading) -> Vec<&What> {
        reading.observed.happenings.iter().map(|one| &one.what).collect()
    }

    #[test]
    fn one_message_in_all_its_forms() {
        for line in [
            "Apr 17 12:05:06 box kernel: random: crng init done",
            "Apr 17 12:05:06.123456 box kernel: random: crng init done",
            "Apr 17 12:05:06 box kernel: [    5.020000] random: crng init done",
            "2019-04-17T12:05:06+0300 box kernel: random: crng init done",
            "2019-04-17T12:05:06.123456+03:00 box kernel: random: crng init done",
            "Wed 2019-04-17 12:05:06 EEST box kernel: random: crng init done",
            "1555491906.123456 box kernel: random: crng init done",
            "[    5.020000] box kernel: random: crng init done",
            "<5>Apr 17 12:05:06 box kernel: random: crng init done",
            "<5>1 2019-04-17T12:05:06Z box kernel - - - random: crng init done",
        ] {
            let reading = read_text("j", line.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "journal", "{line}");
            assert_eq!(reading.observed.sources[0].host.as_deref(), Some("box"), "{line}");
            let seeded = What::Kernel(KernelEvent::RandomSeeded { fully: true });
            assert_eq!(whats(&reading), [&seeded], "{line}");
        }
    }

    #[test]
    fn boots_are_told_apart() {
        let text = "-- Boot 0123456789abcdef0123456789abcdef --
Apr 17 12:05:06 box kernel: Linux version 6.1.0-1 (builder)
-- Reboot --
Apr 17 13:05:06 box systemd[1]: Starting A thing...
";
        let reading = read_text("j", text.as_bytes());
        let boot = |release: &str, id: Option<&str>| {
            What::Kernel(KernelEvent::Boot {
                release: release.to_owned(),
                id: id.map(str::to_owned),
            })
        };
        let id = Some("0123456789abcdef0123456789abcdef");
        let starting = What::Unit(UnitEvent::Starting {
            unit: "A thing".to_owned(),
        });
        assert_eq!(
            whats(&reading),
            [&boot("", id), &boot("6.1.0-1", id), &boot("", None), &starting]
        );
    }

    #[test]
    fn hostile_lines_are_counted_and_the_next_is_read() {
        let text = b"-- Boot\n-- Boot --\nApr 17 12:05:06\nApr 17 12:05:06 \nApr 17 12:05:06 box\nApr 17 12:05:06 box :\nApr 17 12:05:06 box x[: y\n\0\0\xff\n<999\n<9>1 \nApr 17 12:05:06 box systemd[1]: : timed out\nApr 17 12:05:06 box systemd[1]: .service: timed out\nApr 17 12:05:06 box kernel: [\nApr 17 12:05:06 box kernel: random: crng init done\nApr 17 12:05:06 box ker";
        let reading = read_text("j", text);
        let seeded = What::Kernel(KernelEvent::RandomSeeded { fully: true });
        assert!(whats(&reading).contains(&&seeded), "{reading:?}");
        assert_eq!(reading.accounts[0].lines, 15);
        assert_eq!(reading.accounts[0].not_understood, 8, "{:?}", reading.accounts[0]);
    }

    #[test]
    fn a_log_of_one_application_is_not_for_this_reader() {
        let text = "Apr 17 12:05:06 box app[12]: request took 3 ms\nApr 17 12:05:07 box app[12]: done\n";
        assert_eq!(read_text("j", text.as_bytes()).observed.happenings, []);
    }
}
