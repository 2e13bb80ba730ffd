//! Stacks of threads that were off the CPU, frame by frame, as bcc's offcputime and its like print them.
//!
//! In: frames, innermost first, the program's name behind a `-`, and below it microseconds. Out: a profile of waiting time.

use super::Folded;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::observed::{Quote, Weight};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("off-cpu-stacks", Family::Profiles, recognise)
    .about("stacks of offcputime")
    .openings(&["Tracing off-CPU time (us)"]);

/// Frames of a stack that are kept.
const MAX_FRAMES: usize = 256;

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 300;

/// Digits from which a word in front of a function is its address.
const ADDRESS: usize = 12;

fn recognise(head: &[u8]) -> Sureness {
    let mut named = false;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        if line.starts_with(b"Tracing off-CPU time (us)") {
            return Sureness::Certain;
        }
        if named && weight(line).is_some() {
            return Sureness::Likely;
        }
        named = program(line).is_some();
    }
    Sureness::No
}

/// `-                app (8820)`.
fn program(line: &[u8]) -> Option<&[u8]> {
    let rest = line.trim_ascii().strip_prefix(b"-")?;
    let rest = rest
        .first()
        .filter(|first| first.is_ascii_whitespace())
        .and(Some(rest))?
        .trim_ascii_start();
    let open = memchr::memrchr(b'(', rest)?;
    let number = rest.get(open + 1..)?.strip_suffix(b")")?;
    whole(number)?;
    rest.get(..open).map(<[u8]>::trim_ascii_end)
}

/// A number alone.
fn weight(line: &[u8]) -> Option<u64> {
    let mut words = words(line);
    let weight = whole(words.next()?)?;
    words.next().is_none().then_some(weight)
}

/// A function, without its address.
fn frame(line: &[u8]) -> Option<&[u8]> {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() || trimmed.len() == line.trim_ascii_end().len() {
        return None;
    }
    let first = words(trimmed).next()?;
    let address = first.len() >= ADDRESS && first.iter().all(u8::is_ascii_hexdigit);
    Some(match address {
        true => trimmed.get(first.len()..)?.trim_ascii(),
        false => trimmed,
    })
}

#[derive(Default)]
struct Reader {
    folded: Folded,
    first: Option<Quote>,
    /// Frames of the stack that is being read, innermost first.
    frames: Vec<Vec<u8>>,
    program: Option<Vec<u8>>,
}

impl Reader {
    /// Takes the stack that was read, of a program.
    fn take(&mut self, program: Vec<u8>, weight: u64, out: &Out<'_>) {
        let mut stack = program;
        for frame in self.frames.drain(..).rev() {
            stack.push(b';');
            stack.extend(frame);
        }
        self.first.get_or_insert_with(|| out.here());
        self.folded.add(&stack, weight);
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.iter().all(u8::is_ascii_whitespace) {
            self.frames.clear();
            return Understood::Ignorable;
        }
        if let Some(name) = program(line) {
            self.program = Some(name.to_vec());
            return Understood::Evidence;
        }
        if let Some(program) = self.program.take() {
            let Some(weight) = weight(line) else {
                return Understood::No;
            };
            self.take(program, weight, out);
            return Understood::Evidence;
        }
        if line.starts_with(b"Tracing off-CPU time") {
            return Understood::Ignorable;
        }
        // Without the program's frames nothing stands before its name: it is what stands above the number.
        if let (Some(weight), Some(last)) = (weight(line), self.frames.len().checked_sub(1)) {
            let program = self.frames.remove(last);
            self.take(program, weight, out);
            return Understood::Evidence;
        }
        match frame(line) {
            // Between the kernel's frames and the program's.
            Some(b"--" | b"-") => Understood::Ignorable,
            Some(frame) => {
                if self.frames.len() < MAX_FRAMES {
                    // A sign that parts frames would make two of one.
                    self.frames.push(
                        frame
                            .iter()
                            .map(|byte| if *byte == b';' { b':' } else { *byte })
                            .collect(),
                    );
                }
                Understood::Evidence
            }
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(quote) = self.first.take() {
            std::mem::take(&mut self.folded).finish(out, None, Weight::Us, quote);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::Weight;

    #[test]
    fn frames_become_stacks_of_waiting_time() {
        let text = "Tracing off-CPU time (us) of PID 7 by user + kernel stack... Hit Ctrl-C to end.\n\n    schedule\n    \
            ffffffff810a4b2e futex_wait\n    --\n    lock\n    main\n    -                app (7)\n        4000\n\n    schedule\n    \
            -                app (8)\n        10\n";
        let reading = read_text("o", text.as_bytes());
        let profile = &reading.observed.samples[0];
        assert_eq!((profile.total, profile.weight), (4_010, Weight::Us));
        let frames: Vec<&str> = reading.observed.stacks.frames(profile.stacks[0].0).collect();
        assert_eq!(frames, ["schedule", "futex_wait", "lock", "main", "app"]);
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn stacks_of_the_kernel_alone_have_the_name_above_the_number() {
        let text = "Tracing off-CPU time (us) of all threads by kernel stack... Hit Ctrl-C to end.\n^C\n    schedule\n    \
            xfs_buf_lock\n    tar\n        13000\n\n    schedule\n    rcu_nocb_kthread\n    rcuos/0\n        22\n";
        let reading = read_text("o", text.as_bytes());
        let profile = &reading.observed.samples[0];
        assert_eq!(profile.total, 13_022);
        let frames: Vec<&str> = reading.observed.stacks.frames(profile.stacks[0].0).collect();
        assert_eq!(frames, ["schedule", "xfs_buf_lock", "tar"]);
    }

    #[test]
    fn rubbish_is_counted() {
        for text in [
            "    - a (1)\n        x\n",
            "    - a (1)\n        1\n    - (\n",
            "Tracing off-CPU time (us)\n\n;\n  ;\n",
        ] {
            let _ = read_text("o", text.as_bytes());
        }
    }
}
