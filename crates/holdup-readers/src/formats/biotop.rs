//! `biotop` of bcc: which process reads or writes how much of which disk, and how long each request takes on average, by interval.
//!
//! In: a heading and its rows, again and again. Out: the slowest rows of a process and a disk as one statement, with the slowest average; what is
//! below the norm is within it.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("biotop", Family::Host, recognise)
    .about("biotop of bcc")
    .openings(&["PID COMM D MAJ MIN DISK "]);

/// Milliseconds from which a request is slow: the threshold of bcc's own tools for slow file systems (`ext4slower`, `xfsslower`).
const SLOW_MS: f64 = 10.0;

/// The same from which it waits in a queue: a disk that turns needs some 10 ms for a seek and a turn.
const QUEUED_MS: f64 = 100.0;

const NS_PER_MS: f64 = 1e6;

/// Processes and disks that are kept, and those that are told.
const MAX_KEPT: usize = 1_000;
const MAX_TOLD: usize = 5;

const HEADING: [&str; 8] = ["PID", "COMM", "D", "MAJ", "MIN", "DISK", "I/O", "Kbytes"];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    Sureness::certain_if(head.lines().any(is_heading))
}

fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    HEADING.iter().all(|name| words.next() == Some(name)) && words.next() == Some("AVGms")
}

#[derive(Debug, Default)]
struct Reader {
    seen: Vec<Seen>,
}

/// A process on a disk, in one direction.
#[derive(Debug)]
struct Seen {
    pid: String,
    name: String,
    write: bool,
    disk: String,
    rows: u64,
    least_ms: f64,
    most_ms: f64,
    /// Requests and KiB of the slowest row.
    requests: f64,
    kib: f64,
    quote: Quote,
}

/// `9056  dd  W 253 0  vda  14  14336 138.17`: a name can have blanks.
fn row(text: &str, quote: Quote) -> Option<Seen> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let from_end = |place: usize| {
        words
            .len()
            .checked_sub(place)
            .and_then(|at| words.get(at))
            .copied()
    };
    let number = |place: usize| decimal(from_end(place)?.as_bytes());
    let (most_ms, kib, requests) = (number(1)?, number(2)?, number(3)?);
    let (disk, direction) = (from_end(4)?, from_end(7)?);
    let pid = *words.first()?;
    let name = words.get(1..words.len().checked_sub(7)?)?.join(" ");
    let numbers = number(5).is_some() && number(6).is_some();
    let fits = numbers && matches!(direction, "R" | "W") && pid.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| Seen {
        pid: pid.to_owned(),
        name,
        write: direction == "W",
        disk: disk.to_owned(),
        rows: 1,
        least_ms: most_ms,
        most_ms,
        requests,
        kib,
        quote,
    })
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if is_heading(text) {
            return Understood::Evidence;
        }
        let Some(new) = row(text, out.here()) else {
            // `10:22:47 loadavg: 0.75 0.36 0.16 1/168 9339`.
            return match text.contains("loadavg:") || text.starts_with("Tracing...") {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        let same = |one: &Seen| (&one.pid, &one.disk, one.write) == (&new.pid, &new.disk, new.write);
        let place = self.seen.iter().position(same);
        if let Some(known) = place.and_then(|place| self.seen.get_mut(place)) {
            known.rows += 1;
            known.least_ms = known.least_ms.min(new.least_ms);
            if new.most_ms > known.most_ms {
                (known.most_ms, known.requests, known.kib) = (new.most_ms, new.requests, new.kib);
                known.quote = new.quote;
            }
        } else if self.seen.len() < MAX_KEPT {
            self.seen.push(new);
        } else {
            out.account().left_out += 1;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut all = std::mem::take(&mut self.seen);
        all.sort_by(|one, other| other.most_ms.total_cmp(&one.most_ms));
        let slow = |one: &&Seen| one.most_ms >= SLOW_MS;
        if all.first().is_some_and(|first| !slow(&first)) {
            all.truncate(1);
        } else {
            all.retain(|one| slow(&one));
        }
        for one in all.into_iter().take(MAX_TOLD) {
            let kind = match one.most_ms {
                QUEUED_MS.. => StatementKind::Stalled,
                SLOW_MS.. => StatementKind::Took,
                _ => StatementKind::WithinNorm,
            };
            let ns = (one.most_ms * NS_PER_MS) as Ns;
            out.statement(Statement {
                ns: Some(ns),
                ..statements::one(kind, None, one.quote.clone(), one.sentence())
            });
        }
    }
}

impl Seen {
    fn sentence(&self) -> String {
        let does = if self.write { "writes of" } else { "reads of" };
        let to = if self.write { "to" } else { "from" };
        let over = match self.rows {
            1 => String::new(),
            rows => format!(", in {rows} intervals {} to {} ms", self.least_ms, self.most_ms),
        };
        let judged = match self.most_ms {
            QUEUED_MS.. => "they wait in the queue of a slow or busy disk",
            SLOW_MS.. => "slow for a request to a disk",
            _ => "from 10 ms on a request is slow",
        };
        format!(
            "{does} {} (pid {}) {to} the disk {} take {} ms each on average ({} requests of {:.0} KiB{over}): {judged}",
            self.name,
            self.pid,
            self.disk,
            self.most_ms,
            self.requests,
            self.kib / self.requests.max(1.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> Vec<(StatementKind, String)> {
        let text = format!(
            "10:00:01 loadavg: 1.5 0.7 0.1 2/300 811\n\nPID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n{rows}"
        );
        let observed = read_text("b", text.as_bytes()).observed;
        observed
            .statements
            .into_iter()
            .map(|one| (one.kind, one.text))
            .collect()
    }

    #[test]
    fn the_slowest_of_a_process_and_a_disk_is_told_once() {
        let all = said(
            "811    tar              R 8   0   sda         40    5120 12.50\n811    tar              R 8   0   sda         10    1280 140.25\n900    app              W 8   16  sdb          3      12 0.40\n",
        );
        assert_eq!(
            all,
            [(
                StatementKind::Stalled,
                "reads of tar (pid 811) from the disk sda take 140.25 ms each on average (10 requests of 128 KiB, in 2 intervals 12.5 to \
                 140.25 ms): they wait in the queue of a slow or busy disk"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn a_name_with_blanks_and_one_slow_request() {
        let all = said("77     my backup job    W 253 0   vda         4     4096 31.00\n");
        assert_eq!(all[0].0, StatementKind::Took);
        assert!(
            all[0]
                .1
                .starts_with("writes of my backup job (pid 77) to the disk vda take 31 ms"),
            "{all:?}"
        );
    }

    #[test]
    fn quick_requests_are_within_the_norm() {
        let all = said(
            "77     app              W 253 0   vda         4     4096 0.31\n78     app              R 253 0   vda         4     4096 2.00\n",
        );
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, StatementKind::WithinNorm);
    }
}
