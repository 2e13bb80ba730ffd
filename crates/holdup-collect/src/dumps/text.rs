//! What a machine's dump says of its threads, as the reader of thread dumps has it.
//!
//! In: a dump, hostile. Out: threads with their ids, names, and, of those that did not run meanwhile, their Java frames and the lock that
//! they wait for. Who has a monitor is known by the dump itself: whoever has locked the object of that address.

use holdup_evidence::observed::{LockWait, SeenThread, SnapshotKind, Stacks};
use holdup_evidence::{Frame, Language};
use holdup_jvm::attach::Dump;
use holdup_jvm::{How, Kind, Sighting};
use std::collections::HashMap;
use std::sync::Arc;

/// The format of dumps, by its name among those that are read.
const FORMAT: &str = "thread-dump";

/// Frames of a stack that are kept, the innermost.
const DEEPEST: usize = 256;

/// Longest name of a thread that is kept, bytes.
const LONGEST_NAME: usize = 256;

/// What classes of locks are called for: not the part of it that does the work.
const PARTS: [&str; 3] = ["$NonfairSync", "$FairSync", "$Sync"];

/// A thread, by its machine's word.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SaidThread {
    /// Its id in its own pid namespace.
    pub(crate) inside: u32,
    /// What Java calls it. Hostile text.
    pub(crate) name: String,
    /// Its Java frames, innermost first; none of a thread that may have run meanwhile.
    pub(crate) frames: Vec<Arc<Frame>>,
    /// The lock that it waits for, where somebody has it; of the same threads.
    pub(crate) waits_for: Option<Sighting>,
}

/// The threads of a dump.
pub(super) fn threads(dump: &Dump) -> Vec<SaidThread> {
    let format = holdup_readers::FORMATS.iter().find(|format| format.id == FORMAT);
    let format = format.expect("thread dumps are among the formats that are read");
    let reading = holdup_readers::read_as(format, &dump.text);
    let mut snapshots = reading.observed.snapshots.iter();
    let Some(snapshot) = snapshots.find(|one| one.kind == SnapshotKind::Jvm) else {
        return Vec::new();
    };
    let owners = Owners::of(&snapshot.threads);
    let mut known = HashMap::new();
    let said = snapshot.threads.iter().filter_map(|thread| {
        let inside = thread.tid.filter(|_| !thread.is_virtual)?;
        let still = dump.unmoved.has(inside);
        let frames = match still {
            true => frames(thread, &reading.observed.stacks, &mut known),
            false => Vec::new(),
        };
        let mut name = thread.name.clone();
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
        Some(SaidThread {
            inside,
            name,
            frames,
            waits_for: still.then(|| owners.lock(inside, thread)).flatten(),
        })
    });
    said.collect()
}

/// Who has what.
struct Owners<'a> {
    by_lock: HashMap<&'a str, u32>,
    by_name: HashMap<&'a str, u32>,
}

impl<'a> Owners<'a> {
    fn of(threads: &'a [SeenThread]) -> Owners<'a> {
        let platform = || threads.iter().filter_map(|thread| Some((thread.tid?, thread)));
        Owners {
            by_lock: platform()
                .flat_map(|(tid, thread)| thread.holds.iter().map(move |lock| (lock.id.as_str(), tid)))
                .collect(),
            by_name: platform()
                .map(|(tid, thread)| (thread.name.as_str(), tid))
                .collect(),
        }
    }

    /// The lock that a thread waits for, if it is one that has an owner.
    fn lock(&self, own: u32, thread: &SeenThread) -> Option<Sighting> {
        let lock = thread.waits_for.as_ref()?;
        let found = lock.owner.as_deref().and_then(|name| self.by_name.get(name));
        let (kind, owner) = match lock.wait? {
            LockWait::Enter => (Kind::Monitor, self.by_lock.get(lock.id.as_str()).or(found)),
            // Conditions and queues are parked on, too; that it is a lock is certain where somebody is said to have it.
            LockWait::Park => (Kind::Lock, Some(found?)),
            LockWait::Wait | LockWait::ClassInit => return None,
        };
        let class = PARTS.iter().find_map(|part| lock.class.strip_suffix(part));
        Some(Sighting {
            how: How::Dump,
            kind,
            tid: own,
            class: class.unwrap_or(&lock.class).to_owned(),
            identity: address(&lock.id).unwrap_or(0),
            owner: owner.copied().filter(|owner| *owner != own),
        })
    }
}

fn address(id: &str) -> Option<u64> {
    u64::from_str_radix(id.strip_prefix("0x")?, 16).ok()
}

/// A thread's frames; those of other threads are used again.
fn frames<'a>(
    thread: &SeenThread,
    stacks: &'a Stacks,
    known: &mut HashMap<&'a str, Arc<Frame>>,
) -> Vec<Arc<Frame>> {
    let Some(stack) = thread.stack else {
        return Vec::new();
    };
    let all = stacks.frames(stack).take(DEEPEST);
    all.map(|text| Arc::clone(known.entry(text).or_insert_with(|| Arc::new(frame(text)))))
        .collect()
}

