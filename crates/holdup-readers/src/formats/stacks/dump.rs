//! A dump that is being read, thread by thread and frame by frame.

use crate::formats::thread_dump::Frames;
use crate::gather::Out;
use holdup_evidence::observed::{SeenThread, Snapshot, SnapshotKind};
use memchr::memmem::find;

/// Threads of one artefact that are kept.
const THREADS: usize = 200_000;

/// The dump so far.
#[derive(Debug)]
pub(super) struct Dump {
    kind: SnapshotKind,
    snapshot: Option<Snapshot>,
    thread: Option<SeenThread>,
    frames: Frames,
    kept: usize,
    /// How many threads the one that is being read stands for.
    times: usize,
}

impl Dump {
    pub(super) fn of(kind: SnapshotKind) -> Dump {
        Dump {
            kind,
            snapshot: None,
            thread: None,
            frames: Frames::kept_as(str::to_owned),
            kept: 0,
            times: 1,
        }
    }

    /// The dump, begun if need be.
    pub(super) fn snapshot(&mut self, out: &Out<'_>) -> &mut Snapshot {
        let kind = self.kind;
        self.snapshot
            .get_or_insert_with(|| Snapshot::new(kind, out.here()))
    }

    /// Another thread. One that the dump has already begins the next dump.
    pub(super) fn begin(&mut self, mut thread: SeenThread, out: &mut Out<'_>) {
        self.end_thread(out);
        let known = thread.tid.is_some() || thread.number.is_some();
        let same = |seen: &SeenThread| known && (seen.tid, seen.number) == (thread.tid, thread.number);
        self.times = 1;
        let first = self.snapshot.as_ref().and_then(|dump| dump.threads.first());
        if first.is_some_and(same) {
            self.end(out);
        }
        self.snapshot(out);
        thread.quote = out.here();
        self.thread = Some(thread);
    }

    /// The thread whose frames are being read.
    pub(super) fn thread(&mut self) -> Option<&mut SeenThread> {
        self.thread.as_mut()
    }

    /// The thread's next frame outwards; whether there is a thread.
    pub(super) fn frame(&mut self, frame: &[u8]) -> bool {
        if self.thread.is_some() {
            self.frames.push(frame);
        }
        self.thread.is_some()
    }

    /// The thread has no more frames.
    pub(super) fn end_thread(&mut self, out: &mut Out<'_>) {
        let Some(mut thread) = self.thread.take() else {
            return;
        };
        thread.stack = self.frames.finish(out);
        let times = std::mem::replace(&mut self.times, 1);
        let kept = times.min(THREADS - self.kept);
        out.account().left_out += (times - kept) as u64;
        self.kept += kept;
        self.snapshot(out)
            .threads
            .extend(std::iter::repeat_n(thread, kept));
    }

    /// The thread that is being read stands for so many alike.
    pub(super) fn stands_for(&mut self, times: usize) {
        self.times = times;
    }

    /// The dump is whole.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.end_thread(out);
        if let Some(dump) = self.snapshot.take().filter(|dump| !dump.threads.is_empty()) {
            out.snapshot(dump);
        }
    }
}

/// A call as `name (arguments)`, taken apart at the bracket that the last one closes; names of C++ and Go have brackets too.
pub(super) fn call(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let inner = text.strip_suffix(b")")?;
    let mut open = 1_usize;
    for (at, byte) in inner.iter().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            let name = inner.get(..at)?.trim_ascii_end();
            return (!name.is_empty()).then_some((name, inner.get(at + 1..)?));
        }
    }
    None
}

/// A number in decimal digits at the beginning, and what follows it.
pub(super) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

/// Text as it is kept.
pub(super) fn owned(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// What a person has written behind a line of a dump begins so.
const REMARKS: [&[u8]; 4] = [b" <-", b" <=", " \u{2190}".as_bytes(), b"\t<-"];

/// A line without what a person has written behind it: `load (shop.py:9)   <--- here`. `None` where nobody has.
pub(super) fn without_remark(line: &[u8]) -> Option<&[u8]> {
    let begins = REMARKS.iter().filter_map(|remark| find(line, remark));
    let line = line.get(..begins.min()?)?.trim_ascii_end();
    (!line.is_empty()).then_some(line)
}
