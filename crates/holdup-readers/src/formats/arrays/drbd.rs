//! `/proc/drbd`: devices that are mirrored to another machine.
//!
//! In: a line for each device, with how a copy of it goes below. Out: what its connection and its disks are in, and how long a copy still
//! takes.

use super::{cut, single};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("drbd", Family::Host, recognise)
    .about("/proc/drbd")
    .openings(&["version: 8.4", "version: 8.3"]);

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(text_of(head).lines().any(|line| device(line).is_some()))
}

/// ` 0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----`: number, connection, disks.
fn device(line: &str) -> Option<(String, String, String)> {
    let (number, rest) = line.trim().split_once(':')?;
    number.parse::<u32>().ok()?;
    let of = |name: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(name));
    let text = |text: &str| cut(text, super::NAME);
    Some((
        number.to_owned(),
        text(of("cs:")?),
        text(of("ds:").unwrap_or("?")),
    ))
}

#[derive(Debug)]
struct Device {
    number: String,
    connection: String,
    disks: String,
    progress: Vec<String>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    device: Option<Device>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        if let Some((number, connection, disks)) = device(&text) {
            self.close(out);
            self.device = Some(Device {
                number,
                connection,
                disks,
                progress: Vec::new(),
                quote: out.here(),
            });
            return Understood::Evidence;
        }
        let text = text.trim();
        if let Some(device) = &mut self.device
            && (text.contains("sync'ed:") || text.starts_with("finish:"))
            && device.progress.len() < super::NAMED
        {
            let found = text.trim_start_matches(|char: char| !char.is_alphabetic());
            device.progress.push(cut(&single(found), super::WORDS));
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(device) = self.device.take() else { return };
        let kind = match device.connection.as_str() {
            "Connected" if device.disks.split('/').all(|disk| disk == "UpToDate") => {
                StatementKind::WithinNorm
            }
            "Connected" => StatementKind::Failed,
            "StandAlone" | "WFConnection" | "Timeout" | "BrokenPipe" | "NetworkFailure" | "Disconnecting" => {
                StatementKind::Unreachable
            }
            _ => StatementKind::Stalled,
        };
        let norm = match kind {
            StatementKind::WithinNorm => " (both disks up to date is well)",
            _ => "",
        };
        let mut text = format!(
            "drbd{}: {}, disks {}{norm}",
            device.number, device.connection, device.disks
        );
        for part in &device.progress {
            text.push_str(&format!(", {part}"));
        }
        out.statement(statements::one(kind, None, device.quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "drbd");
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn a_copy_that_runs_and_a_mirror_that_is_whole() {
        let text = "version: 8.4.10 (api:1/proto:86-101)\n 0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n    ns:0 nr:88 dw:88\n\
            \t[=>..................] sync'ed: 11.2% (69552/78128)M\n\tfinish: 18:12:41 speed: 1,084 (1,120) want: 4,000 K/sec\n";
        assert_eq!(
            said(text),
            (
                StatementKind::Stalled,
                "drbd0: SyncTarget, disks Inconsistent/UpToDate, sync'ed: 11.2% (69552/78128)M, finish: 18:12:41 speed: 1,084 (1,120) want: \
                 4,000 K/sec"
                    .to_owned()
            )
        );
        assert_eq!(
            said(" 1: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n").0,
            StatementKind::WithinNorm
        );
    }
}
