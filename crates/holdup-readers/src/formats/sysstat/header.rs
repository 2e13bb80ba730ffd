//! The heading of a table: which rows follow, what their columns are, and whose table it is.

use super::columns::{Kind, column};
use super::stamp;
use crate::numbers::{decimal, words};
use holdup_evidence::observed::Metric;

/// Who prints such a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Iostat,
    Mpstat,
    Pidstat,
    Sar,
}

impl Tool {
    pub(super) fn id(self) -> &'static str {
        match self {
            Tool::Iostat => "iostat",
            Tool::Mpstat => "mpstat",
            Tool::Pidstat => "pidstat",
            Tool::Sar => "sar",
        }
    }
}

/// Where the word is that says what a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Nowhere: the row is of the machine.
    None,
    /// In this column.
    At(usize),
    /// A process: its id here, its thread's id there, and its command from that column to the end.
    Process {
        pid: Option<usize>,
        tid: Option<usize>,
        command: usize,
    },
}

/// A heading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) tool: Tool,
    pub(super) kind: Kind,
    pub(super) key: Key,
    /// Words of a row behind its time.
    pub(super) width: usize,
    /// Columns that are taken: place, metric and factor.
    pub(super) columns: Vec<(usize, Metric, f64)>,
    /// Whether rows begin with a time.
    pub(super) timed: bool,
}

/// What stands in the place of a time in the block at the end, which is of all reports together.
pub(super) const AVERAGE: &[u8] = b"Average:";

/// Columns of rows of CPUs, by their number. `sar -u ALL` and mpstat have the same ones between `%iowait` and `%idle` in different orders,
/// so that without a heading nothing is known of them.
const CPU_COLUMNS: [&[&[u8]]; 3] = [
    &[
        b"CPU", b"%user", b"%nice", b"%system", b"%iowait", b"%steal", b"%idle",
    ],
    &[
        b"CPU", b"%usr", b"%nice", b"%sys", b"%iowait", b"-", b"-", b"-", b"-", b"%idle",
    ],
    &[
        b"CPU", b"%usr", b"%nice", b"%sys", b"%iowait", b"-", b"-", b"-", b"-", b"-", b"%idle",
    ],
];

/// What the shares of a row add up to, with what rounding takes or adds.
const WHOLE_PERCENT: std::ops::RangeInclusive<f64> = 99.8..=100.2;

/// The heading that a row of a CPU has lost, where its shape leaves no doubt: a time or `Average:`, a CPU, and shares with two decimals that
/// add up to the whole.
pub(super) fn headless(line: &[u8]) -> Option<Header> {
    let skip = match words(line).next()? {
        AVERAGE => 1,
        first if first.first().is_some_and(u8::is_ascii_digit) => time_of(words(line))?.1,
        _ => return None,
    };
    let mut fields = words(line).skip(skip);
    let cpu = fields.next()?;
    if cpu != b"all" && !cpu.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (mut shares, mut sum) = (0, 0.0);
    for field in fields {
        let (_, decimals) = field.split_at_checked(field.len().checked_sub(3)?)?;
        if !matches!(decimals.first(), Some(b'.' | b',')) {
            return None;
        }
        sum += decimal(field).filter(|share| *share >= 0.0)?;
        shares += 1;
    }
    let names = CPU_COLUMNS.iter().find(|names| names.len() == shares + 1)?;
    let header = of_names(names, true).filter(|_| WHOLE_PERCENT.contains(&sum))?;
    let [of_sar, ..] = CPU_COLUMNS;
    let tool = if names.len() == of_sar.len() {
        Tool::Sar
    } else {
        Tool::Mpstat
    };
    Some(Header { tool, ..header })
}

/// The clock that a line begins with, and how many words that takes.
pub(super) fn time_of<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<(holdup_evidence::Ns, usize)> {
    let first = words.next()?;
    let half = words.next().filter(|word| stamp::is_half(word));
    let of_day = stamp::clock(first, half)?;
    Some((of_day, 1 + usize::from(half.is_some())))
}

