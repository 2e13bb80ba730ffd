//! `lsof`: which process has which files and connections open.
//!
//! In: rows with or without their heading. Out: deleted files that are still open and hold their space, connections that a process does
//! not close or does not get, and who has most open.

use crate::find::find;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, words};
use crate::{sizes, statements};
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::bytes;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("lsof", Family::Host, recognise).about("lsof");

/// Rows without a heading from which it is no chance.
const MIN_ROWS: usize = 2;

/// Processes that are kept, and bytes of a line.
const PROCESSES: usize = 50_000;
const LINE: usize = 2_000;

/// Open files from which a process is near the limit that most systems set it (`ulimit -n`: 1024).
const MIN_OPEN_FILES: u64 = 900;

/// Connections that the other end has closed from which a program forgets to close its own.
const FORGOTTEN: u64 = 10;

/// Bytes of deleted files from which their space is worth a look: 10 MiB.
const MIN_DELETED_BYTES: f64 = 10.0 * 1_048_576.0;

/// What stands in the column of types.
const TYPES: &[&[u8]] = &[
    b"REG", b"DIR", b"CHR", b"BLK", b"FIFO", b"LINK", b"unix", b"sock", b"IPv4", b"IPv6", b"a_inode",
    b"unknown", b"raw", b"netlink", b"pack",
];

fn recognise(head: &[u8]) -> Sureness {
    let lines = || head.split(|byte| *byte == b'\n');
    let heading = |line: &[u8]| {
        let names: Vec<&[u8]> = words(line).collect();
        names.starts_with(&[b"COMMAND", b"PID"]) && names.contains(&&b"FD"[..]) && names.ends_with(&[b"NAME"])
    };
    if lines().any(heading) || lines().filter(|line| row(line).is_some()).take(MIN_ROWS).count() >= MIN_ROWS {
        return Sureness::Certain;
    }
    Sureness::No
}

/// One row.
struct Open<'a> {
    command: &'a [u8],
    pid: u64,
    kind: &'a [u8],
    size: f64,
    /// The rest of the line behind the type.
    name: &'a [u8],
    /// Its number, where it has one.
    descriptor: Option<u64>,
}

/// `4u`, `cwd`, `mem`, `10r`, `3uW`.
fn is_descriptor(word: &[u8]) -> bool {
    let known: [&[u8]; 9] = [
        b"cwd", b"rtd", b"txt", b"mem", b"DEL", b"NOFD", b"mmap", b"ltx", b"err",
    ];
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mode = word.get(digits..).unwrap_or_default();
    known.contains(&word) || digits > 0 && mode.len() <= 2 && mode.iter().all(u8::is_ascii_alphabetic)
}

fn row(line: &[u8]) -> Option<Open<'_>> {
    let line = line.get(..LINE).unwrap_or(line);
    let all: Vec<&[u8]> = words(line).take(16).collect();
    let (command, pid) = (all.first()?, crate::numbers::whole(all.get(1)?)?);
    // The user, and with `-K` the thread, stand in between.
    let at = (3..=5).find(|at| {
        let descriptor = all.get(*at).is_some_and(|word| is_descriptor(word));
        descriptor && all.get(*at + 1).is_some_and(|word| TYPES.contains(word))
    })?;
    let kind = all.get(at + 1)?;
    let descriptor = all.get(at).and_then(|word| {
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        crate::numbers::whole(word.get(..digits)?)
    });
    // Behind the device; of a connection and a pipe there is none.
    let size = all
        .get(at + 3)
        .and_then(|word| decimal(word).or_else(|| sizes::with_unit(word)));
    let from = kind.as_ptr().addr().checked_sub(line.as_ptr().addr())? + kind.len();
    Some(Open {
        command,
        pid,
        kind,
        descriptor,
        size: size.filter(|size| *size >= 0.0).unwrap_or(0.0),
        name: line.get(from..)?.trim_ascii(),
    })
}

/// Such sockets from which it is no chance: one is there for a moment between two calls.
const UNBOUND: u64 = 5;

