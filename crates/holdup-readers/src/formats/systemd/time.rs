//! `systemd-analyze` and `systemd-analyze time`: how long each part of the boot took.
//!
//! In: `Startup finished in 2.1s (kernel) + 9.8s (userspace) = 12.0s` and when the default target was reached. Out: a span each.

use super::length;
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::timespan;
use holdup_evidence::Ns;
use holdup_evidence::observed::SpanKind;

const FINISHED: &[u8] = b"Startup finished in ";

pub(crate) static FORMAT: Format = Format::new(
    "systemd-time",
    Family::Logs,
    recognise,
    Shape::Lines(|| Box::new(Reader)),
)
.about("systemd-analyze time")
.openings(&["Startup finished in "]);

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let found = lines.any(|line| line.trim_ascii().starts_with(FINISHED));
    if found { Sureness::Certain } else { Sureness::No }
}

struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(parts) = phases(line) {
            for (name, ns) in parts {
                out.span(length(SpanKind::BootPhase, name, ns, line, out));
            }
            return Understood::Evidence;
        }
        if let Some((name, ns)) = reached(line) {
            out.span(length(SpanKind::UnitReached, name, ns, line, out));
            return Understood::Evidence;
        }
        // `graphical.target was never reached`, and that the boot is not over.
        let never = line.strip_suffix(b".").unwrap_or(line);
        let known = never.ends_with(b" was never reached") || line.starts_with(b"Bootup is not yet finished");
        if known {
            Understood::Ignorable
        } else {
            Understood::No
        }
    }
}

/// The parts of the boot; `None` where the line is anything else, or one of them can't be read.
pub(crate) fn phases(line: &[u8]) -> Option<Vec<(&[u8], Ns)>> {
    let rest = line.strip_prefix(FINISHED)?;
    let parts = rest.split(|byte| *byte == b'=').next()?;
    parts
        .split(|byte| *byte == b'+')
        .map(|part| {
            let open = memchr::memchr(b'(', part)?;
            let name = part.get(open + 1..)?.split(|byte| *byte == b')').next()?;
            Some((name, timespan::parse(part.get(..open)?)?))
        })
        .collect()
}

/// `graphical.target reached after 1min 45.121s in userspace`, with a full stop in newer versions.
fn reached(line: &[u8]) -> Option<(&[u8], Ns)> {
    const REACHED: &[u8] = b" reached after ";
    let at = memchr::memmem::find(line, REACHED)?;
    let rest = line.get(at + REACHED.len()..)?;
    let length = rest.get(..memchr::memmem::find(rest, b" in userspace")?)?;
    Some((line.get(..at)?, timespan::parse(length)?))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn parts_of_the_boot_and_its_target() {
        let text =
            "Startup finished in 1.002s (firmware) + 2.1s (kernel) + 1min 45.121s (userspace) = 1min 48.223s.
graphical.target reached after 1min 45.121s in userspace.
Startup finished in (kernel) + x
graphical.target reached after in userspace
x\n";
        let reading = read_text("t", text.as_bytes());
        let read = reading.spans_ms();
        assert_eq!(
            read,
            [
                ("firmware", 1_002),
                ("kernel", 2_100),
                ("userspace", 105_121),
                ("graphical.target", 105_121)
            ]
        );
        assert_eq!(reading.accounts[0].not_understood, 3);
    }
}
