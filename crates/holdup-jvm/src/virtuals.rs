//! Virtual threads: how many there are, what each does, and where it stands.
//!
//! A virtual thread that waits has no thread of the kernel's: its stack lies in the heap, in pieces. In: a machine of JDK 21 or later. Out:
//! the virtual threads that its own lists of them have (`jdk.internal.vm.ThreadContainers`), which are those that a thread dump to a file
//! shows. Nothing is stopped, so one that moves meanwhile may be missed, or has no frames: what does not fit is left out.
//!
//! - The state is a number of `java.lang.VirtualThread`, whose names are constants of that class: no version's numbers are kept here.
//! - Of one that is unmounted the frames are walked in the pieces of its continuation. There, frame pointers of interpreted code count from
//!   where they are kept (see [`crate::frames`]).
//! - Of one that is mounted they are on the stack of its carrier, from where that left Java.

use crate::arch;
use crate::frames::{Stack, Walker};
use crate::layout::Layout;
use crate::memory::{Memory, Source};
use crate::methods::class_name;
use crate::objects::{Met, Reading};
use crate::oops::Oops;
use crate::structures::Structures;
use crate::threads::Fields as Threads;
use holdup_evidence::{Frame, Ns};
use holdup_symbols::{Registers, StackBytes};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Loaders of classes that are gone through, and classes of the first of them.
const LOADERS_MAX: usize = 65_536;
const CLASSES_MAX: usize = 65_536;

/// Lists of virtual threads: executors, scopes.
const CONTAINERS_MAX: usize = 4_096;

/// Virtual threads that are counted, and of those the ones that are listed with their frames.
const COUNTED_MAX: usize = 100_000;
const LISTED_MAX: usize = 1_000;

/// Pieces of one stack, and the bytes of a piece.
const PIECES_MAX: usize = 64;
const PIECE_MAX: u64 = 1 << 18;

/// Of a carrier's stack so much is read, bytes, a page at a time.
const CARRIER_STACK: u64 = 64 << 10;
const STEP: u64 = 4096;

/// Where a saved frame pointer and a return address are, below where a frame's caller begins.
const RETURN: u64 = 8;
const SAVED: u64 = 16;

/// A state may have this added: somebody has suspended it.
const SUSPENDED: u32 = 1 << 8;

/// What begins the frames by which a carrier runs a virtual thread; what is inside of them is the virtual thread's.
const CARRIES: [&str; 2] = ["jdk.internal.vm.Continuation.", "java.lang.VirtualThread.run"];

/// The classes that are needed.
const VIRTUAL: &str = "java.lang.VirtualThread";
const PIECE: &str = "jdk.internal.vm.StackChunk";
const CONTAINERS: &str = "jdk.internal.vm.ThreadContainers";
const ROOT: &str = "jdk.internal.vm.ThreadContainers$RootContainer$TrackingRootContainer";

/// What a virtual thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// A carrier runs it, or waits with it without knowing.
    Runs,
    /// It waits and keeps its carrier.
    Pinned,
    /// It could run, and has no carrier.
    Ready,
    /// It waits, and no carrier with it.
    Parked,
    /// It waits for a monitor, and no carrier with it.
    Blocked,
}

/// A virtual thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtual {
    /// Java's number of it.
    pub id: u64,
    /// Its name, if it has one. Hostile.
    pub name: Option<String>,
    /// What it does.
    pub does: Does,
    /// The thread that carries it, in its pid namespace.
    pub carrier: Option<u32>,
    /// Who has the lock that it is parked for, where the lock notes that.
    pub owner: Option<Owner>,
    /// Its frames, innermost first; none where they could not be read.
    pub frames: Vec<Arc<Frame>>,
}

/// Who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A thread of the kernel's: its id in its own pid namespace.
    Thread(u32),
    /// A virtual thread: Java's number of it.
    Virtual(u64),
}

