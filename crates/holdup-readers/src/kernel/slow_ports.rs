//! Ports of disks that nothing answers on while the machine comes up: the kernel resets them again and again, and the boot waits.
//!
//! In: messages in order with their times. Out: for each port how long the boot stood at it, how many resets failed, and how it ended. Where others
//! went on meanwhile nothing waited for it, and nothing is said.

use super::Message;
use crate::find::find;
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds after boot up to which a port is one of the boot's, and from which its wait is told.
const BOOT: Ns = 900 * SECOND;
const MIN_WAIT: Ns = 3 * SECOND;

/// Messages of others in between: with more the boot went on.
const MAX_OTHERS: u32 = 3;

/// What is said of a port that does not answer.
const SILENT: [&[u8]; 5] = [
    b"link is slow to respond",
    b"COMRESET failed",
    b"SRST failed",
    b"qc timeout",
    b"device not ready",
];

/// Bytes of a port's name.
const MAX_NAME_BYTES: usize = 16;

/// A port that does not answer.
#[derive(Debug)]
struct Port {
    name: Vec<u8>,
    /// When the message before its first one was written.
    from: Ns,
    resets: u32,
    others: u32,
    quote: Quote,
}

#[derive(Debug, Default)]
pub(super) struct SlowPorts {
    last: Option<Ns>,
    port: Option<Port>,
}

/// `ata1: …`, `ata1.00: …`: the port, and what is said of it.
fn port(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(b"ata")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let at = memchr::memchr(b':', rest.get(..MAX_NAME_BYTES).unwrap_or(rest))?;
    (digits > 0).then_some((text.get(..3 + digits)?, rest.get(at + 1..)?))
}

impl SlowPorts {
    /// Takes a message.
    pub(super) fn line(&mut self, message: Message<'_>, out: &mut Out<'_>) {
        let Some(now) = message.stamp.since_boot.filter(|at| *at <= BOOT) else {
            self.last = None;
            self.port = None;
            return;
        };
        let before = self.last.replace(now);
        let Some((name, said)) = port(message.text) else {
            if let Some(port) = &mut self.port {
                port.others += 1;
            }
            return;
        };
        let same = self.port.as_ref().is_some_and(|port| port.name == name);
        if SILENT.iter().any(|words| find(said, words).is_some()) {
            if !same {
                self.port = Some(Port {
                    name: name.to_vec(),
                    from: before.unwrap_or(now),
                    resets: 0,
                    others: 0,
                    quote: out.here(),
                });
            }
            if let Some(port) = self.port.as_mut().filter(|_| find(said, b"failed").is_some()) {
                port.resets += 1;
            }
            return;
        }
        let down = find(said, b"link down").is_some();
        if !same || !down && find(said, b"link up").is_none() {
            return;
        }
        let Some(port) = self.port.take() else { return };
        let waited = now.saturating_sub(port.from);
        if waited < MIN_WAIT || port.others > MAX_OTHERS {
            return;
        }
        let end = match down {
            true => "then its link is down: no device is connected to it, or none that works",
            false => "then its link came up",
        };
        let resets = match port.resets {
            0 => String::new(),
            1 => "a reset failed (COMRESET), ".to_owned(),
            resets => format!("{resets} resets failed (COMRESET), "),
        };
        let text = format!(
            "the boot was blocked for {} at the SATA port {}, from {} to {} after its begin: {resets}{end}",
            duration(waited),
            text_of(&port.name),
            duration(port.from),
            duration(now)
        );
        out.statement(statements::one(
            StatementKind::Stalled,
            Some(waited),
            port.quote,
            text,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn told(text: &str) -> Vec<String> {
        let all = read_text("k", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| one.text)
            .filter(|text| text.starts_with("the boot was blocked"))
            .collect()
    }

    const EMPTY: &str = "[    2.100000] usb 1-1: new high-speed USB device number 2\n[    7.300000] ata3: link is slow to respond, please be patient (ready=0)\n\
        [   12.200000] ata3: COMRESET failed (errno=-16)\n[   17.900000] ata3: COMRESET failed (errno=-16)\n[   18.200000] ata3: SATA link down (SStatus 0 SControl 300)\n\
        [   18.300000] EXT4-fs (sda1): mounted filesystem\n";

    #[test]
    fn an_empty_port_holds_the_boot_up() {
        assert_eq!(
            told(EMPTY),
            [
                "the boot was blocked for 16.10 s at the SATA port ata3, from 2.10 s to 18.20 s after its begin: 2 resets failed (COMRESET), then its \
                 link is down: no device is connected to it, or none that works"
            ]
        );
    }

    #[test]
    fn a_disk_that_comes_up_late() {
        let text = EMPTY.replace("SATA link down (SStatus 0", "SATA link up 3.0 Gbps (SStatus 123");
        assert!(told(&text)[0].ends_with("then its link came up"));
    }

    #[test]
    fn a_port_that_is_quick_and_a_boot_that_goes_on() {
        let quick = EMPTY
            .replace("7.300000", "2.300000")
            .replace("12.2", " 2.4")
            .replace("17.9", " 2.5")
            .replace("18.2", " 2.6");
        assert_eq!(told(&quick), Vec::<String>::new());
        let mut busy = String::new();
        for (number, line) in EMPTY.lines().enumerate() {
            busy.push_str(line);
            busy.push('\n');
            if (1..4).contains(&number) {
                let at = [7.4, 12.3, 18.0][number - 1];
                busy.push_str(&format!("[   {at:.6}] usb 2-1: one\n[   {at:.6}] usb 2-2: two\n"));
            }
        }
        assert_eq!(told(&busy), Vec::<String>::new());
        assert_eq!(
            told("[ 1.0] ata1: SATA link down (SStatus 0 SControl 300)\n[ 1.1] ata: x\n[ 1.2] ata9\n"),
            Vec::<String>::new()
        );
    }
}
