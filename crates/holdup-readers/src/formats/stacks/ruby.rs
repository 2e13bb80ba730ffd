//! Threads of a Ruby program: what Sidekiq and Puma log at a signal, `sigdump`, `rb_backtrace()` from a debugger.
//!
//! In: headers of threads, with a logger's own words in front of them or not, and frames ``path:line:in `method'``, innermost first; those
//! of `rb_backtrace()` have `from` in front of them and the innermost last. Out: a snapshot; a frame is `method(path:line)`.

use super::dump::{Dump, owned};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::observed::{SeenThread, SnapshotKind, State};
use memchr::memmem::{find, rfind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ruby-stacks", Family::Threads, recognise).about("the threads of a Ruby program");

/// Frames in a row, each called by the next, that make a stack without a header.
const MIN_FRAMES: usize = 3;

/// Frames of one stack whose order is turned.
const FRAMES: usize = 1_000;

/// Bytes of a line in which a logger's own words may stand in front of a frame.
const IN_FRONT: usize = 160;

fn recognise(head: &[u8]) -> Sureness {
    let mut header = false;
    let mut from = 0;
    for line in head.split(|byte| *byte == b'\n') {
        if thread(line).is_some() {
            header = true;
        } else if let Some(frame) = frame(line) {
            if header {
                return Sureness::Certain;
            }
            // An exception's frames have `from` in front of them too, but below a line with its message.
            from = if frame.turned { from + 1 } else { 0 };
            if from >= MIN_FRAMES && find(head, b"rb_backtrace").is_some() {
                return Sureness::Certain;
            }
        } else {
            header &= line.trim_ascii().is_empty();
            from = 0;
        }
    }
    Sureness::No
}

#[derive(Debug)]
struct Reader {
    dump: Dump,
    /// Frames of a thread whose innermost one comes last.
    turned: Vec<Vec<u8>>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            dump: Dump::of(SnapshotKind::Ruby),
            turned: Vec::new(),
        }
    }
}

impl Reader {
    fn turn(&mut self) {
        for frame in std::mem::take(&mut self.turned).iter().rev() {
            self.dump.frame(frame);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(thread) = thread(line) {
            self.turn();
            self.dump.begin(thread, out);
            return Understood::Evidence;
        }
        let Some(frame) = frame(line) else {
            return match find(line, b"<no backtrace available>").is_some() {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        if self.dump.thread().is_none() {
            self.dump.begin(SeenThread::default(), out);
        }
        match frame.turned {
            true if self.turned.len() < FRAMES => self.turned.push(frame.kept),
            true => out.account().left_out += 1,
            false => {
                self.dump.frame(&frame.kept);
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.turn();
        self.dump.end(out);
    }
}

/// `Thread TID-gpk3r processor`, `Thread: TID-1a2 puma srv tp 001`, `Thread #<Thread:0x007f run> status=sleep priority=0`.
fn thread(line: &[u8]) -> Option<SeenThread> {
    const MARKS: [&[u8]; 3] = [b"Thread: TID-", b"Thread TID-", b"Thread #<Thread:0x"];
    let head = line.get(..IN_FRONT).unwrap_or(line);
    let (at, mark) = MARKS.iter().find_map(|mark| Some((find(head, mark)?, mark)))?;
    let rest = line.get(at + mark.len()..)?.trim_ascii();
    let end = rest
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(rest.len());
    let (id, behind) = rest.split_at(end);
    if id.is_empty() {
        return None;
    }
    let asleep = find(behind, b"status=sleep").is_some();
    let name = match find(behind, b"status=") {
        Some(_) => b"",
        None => behind.trim_ascii(),
    };
    let id = id.split(|byte| *byte == b'@').next().unwrap_or(id);
    let name = match name {
        b"" => format!("thread {}", owned(id)),
        name => format!("{} ({})", owned(name), owned(id)),
    };
    Some(SeenThread {
        name,
        state: if asleep { State::Waiting } else { State::Unknown },
        ..SeenThread::default()
    })
}

struct Frame {
    kept: Vec<u8>,
    /// The one that called it stands above it.
    turned: bool,
}

/// ``/app/a.rb:62:in `work'``, `from /app/a.rb:62:in 'Worker#work'`.
fn frame(line: &[u8]) -> Option<Frame> {
    let line = line.trim_ascii();
    let at = find(line, b":in `").or_else(|| find(line, b":in '"))?;
    let end = rfind(line, b"'").filter(|end| *end > at + 5)?;
    let method = line.get(at + 5..end)?;
    let head = line.get(..at)?;
    let colon = head.iter().rposition(|byte| *byte == b':')?;
    let number = head.get(colon + 1..)?;
    if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let front = head.get(..colon)?;
    let begin = front
        .iter()
        .rposition(u8::is_ascii_whitespace)
        .map_or(0, |at| at + 1);
    let turned = front.get(..begin)?.trim_ascii() == b"from";
    let path = front.get(begin..)?;
    let mut kept = method.to_vec();
    kept.push(b'(');
    kept.extend_from_slice(path);
    kept.push(b':');
    kept.extend_from_slice(number);
    kept.push(b')');
    (!path.is_empty()).then_some(Frame { kept, turned })
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn stacks(text: &str) -> Vec<(String, Vec<String>)> {
        let observed = read_text("t", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "ruby-stacks", "{text}");
        let threads = observed.snapshots.iter().flat_map(|dump| &dump.threads);
        threads
            .map(|thread| {
                let frames = thread
                    .stack
                    .into_iter()
                    .flat_map(|stack| observed.stacks.frames(stack));
                (thread.name.clone(), frames.map(str::to_owned).collect())
            })
            .collect()
    }

    #[test]
    fn logged_at_a_signal_with_words_in_front() {
        let text = "2021-02-11T08:01:02.001Z pid=9 tid=x1 WARN: Thread TID-q1 processor\n\
            2021-02-11T08:01:02.001Z pid=9 tid=x1 WARN: /ruby/2.7.0/net/protocol.rb:217:in `wait_readable'\n\
            /app/jobs/mail.rb:22:in `perform'\n\
            2021-02-11T08:01:02.001Z pid=9 tid=x1 WARN: Thread TID-q2 processor\n\
            2021-02-11T08:01:02.001Z pid=9 tid=x1 WARN: <no backtrace available>\n";
        let all = stacks(text);
        assert_eq!(all[0].0, "processor (q1)");
        assert_eq!(
            all[0].1,
            [
                "wait_readable(/ruby/2.7.0/net/protocol.rb:217)",
                "perform(/app/jobs/mail.rb:22)"
            ]
        );
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn written_to_a_file_by_a_handler_of_a_signal() {
        let text = "Sigdump at 2021-02-11 process 9 (app)\n  Thread #<Thread:0x00007f01 run> status=sleep priority=0\n      \
            /app/a.rb:7:in 'Mutex#synchronize'\n      /app/a.rb:3:in '<main>'\n";
        assert_eq!(stacks(text)[0].1[0], "Mutex#synchronize(/app/a.rb:7)");
    }

    #[test]
    fn by_a_debugger_the_innermost_is_last() {
        let text = "(gdb) call rb_backtrace()\n\tfrom /app/a.rb:1:in `<main>'\n\tfrom /app/a.rb:5:in `each'\n\tfrom /app/a.rb:9:in `sleep'\n";
        assert_eq!(stacks(text)[0].1[0], "sleep(/app/a.rb:9)");
    }
}
