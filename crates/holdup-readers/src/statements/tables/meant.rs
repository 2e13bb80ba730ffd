//! What the columns of a row mean together: a queue beside its limit, workers that are all busy, messages that nobody takes.
//!
//! In: a row with its columns. Out: what it comes to in a sentence, before its cells. Columns are known by their names alone; a row that lacks
//! one of them says nothing here.

use super::{Column, Fact, Row, Table};
use crate::statements::cells::number;
use holdup_evidence::observed::StatementKind;

/// Names of columns, without signs between their words.
const QUEUED: [&str; 10] = [
    "queuedslots",
    "queuedjobs",
    "queue",
    "queued",
    "queuelength",
    "queuelen",
    "pending",
    "waiting",
    "backlog",
    "queuedepth",
];
const LIMITS: [&str; 9] = [
    "queuesize",
    "queuelimit",
    "queuemax",
    "maxqueue",
    "queuecapacity",
    "capacity",
    "backloglimit",
    "maxpending",
    "maxbacklog",
];
const ACTIVE: [&str; 8] = [
    "runningslots",
    "used",
    "active",
    "busy",
    "running",
    "inuse",
    "activethreads",
    "activecount",
];
const WORKERS: [&str; 6] = [
    "poolsize",
    "threads",
    "workers",
    "maxthreads",
    "slots",
    "executors",
];
/// The same in a table that names pools, or counts whom they turned away: elsewhere they are sizes of anything.
const SIZES: [&str; 3] = ["size", "max", "largest"];
const REJECTED: [&str; 4] = ["rejected", "rejections", "turnedaway", "discarded"];
const NAMES: [&str; 5] = ["name", "pool", "poolname", "queuename", "threadpool"];
const PLACES: [&str; 5] = ["host", "node", "nodename", "server", "instance"];

/// Names of columns of messages in a queue, and of those who take them.
const MESSAGES: [&str; 5] = ["messages", "messagesready", "msgs", "depth", "messagecount"];
const CONSUMERS: [&str; 3] = ["consumers", "consumercount", "subscribers"];

/// Messages without a consumer from which it is a queue that somebody forgot, and not one of letters that nobody could deliver.
const MANY_MESSAGES: f64 = 1_000.0;

/// How many wait from which busy workers do not keep up: a few are taken at once.
const MIN_WAITING: f64 = 10.0;

/// Words of a heading with single blanks from which it is one of counts, and how many of them must be known names of columns.
const MIN_NAMES: usize = 4;
const MIN_KNOWN_NAMES: usize = 3;

/// Whether words are a heading of counts of workers and queues, though only single blanks stand between: `name active queue rejected`.
pub(super) fn names_counts(words: &[(usize, usize, String)]) -> bool {
    let is_name = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'))
    };
    let counted = [&QUEUED[..], &LIMITS, &ACTIVE, &WORKERS, &REJECTED, &["completed"]];
    let known = |word: &str| counted.iter().any(|names| names.contains(&bare(word).as_str()));
    words.len() >= MIN_NAMES
        && words.iter().all(|(_, _, word)| is_name(word))
        && words.iter().filter(|(_, _, word)| known(word)).count() >= MIN_KNOWN_NAMES
}

/// A name in small letters without signs.
fn bare(name: &str) -> String {
    let mut bare: String = name
        .chars()
        .filter(|char| char.is_alphanumeric() || *char == '%')
        .collect();
    bare.make_ascii_lowercase();
    bare
}

/// A whole number as it is counted.
fn counted(value: f64) -> String {
    format!("{value:.0}")
}

/// The form of a verb behind a number.
fn form(value: f64, one: &'static str, more: &'static str) -> &'static str {
    match value == 1.0 {
        true => one,
        false => more,
    }
}

impl Table {
    /// Where a column of one of these names is.
    fn at(&self, names: &[&str]) -> Option<usize> {
        // Of an object within an object its own name is the last word: `last_status backlog`.
        let last = |name: &str| bare(name.rsplit(' ').next().unwrap_or(name));
        let is = |column: &Column| names.contains(&bare(&column.name).as_str());
        let ends = |column: &Column| names.contains(&last(&column.name).as_str());
        let all = || self.columns.iter();
        let of_object = || all().position(ends).filter(|_| self.of_records);
        all().position(is).or_else(of_object)
    }

