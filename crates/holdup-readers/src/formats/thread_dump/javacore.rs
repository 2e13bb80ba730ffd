//! The javacore of OpenJ9: a file of tagged lines, threads among them.
//!
//! Every line begins with a tag; those about threads, their locks and deadlocks are read, all others are of the JVM's
//! own. Names are turned into the form that other dumps have: points for slashes.

use super::frames::Frames;
use super::{name_owners, settle};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, words};
use holdup_evidence::observed::{LockRef, LockWait, SeenThread, Snapshot, SnapshotKind, State, When};
use memchr::memmem::find;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("javacore", Family::Threads, recognise)
    .about("a javacore of OpenJ9")
    .openings(&["0SECTION       TITLE"]);

/// Threads of one artefact that are kept.
const THREADS: usize = super::THREADS;

/// Bytes of a tag and its blanks: what is reported begins after them.
const TAG: usize = 15;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let ours = lines.any(|line| line.starts_with(b"0SECTION ") || line.starts_with(b"3XMTHREADINFO "));
    if ours { Sureness::Certain } else { Sureness::No }
}

#[derive(Debug, Default)]
struct Reader {
    at: Option<When>,
    program: Option<String>,
    pid: Option<u32>,
    dump: Option<Snapshot>,
    thread: Option<SeenThread>,
    frames: Frames,
    deadlocks: Vec<Vec<String>>,
    kept: usize,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let end = line.iter().position(|byte| byte.is_ascii_whitespace());
        let (tag, rest) = line.split_at(end.unwrap_or(line.len()));
        let rest = rest.trim_ascii();
        let text = String::from_utf8_lossy(rest);
        match tag {
            b"1TIDATETIME" => self.date(&text),
            b"1CIJAVAVERSION" => self.program = Some(text.into_owned()),
            b"1CIPROCESSID" => {
                let number = text.split_whitespace().find_map(|word| word.parse().ok());
                self.pid = number;
            }
            b"0SECTION" if find(rest, b"TITLE").is_some() => self.end(out),
            b"3XMTHREADINFO" => self.begin_thread(&text, out),
            b"3XMJAVALTHREAD" => self.number(&text),
            b"3XMTHREADINFO1" => self.native(&text),
            b"3XMCPUTIME" => self.cpu(rest),
            b"3XMTHREADBLOCK" => self.waits(&text),
            b"4XESTACKTRACE" => self.frame(&text),
            b"5XESTACKTRACE" => self.holds(&text),
            b"1LKDEADLOCK" => self.deadlocks.push(Vec::new()),
            b"2LKDEADLOCKTHR" => self.deadlocked(&text),
            _ => return tagged(tag),
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.end_thread(out);
        if let Some(mut dump) = self.dump.take() {
            dump.deadlocks = std::mem::take(&mut self.deadlocks);
            dump.deadlocks.retain(|circle| !circle.is_empty());
            dump.program = self.program.take();
            name_owners(&mut dump);
            out.snapshot(dump);
        }
    }
}

/// Any line with a tag, or none at all, is of the format.
fn tagged(tag: &[u8]) -> Understood {
    let is_tag = match tag {
        b"NULL" => true,
        [digit, rest @ ..] => {
            digit.is_ascii_digit()
                && rest.len() >= 2
                && tag.len() <= TAG + 5
                && rest
                    .iter()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        }
        [] => true,
    };
    if is_tag {
        Understood::Ignorable
    } else {
        Understood::No
    }
}

