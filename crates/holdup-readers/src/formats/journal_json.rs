//! `journalctl -o json`, and its relatives `json-seq` and `json-sse`: an object a line.
//!
//! In: entries with the journal's fields. Out: what the kernel and the service manager tell, with both clocks and the boot's
//! id, which no other form of a log has together.

use super::journal::Writer;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::kernel::{Kernel, Message};
use crate::manager::Manager;
use crate::stamp::Stamp;
use holdup_evidence::observed::When;
use serde::Deserialize;
use std::borrow::Cow;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("journal-json", Family::Logs, recognise).about("journalctl -o json");

const NS_PER_US: u64 = 1_000;

fn recognise(head: &[u8]) -> Sureness {
    let first = head
        .split(|byte| *byte == b'\n')
        .map(object)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let of_journal =
        first.starts_with(b"{") && memchr::memmem::find(first, b"\"__REALTIME_TIMESTAMP\"").is_some();
    if of_journal {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// The object in a line of any of the relatives.
fn object(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\x1e").unwrap_or(line);
    line.strip_prefix(b"data: ").unwrap_or(line).trim_ascii()
}

#[derive(Debug, Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "__REALTIME_TIMESTAMP")]
    real: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "__MONOTONIC_TIMESTAMP")]
    monotonic: Option<Cow<'a, str>>,
    /// The kernel's own time, where it wrote the message: the others tell when the journal took it.
    #[serde(borrow, rename = "_SOURCE_MONOTONIC_TIMESTAMP")]
    source: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_BOOT_ID")]
    boot: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_HOSTNAME")]
    host: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "SYSLOG_IDENTIFIER")]
    program: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_TRANSPORT")]
    transport: Option<Cow<'a, str>>,
    /// The unit that a message of the service manager's is about.
    #[serde(borrow, rename = "UNIT")]
    unit: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "MESSAGE")]
    message: Option<Said<'a>>,
}

/// A message; as numbers where it is not all text, as a list of them where a field is there twice.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Bytes(Vec<u8>),
    Other(serde::de::IgnoredAny),
}

impl Said<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Said::Text(text) => text.as_bytes(),
            Said::Bytes(bytes) => bytes,
            Said::Other(_) => b"",
        }
    }
}

#[derive(Debug, Default)]
struct Reader {
    kernel: Kernel,
    manager: Manager,
    boot: Option<String>,
    host_known: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let json = object(line);
        if json.is_empty() {
            return Understood::Ignorable;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(json) else {
            return Understood::No;
        };
        if let Some(host) = entry.host.as_deref().filter(|_| !self.host_known) {
            self.host_known = true;
            out.source().host = Some(host.to_owned());
        }
        if let Some(boot) = entry
            .boot
            .as_deref()
            .filter(|boot| self.boot.as_deref() != Some(boot))
        {
            self.boot = Some(boot.to_owned());
            self.manager.another_boot();
            self.kernel.another_boot(self.boot.clone(), b"", out);
        }
        let stamp = stamp(&entry);
        let text = entry.message.as_ref().map_or(&b""[..], Said::bytes);
        let program = entry.program.as_deref().unwrap_or_default().as_bytes();
        let writer = match entry.transport.as_deref() {
            // Before the journal's daemon is there the manager, too, writes where the kernel does.
            Some("kernel") if program.is_empty() => Writer::Kernel,
            _ => Writer::named(program),
        };
        // The message is quoted and not the line, which is mostly fields.
        match writer {
            Writer::Kernel => self.kernel.message(
                Message {
                    text,
                    stamp,
                    line: text,
                },
                out,
            ),
            Writer::Manager => self
                .manager
                .message_of(entry.unit.as_deref(), text, stamp, text, out),
            Writer::Service => self.manager.of_service(program, text, stamp, text, out),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.kernel.end(out);
    }
}

fn stamp(entry: &Entry<'_>) -> Stamp {
    let us = |field: &Option<Cow<'_, str>>| {
        let us = crate::numbers::whole(field.as_deref()?.as_bytes())?;
        us.checked_mul(NS_PER_US)
    };
    let real = us(&entry.real).and_then(|ns| i64::try_from(ns).ok());
    Stamp {
        at: real.map(When::Unix),
        since_boot: us(&entry.source).or_else(|| us(&entry.monotonic)),
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{KernelEvent, UnitEvent, What, When};

    const LINE: &str = r#"{"__REALTIME_TIMESTAMP":"1555491906123456","__MONOTONIC_TIMESTAMP":"5100000","_SOURCE_MONOTONIC_TIMESTAMP":"5020000","_BOOT_ID":"ab","_HOSTNAME":"box","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"random: crng init done"}"#;

    #[test]
    fn both_clocks_and_the_boot() {
        let bytes: Vec<String> = b"random: crng init done".iter().map(u8::to_string).collect();
        let as_bytes = LINE.replace("\"random: crng init done\"", &format!("[{}]", bytes.join(",")));
        for line in [LINE, &as_bytes, &format!("\x1e{LINE}"), &format!("data: {LINE}")] {
            let reading = read_text("j", line.as_bytes());
            let [boot, seeded] = reading.observed.happenings.as_slice() else {
                panic!("{line}: {reading:?}")
            };
            assert!(matches!(&boot.what, What::Kernel(KernelEvent::Boot { id: Some(id), .. }) if id == "ab"));
            assert_eq!(seeded.at, Some(When::Unix(1_555_491_906_123_456_000)));
            assert_eq!(seeded.since_boot, Some(5_020_000_000));
        }
    }

    #[test]
    fn the_unit_is_named_by_its_field_and_not_by_its_description() {
        let line = LINE.replace("\"kernel\"", "\"journal\"").replace(
            "\"SYSLOG_IDENTIFIER\":\"journal\"",
            "\"SYSLOG_IDENTIFIER\":\"systemd\",\"UNIT\":\"ssh.service\"",
        );
        for (message, unit) in [
            (
                "Starting OpenBSD Secure Shell server...",
                UnitEvent::Starting {
                    unit: "ssh.service".to_owned(),
                },
            ),
            (
                "Timed out waiting for device /dev/sdb1.",
                UnitEvent::TimedOut {
                    unit: "ssh.service".to_owned(),
                    step: "wait for the device".to_owned(),
                },
            ),
        ] {
            let reading = read_text("j", line.replace("random: crng init done", message).as_bytes());
            assert_eq!(reading.observed.happenings[1].what, What::Unit(unit));
        }
    }

    #[test]
    fn the_length_of_the_boot_is_told_by_its_manager() {
        let line = LINE.replace("\"kernel\"", "\"systemd\"").replace(
            "random: crng init done",
            "Startup finished in 2.5s (kernel) + 1min 40s (userspace) = 1min 42.5s.",
        );
        let reading = read_text("j", line.as_bytes());
        let phases: Vec<_> = reading
            .observed
            .spans
            .iter()
            .map(|span| (span.name.as_str(), span.ns / 1_000_000))
            .collect();
        assert_eq!(phases, [("kernel", 2_500), ("userspace", 100_000)]);
    }

    #[test]
    fn hostile_lines_are_counted_and_the_next_is_read() {
        let text = format!(
            "{LINE}\n{{\n[]\n{{\"MESSAGE\":{{}}}}\n\x01\n{{\"__REALTIME_TIMESTAMP\":\"x\",\"MESSAGE\":null}}\n{LINE}\n{}",
            &LINE[..50]
        );
        let reading = read_text("j", text.as_bytes());
        assert_eq!(reading.observed.happenings.len(), 3);
        assert_eq!(reading.accounts[0].not_understood, 4, "{:?}", reading.accounts[0]);
    }
}