/// Those of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtuals {
    /// Those that are listed.
    pub listed: Vec<Virtual>,
    /// How many more there are.
    pub more: u64,
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Fields {
    class: u64,
    state: u64,
    continuation: u64,
    carrier: u64,
    name: u64,
    number: u64,
    /// In a platform thread: its structure.
    structure: u64,
    /// In any thread: what it is parked for.
    blocker: Option<u64>,
    states: HashMap<u32, Does>,
    pieces: Option<Pieces>,
    anchor: Option<Anchor>,
    /// The machine's sets of containers and of threads without one: static fields, and the objects that have them.
    registry: Option<(u64, u64)>,
    root: Option<(u64, u64)>,
}

/// Where a piece has what.
#[derive(Debug)]
struct Pieces {
    parent: u64,
    size: u64,
    sp: u64,
    /// Where the stack begins.
    begin: u64,
}

/// In a thread's structure: where it left Java.
#[derive(Debug)]
struct Anchor {
    sp: u64,
    fp: u64,
    pc: u64,
}

impl Fields {
    pub(crate) fn read<S: Source>(
        memory: &mut Memory<S>,
        tables: &Structures,
        layout: &Layout,
        oops: &Oops,
    ) -> Option<Fields> {
        let [class, piece, containers, root] =
            classes(memory, tables, layout, [VIRTUAL, PIECE, CONTAINERS, ROOT]);
        let (class, mirror_at) = (class?, tables.offset("Klass", "_java_mirror")?);
        let mirror = |memory: &mut Memory<S>, class: u64| {
            let slot = memory.pointer(class.checked_add(mirror_at)?)?;
            oops.of_handle(memory, slot)
        };
        let of_class = mirror(memory, class)?;
        let mut states = HashMap::new();
        for (name, does) in STATES {
            let value = oops
                .field(memory, layout, class, name)
                .and_then(|field| memory.int(of_class.checked_add(field)?));
            states.extend(value.map(|value| (value, does)));
        }
        let mut set = |class: Option<u64>, name: &str| {
            let class = class?;
            Some((mirror(memory, class)?, oops.field(memory, layout, class, name)?))
        };
        let registry = set(containers, "CONTAINER_REGISTRY");
        let root = set(root, "VTHREADS");
        let mut field = |class: u64, name: &str| oops.field(memory, layout, class, name);
        let (state, continuation) = (field(class, "state")?, field(class, "cont")?);
        let (carrier, name) = (field(class, "carrierThread")?, field(class, "name")?);
        let number = field(class, "tid")?;
        let structure = field(oops.thread, "eetop")?;
        let blocker = field(oops.thread, "parkBlocker");
        let pieces = piece.and_then(|piece| {
            let fields = ["parent", "size", "sp"].map(|name| field(piece, name));
            let [parent, size, sp] = fields;
            Some((piece, parent?, size?, sp?))
        });
        let pieces = pieces.and_then(|(piece, parent, size, sp)| {
            let bytes = memory.int(piece.checked_add(tables.offset("Klass", "_layout_helper")?)?)?;
            Some(Pieces {
                parent,
                size,
                sp,
                // The lowest bit says that objects of the class are made in another way.
                begin: u64::from(bytes & !7),
            })
        });
        let anchor = tables.offset("JavaThread", "_anchor").and_then(|anchor| {
            let part = |name| Some(anchor + tables.offset("JavaFrameAnchor", name)?);
            Some(Anchor {
                sp: part("_last_Java_sp")?,
                fp: part("_last_Java_fp")?,
                pc: part("_last_Java_pc")?,
            })
        });
        Some(Fields {
            class,
            state,
            continuation,
            carrier,
            name,
            number,
            structure,
            blocker,
            states,
            pieces,
            anchor,
            registry,
            root,
        })
    }

