//! The columns of a list of `ps`, from its head or from the options of its command, and the fields of its rows.
//!
//! In: lines. Out: [`Columns`] and [`Row`]s. Fields are known by counting words: one column may have blanks in it (the
//! command), and is what is left between the others; a start date has as many words as it looks like.

use crate::numbers::{whole, words};

/// Columns that a list can have at most.
pub(super) const MAX_COLUMNS: usize = 48;

/// Characters that procps gives the kernel function where no width is asked for: what is as long may be cut.
const CUT_FUNCTION: usize = 6;

/// Heads with one of these words are of other tools: top, lsof, iotop.
const FOREIGN: &[&[u8]] = &[
    b"TIME+", b"VIRT", b"%VSZ", b"RES", b"SHR", b"FD", b"DISK", b"DEVICE", b"IMAGE",
];

/// What a column tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Pid,
    Tid,
    Parent,
    State,
    Function,
    Threads,
    MemoryPercent,
    Resident,
    Time,
    Elapsed,
    Terminal,
    /// One word, two (`Nov 22`) or five (`Sun Nov 22 07:00:23 2026`).
    Start,
    Name,
    Other,
}

/// Columns by what their heads are called.
const HEADS: &[(&str, Column)] = &[
    ("PID", Column::Pid),
    ("TGID", Column::Pid),
    ("LWP", Column::Tid),
    ("TID", Column::Tid),
    ("SPID", Column::Tid),
    ("PPID", Column::Parent),
    ("S", Column::State),
    ("STAT", Column::State),
    ("STATE", Column::State),
    ("WCHAN", Column::Function),
    ("NLWP", Column::Threads),
    ("THCNT", Column::Threads),
    ("%MEM", Column::MemoryPercent),
    ("RSS", Column::Resident),
    ("RSZ", Column::Resident),
    ("TIME", Column::Time),
    ("ELAPSED", Column::Elapsed),
    ("TTY", Column::Terminal),
    ("TT", Column::Terminal),
    ("START", Column::Start),
    ("STARTED", Column::Start),
    ("CMD", Column::Name),
    ("COMMAND", Column::Name),
];

/// Columns by what `-o` calls them, where that is not the head in small letters.
const OPTIONS: &[(&str, &str)] = &[
    ("args", "CMD"),
    ("comm", "CMD"),
    ("ucmd", "CMD"),
    ("ucomm", "CMD"),
    ("fname", "CMD"),
    ("etime", "ELAPSED"),
    ("etimes", "ELAPSED"),
    ("cputime", "TIME"),
    ("lstart", "STARTED"),
    ("pmem", "%MEM"),
    ("rssize", "RSS"),
    ("tname", "TTY"),
    ("tgid", "PID"),
];

/// Where the columns are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    all: Vec<Column>,
    /// The one that takes the words that are left: the last name.
    free: usize,
    /// Whether it was known by a command, and rows may have been picked out of the list.
    pub(super) picked: bool,
}

/// The fields of a row that say something; empty where there is no such column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row<'l> {
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) parent: Option<u32>,
    pub(super) state: &'l [u8],
    pub(super) function: &'l [u8],
    pub(super) threads: Option<u64>,
    pub(super) memory: &'l [u8],
    pub(super) resident: Option<u64>,
    pub(super) time: &'l [u8],
    pub(super) elapsed: &'l [u8],
    pub(super) terminal: &'l [u8],
    pub(super) name: &'l [u8],
}

impl Columns {
    /// The columns of a head; `None` for any other line.
    pub(super) fn of_head(line: &[u8]) -> Option<Columns> {
        let mut all = Vec::new();
        let head = |byte: &u8| {
            byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'%' | b'_' | b'+')
        };
        for word in words(line) {
            if all.len() == MAX_COLUMNS
                || !word.iter().all(head)
                || FOREIGN.contains(&word)
                || whole(word).is_some()
            {
                return None;
            }
            all.push(by_head(word));
        }
        Columns::new(all, false)
    }

    /// The columns that a command asks for: `ps -eLo pid,tid,stat,wchan:32,comm`.
    pub(super) fn of_command(line: &[u8]) -> Option<Columns> {
        let mut all = Vec::new();
        let mut listed = words(line)
            .skip_while(|word| !word.ends_with(b"ps"))
            .skip(1)
            .peekable();
        while let Some(word) = listed.next() {
            // `-eopid,stat,cmd`: the columns need no blank before them.
            if let Some(attached) = attached(word) {
                all.extend(asked(attached)?);
                continue;
            }
            let letters = word.strip_prefix(b"-").unwrap_or(word);
            let asks = letters.iter().all(u8::is_ascii_alphabetic) && letters.last() == Some(&b'o');
            if !asks {
                continue;
            }
            all.extend(asked(listed.peek()?)?);
        }
        Columns::new(all, true)
    }

    fn new(all: Vec<Column>, picked: bool) -> Option<Columns> {
        let has = |column| all.contains(&column);
        let id = has(Column::Pid) || has(Column::Tid);
        let says = has(Column::Name) || has(Column::State) || has(Column::Function);
        (id && says).then(|| Columns {
            // Without a name each word is a field of its own.
            free: all
                .iter()
                .rposition(|column| *column == Column::Name)
                .unwrap_or(all.len()),
            all,
            picked,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether rows are threads; `None` where there may be both.
    pub(super) fn of_threads(&self) -> bool {
        self.all.contains(&Column::Tid)
    }

    /// Whether rows tell states.
    pub(super) fn states(&self) -> bool {
        self.all.contains(&Column::State)
    }

    /// The fields of a row; `None` for a line that is none.
    pub(super) fn row<'l>(&self, line: &'l [u8]) -> Option<Row<'l>> {
        let mut row = Row::default();
        let mut rest = line.trim_ascii();
        let front = self.all.get(..self.free).unwrap_or(&self.all);
        let behind = self.all.get(self.free + 1..).unwrap_or_default();
        for column in front {
            let word;
            (word, rest) = first(
                rest,
                if *column == Column::Start {
                    start_words(rest)
                } else {
                    1
                },
            )?;
            row.put(*column, word)?;
        }
        for column in behind.iter().rev() {
            let at = rest.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
            let (before, word) = rest.split_at_checked(at)?;
            row.put(*column, word.trim_ascii())?;
            rest = before.trim_ascii_end();
        }
        if self.free < self.all.len() {
            row.name = rest.trim_ascii();
            // A kernel thread of a list with the wrong columns has no name at all.
            (!row.name.is_empty()).then_some(())?;
        } else if !rest.is_empty() {
            return None;
        }
        (row.pid.is_some() || row.tid.is_some()).then_some(row)
    }
}