/// Reads a heading.
pub(super) fn header(line: &[u8]) -> Option<Header> {
    let mut skip = 0;
    let mut timed = false;
    let mut all = words(line);
    let first = all.next()?;
    if first == AVERAGE {
        // The block at the end, where somebody took nothing but that.
        skip = 1;
        timed = true;
    } else if first.first() == Some(&b'#') {
        // pidstat -h: "# Time UID PID …", in old versions "#      Time".
        skip = 1 + usize::from(first.len() == 1);
        timed = true;
    } else if let Some((_, taken)) = time_of(words(line)) {
        skip = taken;
        timed = true;
    }
    let names: Vec<&[u8]> = words(line).skip(skip).collect();
    // A row has numbers, a heading none.
    if names.iter().any(|name| decimal(name).is_some()) {
        return None;
    }
    of_names(&names, timed)
}

fn of_names(names: &[&[u8]], timed: bool) -> Option<Header> {
    let (first, last) = (*names.first()?, *names.last()?);
    let place = |name: &[u8]| names.iter().position(|other| *other == name);
    let is_device = |name: &[u8]| matches!(name, b"Device" | b"Device:");
    let rate = |name: &&[u8]| name.ends_with(b"/s") || name.starts_with(b"%") || name.ends_with(b"-sz");
    let is_command = place(b"Command").filter(|at| at + 1 == names.len() && timed);
    let (tool, kind, key) = if first == b"avg-cpu:" {
        (Tool::Iostat, Kind::Cpu, Key::None)
    } else if is_device(first) || is_device(last) {
        let at = if is_device(first) { 0 } else { names.len() - 1 };
        (Tool::Iostat, Kind::Disk, Key::At(at))
    } else if let Some(command) = is_command {
        let pid = place(b"PID").or_else(|| place(b"TGID"));
        let tid = place(b"TID");
        let known = pid.is_some() || tid.is_some();
        known.then_some((Tool::Pidstat, Kind::Process, Key::Process { pid, tid, command }))?
    } else if !timed {
        return None;
    } else {
        match first {
            b"CPU" => {
                // `sar -u ALL` has the same columns in another order.
                let mpstat = match (place(b"%irq"), place(b"%steal")) {
                    (Some(irq), Some(steal)) => irq < steal,
                    (Some(_), None) => true,
                    _ => false,
                };
                let tool = if mpstat { Tool::Mpstat } else { Tool::Sar };
                (tool, Kind::Cpu, Key::At(0))
            }
            b"DEV" => (Tool::Sar, Kind::Disk, Key::At(0)),
            b"IFACE" => (Tool::Sar, Kind::Interface, Key::At(0)),
            b"INTR" | b"TTY" | b"BUS" | b"FAN" | b"TEMP" | b"IN" | b"FCHOST" | b"WGHFREQ" => {
                (Tool::Sar, Kind::Other, Key::At(0))
            }
            _ if matches!(last, b"FILESYSTEM" | b"MOUNTPOINT" | b"idProd" | b"DEVICE") => {
                (Tool::Sar, Kind::Other, Key::At(names.len() - 1))
            }
            _ => (Tool::Sar, Kind::Machine, Key::None),
        }
    };
    let labels = usize::from(first == b"avg-cpu:");
    let named = names.iter().enumerate().skip(labels);
    let mut columns: Vec<(usize, Metric, f64)> = named
        .clone()
        .filter_map(|(at, name)| column(kind, name).map(|(metric, factor)| (at - labels, metric, factor)))
        .collect();
    // Retransmissions of TCP; NFS has a column of that name, too.
    if let Some(at) = place(b"retrans/s").filter(|_| place(b"atmptf/s").is_some()) {
        columns.push((at, Metric::TcpRetransmitsPerSecond, 1.0));
    }
    let looks = !columns.is_empty() || kind != Kind::Machine || names.iter().any(rate) || names.len() > 2;
    looks.then_some(Header {
        tool,
        kind,
        key,
        width: names.len() - labels,
        columns,
        timed,
    })
}

/// Whose table begins with this line, if one does and is known.
pub(super) fn tool_of(line: &[u8]) -> Option<Tool> {
    header(line)
        .filter(|header| !header.columns.is_empty())
        .map(|header| header.tool)
}