    /// All of them. `at`: now.
    pub(crate) fn all<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        oops: &Oops,
        threads: &Threads,
        at: Ns,
    ) -> Virtuals {
        let mut met = Met::default();
        let mut objects: Vec<u64> = Vec::new();
        {
            let mut read = Reading {
                memory: &mut *walker.memory,
                layout: walker.layout,
                oops,
            };
            for (owner, field) in [self.root, self.registry].into_iter().flatten() {
                let set = owner.checked_add(field);
                let set = set.and_then(|at| read.oops.reference(read.memory, at));
                let Some(set) = set else { continue };
                if Some((owner, field)) == self.root {
                    met.set(&mut read, set, COUNTED_MAX, &mut objects);
                    continue;
                }
                let mut references = Vec::new();
                met.set(&mut read, set, CONTAINERS_MAX, &mut references);
                for reference in references {
                    let container = met.follow(&mut read, reference, "referent");
                    let Some(container) = container else { continue };
                    let holder = met.follow(&mut read, container, "flock").unwrap_or(container);
                    let set = met
                        .follow(&mut read, holder, "threads")
                        .or_else(|| met.follow(&mut read, holder, "virtualThreads"));
                    if let Some(set) = set {
                        met.set(&mut read, set, COUNTED_MAX, &mut objects);
                    }
                }
            }
        }
        let mut found = Virtuals::default();
        objects.sort_unstable();
        objects.dedup();
        for object in objects {
            if oops.class(walker.memory, object) != Some(self.class) {
                continue;
            }
            let state = object
                .checked_add(self.state)
                .and_then(|at| walker.memory.int(at));
            let Some(does) = state.and_then(|state| self.states.get(&(state & !SUSPENDED)).copied()) else {
                continue;
            };
            if found.listed.len() >= LISTED_MAX {
                found.more += 1;
                continue;
            }
            found
                .listed
                .extend(self.one(walker, oops, threads, &mut met, object, does, at));
        }
        found.listed.sort_by_key(|one| one.id);
        found
    }

    #[allow(clippy::too_many_arguments, reason = "each is something else")]
    fn one<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        oops: &Oops,
        threads: &Threads,
        met: &mut Met,
        object: u64,
        does: Does,
        at: Ns,
    ) -> Option<Virtual> {
        let id = walker.memory.word(object.checked_add(self.number)?)?;
        let text = oops.reference(walker.memory, object.checked_add(self.name)?);
        let name = text.and_then(|text| oops.string(walker.memory, walker.layout, text));
        let carrier = oops.reference(walker.memory, object.checked_add(self.carrier)?);
        let structure = carrier.and_then(|carrier| {
            let at = carrier.checked_add(self.structure)?;
            walker.memory.pointer(at)
        });
        let frames = match (does, structure) {
            (Does::Parked | Does::Blocked | Does::Ready, _) => {
                self.unmounted(walker, oops, met, object, at).unwrap_or_default()
            }
            (_, Some(structure)) => self.mounted(walker, structure, at).unwrap_or_default(),
            (_, None) => Vec::new(),
        };
        let owner = match does {
            Does::Parked | Does::Pinned => self.owner(walker, oops, threads, met, object, id),
            Does::Runs | Does::Ready | Does::Blocked => None,
        };
        Some(Virtual {
            id,
            owner,
            name: name.filter(|name| !name.is_empty()),
            does,
            carrier: structure.and_then(|structure| threads.tid(walker.memory, structure)),
            frames,
        })
    }

    /// Who has the lock that a virtual thread is parked for.
    fn owner<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        oops: &Oops,
        threads: &Threads,
        met: &mut Met,
        object: u64,
        id: u64,
    ) -> Option<Owner> {
        let mut read = Reading {
            memory: &mut *walker.memory,
            layout: walker.layout,
            oops,
        };
        let lock = read
            .oops
            .reference(read.memory, object.checked_add(self.blocker?)?)?;
        let owner = met.owner(&mut read, lock)?;
        if read.oops.class(read.memory, owner) == Some(self.class) {
            let number = read.memory.word(owner.checked_add(self.number)?)?;
            return (number != id).then_some(Owner::Virtual(number));
        }
        let structure = read.memory.pointer(owner.checked_add(self.structure)?)?;
        let lives = threads.all(read.memory)?.contains(&structure);
        let tid = lives.then(|| threads.tid(read.memory, structure))??;
        Some(Owner::Thread(tid))
    }

    /// The frames in the pieces of a continuation.
    fn unmounted<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        oops: &Oops,
        met: &mut Met,
        object: u64,
        at: Ns,
    ) -> Option<Vec<Arc<Frame>>> {
        let pieces = self.pieces.as_ref()?;
        let continuation = oops.reference(walker.memory, object.checked_add(self.continuation)?)?;
        let mut read = Reading {
            memory: &mut *walker.memory,
            layout: walker.layout,
            oops,
        };
        let tail = met.follow(&mut read, continuation, "tail");
        let mut frames = Vec::new();
        let mut next = tail;
        for _ in 0..PIECES_MAX {
            let Some(piece) = next else { break };
            frames.extend(self.piece(walker, pieces, piece, at)?);
            next = oops.reference(walker.memory, piece.checked_add(pieces.parent)?);
        }
        Some(of_thread(frames))
    }

    fn piece<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        pieces: &Pieces,
        piece: u64,
        at: Ns,
    ) -> Option<Vec<Arc<Frame>>> {
        let words =
            |memory: &mut Memory<S>, field: u64| Some(u64::from(memory.int(piece.checked_add(field)?)?) * 8);
        let size = words(walker.memory, pieces.size)?;
        let top = words(walker.memory, pieces.sp)?;
        if size > PIECE_MAX || top >= size || top < SAVED {
            return Some(Vec::new());
        }
        let start = piece.checked_add(pieces.begin)?;
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        walker.memory.read(start, &mut bytes)?;
        let bytes = StackBytes { start, bytes: &bytes };
        let sp = start + top;
        let stack = Stack {
            bytes,
            at,
            in_heap: true,
        };
        let ip = bytes.word(sp.checked_sub(RETURN)?)?;
        let mut saved = [None; arch::SAVED];
        saved[arch::FRAME_POINTER] = walker.link(&stack, sp.checked_sub(SAVED)?, ip);
        Some(walker.walk(registers(ip, sp, saved), false, &stack).frames)
    }

    /// The frames on the stack of a carrier that is not in Java now.
    fn mounted<S: Source>(
        &self,
        walker: &mut Walker<'_, S>,
        structure: u64,
        at: Ns,
    ) -> Option<Vec<Arc<Frame>>> {
        let anchor = self.anchor.as_ref()?;
        let sp = walker.memory.pointer(structure.checked_add(anchor.sp)?)?;
        let fp = walker.memory.pointer(structure.checked_add(anchor.fp)?);
        let pc = walker.memory.pointer(structure.checked_add(anchor.pc)?);
        let mut bytes = Vec::new();
        let mut page = [0; STEP as usize];
        let start = sp.checked_sub(SAVED)? & !(STEP - 1);
        while (bytes.len() as u64) < CARRIER_STACK {
            let here = start.checked_add(bytes.len() as u64)?;
            if walker.memory.read(here, &mut page).is_none() {
                break;
            }
            bytes.extend_from_slice(&page);
        }
        let bytes = StackBytes { start, bytes: &bytes };
        let ip = pc.or_else(|| bytes.word(sp.checked_sub(RETURN)?))?;
        let mut saved = [None; arch::SAVED];
        saved[arch::FRAME_POINTER] = fp;
        let stack = Stack {
            bytes,
            at,
            in_heap: false,
        };
        let walk = walker.walk(registers(ip, sp, saved), false, &stack);
        Some(of_thread(walk.frames))
    }
}

