//! The alert log of Oracle: when all of its sessions had to wait, and for what.
//!
//! In: messages below a line with their time. Known are those of waits: no log to write to, because a checkpoint, the archiver or a group of
//! logs is not ready; locks of the row cache; deadlocks; no room. Out: a statement for each, with how often,
//! the first and last time and the log. Source: Oracle's error messages and its reference of alert logs.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, name_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("oracle-alert", Family::Logs, recognise).about("alert log of Oracle");

/// A message of the log: what it contains, what it says of, how grave it is.
struct Message {
    has: &'static str,
    says: &'static str,
    kind: StatementKind,
}

const MESSAGES: &[Message] = &[
    Message {
        has: "cannot allocate new log, sequence",
        says: "Oracle could not switch to a new redo log, so that all writers waited",
        kind: StatementKind::Stalled,
    },
    Message {
        has: "cannot allocate log, archival required",
        says: "Oracle could not switch to a new redo log because the old one is not archived, so that all writers waited",
        kind: StatementKind::Stalled,
    },
    Message {
        has: "WAITED TOO LONG FOR A ROW CACHE ENQUEUE LOCK",
        says: "a session waited for too long for a lock of Oracle's row cache",
        kind: StatementKind::Stalled,
    },
    Message {
        has: "ORA-00060: ",
        says: "sessions of Oracle blocked each other (ORA-00060)",
        kind: StatementKind::Deadlock,
    },
    Message {
        has: "Global Enqueue Services Deadlock detected",
        says: "sessions of several instances of Oracle blocked each other",
        kind: StatementKind::Deadlock,
    },
    Message {
        has: "ORA-19809: ",
        says: "Oracle's recovery area is full (ORA-19809)",
        kind: StatementKind::Exhausted,
    },
    Message {
        has: "ORA-00257: ",
        says: "Oracle's archiver has no room (ORA-00257)",
        kind: StatementKind::Exhausted,
    },
];

/// Why a log cannot be switched: the line below.
const REASONS: [&str; 3] = [
    "Checkpoint not complete",
    "Private strand flush not complete",
    "All online logs need archiving",
];

fn recognise(head: &[u8]) -> Sureness {
    let known = MESSAGES
        .iter()
        .any(|message| message.has != "ORA-00060: " && holds(head, message.has));
    let of_oracle = ["Thread ", "ORACLE", "Oracle", "LGWR", "Current log#", "ORA-"]
        .iter()
        .any(|word| holds(head, word));
    match known && of_oracle {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

#[derive(Debug)]
struct Seen {
    place: usize,
    reason: String,
    log: String,
    times: u64,
    first: String,
    last: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// The last time that stood on a line of its own.
    at: String,
    seen: Vec<Seen>,
    /// The message whose reason and log may follow, in `seen`.
    current: Option<usize>,
}

/// Whether a line is a time: `Fri Apr 05 10:00:00 2024`, `2024-04-05T10:00:00.123456+00:00`.
fn is_time(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(7).collect();
    let clock = |word: &str| {
        word.len() >= 8 && word.as_bytes().get(2) == Some(&b':') && word.as_bytes().get(5) == Some(&b':')
    };
    match words.as_slice() {
        [_, _, _, time, _] | [_, _, _, time, _, _] => clock(time),
        [one] => one.get(10..11) == Some("T") && one.get(11..).is_some_and(clock),
        _ => false,
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if is_time(&text) {
            self.at = name_of(&text);
            self.current = None;
            return Understood::Evidence;
        }
        if let Some(place) = MESSAGES.iter().position(|message| text.contains(message.has)) {
            // One entry of each message: the table is short.
            let known = self.seen.iter().position(|seen| seen.place == place);
            let at = match known {
                Some(at) => at,
                None => {
                    let (reason, log, last) = (String::new(), String::new(), String::new());
                    self.seen.push(Seen {
                        place,
                        reason,
                        log,
                        times: 0,
                        first: self.at.clone(),
                        last,
                        quote: out.here(),
                    });
                    self.seen.len().saturating_sub(1)
                }
            };
            if let Some(seen) = self.seen.get_mut(at) {
                seen.times = seen.times.saturating_add(1);
                seen.last.clone_from(&self.at);
            }
            self.current = Some(at);
            return Understood::Evidence;
        }
        let Some(seen) = self.current.and_then(|at| self.seen.get_mut(at)) else {
            return Understood::Ignorable;
        };
        if let Some(reason) = REASONS.iter().find(|reason| text.starts_with(**reason)) {
            if seen.reason.is_empty() {
                (*reason).clone_into(&mut seen.reason);
            }
            return Understood::Evidence;
        }
        if let Some(log) = text.strip_prefix("Current log#") {
            if seen.log.is_empty() {
                seen.log = name_of(log);
            }
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        for seen in std::mem::take(&mut self.seen) {
            let Some(message) = MESSAGES.get(seen.place) else {
                continue;
            };
            let mut text = message.says.to_owned();
            if !seen.reason.is_empty() {
                text.push_str(&format!(": {}", seen.reason));
            }
            if !seen.log.is_empty() {
                text.push_str(&format!("; the current log is {}", seen.log));
            }
            if seen.times > 1 {
                text.push_str(&format!("; {} times", seen.times));
            }
            match (seen.first.is_empty(), seen.first == seen.last) {
                (true, _) => {}
                (false, true) => text.push_str(&format!("; at {}", seen.first)),
                (false, false) => text.push_str(&format!("; from {} to {}", seen.first, seen.last)),
            }
            // Writers wait for that at each switch, for an instant.
            let kind = match seen.reason.starts_with("Private strand") {
                true => StatementKind::Took,
                false => message.kind,
            };
            out.statement(Statement {
                times: seen.times,
                ..statements::one(kind, None, seen.quote, text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn no_log_to_write_to_and_why() {
        let text = "Fri Apr 05 10:00:00 2024\nThread 1 cannot allocate new log, sequence 812\nCheckpoint not complete\n\
            \x20 Current log# 3 seq# 811 mem# 0: /data/shop/redo03.log\nFri Apr 05 10:04:00 2024\n\
            Thread 1 cannot allocate new log, sequence 815\nCheckpoint not complete\n  Current log# 1 seq# 814 mem# 0: /data/shop/redo01.log\n";
        let reading = read_text("o", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "oracle-alert");
        let one = reading
            .observed
            .statements
            .iter()
            .find(|one| one.of_reader)
            .unwrap();
        assert_eq!(
            one.text,
            "Oracle could not switch to a new redo log, so that all writers waited: Checkpoint not complete; the current log is \
             3 seq# 811 mem# 0: /data/shop/redo03.log; 2 times; from Fri Apr 05 10:00:00 2024 to Fri Apr 05 10:04:00 2024"
        );
        assert_eq!((one.kind, one.times), (StatementKind::Stalled, 2));
    }

    #[test]
    fn a_log_without_waits_is_none() {
        let text = "Fri Apr 05 10:00:00 2024\nThread 1 advanced to log sequence 812 (LGWR switch)\n";
        assert_ne!(
            read_text("o", text.as_bytes()).observed.sources[0].format,
            "oracle-alert"
        );
    }
}
