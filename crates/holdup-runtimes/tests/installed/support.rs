//! A real program under test: its memory, where symbols are in it, and its end.

use holdup_runtimes::memory::{PAGE, Source};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The memory of a process, `/proc/PID/mem`.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) File);

impl Source for Running {
    fn page(&mut self, address: u64, page: &mut [u8; PAGE]) -> bool {
        self.0.read_exact_at(page, address).is_ok()
    }
}

/// A program that says where it stands, and then sleeps. It is killed when the test is over.
pub(crate) struct Sleeper {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Sleeper {
    pub(crate) fn start(command: &mut Command) -> Sleeper {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Sleeper { child, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn memory(&self) -> Running {
        Running(File::open(format!("/proc/{}/mem", self.pid())).unwrap())
    }

    /// The next line that it prints, with its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// The lines before this one.
    pub(crate) fn lines_to(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it ends after {lines:#?}");
            if line == last {
                return lines;
            }
            lines.push(line);
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where a process has an interpreter. `may_be_in`: whether a mapped file may have its symbols, by its name. `place`: what the file's name and
/// the symbols' addresses in the process come to; the first file that comes to anything counts.
pub(crate) fn place_of<T, const N: usize>(
    pid: u32,
    may_be_in: impl Fn(&str) -> bool,
    symbols: [&str; N],
    place: impl Fn(&str, [Option<u64>; N]) -> Option<T>,
) -> Option<T> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, _, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let Some(path) = fields.nth(2).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let name = Path::new(path).file_name()?.to_str()?;
        if offset != "00000000" || !may_be_in(name) {
            continue;
        }
        let begin = u64::from_str_radix(range.split('-').next()?, 16).ok()?;
        let data = std::fs::read(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let first = file.segments().map(|segment| segment.address()).min()?;
        let moved = begin - (first - first % PAGE as u64);
        let defined: HashMap<&str, u64> = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| Some((symbol.name().ok()?, symbol.address() + moved)))
            .collect();
        let found = place(name, symbols.map(|symbol| defined.get(symbol).copied()));
        if found.is_some() {
            return found;
        }
    }
    None
}
