//! Pools for whose things tasks wait, and the tasks that have those things.
//!
//! The problem: a task that waits for a free connection awaits a bare future, and nothing notes who is to complete it. The choice: the pool
//! is what a method further out on the waiter's chain belongs to. Who has a connection refers to it from its own frames: it is among what
//! the pool keeps, or it refers to the pool itself. What the waiters refer to as well (a session, a client that all share) is none of
//! these. In: tasks and their chains. Out: which pool each awaits, and which tasks have something of it.

use super::super::Interpreter;
use super::super::objects::BOUND_TO;
use super::coroutines::Chain;
use super::{FUTURE, Found, TASK, TaskStatus};
use crate::memory::Source;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Parts of the names of classes that lend things to tasks.
const LENDERS: [&str; 3] = ["Pool", "Connector", "Limiter"];

/// The library's folder, and its files in which a task waits for what another one does.
const LIBRARY: &str = "/asyncio/";
const SIGNALS: [&str; 2] = ["/locks.py", "/queues.py"];

/// What Python puts between a function and what is defined within it.
const WITHIN_FUNCTION: &str = "<locals>";

/// Innermost frames of a waiter in which the pool is looked for.
const WAITER_FRAMES_MAX: usize = 12;

/// Pools, and objects that each keeps, two levels deep.
const POOLS_MAX: usize = 32;
const KEPT_MAX: usize = 8192;
const KEPT_DEEP: u32 = 2;

/// Objects that are looked at from one task, how far they are from its frames, and objects of all.
const OBJECTS_MAX: usize = 256;
const STEPS_MAX: u32 = 4;
const OBJECTS_OF_ALL_MAX: usize = 50_000;

/// Of a tuple: how many, and the first; members that are followed. Of a list: how many, and where they are.
const COUNT: u64 = 16;
const FIRST: u64 = 24;
const ITEMS: u64 = 24;
const MEMBERS_MAX: u64 = 8;
const LISTED_MAX: u64 = 1024;

/// A pool.
#[derive(Debug, Default)]
struct Pool {
    /// What it keeps.
    kept: HashSet<u64>,
    /// What its waiters refer to.
    shared: HashSet<u64>,
}

/// What a task refers to.
#[derive(Debug, Default)]
struct Reached {
    all: HashSet<u64>,
    /// Those that refer to a pool, with the pool.
    to_pools: Vec<(u64, u64)>,
}

impl<S: Source> Interpreter<S> {
    /// Finds the pools that tasks await, and who has something of them.
    pub(super) fn find_pools(&mut self, found: &mut [Found]) {
        let mut pools: BTreeMap<u64, Pool> = BTreeMap::new();
        for one in found.iter_mut() {
            let unknown = one.task.status == TaskStatus::Waiting
                && one.task.awaits.is_none()
                && one.task.lock.is_none()
                && one.task.descriptor.is_none();
            if !unknown || !may_be_lent(&one.chain) {
                continue;
            }
            let Some((pool, class)) = self.lender(&one.chain) else {
                continue;
            };
            if pools.len() < POOLS_MAX || pools.contains_key(&pool) {
                one.task.pool = Some((pool, class));
                pools.entry(pool).or_default();
            }
        }
        if pools.is_empty() {
            return;
        }
        let mut left = OBJECTS_OF_ALL_MAX;
        let addresses: HashSet<u64> = pools.keys().copied().collect();
        for (address, pool) in &mut pools {
            self.keep(*address, KEPT_DEEP, &mut pool.kept);
        }
        let mut reached: HashMap<usize, Reached> = HashMap::new();
        for (at, one) in found.iter().enumerate() {
            let of_one = self.reach(&one.chain.frames, one.of_loop, &addresses, &mut left);
            match one.task.pool.as_ref().and_then(|(pool, _)| pools.get_mut(pool)) {
                Some(pool) => pool.shared.extend(of_one.all),
                None => drop(reached.insert(at, of_one)),
            }
        }
        for (at, reached) in reached {
            let Some(one) = found.get_mut(at) else { continue };
            let of_task = pools
                .iter()
                .filter(|(address, pool)| pool.lent_to(**address, one.task.id, &reached));
            one.task.has.extend(of_task.map(|(address, _)| *address));
        }
    }

    /// The innermost object on a chain of coroutines whose class lends things, and its class. A task that begins in its method is the pool's
    /// own: it works for it.
    fn lender(&mut self, chain: &Chain) -> Option<(u64, String)> {
        let (outermost, inner) = chain.frames.split_last()?;
        let begins = chain
            .shown
            .last()
            .filter(|one| is_method(one.frame.symbol.as_deref()));
        let begins = begins.and_then(|_| self.first_variable(*outermost));
        let found = inner.iter().take(WAITER_FRAMES_MAX).find_map(|frame| {
            let object = self.first_variable(*frame)?;
            let class = self.type_name(object)?;
            let lends = LENDERS.iter().any(|part| class.contains(part));
            (lends && self.attributes(object).is_some()).then_some((object, class))
        });
        found.filter(|(object, _)| begins != Some(*object))
    }

