//! Frames in which threads were seen while they are traced, for the waits in which they were seen.
//!
//! In: a thread's frames, and the time in which they were read; waits as they are met. Out: the frames of a wait that lasted for the
//! whole of that time: a thread that waits does not run, so they are the frames of that wait. What was read while the thread ran, or
//! while a wait began or ended, is no wait's.

use holdup_evidence::{Ns, Seq, ThreadId, UserStackId, Wait};
use holdup_runtimes::interpreted::AwaitedLock;
use holdup_symbols::Interpreted;
use std::collections::{HashMap, VecDeque};

/// Sightings of a thread that are kept: its waits are reported some 20 ms after they ended.
const OF_THREAD_MAX: usize = 8;

/// What is kept of all, bytes; then all are forgotten.
const BYTES_MAX: usize = 16 << 20;

/// Native stacks of a thread that are kept with the shortest wait of each.
const STACKS_MAX: usize = 64;

/// A wait is about as long as another if it lasts for one part in so many of it, or longer.
const ABOUT_AS_LONG: u64 = 2;

/// A thread, seen once.
#[derive(Debug)]
pub(super) struct Sighting {
    /// When reading began.
    pub(super) from: Ns,
    /// When it was over.
    pub(super) to: Ns,
    /// Innermost first.
    pub(super) frames: Vec<Interpreted>,
    /// The frames of who waits for each descriptor, by inode, where the thread waits for several.
    pub(super) by: Vec<(u64, Vec<Interpreted>)>,
    /// The lock that it waited for.
    pub(super) lock: Option<AwaitedLock>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    threads: HashMap<ThreadId, Seen>,
    bytes: usize,
}

/// What was seen of a thread.
#[derive(Debug, Default)]
struct Seen {
    /// The latest last.
    sightings: VecDeque<Sighting>,
    /// The last wait in which it was seen.
    of: Option<(Seq, Sighting)>,
    /// The last wait that was met, how long it lasted, and what ended it, where that says whose it was.
    met: Option<(Seq, Ns, Option<u64>)>,
    /// Native stacks of waits in which it was seen, with what ended them, and how long the shortest of each lasted.
    shortest: HashMap<(UserStackId, Option<u64>), Ns>,
    /// Whether it was seen to wait for several descriptors on behalf of different functions.
    for_several: bool,
}

impl Sightings {
    /// A thread was seen.
    pub(super) fn seen(&mut self, thread: ThreadId, sighting: Sighting) {
        if self.bytes >= BYTES_MAX {
            *self = Sightings::default();
        }
        self.bytes += sighting.bytes();
        let seen = self.threads.entry(thread).or_default();
        seen.for_several |= !sighting.by.is_empty();
        let sightings = &mut seen.sightings;
        sightings.push_back(sighting);
        if sightings.len() > OF_THREAD_MAX
            && let Some(oldest) = sightings.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }

    /// A wait is met; it may be so again. `by`: the inode of the descriptor that ended it.
    pub(super) fn meet(&mut self, wait: &Wait, by: Option<u64>) {
        let Some(seen) = self.threads.get_mut(&wait.thread) else {
            return;
        };
        let whose = by.filter(|_| seen.for_several);
        seen.met = Some((wait.seq, wait.end.saturating_sub(wait.start), whose));
        let before = |sighting: &mut Sighting| sighting.to < wait.end;
        while let Some(sighting) = seen.sightings.pop_front_if(before) {
            let passed = if wait.start < sighting.from {
                let before = sighting.bytes();
                let sighting = sighting.ended_by(by);
                self.bytes -= before - sighting.bytes();
                let of = seen.of.replace((wait.seq, sighting));
                of.map(|(_, sighting)| sighting)
            } else {
                Some(sighting)
            };
            self.bytes -= passed.map_or(0, |passed| passed.bytes());
        }
    }

    /// The frames of waits of one call, from the first to the last, if the thread was seen in one of them.
    pub(super) fn of(&self, thread: ThreadId, first: Seq, last: Seq) -> Option<&[Interpreted]> {
        let (seq, sighting) = self.threads.get(&thread)?.of.as_ref()?;
        (first..=last).contains(seq).then_some(&sighting.frames[..])
    }

