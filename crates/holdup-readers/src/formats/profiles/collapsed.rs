//! Collapsed (folded) stacks: `main;read;vfs_read 17`, one stack a line.
//!
//! In: what stackcollapse-*.pl, async-profiler (`-o collapsed`, with its suffixes `_[j]`, `_[k]` …), offcputime -f and
//! profile -f print. Out: [`Samples`]. Off-CPU stacks of offcputime are microseconds; that is taken where the stacks end
//! in the scheduler and begin with a process's name, and else a weight is a count.
//!
//! [`Samples`]: holdup_evidence::observed::Samples

use super::Folded;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::observed::{Quote, Weight};
use memchr::{memchr, memmem, memrchr};
use std::io::{ErrorKind, Read};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("collapsed", Family::Profiles, recognise).about("collapsed stacks");

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    // The last line may be cut.
    let end = memrchr(b'\n', head).unwrap_or(head.len());
    let lines = head.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
    let (mut fits, mut deep, mut others) = (0u32, 0u32, 0u32);
    for line in lines.filter(|line| !line.trim_ascii().is_empty()).take(LOOKED_AT) {
        match split(line) {
            Some((stack, _)) => {
                fits += 1;
                deep += u32::from(memchr(b';', stack).is_some());
            }
            None => others += 1,
        }
    }
    match () {
        () if deep == 0 || deep * 2 < fits => Sureness::No,
        () if others == 0 => Sureness::Certain,
        () if fits >= 4 * others => Sureness::Likely,
        () => Sureness::No,
    }
}

/// A stack and its weight.
fn split(line: &[u8]) -> Option<(&[u8], u64)> {
    let line = line.trim_ascii_end();
    let space = memrchr(b' ', line)?;
    let weight = line
        .get(space + 1..)?
        .iter()
        .try_fold(0u64, |sum, byte| match byte {
            b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
            _ => None,
        })?;
    let stack = line.get(..space)?;
    (space + 1 < line.len() && !stack.is_empty()).then_some((stack, weight))
}

/// What became of the lines that [`stacks`] read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackLines {
    /// Lines with a stack.
    pub understood: u64,
    /// Lines with something else.
    pub not_understood: u64,
    /// What the weights count.
    pub weight: Weight,
    /// Why there may be more.
    pub failure: Option<String>,
}

/// Reads collapsed stacks as they come, without keeping any: for files of any size. A line that is too long is cut into
/// lines that are not understood.
pub fn stacks(stream: &mut dyn Read, take: &mut dyn FnMut(&[u8], u64)) -> StackLines {
    let mut lines = StackLines {
        understood: 0,
        not_understood: 0,
        weight: Weight::Count,
        failure: None,
    };
    let mut line = |line: &[u8]| match split(line) {
        Some((stack, weight)) => {
            if lines.understood == 0 && marked(stack) {
                lines.weight = Weight::Us;
            }
            lines.understood += 1;
            take(stack, weight);
        }
        None => lines.not_understood += u64::from(!line.trim_ascii().is_empty()),
    };
    let mut buffer = vec![0; BLOCK];
    let (mut from, mut to) = (0, 0);
    let failure = loop {
        if from == to {
            (from, to) = (0, 0);
        } else if to == buffer.len() {
            // What is left of the last line goes to the front; a line that fills it all is cut.
            if from == 0 {
                line(&buffer);
                to = 0;
            } else {
                buffer.copy_within(from..to, 0);
                (from, to) = (0, to - from);
            }
        }
        let read = match stream.read(&mut buffer[to..]) {
            Ok(0) => break None,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break Some(error.to_string()),
        };
        let new = to;
        to += read;
        let mut searched = new;
        while let Some(end) = memchr(b'\n', &buffer[searched..to]) {
            let end = searched + end;
            line(&buffer[from..end]);
            from = end + 1;
            searched = from;
        }
    };
    line(&buffer[from..to]);
    lines.failure = failure;
    lines
}

/// Bytes that are read at once, and the longest line.
const BLOCK: usize = 1 << 20;

/// Whether a stack has offcputime's mark between user and kernel.
fn marked(stack: &[u8]) -> bool {
    memmem::find(stack, b";-;").is_some() || memmem::find(stack, b";--;").is_some()
}