/// The names of the states that matter, and what they say. Of a state that is not among them nothing is reported: the thread has not begun, or
/// has ended.
const STATES: [(&str, Does); 19] = [
    ("STARTED", Does::Ready),
    ("RUNNABLE", Does::Ready),
    ("RUNNING", Does::Runs),
    ("PARKING", Does::Runs),
    ("PARKED", Does::Parked),
    ("PINNED", Does::Pinned),
    ("TIMED_PARKING", Does::Runs),
    ("TIMED_PARKED", Does::Parked),
    ("TIMED_PINNED", Does::Pinned),
    ("UNPARKED", Does::Ready),
    ("YIELDING", Does::Runs),
    ("YIELDED", Does::Ready),
    ("BLOCKING", Does::Runs),
    ("BLOCKED", Does::Blocked),
    ("UNBLOCKED", Does::Ready),
    ("WAITING", Does::Runs),
    ("WAIT", Does::Parked),
    ("TIMED_WAITING", Does::Runs),
    ("TIMED_WAIT", Does::Parked),
];

/// Without the frames that take a virtual thread off its carrier, and those below it.
fn of_thread(frames: Vec<Arc<Frame>>) -> Vec<Arc<Frame>> {
    let carries = |frame: &Arc<Frame>| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        CARRIES.iter().any(|start| symbol.starts_with(start))
    };
    let own = frames.into_iter().skip_while(carries);
    own.take_while(|frame| !carries(frame)).collect()
}