    /// The lock that a wait was for, and when it was seen so.
    pub(super) fn lock_of(&self, wait: &Wait) -> Option<(AwaitedLock, (Ns, Ns))> {
        let (seq, sighting) = self.threads.get(&wait.thread)?.of.as_ref()?;
        let lock = sighting.lock.filter(|_| *seq == wait.seq)?;
        Some((lock, (sighting.from, sighting.to)))
    }

    /// A wait has this native stack. `seen`: whether the thread was seen in it.
    pub(super) fn has_stack(&mut self, thread: ThreadId, seq: Seq, stack: UserStackId, seen: bool) {
        let known = self.threads.get_mut(&thread);
        let Some(Seen { met, shortest, .. }) = known.filter(|_| seen) else {
            return;
        };
        if let Some((_, length, by)) = met.filter(|(met, ..)| *met == seq)
            && (shortest.contains_key(&(stack, by)) || shortest.len() < STACKS_MAX)
        {
            let least = shortest.entry((stack, by)).or_insert(length);
            *least = length.min(*least);
        }
    }

    /// Whether waits in which the thread was seen stand for one in which it was not: it has their native stack, and is about as long.
    /// A much shorter one may be another function's, which looks are too rare to meet.
    pub(super) fn stand_for(&self, thread: ThreadId, seq: Seq, stack: UserStackId) -> bool {
        let stands = || {
            let seen = self.threads.get(&thread)?;
            let (_, length, by) = seen.met.filter(|(met, ..)| *met == seq)?;
            Some(length.saturating_mul(ABOUT_AS_LONG) >= *seen.shortest.get(&(stack, by))?)
        };
        stands().unwrap_or(false)
    }

    /// A thread is gone.
    pub(super) fn forget(&mut self, thread: ThreadId) {
        if let Some(Seen { sightings, of, .. }) = self.threads.remove(&thread) {
            let all = sightings.into_iter().chain(of.map(|(_, sighting)| sighting));
            self.bytes -= all.map(|sighting| sighting.bytes()).sum::<usize>();
        }
    }
}

impl Sighting {
    /// As what it was in a wait that this descriptor ended. Where that is not known, who waits for all of them counts.
    fn ended_by(mut self, by: Option<u64>) -> Sighting {
        let of = std::mem::take(&mut self.by);
        if let (Some(by), false) = (by, of.is_empty()) {
            let its = of.into_iter().find(|(inode, _)| *inode == by);
            self.frames = its.map(|(_, frames)| frames).unwrap_or_default();
        }
        self
    }

    /// What it takes, roughly.
    fn bytes(&self) -> usize {
        bytes(&self.frames) + self.by.iter().map(|(_, frames)| bytes(frames)).sum::<usize>()
    }
}