#[derive(Default)]
struct Reader {
    folded: Folded,
    first: Option<Quote>,
    /// A line has offcputime's mark between user and kernel.
    marked: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let Some((stack, weight)) = split(line) else {
            let blank = line.iter().all(u8::is_ascii_whitespace);
            return if blank {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        if self.first.is_none() {
            self.first = Some(out.here());
            self.marked = marked(stack);
        }
        self.folded.add(stack, weight);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let weight = if self.marked { Weight::Us } else { Weight::Count };
        let quote = self.first.take().unwrap_or_default();
        std::mem::take(&mut self.folded).finish(out, None, weight, quote);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Samples, Weight};

    fn samples(text: &[u8]) -> (crate::Reading, Samples) {
        let reading = read_text("p", text);
        let samples = reading.observed.samples.first().cloned().expect("a profile");
        (reading, samples)
    }

    #[test]
    fn equal_stacks_are_one_and_the_heaviest_is_first() {
        let (reading, profile) =
            samples(b"java;a.B.run_[j];read_[k] 3\njava;a.B.run_[j] 2\njava;a.B.run_[j];read_[k] 4\n");
        assert_eq!(
            (profile.total, profile.waiting, profile.weight),
            (9, None, Weight::Count)
        );
        let (stack, weight) = profile.stacks[0];
        assert_eq!(weight, 7);
        let frames: Vec<&str> = reading.observed.stacks.frames(stack).collect();
        assert_eq!(frames, ["read_[k]", "a.B.run_[j]", "java"]);
    }

    #[test]
    fn stacks_that_end_in_the_scheduler_are_of_waiting() {
        let (reading, profile) = samples(
            b"sshd;main;read;-;entry;vfs_read;pipe_read;schedule;finish_task_switch.isra.0 900\nsshd;main;--;do_nanosleep;schedule 100\n",
        );
        assert_eq!((profile.waiting, profile.weight), (Some(true), Weight::Us));
        assert_eq!(reading.observed.stacks.frames(profile.stacks[0].0).count(), 8);
    }

    #[test]
    fn hostile_lines_are_counted_and_nothing_more() {
        let mut text = b"a;b 1\na;b;c 2\nc;d 5\na;e 1\nb;x 7\n".repeat(40);
        text.extend_from_slice(b"\0\xff;\xfe 5\n; 3\nno number here;\na;b 99999999999999999999999\n 7\na;b 18446744073709551615\n");
        let (reading, profile) = samples(&text);
        assert_eq!(profile.total, u64::MAX);
        assert_eq!(reading.accounts[0].not_understood, 3);
    }

    #[test]
    fn stacks_come_one_by_one_whatever_the_blocks_are() {
        struct Bit<'a>(&'a [u8], usize);
        impl std::io::Read for Bit<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let length = self.1.min(self.0.len()).min(buffer.len());
                buffer[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        let mut text = b"a;b 1\r\nno stack\n\na;b;c 2\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 << 20));
        text.extend(b" 7\nlast;one 5");
        for size in [1, 7, 4_096, usize::MAX] {
            let mut seen = Vec::new();
            let found = super::stacks(&mut Bit(&text, size), &mut |stack, weight| {
                if stack.len() < 100 {
                    seen.push((String::from_utf8_lossy(stack).into_owned(), weight));
                }
            });
            let expected = [("a;b", 1), ("a;b;c", 2), ("last;one", 5)];
            assert_eq!(
                &seen[..2],
                &expected.map(|(stack, weight)| (stack.to_owned(), weight))[..2]
            );
            assert_eq!(
                seen.last().map(|(stack, weight)| (stack.as_str(), *weight)),
                Some(("last;one", 5))
            );
            assert!(
                found.not_understood >= 2 && found.weight == Weight::Count,
                "{found:?}"
            );
        }
        let found = super::stacks(&mut &b"sh;main;-;schedule 9\n"[..], &mut |_, _| {});
        assert_eq!((found.weight, found.understood), (Weight::Us, 1));
    }

    #[test]
    fn of_too_many_stacks_the_lightest_are_forgotten() {
        let mut text = Vec::new();
        for number in 0..250_000u32 {
            text.extend_from_slice(format!("a;b{number} 1\na;heavy 3\n").as_bytes());
        }
        let (reading, profile) = samples(&text);
        assert_eq!(profile.total, 1_000_000);
        assert_eq!(profile.stacks[0].1, 750_000);
        assert!(profile.stacks.len() <= 5_000 && reading.accounts[0].left_out > 240_000);
    }
}