/// Classes of the first loader by name.
fn classes<S: Source, const N: usize>(
    memory: &mut Memory<S>,
    tables: &Structures,
    layout: &Layout,
    names: [&str; N],
) -> [Option<u64>; N] {
    let mut found = [None; N];
    let fields = || {
        Some((
            tables.address("ClassLoaderDataGraph", "_head")?,
            tables.offset("ClassLoaderData", "_next")?,
            tables.offset("ClassLoaderData", "_klasses")?,
            tables.offset("Klass", "_next_link")?,
        ))
    };
    let Some((head, next_loader, first, next)) = fields() else {
        return found;
    };
    // The loader of the runtime was the first, and each later one was put before it.
    let mut loader = memory.pointer(head);
    for _ in 0..LOADERS_MAX {
        let later = loader.and_then(|loader| memory.pointer(loader.checked_add(next_loader)?));
        if later.is_none() {
            break;
        }
        loader = later;
    }
    let mut class = loader.and_then(|loader| memory.pointer(loader.checked_add(first)?));
    for _ in 0..CLASSES_MAX {
        let Some(here) = class else { break };
        if let Some(name) = class_name(memory, layout, here)
            && let Some(place) = names.iter().position(|known| *known == name)
        {
            found[place] = Some(here);
            if found.iter().all(Option::is_some) {
                break;
            }
        }
        class = here.checked_add(next).and_then(|at| memory.pointer(at));
    }
    found
}

/// What is known of a frame.
fn registers(ip: u64, sp: u64, saved: [Option<u64>; arch::SAVED]) -> Registers {
    Registers {
        ip,
        sp,
        sp_known: true,
        saved,
    }
}

#[cfg(test)]
mod tests {
    use super::of_thread;
    use holdup_evidence::Frame;
    use std::sync::Arc;

    #[test]
    fn the_frames_of_a_virtual_thread_are_between_those_that_carry_it() {
        let frame = |symbol: &str| {
            Arc::new(Frame {
                symbol: Some(symbol.to_owned()),
                ..Frame::default()
            })
        };
        let all = [
            "jdk.internal.vm.Continuation.yield0",
            "java.lang.VirtualThread.park",
            "com.shop.Till.pay",
            "java.lang.VirtualThread.run",
            "jdk.internal.vm.Continuation.enter",
            "java.util.concurrent.ForkJoinPool.runWorker",
        ];
        let own = of_thread(all.iter().map(|symbol| frame(symbol)).collect());
        let own: Vec<_> = own.iter().filter_map(|frame| frame.symbol.as_deref()).collect();
        assert_eq!(own, ["java.lang.VirtualThread.park", "com.shop.Till.pay"]);
    }
}