/// `com.shop.Till.run(Till.java:7)` as a frame; a native method, or one whose source is not known, has no place.
fn frame(text: &str) -> Frame {
    let (method, place) = text.split_once('(').unwrap_or((text, ""));
    let place = place.strip_suffix(')').unwrap_or(place);
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) => (Some(file), line.parse().ok()),
        None => (Some(place).filter(|place| place.contains('.')), None),
    };
    Frame {
        symbol: Some(method.to_owned()),
        file: file.map(str::to_owned),
        line,
        language: Language::Java,
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{frame, threads};
    use holdup_evidence::Language;
    use holdup_jvm::Kind;
    use holdup_jvm::attach::{Dump, Unmoved};

    const TEXT: &str = r#"2026-01-01 00:00:00
Full thread dump OpenJDK 64-Bit Server VM (25+36 mixed mode):

"main" #1 [11] prio=5 os_prio=0 cpu=50.1ms elapsed=9.1s tid=0x00007f01 nid=11 waiting on condition  [0x00007f02]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleep0(java.base@25/Native Method)
	at com.shop.Stock.count(Stock.java:15)
	- locked <0x00000000f0a1> (a com.shop.Stock)

"till \u001b[31m" #2 [12] prio=5 os_prio=0 cpu=0.1ms elapsed=9.1s tid=0x00007f03 nid=12 waiting for monitor entry  [0x00007f04]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at com.shop.Stock.left(Stock.java:9)
	- waiting to lock <0x00000000f0a1> (a com.shop.Stock)

"ran" #3 [13] prio=5 os_prio=0 cpu=0.1ms elapsed=9.1s tid=0x00007f05 nid=13 waiting for monitor entry  [0x00007f06]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at com.shop.Stock.left(Stock.java:9)
	- waiting to lock <0x00000000f0a1> (a com.shop.Stock)

"pool" #4 [14] prio=5 os_prio=0 cpu=0.1ms elapsed=9.1s tid=0x00007f07 nid=14 waiting on condition  [0x00007f08]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@25/Native Method)
	- parking to wait for  <0x00000000f0b2> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
"#;

    fn dump(text: &str) -> Dump {
        Dump {
            text: text.as_bytes().to_vec(),
            from: 1,
            to: 2,
            threads: 4,
            unmoved: Unmoved::of([11, 12, 14]),
        }
    }

    #[test]
    fn a_monitor_has_an_owner_and_a_condition_has_none() {
        let said = threads(&dump(TEXT));
        let [main, till, ran, pool] = said.as_slice() else {
            panic!("{said:?}")
        };
        assert_eq!((main.inside, main.name.as_str()), (11, "main"));
        assert_eq!(main.frames[1].symbol.as_deref(), Some("com.shop.Stock.count"));
        assert_eq!(
            (main.frames[1].file.as_deref(), main.frames[1].line),
            (Some("Stock.java"), Some(15))
        );
        let lock = till.waits_for.as_ref().unwrap();
        assert_eq!(
            (lock.kind, lock.class.as_str()),
            (Kind::Monitor, "com.shop.Stock")
        );
        assert_eq!((lock.tid, lock.owner, lock.identity), (12, Some(11), 0xf0a1));
        assert!(pool.waits_for.is_none() && pool.frames.len() == 1);
        // It has run meanwhile, so that nobody knows what it waits for now; its name stays.
        assert!(ran.waits_for.is_none() && ran.frames.is_empty());
        assert_eq!(ran.name, "ran");
    }

    #[test]
    fn rubbish_has_no_threads() {
        for text in ["", "\0\u{1f}\u{8b}", "200 OK\n", "\"", "\"x\" #1 nid=0x"] {
            assert!(threads(&dump(text)).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_frame_has_a_place_or_none() {
        let native = frame("java.lang.Object.wait0(Native Method)");
        assert_eq!(
            (native.symbol.as_deref(), native.file),
            (Some("java.lang.Object.wait0"), None)
        );
        assert_eq!(native.language, Language::Java);
        let unknown = frame("a.b(Unknown Source)");
        assert_eq!((unknown.file, unknown.line), (None, None));
        let without = frame("a.b(B.java)");
        assert_eq!((without.file.as_deref(), without.line), (Some("B.java"), None));
    }
}