impl Reader {
    /// `Date: 2024/01/31 at 12:00:00:123`, in the machine's zone, which is not known.
    fn date(&mut self, text: &str) {
        let mut words = text.split_whitespace().skip(1);
        let (Some(date), Some("at"), Some(time)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let mut parts = time.split(':');
        let time: Vec<&str> = parts.by_ref().take(3).collect();
        let iso = format!("{} {}", date.replace('/', "-"), time.join(":"));
        self.at = super::moment::parse(iso.as_bytes());
    }

    /// `"main" J9VMThread:0x…, omrthread_t:0x…, java/lang/Thread:0x…, state:CW, prio=5`.
    fn begin_thread(&mut self, text: &str, out: &mut Out<'_>) {
        self.end_thread(out);
        let Some((name, rest)) = text.strip_prefix('"').and_then(|text| text.rsplit_once('"')) else {
            return;
        };
        let state = rest.split("state:").nth(1).and_then(|state| state.chars().next());
        self.thread = Some(SeenThread {
            name: name.to_owned(),
            pid: self.pid,
            state: match state {
                Some('R') => State::Runnable,
                Some('B') => State::Blocked,
                Some('C' | 'P') => State::Waiting,
                Some('Z') => State::Ended,
                Some('S') => State::Stopped,
                _ => State::Unknown,
            },
            quote: out.here(),
            ..SeenThread::default()
        });
    }

    fn number(&mut self, text: &str) {
        if let Some(thread) = &mut self.thread {
            thread.number = hexadecimal(text, "getId:0x");
        }
    }

    fn native(&mut self, text: &str) {
        if let Some(thread) = &mut self.thread {
            let tid = hexadecimal(text, "native thread ID:0x");
            thread.tid = tid.and_then(|tid| u32::try_from(tid).ok());
        }
    }

    /// `CPU usage total: 0.5 secs, …`.
    fn cpu(&mut self, rest: &[u8]) {
        let seconds = words(rest).find_map(decimal).filter(|seconds| *seconds >= 0.0);
        if let (Some(thread), Some(seconds)) = (&mut self.thread, seconds) {
            thread.cpu = Some((seconds * 1e9) as u64);
        }
    }

    /// `Blocked on: java/lang/Object@0x… Owned by: "name" (J9VMThread:0x…, …)`.
    fn waits(&mut self, text: &str) {
        let kinds = [
            ("Blocked on: ", LockWait::Enter),
            ("Waiting on: ", LockWait::Wait),
            ("Parked on: ", LockWait::Park),
        ];
        let found = kinds
            .iter()
            .find_map(|(start, wait)| Some((text.strip_prefix(start)?, *wait)));
        let (Some(thread), Some((rest, wait))) = (&mut self.thread, found) else {
            return;
        };
        let (object, owner) = rest.split_once(" Owned by: ").unwrap_or((rest, ""));
        let owner = owner
            .strip_prefix('"')
            .and_then(|owner| Some(owner.rsplit_once('"')?.0));
        if let Some(lock) = lock(object, Some(wait)) {
            thread.waits_for = Some(LockRef {
                owner: owner.map(str::to_owned),
                ..lock
            });
        }
    }

    /// `at java/lang/Object.wait(Native Method)`, `at com/foo/Bar.run(Bar.java:12(Compiled Code))`.
    fn frame(&mut self, text: &str) {
        let (Some(_), Some(frame)) = (&self.thread, text.strip_prefix("at ")) else {
            return;
        };
        let (method, place) = frame.split_once('(').unwrap_or((frame, ")"));
        let place = place
            .strip_suffix("(Compiled Code))")
            .map(|place| format!("{place})"));
        let place = place.unwrap_or_else(|| frame.split_once('(').map_or(")", |(_, place)| place).to_owned());
        self.frames
            .push(format!("{}({place}", method.replace('/', ".")).as_bytes());
    }

    /// `(entered lock: java/lang/Object@0x…, entry count: 1)`.
    fn holds(&mut self, text: &str) {
        let object = text
            .strip_prefix("(entered lock: ")
            .and_then(|rest| rest.split(',').next());
        let (Some(thread), Some(lock)) = (&mut self.thread, object.and_then(|object| lock(object, None)))
        else {
            return;
        };
        if !thread.holds.contains(&lock) {
            thread.holds.push(lock);
        }
    }

    /// `Thread "name" (0x…)`; the first one stands at the end of its circle again.
    fn deadlocked(&mut self, text: &str) {
        let name = text
            .strip_prefix("Thread \"")
            .and_then(|name| Some(name.rsplit_once('"')?.0));
        if let (Some(circle), Some(name)) = (self.deadlocks.last_mut(), name)
            && !circle.iter().any(|other| other == name)
        {
            circle.push(name.to_owned());
        }
    }

    fn end_thread(&mut self, out: &mut Out<'_>) {
        let Some(mut thread) = self.thread.take() else {
            return;
        };
        thread.stack = self.frames.finish(out);
        settle(&mut thread);
        if self.kept >= THREADS {
            out.account().left_out += 1;
            return;
        }
        self.kept += 1;
        let at = &mut self.at;
        let dump = self.dump.get_or_insert_with(|| Snapshot {
            at: at.take(),
            ..Snapshot::new(SnapshotKind::Jvm, out.here())
        });
        dump.threads.push(thread);
    }
}

/// `java/lang/Object@0x00000000E0004A30`.
fn lock(object: &str, wait: Option<LockWait>) -> Option<LockRef> {
    let (class, _) = object.trim().split_once('@')?;
    Some(LockRef {
        id: object.trim().replace('/', "."),
        class: class.replace('/', "."),
        wait,
        owner: None,
    })
}

fn hexadecimal(text: &str, after: &str) -> Option<u64> {
    let rest = text.split(after).nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    u64::from_str_radix(rest.get(..end)?, 16).ok()
}