    /// Adds what an object keeps in its attributes, in sets, lists and dictionaries there.
    fn keep(&mut self, pool: u64, deep: u32, kept: &mut HashSet<u64>) {
        let attributes = self.attributes(pool).unwrap_or_default();
        let mut queue: VecDeque<(u64, u32)> =
            attributes.into_iter().map(|(_, value)| (value, deep)).collect();
        while let Some((holds, deep)) = queue.pop_front() {
            let within = self.contents(holds).unwrap_or_default();
            for object in within {
                if kept.len() >= KEPT_MAX {
                    return;
                }
                if kept.insert(object) && deep > 1 {
                    queue.push_back((object, deep - 1));
                }
            }
        }
    }

    /// What a collection has.
    fn contents(&mut self, object: u64) -> Option<Vec<u64>> {
        match self.type_name(object)?.as_str() {
            "set" => self.members(object),
            "dict" | "collections.defaultdict" | "collections.OrderedDict" => {
                let items = self.items(object)?;
                Some(items.into_iter().flat_map(|(key, value)| [key, value]).collect())
            }
            "list" => {
                let (count, items) = (self.at(object, COUNT)?, self.at(object, ITEMS)?);
                (0..count.min(LISTED_MAX))
                    .map(|number| self.at(items, number.checked_mul(8)?))
                    .collect()
            }
            _ => None,
        }
    }

    /// What frames refer to, at some steps. What lies behind a pool is everybody's.
    fn reach(&mut self, frames: &[u64], of_loop: u64, pools: &HashSet<u64>, left: &mut usize) -> Reached {
        let mut reached = Reached::default();
        let mut queue: VecDeque<(u64, u32)> = VecDeque::new();
        for frame in frames {
            let values = self.alive(*frame).unwrap_or_default();
            queue.extend(values.into_iter().map(|value| (value, 0)));
        }
        while let Some((object, steps)) = queue.pop_front() {
            if object == 0 || object == of_loop || pools.contains(&object) || reached.all.contains(&object) {
                continue;
            }
            if reached.all.len() >= OBJECTS_MAX || *left == 0 {
                break;
            }
            *left -= 1;
            let Some(next) = self.refers_to(object) else {
                continue;
            };
            reached.all.insert(object);
            let to_pools = next.iter().filter(|one| pools.contains(one));
            reached.to_pools.extend(to_pools.map(|pool| (object, *pool)));
            if steps < STEPS_MAX {
                queue.extend(next.into_iter().map(|object| (object, steps + 1)));
            }
        }
        reached
    }

    /// The variables of a frame, and what the blocks that it is in keep.
    fn alive(&mut self, frame: u64) -> Option<Vec<u64>> {
        let (begin, count) = self.variables(frame)?;
        let mut all = self.below_blocks(frame).unwrap_or_default();
        for number in 0..count {
            all.extend(self.at(begin, number * 8));
        }
        Some(all)
    }

    /// The objects to which one refers that is a thing of its own; `None` of what anybody may have.
    fn refers_to(&mut self, object: u64) -> Option<Vec<u64>> {
        let kind = self.type_name(object)?;
        match kind.as_str() {
            "tuple" => {
                let count = self.at(object, COUNT)?.min(MEMBERS_MAX);
                (0..count)
                    .map(|number| self.at(object, FIRST + number * 8))
                    .collect()
            }
            "method" | "builtin_function_or_method" => Some(vec![self.at(object, BOUND_TO)?]),
            TASK | FUTURE | "module" | "type" | "function" | "coroutine" | "str" | "bytes" | "int"
            | "float" | "bool" | "dict" | "list" | "set" | "NoneType" => None,
            _ => {
                let attributes = match self.attributes(object) {
                    Some(attributes) => attributes.into_iter().map(|(_, value)| value).collect(),
                    None => self.slots(object)?,
                };
                Some(attributes)
            }
        }
    }
}

/// Whether a function belongs to a class: from its qualified name, which coroutines have in all versions.
fn is_method(symbol: Option<&str>) -> bool {
    let class = symbol.and_then(|symbol| Some(symbol.rsplit_once('.')?.0));
    class.is_some_and(|class| !class.ends_with(WITHIN_FUNCTION))
}

/// Whether what a chain awaits may be lent by a pool: the library waits there for no descriptor, timer or child.
fn may_be_lent(chain: &Chain) -> bool {
    let file = chain.shown.first().and_then(|one| one.frame.file.as_deref());
    file.is_some_and(|file| !file.contains(LIBRARY) || SIGNALS.iter().any(|name| file.ends_with(name)))
}

impl Pool {
    /// Whether a task has something of it.
    fn lent_to(&self, address: u64, task: u64, reached: &Reached) -> bool {
        let own = |object: &u64| !self.shared.contains(object);
        let kept = reached
            .all
            .iter()
            .any(|object| own(object) && self.kept.contains(object));
        let refers = reached
            .to_pools
            .iter()
            .any(|(object, pool)| *pool == address && own(object));
        kept || refers || self.kept.contains(&task)
    }
}
