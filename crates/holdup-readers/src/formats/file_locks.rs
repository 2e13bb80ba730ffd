//! Locks on files: `/proc/locks` and `lslocks`.
//!
//! In: a line for each lock that is held, and for each that is waited for. Out: a statement for each wait, with who holds the lock.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static PROC: Format = Format::lines::<Kernel>("proc-locks", Family::Host, |head| {
    let head = text_of(head);
    let lock = |line: &&str| Lock::of_kernel(line.trim()).is_some();
    Sureness::certain_if(head.lines().take(LOOKED_AT).any(|line| lock(&line)))
})
.about("/proc/locks");

pub(crate) static LSLOCKS: Format = Format::lines::<Listed>("lslocks", Family::Host, |head| {
    let head = text_of(head);
    Sureness::certain_if(head.lines().take(LOOKED_AT).any(is_heading))
})
.about("lslocks");

const LOOKED_AT: usize = 20;

/// Locks that are kept.
const KEPT: usize = 10_000;

/// Waits that are told.
const MAX_WAITS_TOLD: usize = 50;

/// Bytes of a name that are kept.
const NAME: usize = 200;

#[derive(Debug, Clone)]
struct Lock {
    /// Which of the list it is of, where that has numbers.
    number: String,
    kind: String,
    mode: String,
    /// A process, with its name where that is told.
    who: String,
    pid: u64,
    /// The file, as the list has it.
    file: String,
    waits: bool,
    /// The process that is said to hold it.
    blocker: Option<u64>,
    quote: Quote,
}

impl Lock {
    /// `1: POSIX  ADVISORY  WRITE 1231 08:01:131231 0 EOF`, and with `->` behind the number one that waits.
    fn of_kernel(text: &str) -> Option<Lock> {
        let (number, rest) = text.split_once(": ")?;
        number.parse::<u64>().ok()?;
        let rest = rest.trim_start();
        let (waits, rest) = match rest.strip_prefix("->") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let mut words = rest.split_whitespace();
        let kind = words.next()?;
        let obeyed = words.next()?;
        if !matches!(
            obeyed,
            "ADVISORY" | "MANDATORY" | "MSNFS" | "ACTIVE" | "BREAKING" | "BROKEN"
        ) {
            return None;
        }
        let (mode, pid, file) = (words.next()?, words.next()?, words.next()?);
        let pid = pid.parse::<i64>().ok()?;
        Some(Lock {
            number: number.to_owned(),
            kind: cut(kind),
            mode: cut(mode),
            who: if pid < 0 {
                "a process of another machine".to_owned()
            } else {
                format!("process {pid}")
            },
            pid: u64::try_from(pid).unwrap_or(0),
            file: cut(file),
            waits,
            blocker: None,
            quote: Quote::default(),
        })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(NAME).collect()
}

/// Keeps the locks of a list, and tells of the waits.
#[derive(Debug, Default)]
struct Locks {
    all: Vec<Lock>,
}

impl Locks {
    fn add(&mut self, lock: Lock, out: &mut Out<'_>) {
        if self.all.len() >= KEPT {
            out.account().left_out += 1;
            return;
        }
        self.all.push(Lock {
            quote: out.here(),
            ..lock
        });
    }

    fn tell(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(&mut self.all);
        let Some(first) = all.first() else { return };
        let mut told = 0_usize;
        for wait in all.iter().filter(|lock| lock.waits) {
            told += 1;
            if told > MAX_WAITS_TOLD {
                continue;
            }
            let holds = |lock: &&Lock| {
                !lock.waits
                    && match wait.blocker {
                        Some(pid) => lock.pid == pid,
                        None if wait.number.is_empty() => lock.file == wait.file && lock.pid != wait.pid,
                        None => lock.number == wait.number,
                    }
            };
            let holder = match (all.iter().find(holds), wait.blocker) {
                (Some(lock), _) => format!(", which {} holds ({})", lock.who, lock.mode),
                (None, Some(pid)) => format!(", which process {pid} holds"),
                (None, None) => String::new(),
            };
            let text = format!(
                "{} waits for a {} lock ({}) on {}{holder}",
                wait.who, wait.kind, wait.mode, wait.file
            );
            out.statement(statements::one(
                StatementKind::Stalled,
                None,
                wait.quote.clone(),
                text,
            ));
        }
        if told == 0 {
            let locks = holdup_evidence::units::counted(all.len() as u64, "lock", "locks");
            let text = format!("nobody waits for any of the {locks} on files");
            let kind = StatementKind::WithinNorm;
            out.statement(statements::one(kind, None, first.quote.clone(), text));
        }
    }
}

#[derive(Debug, Default)]
struct Kernel {
    locks: Locks,
}

impl TextReader for Kernel {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let Some(lock) = Lock::of_kernel(text) else {
            return Understood::No;
        };
        self.locks.add(lock, out);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.locks.tell(out);
    }
}

