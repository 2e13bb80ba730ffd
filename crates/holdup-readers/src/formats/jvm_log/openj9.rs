//! The log of OpenJ9's collector (`-verbose:gc`, `-Xverbosegclog`): elements of XML, one a line.
//!
//! In: such lines, of both generations of the format. Out: how long each collection took, what kind it was and why it was made,
//! and how full the heap was after it.

use super::{Line, Longest, figure, ns};
use crate::find::find;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::decimal;
use holdup_evidence::observed::{Metric, SpanKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("openj9-gc", Family::Runtime, recognise)
    .about("-verbose:gc of OpenJ9")
    .openings(&["<verbosegc "]);

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 60;

/// Elements that no other log has.
const OWN: [&[u8]; 8] = [
    b"<verbosegc ",
    b"<exclusive-start ",
    b"<exclusive-end ",
    b"<gc-start ",
    b"<gc-end ",
    b"<cycle-start ",
    b"<af-start ",
    b"<sys-start ",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let own = lines.any(|line| {
        OWN.iter()
            .any(|element| line.trim_ascii_start().starts_with(element))
    });
    if own { Sureness::Certain } else { Sureness::No }
}

#[derive(Debug, Default)]
struct Reader {
    pauses: Longest,
    /// Why the collection was made that is being reported.
    why: &'static str,
    /// Its kind, by the older format, which tells the time last.
    kind: Option<String>,
    /// Whether the heap's figures are those after a collection.
    after: bool,
    /// Whether the threads that stand still do so for a collection that has been reported.
    reported: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = line.trim_ascii();
        if !text.starts_with(b"<") {
            return if text.is_empty() {
                Understood::Ignorable
            } else {
                Understood::No
            };
        }
        let name_end = text
            .iter()
            .position(|byte| matches!(byte, b' ' | b'>'))
            .unwrap_or(text.len());
        match text.get(1..name_end).unwrap_or_default() {
            b"af-start" | b"af" => self.why = " after an allocation failure",
            b"sys-start" | b"sys" => self.why = ", explicit (System.gc())",
            b"gc" => {
                self.kind = attribute(text, b"type").map(|kind| String::from_utf8_lossy(kind).into_owned())
            }
            b"time" => {
                let Some(kind) = self.kind.take_if(|_| attribute(text, b"totalms").is_some()) else {
                    return Understood::Ignorable;
                };
                self.pause(&kind, attribute(text, b"totalms"), line, out);
            }
            b"gc-end" => {
                let kind = attribute(text, b"type").unwrap_or(b"");
                let kind = String::from_utf8_lossy(kind).into_owned();
                self.pause(&kind, attribute(text, b"durationms"), line, out);
                self.after = true;
                self.reported = true;
            }
            b"exclusive-start" => self.reported = false,
            // A concurrent collection stops the threads for a moment, and tells no collection then.
            b"exclusive-end" if !self.reported => {
                self.pause("stop without", attribute(text, b"durationms"), line, out);
            }
            b"mem-info" if self.after => {
                self.after = false;
                let (free, total) = (number(text, b"free"), number(text, b"total"));
                if let (Some(free), Some(total)) = (free, total.filter(|total| *total > 0.0)) {
                    out.figure(
                        Metric::HeapAfterGcPercent,
                        "",
                        (1.0 - free / total).clamp(0.0, 1.0) * 100.0,
                    );
                }
            }
            b"/af" | b"/sys" | b"af-end" | b"sys-end" => self.why = "",
            b"warning" => return Understood::Ignorable,
            // Parts of a collection, of which its end tells the whole: their lengths are no other ones.
            _ => return Understood::Evidence,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.pauses.tell(out);
    }
}

impl Reader {
    fn pause(&mut self, kind: &str, milliseconds: Option<&[u8]>, line: &[u8], out: &mut Out<'_>) {
        let Some(ns) = milliseconds.and_then(decimal).and_then(|value| ns(value, 1e6)) else {
            return;
        };
        let line = Line {
            message: line,
            whole: line,
            ns: None,
            at: None,
        };
        let name = format!("{kind} collection{}", self.why);
        figure(Metric::GcPauseMs, ns, &line, out);
        self.pauses
            .keep(SpanKind::GcPause, name.as_bytes(), ns, &line, out);
    }
}

/// The value of an attribute of an element.
fn attribute<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut from = 0;
    loop {
        let at = from + find(text.get(from..)?, name)?;
        let value = text.get(at + name.len()..)?.strip_prefix(b"=\"");
        let whole = at.checked_sub(1).and_then(|before| text.get(before)) == Some(&b' ');
        if let Some(value) = value.filter(|_| whole) {
            return value.get(..memchr::memchr(b'"', value)?);
        }
        from = at + name.len();
    }
}

fn number(text: &[u8], name: &[u8]) -> Option<f64> {
    decimal(attribute(text, name)?)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Metric, SpanKind};

    fn pauses(text: &str) -> Vec<(String, u64)> {
        let reading = read_text("gc.xml", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "openj9-gc");
        let spans = reading
            .observed
            .spans
            .iter()
            .filter(|span| span.kind == SpanKind::GcPause);
        spans.map(|span| (span.name.clone(), span.ns / 1_000)).collect()
    }

    #[test]
    fn collections_are_told_with_kind_and_reason() {
        let text = "<verbosegc version=\"R28\">
<sys-start reason=\"explicit\" id=\"1\" timestamp=\"2026-01-01T10:00:00.000\" />
<gc-start id=\"2\" type=\"global\" contextid=\"1\" timestamp=\"2026-01-01T10:00:00.000\">
  <mem-info id=\"3\" free=\"10\" total=\"100\" percent=\"10\">
</gc-start>
<gc-end id=\"4\" type=\"global\" contextid=\"1\" durationms=\"97.189\" usertimems=\"194.176\" timestamp=\"2026-01-01T10:00:00.100\">
  <mem-info id=\"5\" free=\"25\" total=\"100\" percent=\"25\">
</gc-end>
<sys-end id=\"6\" />
<gc-end id=\"7\" type=\"scavenge\" durationms=\"2.5\" />
";
        assert_eq!(
            pauses(text),
            [
                ("global collection, explicit (System.gc())".to_owned(), 97_189),
                ("scavenge collection".to_owned(), 2_500)
            ]
        );
        let reading = read_text("gc.xml", text.as_bytes());
        let heap: Vec<f64> = reading
            .observed
            .of(Metric::HeapAfterGcPercent)
            .flat_map(|series| series.points.iter().map(|point| point.value))
            .collect();
        assert_eq!(heap, [75.0]);
    }

    #[test]
    fn the_older_format_tells_the_time_last() {
        let text = "<verbosegc version=\"20090417_AA\">
<af type=\"tenured\" id=\"1\" timestamp=\"Oct 07 11:46:23 2012\" intervalms=\"0.000\">
  <time exclusiveaccessms=\"0.884\" threads=\"1\" />
  <gc type=\"global\" id=\"14\" totalid=\"14\" intervalms=\"56765.134\">
    <timesms mark=\"496.529\" sweep=\"1.400\" total=\"501.514\" />
  </gc>
  <time totalms=\"837.024\" />
</af>
";
        assert_eq!(
            pauses(text),
            [(
                "global collection after an allocation failure".to_owned(),
                837_024
            )]
        );
    }
}