/// What frames take, roughly.
fn bytes(frames: &[Interpreted]) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let each = frames.iter().map(|one| &one.frame);
    each.map(|frame| size_of_val(&**frame) + text(&frame.symbol) + text(&frame.file))
        .sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::{BYTES_MAX, Sighting, Sightings};
    use holdup_evidence::{Call, Frame, Ns, Seq, ThreadId, UserStackId, Wait};
    use holdup_symbols::Interpreted;
    use std::sync::Arc;

    const ONE: ThreadId = ThreadId(1);
    const OTHER: ThreadId = ThreadId(2);

    fn seen(sightings: &mut Sightings, thread: ThreadId, from: Ns, to: Ns, function: &str) {
        let frame = Arc::new(Frame {
            symbol: Some(function.to_owned()),
            ..Frame::default()
        });
        let frames = vec![Interpreted { frame, entry: true }];
        let lock = None;
        let sighting = Sighting {
            from,
            to,
            frames,
            by: Vec::new(),
            lock,
        };
        sightings.seen(thread, sighting);
    }

    pub(crate) fn wait(thread: ThreadId, seq: Seq, start: Ns, end: Ns) -> Wait {
        Wait::new(thread, seq, (start, end), Call::named("futex"))
    }

    fn met(sightings: &mut Sightings, thread: ThreadId, seq: Seq, start: Ns, end: Ns) -> Option<String> {
        sightings.meet(&wait(thread, seq, start, end), None);
        of(sightings, thread, seq, seq)
    }

    fn of(sightings: &Sightings, thread: ThreadId, first: Seq, last: Seq) -> Option<String> {
        let frames = sightings.of(thread, first, last)?;
        frames.first().and_then(|one| one.frame.symbol.clone())
    }

    #[test]
    fn a_wait_has_the_frames_that_were_read_in_it_and_no_others() {
        let mut sightings = Sightings::default();
        seen(&mut sightings, ONE, 120, 130, "pay");
        assert_eq!(met(&mut sightings, ONE, 1, 100, 200).as_deref(), Some("pay"));
        assert_eq!(met(&mut sightings, ONE, 2, 210, 300), None, "nobody looked");
        seen(&mut sightings, ONE, 295, 305, "it went on while it was read");
        assert_eq!(met(&mut sightings, ONE, 3, 302, 400), None);
        seen(&mut sightings, ONE, 405, 406, "it ran between two waits");
        assert_eq!(met(&mut sightings, ONE, 4, 410, 500), None);
        seen(&mut sightings, ONE, 509, 515, "it was about to wait");
        assert_eq!(met(&mut sightings, ONE, 5, 510, 600), None);
        assert_eq!(sightings.bytes > 0, sightings.threads[&ONE].of.is_some());
    }

    #[test]
    fn each_thread_and_each_wait_has_its_own() {
        let mut sightings = Sightings::default();
        seen(&mut sightings, ONE, 120, 121, "pay");
        seen(&mut sightings, OTHER, 122, 123, "fetch");
        seen(&mut sightings, ONE, 220, 221, "ship");
        assert_eq!(met(&mut sightings, OTHER, 1, 100, 300).as_deref(), Some("fetch"));
        assert_eq!(met(&mut sightings, ONE, 1, 100, 200).as_deref(), Some("pay"));
        assert_eq!(met(&mut sightings, ONE, 2, 210, 300).as_deref(), Some("ship"));
        sightings.forget(ONE);
        assert_eq!(of(&sightings, ONE, 2, 2), None);
        sightings.forget(OTHER);
        assert_eq!(sightings.bytes, 0);
    }

    #[test]
    fn the_waits_of_one_call_share_what_was_seen_in_one_of_them() {
        let mut sightings = Sightings::default();
        seen(&mut sightings, ONE, 120, 121, "pay");
        assert_eq!(met(&mut sightings, ONE, 7, 100, 200).as_deref(), Some("pay"));
        assert_eq!(met(&mut sightings, ONE, 8, 201, 202), None);
        assert_eq!(of(&sightings, ONE, 7, 8).as_deref(), Some("pay"));
        assert_eq!(of(&sightings, ONE, 8, 9), None);
    }

    #[test]
    fn a_wait_that_goes_on_is_met_more_than_once() {
        let mut sightings = Sightings::default();
        seen(&mut sightings, ONE, 120, 121, "pay");
        assert_eq!(met(&mut sightings, ONE, 1, 100, 150).as_deref(), Some("pay"));
        assert_eq!(met(&mut sightings, ONE, 1, 100, 900).as_deref(), Some("pay"));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut sightings = Sightings::default();
        let long = "x".repeat(BYTES_MAX / 64);
        for number in 0..1000 {
            seen(
                &mut sightings,
                ThreadId(number % 200),
                number.into(),
                number.into(),
                &long,
            );
            assert!(sightings.bytes <= BYTES_MAX + 2 * long.len());
        }
        seen(&mut sightings, ONE, 2000, 2001, "pay");
        assert_eq!(met(&mut sightings, ONE, 1, 1999, 2002).as_deref(), Some("pay"));
    }

    #[test]
    fn seen_waits_stand_for_one_of_the_same_stack_that_is_about_as_long() {
        let (thread, native, other) = (ThreadId(1), UserStackId(7), UserStackId(8));
        let mut sightings = Sightings::default();
        let frames = Vec::new();
        sightings.seen(
            thread,
            Sighting {
                from: 110,
                to: 120,
                frames,
                by: Vec::new(),
                lock: None,
            },
        );
        sightings.meet(&wait(thread, 1, 100, 200), None);
        sightings.has_stack(thread, 1, native, true);
        for (seq, length, stands) in [(2, 100, true), (3, 50, true), (4, 49, false)] {
            sightings.meet(&wait(thread, seq, 300, 300 + length), None);
            assert_eq!(sightings.stand_for(thread, seq, native), stands, "{length}");
            assert!(!sightings.stand_for(thread, seq, other));
        }
        assert!(!sightings.stand_for(thread, 1, native), "it is not the last wait");
    }
}
