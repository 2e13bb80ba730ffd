//! `getdelays`: what the tasks of a process or a thread waited for, as the kernel accounts delays.
//!
//! In: for each kind of delay a heading (`IO count delay total delay average …`) and a row below it, nanoseconds; above them the id.
//! Out: a statement for each process, of its longest delay beside the time that it ran. Source: the kernel's `tools/accounting` and its
//! documentation, "Delay accounting".

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, whole};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{counted, duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("getdelays", Family::Host, recognise).about("getdelays");

/// Processes that are kept, and that are told.
const MAX_BLOCKS: usize = 200;
const MAX_BLOCKS_TOLD: usize = 3;

/// Bytes of a line, and words of one.
const LINE_BYTES: usize = 400;
const MAX_WORDS: usize = 24;

/// Kinds of delays, and what is waited for.
const KINDS: [(&str, &str); 9] = [
    ("CPU", "for a CPU"),
    ("IO", "for block I/O"),
    ("SWAP", "for pages to be swapped in"),
    ("RECLAIM", "to free memory"),
    ("THRASHING", "for pages that had been thrown out"),
    ("COMPACT", "for memory to be compacted"),
    ("WPCOPY", "for copies of write-protected pages"),
    ("IRQ", "for interrupts"),
    ("SOFTIRQ", "for softirqs"),
];

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(text.lines().any(|line| Columns::of(line).is_some()))
}

/// Which kind the row below a heading is of, and where its values are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    kind: usize,
    total: usize,
    mean: Option<usize>,
    longest: Option<usize>,
}

impl Columns {
    /// `CPU  count  real total  virtual total  delay total  delay average`.
    fn of(line: &str) -> Option<Columns> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let kind = KINDS.iter().position(|(kind, _)| *kind == name)?;
        if words.next() != Some("count") {
            return None;
        }
        // All others have names of two words each.
        let names: Vec<&str> = words.take(MAX_WORDS).collect();
        let place = |name: &str| {
            let at = names.windows(2).position(|two| two == ["delay", name])?;
            Some(1 + at / 2)
        };
        Some(Columns {
            kind,
            total: place("total")?,
            mean: place("average"),
            longest: place("max"),
        })
    }
}

/// One kind of delay.
#[derive(Debug, Clone)]
struct Delay {
    kind: usize,
    count: u64,
    total: Ns,
    mean: Option<Ns>,
    longest: Option<Ns>,
    quote: Quote,
}

/// What was accounted of one process or thread.
#[derive(Debug, Clone, Default)]
struct Block {
    who: String,
    ran: Option<Ns>,
    /// One of each kind at most.
    delays: Vec<Delay>,
}

impl Block {
    fn longest(&self) -> Option<&Delay> {
        self.delays.iter().max_by_key(|delay| delay.total)
    }
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    current: Block,
    blocks: Vec<Block>,
}

/// `0.429260ms`, and whole milliseconds of older versions.
fn ms(word: &str) -> Option<Ns> {
    let value = decimal(word.strip_suffix("ms")?.as_bytes())?;
    (0.0..1e12).contains(&value).then_some((value * 1e6) as Ns)
}

impl Reader {
    fn close(&mut self) {
        let block = std::mem::take(&mut self.current);
        if block.delays.is_empty() {
            return;
        }
        // What is asked again and again of one process grows: the last stands for all.
        let known = |known: &Block| !known.who.is_empty() && known.who == block.who;
        match self.blocks.iter().position(known) {
            Some(at) => {
                if let Some(known) = self.blocks.get_mut(at) {
                    *known = block;
                }
            }
            None if self.blocks.len() < MAX_BLOCKS => self.blocks.push(block),
            None => {}
        }
    }

    fn values(&mut self, columns: Columns, text: &str, out: &Out<'_>) -> Option<()> {
        let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
        let number = |at: usize| whole(words.get(at)?.as_bytes());
        let delay = Delay {
            kind: columns.kind,
            count: number(0)?,
            total: number(columns.total)?,
            mean: columns.mean.and_then(|at| ms(words.get(at)?)),
            longest: columns.longest.and_then(|at| ms(words.get(at)?)),
            quote: out.here(),
        };
        if columns.total > 1 {
            self.current.ran = number(1);
        }
        self.current.delays.push(delay);
        Some(())
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text: String = text.chars().take(LINE_BYTES).collect();
        if let Some(columns) = Columns::of(&text) {
            if self.current.delays.iter().any(|delay| delay.kind == columns.kind) {
                self.close();
            }
            self.columns = Some(columns);
            return Understood::Evidence;
        }
        if let Some(columns) = self.columns.take() {
            if self.values(columns, &text, out).is_some() {
                return Understood::Evidence;
            }
            // A heading that was wrapped goes on in the next line.
            if text.starts_with("delay") || text.starts_with("total") {
                self.columns = Some(columns);
                return Understood::Ignorable;
            }
        }
        let mut words = text.split_whitespace();
        let (first, second, more) = (words.next(), words.next(), words.next());
        if let (Some(name @ ("PID" | "TGID")), Some(id), None) = (first, second, more)
            && whole(id.as_bytes()).is_some()
        {
            self.close();
            let what = if name == "PID" { "task" } else { "process" };
            self.current.who = format!("{what} {id}");
            return Understood::Evidence;
        }
        let says_nothing = text.to_ascii_lowercase().starts_with("print")
            || text.contains(": read=")
            || text.starts_with("delay")
            || text
                .split_whitespace()
                .all(|word| ms(word).is_some() || word == "N/A");
        match says_nothing {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.sort_by_key(|block| std::cmp::Reverse(block.longest().map_or(0, |delay| delay.total)));
        for block in blocks.iter().take(MAX_BLOCKS_TOLD) {
            if let Some(statement) = told(block) {
                out.statement(statement);
            }
        }
    }
}

fn told(block: &Block) -> Option<Statement> {
    let longest = block.longest()?;
    let who = match block.who.as_str() {
        "" => "the process",
        who => who,
    };
    let ran = block
        .ran
        .map_or_else(String::new, |ran| format!("; it ran for {}", duration(ran)));
    let quote = longest.quote.clone();
    if longest.total == 0 {
        let text = format!("{who} waited for nothing: all of its delays are 0{ran}");
        return Some(statements::one(StatementKind::WithinNorm, None, quote, text));
    }
    let (name, what) = *KINDS.get(longest.kind)?;
    let all = block
        .delays
        .iter()
        .fold(0_u64, |sum, delay| sum.saturating_add(delay.total));
    let mut text = format!(
        "{who} waited {} {what} ({name} delay total), {} of all its delays, in {}",
        duration(longest.total),
        whole_percent(longest.total, all),
        counted(longest.count, "wait", "waits")
    );
    if let Some(mean) = longest.mean {
        text.push_str(&format!(" of {} at the mean", duration(mean)));
    }
    if let Some(most) = longest.longest {
        text.push_str(&format!(" and {} at most", duration(most)));
    }
    text.push_str(&ran);
    let next = block
        .delays
        .iter()
        .filter(|delay| delay.kind != longest.kind && delay.total > 0)
        .max_by_key(|delay| delay.total);
    if let Some((next, (_, what))) = next.and_then(|next| Some((next, KINDS.get(next.kind)?))) {
        text.push_str(&format!(", and waited {} {what}", duration(next.total)));
    }
    Some(Statement {
        share: Some(longest.total as f64 / all.max(1) as f64),
        ..statements::one(StatementKind::Took, Some(longest.total), quote, text)
    })
}

#[cfg(test)]
mod tests;
