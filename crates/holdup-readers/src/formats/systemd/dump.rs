//! `systemd-analyze dump`: all that the service manager knows of its units.
//!
//! In: blocks of `-> Unit NAME:` with a property a line. Out: how long each unit that is up took, from leaving *inactive* to
//! entering *active*. The other properties say nothing to us. Times are of one second in old versions.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, quoted};
use crate::stamp;
use holdup_evidence::observed::{Quote, Span, SpanKind, When};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("systemd-dump", Family::Logs, recognise)
    .about("systemd-analyze dump")
    .openings(&["Manager: systemd "]);

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let found = lines.any(|line| unit(line).is_some());
    if found { Sureness::Certain } else { Sureness::No }
}

fn unit(line: &[u8]) -> Option<&[u8]> {
    block(line.trim_ascii())?
        .strip_prefix(b"Unit ")?
        .strip_suffix(b":")
}

/// What stands behind the arrow with which a block begins: of two characters, or one since version 253 where the locale has it.
fn block(line: &[u8]) -> Option<&[u8]> {
    let mut arrows = [&b"-> "[..], "→ ".as_bytes()].into_iter();
    arrows.find_map(|arrow| line.strip_prefix(arrow))
}

#[derive(Debug, Default)]
struct Reader {
    unit: Option<String>,
    left_inactive: Option<(When, Quote)>,
    version_known: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(name) = unit(line) {
            self.unit = Some(String::from_utf8_lossy(name).into_owned());
            self.left_inactive = None;
            return Understood::Evidence;
        }
        let line = line.trim_ascii();
        if let Some(version) = line.strip_prefix(b"Manager: ").filter(|_| !self.version_known) {
            self.version_known = true;
            out.source().tool = Some(quoted(version));
            return Understood::Evidence;
        }
        if let Some(time) = line.strip_prefix(b"Inactive Exit Timestamp: ") {
            self.left_inactive = when(time).map(|when| (when, out.here()));
            return self.read(time);
        }
        if let Some(time) = line.strip_prefix(b"Active Enter Timestamp: ") {
            if let (Some(unit), Some((began, quote)), Some(ended)) =
                (&self.unit, self.left_inactive.take(), when(time))
            {
                // A unit that was started again has entered before it left.
                if let Some(ns) = ended.since(began).and_then(|ns| u64::try_from(ns).ok()) {
                    out.span(Span {
                        kind: SpanKind::UnitStart,
                        name: unit.clone(),
                        began: Some(began),
                        ns,
                        thread: None,
                        usual: None,
                        quote,
                        text: quoted(line),
                    });
                }
            }
            return self.read(time);
        }
        let property =
            line.is_empty() || block(line).is_some() || memchr::memchr2(b':', b'=', line).is_some();
        if property {
            Understood::Ignorable
        } else {
            Understood::No
        }
    }
}

impl Reader {
    fn read(&self, time: &[u8]) -> Understood {
        match when(time) {
            Some(_) => Understood::Evidence,
            None if time == b"n/a" => Understood::Ignorable,
            None => Understood::No,
        }
    }
}

fn when(text: &[u8]) -> Option<When> {
    // The zone is the last word, and the stamp's reader wants an end behind it.
    stamp::weekday_first(text)?.0.at
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn from_leaving_inactive_to_entering_active() {
        let text = "Manager: systemd 252 (252.38-1~deb12u1)
-> Unit ssh.service:
\tDescription: OpenBSD Secure Shell server
\tInactive Exit Timestamp: Wed 2019-04-17 11:55:30 EEST
\tActive Enter Timestamp: Wed 2019-04-17 11:55:41 EEST
-> Unit x.service:
\tInactive Exit Timestamp: n/a
\tActive Enter Timestamp: Wed 2019-04-17 11:55:41 EEST
-> Unit y.service:
\tInactive Exit Timestamp: Wed 2019-04-17 11:55:41 UTC
\tActive Enter Timestamp: Wed 2019-04-17 11:55:41 EEST
\tActive Enter Timestamp: x
x";
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.spans_ms(), [("ssh.service", 11_000)]);
        assert_eq!(reading.accounts[0].not_understood, 2);
        let newer = read_text("d", text.replace("-> ", "→ ").as_bytes());
        assert_eq!(newer.observed.spans, reading.observed.spans);
    }
}
