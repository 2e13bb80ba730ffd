//! `systemd-analyze plot`: the boot as a picture (SVG), of which the labels are read.
//!
//! In: SVG, an element a line. Out: how long each unit took (`ssh.service (10.857s)`), and the parts of the boot from its
//! title. The picture does not say what waited for what.

use super::length;
use super::time::phases;
use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::manager::is_unit;
use crate::timespan;
use holdup_evidence::Ns;
use holdup_evidence::observed::SpanKind;

pub(crate) static FORMAT: Format = Format::new(
    "systemd-plot",
    Family::Logs,
    recognise,
    Shape::Lines(|| Box::new(Reader)),
)
.about("systemd-analyze plot");

fn recognise(head: &[u8]) -> Sureness {
    let has = |part: &[u8]| memchr::memmem::find(head, part).is_some();
    if has(b"<svg") && (has(b"systemd-analyze") || has(b"Startup finished in ")) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        let Some(label) = label(line) else {
            return Understood::Ignorable;
        };
        if let Some(parts) = phases(label) {
            for (name, ns) in parts {
                out.span(length(SpanKind::BootPhase, name, ns, label, out));
            }
            return Understood::Evidence;
        }
        match unit(label) {
            Some((name, ns)) => {
                out.span(length(SpanKind::UnitStart, name, ns, label, out));
                Understood::Evidence
            }
            None => Understood::Ignorable,
        }
    }
}

/// The text of a `<text …>…</text>`.
fn label(line: &[u8]) -> Option<&[u8]> {
    let inner = line.strip_prefix(b"<text ")?.strip_suffix(b"</text>")?;
    inner.get(memchr::memchr(b'>', inner)? + 1..)
}

/// `ssh.service (10.857s)`.
fn unit(label: &[u8]) -> Option<(&[u8], Ns)> {
    let open = memchr::memrchr(b'(', label)?;
    let name = label.get(..open)?.trim_ascii();
    let length = label.get(open + 1..)?.strip_suffix(b")")?;
    is_unit(name).then_some((name, timespan::parse(length)?))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn labels_are_read_and_nothing_else() {
        let text = "<svg width=\"100\">
<!-- This file is a systemd-analyze SVG file. -->
<text x=\"20\" y=\"30\">Startup finished in 2.1s (kernel) + 9.9s (userspace) = 12.0s</text>
  <rect class=\"activating\" x=\"109.6\" y=\"0.0\" width=\"1085.7\" height=\"14.0\" />
  <text class=\"left\" x=\"100.0\" y=\"14.0\">ssh.service (10.857s)</text>
  <text class=\"left\" x=\"100.0\" y=\"14.0\">-.slice</text>
  <text class=\"left\"
  <text class=\"left\" x=\"1\">ssh.service (</text>
\0\n";
        let reading = read_text("p", text.as_bytes());
        let read = reading.spans_ms();
        assert_eq!(
            read,
            [("kernel", 2_100), ("userspace", 9_900), ("ssh.service", 10_857)]
        );
    }
}