/// What one process has open.
#[derive(Debug, Default)]
struct Process {
    open: u64,
    forgotten: u64,
    /// Sockets of which the kernel knows no protocol any more: they were never connected, or are no longer.
    unbound: u64,
    /// The largest number of a descriptor: the kernel gives the smallest that is free, so nearly so many are open.
    highest: u64,
    quote: Option<Quote>,
    /// Who the other end of a connection is that does not come about.
    awaits: Option<String>,
}

#[derive(Debug, Default)]
struct Reader {
    processes: BTreeMap<(String, u64), Process>,
    /// The largest deleted file: whose, where, how large.
    largest: Option<(String, String, f64, Quote)>,
    deleted: u64,
    held: f64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some(open) = row(line) else {
            return match line.trim_ascii_start().starts_with(b"COMMAND") || line.trim_ascii().is_empty() {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        let key = (text_of(open.command), open.pid);
        if self.processes.len() >= PROCESSES && !self.processes.contains_key(&key) {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        let who = format!("{} (pid {})", key.0, key.1);
        let process = self.processes.entry(key).or_default();
        process.open += 1;
        process.quote.get_or_insert_with(|| out.here());
        process.highest = process.highest.max(open.descriptor.unwrap_or(0));
        let no_protocol: [&[u8]; 2] = [b"can't identify protocol", b"protocol: "];
        if open.kind == b"sock" && no_protocol.iter().any(|words| find(open.name, words).is_some()) {
            process.unbound += 1;
        }
        if open.name.ends_with(b"(CLOSE_WAIT)") {
            process.forgotten += 1;
        }
        if let Some(name) = open.name.strip_suffix(b"(SYN_SENT)") {
            let peer = memchr::memmem::find(name, b"->").and_then(|at| name.get(at + 2..));
            process.awaits = peer.map(|peer| text_of(peer.trim_ascii()));
        }
        if open.kind == b"REG"
            && let Some(name) = open.name.strip_suffix(b"(deleted)")
        {
            self.deleted += 1;
            self.held += open.size;
            if self
                .largest
                .as_ref()
                .is_none_or(|(_, _, largest, _)| open.size > *largest)
            {
                let path = memchr::memchr(b'/', name)
                    .and_then(|at| name.get(at..))
                    .unwrap_or(name);
                let path = text_of(path.trim_ascii());
                self.largest = Some((who, path, open.size, out.here()));
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let said = self.says();
        for one in said {
            out.statement(one);
        }
    }
}

impl Reader {
    fn says(&mut self) -> Vec<Statement> {
        let mut said = Vec::new();
        let whole = |size: f64| bytes(size.clamp(0.0, 1e18) as u64);
        if let Some((who, path, size, quote)) = self
            .largest
            .take()
            .filter(|(_, _, size, _)| *size >= MIN_DELETED_BYTES)
        {
            let all = match self.deleted {
                1 => String::new(),
                count => format!("; {count} deleted files hold {} in all", whole(self.held)),
            };
            let text = format!(
                "{who} keeps the deleted file {path} open: its {} are not free until it is closed{all}",
                whole(size)
            );
            said.push(statements::one(StatementKind::Took, None, quote, text));
        }
        let processes = std::mem::take(&mut self.processes);
        let forgets = processes.iter().max_by_key(|(_, process)| process.forgotten);
        if let Some(((name, pid), process)) = forgets.filter(|(_, process)| process.forgotten >= FORGOTTEN) {
            let text = format!(
                "{name} (pid {pid}) has {} connections in CLOSE_WAIT: the other end has closed them, and it does not",
                process.forgotten
            );
            let quote = process.quote.clone().unwrap_or_default();
            said.push(statements::one(StatementKind::Failed, None, quote, text));
        }
        let leaks = processes.iter().max_by_key(|(_, process)| process.unbound);
        if let Some(((name, pid), process)) = leaks.filter(|(_, process)| process.unbound >= UNBOUND) {
            let text = format!(
                "{name} (pid {pid}) has {} sockets without a connection or address open, up to descriptor {}: it does not close them",
                process.unbound, process.highest
            );
            let quote = process.quote.clone().unwrap_or_default();
            said.push(statements::one(StatementKind::Failed, None, quote, text));
        }
        let awaits = processes
            .iter()
            .find_map(|(who, process)| Some((who, process.awaits.as_ref()?, process.quote.clone())));
        if let Some(((name, pid), peer, quote)) = awaits {
            let text = format!(
                "{name} (pid {pid}) waits for a connection to {peer}, which does not answer yet (SYN_SENT)"
            );
            said.push(statements::one(
                StatementKind::Unreachable,
                None,
                quote.unwrap_or_default(),
                text,
            ));
        }
        // Of an excerpt the numbers of the descriptors say how many there are.
        let all_of = |process: &Process| process.open.max(process.highest);
        let most = processes.iter().max_by_key(|(_, process)| all_of(process));
        if let Some(((name, pid), process)) = most {
            let text = match process.highest > process.open {
                true => format!(
                    "{name} (pid {pid}) has descriptors up to {}, the most (a limit of 1024 is usual)",
                    process.highest
                ),
                false => format!(
                    "{name} (pid {pid}) has {} files open, the most (a limit of 1024 is usual)",
                    process.open
                ),
            };
            let kind = match all_of(process) >= MIN_OPEN_FILES {
                true => StatementKind::Took,
                false => StatementKind::WithinNorm,
            };
            let quote = process.quote.clone().unwrap_or_default();
            said.push(statements::one(kind, None, quote, text));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("l", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "lsof");
        let statements = reading.observed.statements.into_iter();
        statements.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn deleted_files_hold_their_space_with_and_without_a_heading() {
        let text = "app    12  web   8w   REG  253,4   271M 2125827 /var/log/a.log (deleted)\n\
            app    12  web  11u   REG  253,4   22020096 2125832 /var/log/b.log (deleted)\nsh  9 me cwd DIR 8,1 4096 2 /\n";
        let first = "app (pid 12) keeps the deleted file /var/log/a.log open: its 271 MiB are not free until it is closed; \
            2 deleted files hold 292 MiB in all";
        assert_eq!(said(text)[0], (StatementKind::Took, first.to_owned()));
        let headed = format!("COMMAND PID USER FD TYPE DEVICE SIZE/OFF NODE NAME\n{text}");
        assert_eq!(said(&headed)[0].1, first);
    }

    #[test]
    fn sockets_that_are_nobodys_any_more_and_numbers_of_an_excerpt() {
        let rows: String = (0..8)
            .map(|at| {
                format!(
                    "web  77  app  {}u  sock  0,6  0t0 30{at} can't identify protocol\n",
                    640 + at
                )
            })
            .collect();
        let all = said(&rows);
        assert_eq!(all[0].0, StatementKind::Failed);
        assert!(
            all[0].1.starts_with("web (pid 77) has 8 sockets without"),
            "{all:?}"
        );
        let row = "web  77  app  903u  IPv4 123 0t0 TCP 10.0.0.1:8080->10.0.0.2:5000 (ESTABLISHED)\n";
        let all = said(&row.repeat(3));
        assert!(all[0].1.contains("descriptors up to 903"), "{all:?}");
    }

    #[test]
    fn connections_that_are_not_closed_and_what_is_well() {
        let row = "java  77 app  40u  IPv4 123 0t0 TCP 10.0.0.1:8080->10.0.0.2:5000 (CLOSE_WAIT)\n";
        let texts = said(&row.repeat(12));
        assert_eq!(texts[0].0, StatementKind::Failed);
        assert!(
            texts[0]
                .1
                .starts_with("java (pid 77) has 12 connections in CLOSE_WAIT"),
            "{texts:?}"
        );
        assert_eq!(said(&row.repeat(2))[0].0, StatementKind::WithinNorm);
    }
}