    /// The cell of a column of one of these names; `None` where there is none or it is empty.
    fn cell<'r>(&self, row: &'r Row, names: &[&str]) -> Option<&'r str> {
        let cell = row.cells.get(self.at(names)?)?.as_str();
        (!cell.is_empty()).then_some(cell)
    }

    fn count(&self, row: &Row, names: &[&str]) -> Option<f64> {
        let (value, unit) = number(self.cell(row, names)?)?;
        unit.is_empty().then_some(value)
    }

    /// How many wait in a queue that has reached its limit, or that is as long as there are workers while all of them are busy; `None` where a
    /// row has no such queue.
    pub(super) fn full_queue(&self, row: &Row) -> Option<f64> {
        let waiting = self.count(row, &QUEUED).filter(|waiting| *waiting > 0.0)?;
        let full = self.limit(row).is_some_and(|limit| waiting >= limit);
        let busy = self
            .busy(row)
            .is_some_and(|busy| waiting >= busy.max(MIN_WAITING));
        (full || busy).then_some(waiting)
    }

    fn limit(&self, row: &Row) -> Option<f64> {
        self.count(row, &LIMITS).filter(|limit| *limit > 0.0)
    }

    /// How many workers there are, where all of them are busy.
    fn busy(&self, row: &Row) -> Option<f64> {
        let active = self.count(row, &ACTIVE).filter(|active| *active > 0.0)?;
        let workers = self.count(row, &WORKERS).or_else(|| {
            let of_pools = self.has_sizes();
            of_pools.then(|| self.count(row, &SIZES)).flatten()
        })?;
        (workers <= active).then_some(active)
    }

    /// Whether a size is one of workers here.
    fn has_sizes(&self) -> bool {
        self.at(&SIZES).is_some() && (self.at(&REJECTED).is_some() || self.at(&NAMES).is_some())
    }

    /// Keeps a row whose queue is full, or has nobody who takes from it.
    pub(super) fn take_queue(&mut self, row: &Row) {
        // Its columns stay the same from the first row on.
        if self.rows == 1 {
            let workers = self.at(&WORKERS).is_some() || self.has_sizes();
            self.may_be_full = self.at(&QUEUED).is_some()
                && (self.at(&LIMITS).is_some() || self.at(&ACTIVE).is_some() && workers)
                || self.at(&MESSAGES).is_some() && self.at(&CONSUMERS).is_some();
        }
        if !self.may_be_full {
            return;
        }
        if self.count(row, &CONSUMERS) == Some(0.0)
            && let Some(waiting) = self.count(row, &MESSAGES).filter(|waiting| *waiting > 0.0)
            && self.unread.as_ref().is_none_or(|(most, _)| waiting > *most)
        {
            self.unread = Some((waiting, row.clone()));
        }
        let Some(waiting) = self.full_queue(row) else {
            return;
        };
        match &mut self.full {
            Some((most, longest, rows)) => {
                *rows += 1;
                if waiting > *most {
                    (*most, *longest) = (waiting, row.clone());
                }
            }
            None => self.full = Some((waiting, row.clone(), 1)),
        }
    }

    /// A queue that is full: who, how many wait, who works, and who was turned away.
    pub(super) fn full(&self, row: &Row, rows: u64) -> Option<Fact> {
        let waiting = self.full_queue(row)?;
        let limit = self.limit(row).filter(|limit| waiting >= *limit);
        let mut text = match limit {
            Some(limit) if waiting > limit => format!(
                "the queue of {} is full: {} wait where {} may",
                self.called(row),
                counted(waiting),
                counted(limit)
            ),
            Some(limit) => format!(
                "the queue of {} is full: {} of {} {}",
                self.called(row),
                counted(waiting),
                counted(limit),
                form(waiting, "waits", "wait")
            ),
            None => format!("{} cannot keep up: {} wait", self.called(row), counted(waiting)),
        };
        if let Some(active) = self.count(row, &ACTIVE).filter(|active| *active > 0.0) {
            text.push_str(&match self.busy(row) {
                Some(_) if active == 1.0 => ", its only worker is busy".to_owned(),
                Some(_) => format!(", all {} workers are busy", counted(active)),
                None => format!(
                    ", {} {} being worked on",
                    counted(active),
                    form(active, "is", "are")
                ),
            });
        }
        if let Some(rejected) = self.count(row, &REJECTED).filter(|rejected| *rejected > 0.0) {
            let were = form(rejected, "was", "were");
            text.push_str(&format!(", {} {were} turned away so far", counted(rejected)));
        }
        if rows > 1 {
            text.push_str(&format!("; {rows} rows are so"));
        }
        Some(Fact {
            kind: match limit {
                Some(_) => StatementKind::Exhausted,
                None => StatementKind::Stalled,
            },
            share: None,
            ns: None,
            line: row.line,
            text,
        })
    }

    /// The queue with most messages of which the table says that nobody takes them.
    pub(super) fn unread(&self) -> Option<Fact> {
        let (waiting, row) = self.unread.as_ref()?;
        Some(Fact {
            kind: match *waiting >= MANY_MESSAGES {
                true => StatementKind::Stalled,
                false => StatementKind::Took,
            },
            share: None,
            ns: None,
            line: row.line,
            text: format!(
                "nobody takes from the queue {}: {} {} and it has no consumer",
                self.called(row),
                counted(*waiting),
                form(*waiting, "message waits", "messages wait")
            ),
        })
    }

    /// Whose row it is, and on which machine.
    fn called(&self, row: &Row) -> String {
        let named = self.cell(row, &NAMES).or_else(|| {
            let first = row.cells.get(self.naming(row))?.as_str();
            (!first.is_empty()).then_some(first)
        });
        let named = named.unwrap_or("this row");
        // Of a machine's name and its number in the cluster, the name.
        let place = PLACES.iter().find_map(|place| self.cell(row, &[place]));
        match place.filter(|place| *place != named) {
            Some(place) => format!("{named} on {place}"),
            None => named.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    fn says(text: &str, kind: StatementKind, words: &str) {
        let all = said(text);
        assert!(
            all.iter().any(|(of, told)| *of == kind && told.contains(words)),
            "{all:?}"
        );
    }

    #[test]
    fn a_queue_beside_its_limit_is_full() {
        let text = "node    host  name   active rejected completed queue queue_size\n\
            Ab1_x   es-1  write      0        0     99132     0        200\n\
            Cd2_y   es-2  write     16      412    877121   231        200\n";
        let told = "the queue of write on es-2 is full: 231 wait where 200 may, 16 are being worked on, 412 were turned away so far";
        says(text, StatementKind::Exhausted, told);
        let text = "pool        active  threads  pending  capacity\nmail-send   8       8        500      500\nmail-read   1       8        0        500\n";
        let told = "the queue of mail-send is full: 500 of 500 wait, all 8 workers are busy";
        says(text, StatementKind::Exhausted, told);
        let text = "| queue name | waiting | max pending |\n|---|---|---|\n| orders | 64 | 64 |\n| refunds | 80 | 64 |\n";
        says(
            text,
            StatementKind::Exhausted,
            "the queue of refunds is full: 80 wait where 64 may; 2 rows are so",
        );
    }

    #[test]
    fn workers_that_are_all_busy_and_queues_that_nobody_reads() {
        let text = "pool       active  size  queue  rejected\nsearch     13      13    57     0\nwrite      2       13    0      0\n";
        says(
            text,
            StatementKind::Stalled,
            "search cannot keep up: 57 wait, all 13 workers are busy",
        );
        let text = "name     messages   messages_ready   messages_unacknowledged   consumers\n\
            orders   81233      81233            0                         0\nmail     3          0                3                         2\n";
        says(
            text,
            StatementKind::Stalled,
            "nobody takes from the queue orders: 81233 messages wait and it has no consumer",
        );
        let few = text.replace("81233", "12");
        says(
            &few,
            StatementKind::Took,
            "nobody takes from the queue orders: 12 messages",
        );
        let text = "pool       active  size  queue  rejected\nsearch     13      13    2      0\n";
        assert!(said(text).iter().all(|(kind, _)| *kind == StatementKind::Took));
    }

    #[test]
    fn a_queue_with_room_or_without_limit_is_not() {
        for text in [
            "node    host  name   active rejected completed queue queue_size\nCd2_y   es-2  write     16      412    877121   31        200\n",
            "node    host  name   active rejected completed queue queue_size\nCd2_y   es-2  write     16      412    877121   31        -1\n",
            "pool        active  threads  pending  capacity\nmail-send   0       8        0      0\n",
            // One worker with one that waits is a program at work; a size may be one of anything.
            "id  queue  running  waiting  workers\n1   a      1        1        1\n",
            "pool       active  size  queue  rejected\nflush      1       1     1      0\nsearch     2       13    0      0\n",
            "disk   running  waiting  max\nsda    5        57       3\nsdb    1        0        9\n",
            "name      running  waiting  max\ncheckout  5        7        3\nsearch    1        0        9\n",
        ] {
            let kinds = [StatementKind::Exhausted, StatementKind::Stalled];
            assert!(
                said(text).iter().all(|(kind, _)| !kinds.contains(kind)),
                "{text}: {:?}",
                said(text)
            );
        }
    }
}
