//! The table of processes or threads below the summary.

use crate::day_time::length;
use crate::format::Understood;
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use crate::sizes;
use crate::tasks::{self, NOTABLE_PERCENT, Tasks};
use holdup_evidence::observed::SeenThread;

/// Columns that a table can have at most: top has some fifty.
const MAX_COLUMNS: usize = 64;

/// Where the columns are that say something, by word.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Columns {
    pid: usize,
    parent: Option<usize>,
    state: usize,
    cpu: Option<usize>,
    memory: Option<usize>,
    resident: Option<usize>,
    time: Option<usize>,
    function: Option<usize>,
    command: usize,
}

impl Columns {
    /// The columns of a table's head; `None` for any other line.
    pub(super) fn of(line: &[u8]) -> Option<Columns> {
        let mut columns = Columns::default();
        let (mut pid, mut state, mut command, mut priority) = (None, None, None, false);
        let (mut virt, mut last) = (false, 0);
        for (at, word) in words(line).take(MAX_COLUMNS).enumerate() {
            last = at;
            virt |= word == b"VIRT";
            match word {
                b"PID" if at == 0 => pid = Some(at),
                b"PPID" => columns.parent = Some(at),
                b"S" | b"STAT" => state = Some(at),
                b"%CPU" => columns.cpu = Some(at),
                b"%MEM" | b"%VSZ" | b"%RSS" => columns.memory = Some(at),
                b"RES" | b"RSS" => columns.resident = Some(at),
                _ if at > 0 && word.ends_with(b"+") => columns.time = Some(at),
                b"WCHAN" => columns.function = Some(at),
                b"PR" | b"VIRT" | b"VSZ" => priority = true,
                b"COMMAND" | b"Command" => command = Some(at),
                _ if at == 0 => return None,
                _ => {}
            }
        }
        // `ps` has such heads, too: only top has a priority or the size behind it, and the name last.
        if !priority || columns.cpu.is_none() {
            return None;
        }
        Some(Columns {
            pid: pid?,
            state: state?,
            // In another language the last two have other names (`ZEIT+ BEFEHL`).
            command: command.or(virt.then_some(last))?,
            ..columns
        })
    }

    /// A row; `No` for a line that is none.
    pub(super) fn row(&self, line: &[u8], tasks: &mut Tasks, out: &mut Out<'_>) -> Understood {
        let mut fields: [&[u8]; MAX_COLUMNS] = [b""; MAX_COLUMNS];
        let mut rest = line;
        let most = self.command.min(MAX_COLUMNS - 1);
        let mut count = 0;
        for slot in fields.iter_mut().take(most) {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(u8::is_ascii_whitespace);
            let Some((word, behind)) = end.and_then(|end| rest.split_at_checked(end)) else {
                break;
            };
            *slot = word;
            rest = behind;
            count += 1;
        }
        let field = |at: Option<usize>| at.filter(|at| *at < count).and_then(|at| fields.get(at).copied());
        let Some(pid) = field(Some(self.pid)).and_then(whole) else {
            return Understood::No;
        };
        // busybox writes `S <` where the priority is not the usual one.
        let shifted = matches!(rest.trim_ascii_start(), [b'<' | b'N', b' ', ..]);
        let Some(state) = field(Some(self.state)).and_then(tasks::state) else {
            return Understood::No;
        };
        let name = rest.trim_ascii();
        if count < most || name.is_empty() || shifted {
            return Understood::No;
        }
        let share = |at| {
            let text: &[u8] = field(at)?;
            decimal(text.strip_suffix(b"%").unwrap_or(text)).filter(|share| *share >= 0.0)
        };
        let (cpu, memory) = (share(self.cpu), share(self.memory));
        let notable = [cpu, memory]
            .iter()
            .flatten()
            .any(|share| *share >= NOTABLE_PERCENT);
        if tasks::sleeps(state) && !notable {
            tasks.count();
            return Understood::Evidence;
        }
        let pid = u32::try_from(pid).ok();
        let name = String::from_utf8_lossy(name).into_owned();
        let resident = field(self.resident).and_then(sizes::kib);
        if notable {
            tasks::usage(out, &tasks::named(&name, pid), cpu, memory, resident);
        }
        let function = field(self.function).filter(|name| !matches!(*name, b"-" | b"0" | b"?"));
        let task = SeenThread {
            name,
            tid: pid,
            pid: None,
            state,
            cpu: field(self.time).and_then(length),
            cpu_percent: cpu,
            parent: field(self.parent)
                .and_then(whole)
                .and_then(|pid| u32::try_from(pid).ok()),
            kernel_function: function.map(|name| String::from_utf8_lossy(name).into_owned()),
            quote: out.here(),
            ..SeenThread::default()
        };
        tasks.add(task, out);
        Understood::Evidence
    }
}