/// The columns of `lslocks` that are always there.
fn is_heading(text: &str) -> bool {
    let has = |name: &str| text.split_whitespace().any(|word| word == name);
    ["COMMAND", "PID", "TYPE", "MODE", "START", "END", "PATH"]
        .iter()
        .all(|name| has(name))
}

#[derive(Debug, Default)]
struct Listed {
    locks: Locks,
    columns: Vec<String>,
}

impl Listed {
    fn lock(&self, text: &str) -> Option<Lock> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let path = self.columns.iter().position(|name| name == "PATH")?;
        let place = |name: &str| self.columns.iter().position(|column| column == name);
        // The size is blank where the file is not known: then everything behind it stands one word earlier.
        let size = place("SIZE");
        let mode = place("MODE")?;
        let is_mode = |at: usize| {
            let word = words.get(at).copied().unwrap_or_default().trim_end_matches('*');
            matches!(word, "READ" | "WRITE" | "RW")
        };
        let shift = match is_mode(mode) {
            true => 0,
            false if size.is_some_and(|size| size < mode) && is_mode(mode.checked_sub(1)?) => 1,
            false => return None,
        };
        let word = |name: &str| {
            let at = place(name)?;
            let at = if size.is_some_and(|size| at > size) {
                at.checked_sub(shift)?
            } else {
                at
            };
            words.get(at).copied()
        };
        let mode = word("MODE")?;
        let pid: u64 = word("PID")?.parse().ok()?;
        let blocker = words
            .get(path.checked_sub(shift)? + 1)
            .filter(|_| place("BLOCKER").is_some());
        Some(Lock {
            number: String::new(),
            kind: cut(word("TYPE")?),
            mode: cut(mode.trim_end_matches('*')),
            who: cut(&format!("{} (pid {pid})", word("COMMAND")?)),
            pid,
            file: cut(word("PATH").unwrap_or("a file")),
            waits: mode.ends_with('*'),
            blocker: blocker.and_then(|word| word.parse().ok()),
            quote: Quote::default(),
        })
    }
}

impl TextReader for Listed {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if is_heading(text) {
            self.columns = text.split_whitespace().map(str::to_owned).collect();
            return Understood::Ignorable;
        }
        let Some(lock) = self.lock(text) else {
            return Understood::No;
        };
        self.locks.add(lock, out);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.locks.tell(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn of(text: &str) -> Vec<Statement> {
        read_text("l", text.as_bytes()).observed.statements
    }

    #[test]
    fn a_wait_is_told_with_the_holder_in_both_lists() {
        let kernel = "1: POSIX  ADVISORY  WRITE 1231 08:01:131231 0 EOF\n1: -> POSIX  ADVISORY  WRITE 2213 08:01:131231 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 812 00:19:1231 0 EOF\n";
        let found = of(kernel);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, StatementKind::Stalled);
        assert_eq!(
            found[0].text,
            "process 2213 waits for a POSIX lock (WRITE) on 08:01:131231, which process 1231 holds (WRITE)"
        );
        let heading = "COMMAND           PID  TYPE SIZE MODE  M START END PATH                   BLOCKER\n";
        let rows = "dpkg             1231 POSIX   0B WRITE 0     0   0 /var/lib/dpkg/lock\n\
            apt-get          2213 POSIX   0B WRITE* 0     0   0 /var/lib/dpkg/lock    1231\n";
        let found = of(&format!("{heading}{rows}"));
        assert_eq!(
            found[0].text,
            "apt-get (pid 2213) waits for a POSIX lock (WRITE) on /var/lib/dpkg/lock, which dpkg (pid 1231) holds (WRITE)"
        );
    }

    #[test]
    fn locks_that_nobody_waits_for_are_healthy() {
        let found = of(
            "COMMAND  PID  TYPE SIZE MODE  M START END PATH\ncron     812 FLOCK   4B WRITE 0     0   0 /run/crond.pid\n\
            atd      813 POSIX      WRITE 0     0   0 /run/atd.pid\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, StatementKind::WithinNorm);
        assert_eq!(found[0].text, "nobody waits for any of the 2 locks on files");
    }
}
