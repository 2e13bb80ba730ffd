//! Files of the kernel's below `/proc` and `/sys`, one or many in one text.
//!
//! In: a file as it is, which its own format reads; or several with headings (`==> /proc/meminfo <==`, of `head` and `tail`)
//! or with their names in front of each line (`grep -H .`). Out: what the files' formats make of them. What counts since boot
//! is read once for each time it is there, and the readings are compared.

mod clock;
pub(super) mod diskstats;
pub(super) mod machine;
pub(super) mod meminfo;
pub(super) mod pressure;
pub(super) mod settings;
pub(super) mod stat;
#[cfg(test)]
mod tests;
pub(super) mod vmstat_counters;

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::prompt;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("kernel-files", Family::Host, recognise)
    .about("several files of /proc and /sys")
    .openings(&[
        // Not of `/proc/PID`, which is another format's.
        "==> /proc/cmdline",
        "==> /proc/cpuinfo",
        "==> /proc/diskstats",
        "==> /proc/loadavg",
        "==> /proc/meminfo",
        "==> /proc/mounts",
        "==> /proc/net/",
        "==> /proc/pressure/",
        "==> /proc/stat",
        "==> /proc/swaps",
        "==> /proc/sys/",
        "==> /proc/uptime",
        "==> /proc/vmstat",
        "==> /sys/",
        "/proc/diskstats:",
        "/proc/meminfo:",
        "/proc/net/netstat:",
        "/proc/net/snmp:",
        "/proc/pressure/",
        "/proc/stat:",
        "/proc/sys/",
        "/proc/uptime:",
        "/proc/vmstat:",
        "/sys/fs/cgroup/",
    ]);

/// Lines that are looked at.
const LOOKED_AT: usize = 40;

/// Files whose readers are kept, so that a second reading is compared with the first.
const FILES: usize = 64;

/// Bytes of a path.
const PATH: usize = 400;

const UPTIME: &[u8] = b"/proc/uptime";
const LOADAVG: &[u8] = b"/proc/loadavg";

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    // Files of single tasks belong together, and have a reader that knows that.
    let is_it = |path: &[u8]| {
        path == UPTIME || prompt::file(path).is_some_and(|format| format.id != super::proc_task::FORMAT.id)
    };
    let path = |line| heading(line).or_else(|| Some(prefixed(line)?.0));
    Sureness::certain_if(lines.any(|line| path(line).is_some_and(is_it)))
}

/// `==> /proc/meminfo <==`.
fn heading(line: &[u8]) -> Option<&[u8]> {
    let path = line.trim_ascii().strip_prefix(b"==> ")?.strip_suffix(b" <==")?;
    (path.starts_with(b"/") && path.len() <= PATH).then_some(path)
}

/// `/proc/pressure/io:some avg10=…`. A cgroup's name may have colons in it.
fn prefixed(line: &[u8]) -> Option<(&[u8], &[u8])> {
    // As a block of code in a text is.
    let line = line.trim_ascii_start();
    if !line.starts_with(b"/proc/") && !line.starts_with(b"/sys/") {
        return None;
    }
    let colons = line
        .iter()
        .take(PATH)
        .enumerate()
        .filter(|(_, byte)| **byte == b':');
    colons
        .filter_map(|(at, _)| Some((line.get(..at)?, line.get(at + 1..)?)))
        .find(|(path, _)| *path == UPTIME || prompt::file(path).is_some())
}

/// One file's reader.
struct File {
    path: Box<[u8]>,
    reader: Box<dyn LineReader>,
    /// Whether it was reported the last time that there was.
    dated: bool,
    /// Whether it has seen a line: on the first one it asks for its name.
    named: bool,
}

#[derive(Default)]
struct Reader {
    files: Vec<File>,
    /// The file of the last heading.
    under: Option<Box<[u8]>>,
    /// Whether the last line had its file's name in front of it.
    named: bool,
    /// The last line of `/proc/uptime`, or of `date`.
    time: Vec<u8>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(path) = heading(line) {
            self.under = Some(path.into());
            self.named = false;
            return Understood::Ignorable;
        }
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some((path, rest)) = prefixed(line) {
            self.under = None;
            self.named = true;
            return self.of_file(path, rest, out);
        }
        match self.under.take() {
            Some(path) => {
                let understood = self.of_file(&path, line, out);
                self.under = Some(path);
                understood
            }
            None if clock::Clock::default().line(line) => {
                self.now(line);
                Understood::Ignorable
            }
            None => Understood::No,
        }
    }

    fn keeps(&self, other: &Format) -> bool {
        // Its lines have their name in front of them also where it is the only file.
        let among_others = self.named.then_some(LOADAVG);
        let path = self.under.as_deref().or(among_others);
        let format = path.and_then(prompt::file);
        format.is_some_and(|format| format.id == other.id)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        for mut file in self.files.drain(..) {
            file.reader.end(out);
        }
    }
}

impl Reader {
    /// A time that the next readings were taken at.
    fn now(&mut self, line: &[u8]) {
        self.time = line.get(..PATH).unwrap_or(line).to_vec();
        for file in &mut self.files {
            file.dated = false;
        }
    }

    fn of_file(&mut self, path: &[u8], line: &[u8], out: &mut Out<'_>) -> Understood {
        if path == UPTIME {
            if !clock::Clock::default().line(line) {
                return Understood::No;
            }
            self.now(line);
            return Understood::Evidence;
        }
        let Some(format) = prompt::file(path) else {
            return Understood::No;
        };
        let Shape::Lines(reader) = format.shape else {
            return Understood::No;
        };
        let known = self.files.iter().position(|file| &*file.path == path);
        let at = match known {
            Some(at) => at,
            None => {
                if self.files.len() >= FILES {
                    // Of files with one value each there are thousands.
                    let mut oldest = self.files.remove(0);
                    oldest.reader.end(out);
                }
                self.files.push(File {
                    path: path.into(),
                    reader: reader(),
                    dated: false,
                    named: false,
                });
                self.files.len() - 1
            }
        };
        let Some(file) = self.files.get_mut(at) else {
            return Understood::No;
        };
        // A setting is a number or two, and so is the time.
        let timed = format.id != settings::FORMAT.id;
        if !std::mem::replace(&mut file.dated, true) && !self.time.is_empty() && timed {
            file.reader.line(&self.time, out);
        }
        if std::mem::replace(&mut file.named, true) {
            return file.reader.line(line, out);
        }
        let before = out.source().tool.replace(text_of(path));
        let understood = file.reader.line(line, out);
        out.source().tool = before;
        understood
    }
}