/// The columns of a list: `pid,wchan:32,cmd`.
fn asked(list: &[u8]) -> Option<Vec<Column>> {
    let fields = list.split(|byte| *byte == b',').take(MAX_COLUMNS);
    fields
        .map(|field| {
            let name = field.split(|byte| matches!(byte, b':' | b'=')).next()?;
            let name = std::str::from_utf8(name).ok()?;
            let known = OPTIONS.iter().find(|(option, _)| *option == name);
            let head = known.map_or_else(|| name.to_ascii_uppercase(), |(_, head)| (*head).to_owned());
            Some(by_head(head.as_bytes()))
        })
        .collect()
}

/// The list that follows the letter `o` of options without a blank; it has several columns, of which the first is known.
fn attached(word: &[u8]) -> Option<&[u8]> {
    let letters = word.strip_prefix(b"-").filter(|rest| !rest.starts_with(b"-"))?;
    let at = memchr::memchr(b'o', letters)?;
    let list = letters.get(at + 1..)?;
    let first = list.split(|byte| *byte == b',').next()?;
    let known = by_head(&first.to_ascii_uppercase()) != Column::Other;
    (known && list.contains(&b',')).then_some(list)
}

impl<'l> Row<'l> {
    /// Takes a field; `None` where it can't be one of its column.
    fn put(&mut self, column: Column, word: &'l [u8]) -> Option<()> {
        let id = |word| whole(word).and_then(|id| u32::try_from(id).ok());
        match column {
            Column::Pid => self.pid = Some(id(word)?),
            Column::Tid => self.tid = Some(id(word)?),
            Column::Parent => self.parent = Some(id(word)?),
            Column::State => {
                crate::tasks::state(word)?;
                self.state = word;
            }
            Column::Function => self.function = word,
            Column::Threads => self.threads = whole(word),
            Column::MemoryPercent => self.memory = word,
            Column::Resident => self.resident = whole(word),
            Column::Time => self.time = word,
            Column::Elapsed => self.elapsed = word,
            Column::Terminal => self.terminal = word,
            Column::Name => self.name = word,
            Column::Start | Column::Other => {}
        }
        Some(())
    }

    /// The kernel function, and whether the list has cut it.
    pub(super) fn waits_in(&self) -> Option<(&'l [u8], bool)> {
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let known =
            !matches!(self.function, b"" | b"-" | b"0" | b"?" | b"*") && self.function.iter().all(name);
        known.then_some((self.function, self.function.len() == CUT_FUNCTION))
    }
}

fn by_head(word: &[u8]) -> Column {
    let known = HEADS.iter().find(|(head, _)| head.as_bytes() == word);
    known.map_or(Column::Other, |(_, column)| *column)
}

/// So many words of a text, and what is behind them.
fn first(text: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let mut end = 0;
    for _ in 0..count {
        let rest = text.get(end..)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let word = rest
            .get(blanks..)?
            .iter()
            .take_while(|byte| !byte.is_ascii_whitespace())
            .count();
        (word > 0).then_some(())?;
        end += blanks + word;
    }
    let (word, rest) = text.split_at_checked(end)?;
    Some((word, rest))
}

/// How many words a start date has.
fn start_words(text: &[u8]) -> usize {
    const DATE_AND_TIME: usize = 5;
    const DATE: usize = 2;
    let name = |word: Option<&[u8]>| {
        word.is_some_and(|word| word.len() == 3 && word.iter().all(u8::is_ascii_alphabetic))
    };
    let mut next = words(text);
    match (name(next.next()), name(next.next())) {
        (true, true) => DATE_AND_TIME,
        (true, false) => DATE,
        _ => 1,
    }
}
