//! Tasks whose code uses what other tasks wait for.
//!
//! The problem: a lock that was taken by `acquire()`, an event, a condition and a queue note no task that is to let go, set, notify, put or
//! get. The choice: whoever is to do it has code that names the thing: as a variable, as a variable of its module, or as an attribute of
//! either. In: tasks and their chains. Out: for each waiting task the thing by its address, and for each other one which of these its frames
//! name. That is no owner: a task may have used it before, or may do so later.

use super::super::Interpreter;
use super::coroutines::Chain;
use super::failed::Failed;
use super::{Found, TaskStatus};
use crate::memory::Source;
use std::collections::{HashMap, HashSet};

/// The library's folder, and its files whose methods wait for what another task does.
const LIBRARY: &str = "/asyncio/";
const FILES: [&str; 2] = ["/locks.py", "/queues.py"];

/// Names that the code of a frame uses, and entries of the variables of a module.
const NAMES_MAX: u64 = 512;
const GLOBALS_MAX: usize = 8192;

/// Modules whose variables are read.
const MODULES_MAX: usize = 64;

/// Objects of all tasks whose attributes are looked at, and attributes of one.
const OBJECTS_MAX: usize = 20_000;
const ATTRIBUTES_MAX: usize = 512;

/// Steps from a variable to the thing: `app.state.lock` are two.
const STEPS_MAX: u32 = 2;

/// Of a tuple: how many, and the first. Of a cell: what is in it.
const COUNT: u64 = 16;
const FIRST: u64 = 24;
const IN_CELL: u64 = 16;

/// What is looked for, and what that may cost.
struct Search {
    wanted: HashSet<u64>,
    /// By dictionary.
    globals: HashMap<u64, Vec<(u64, u64)>>,
    left: usize,
}

impl<S: Source> Interpreter<S> {
    /// Finds what tasks wait for, and which other tasks use it, or did until they failed.
    pub(super) fn find_uses(&mut self, found: &mut [Found], failed: &mut [Failed]) {
        for one in found.iter_mut() {
            let waits = one.task.status == TaskStatus::Waiting && one.task.pool.is_none();
            one.task.object = waits.then(|| self.thing(&one.chain)).flatten();
        }
        let wanted: HashSet<u64> = found.iter().filter_map(|one| one.task.object).collect();
        if wanted.is_empty() {
            return;
        }
        let mut search = Search {
            wanted,
            globals: HashMap::new(),
            left: OBJECTS_MAX,
        };
        for one in found.iter_mut() {
            let mut uses = Vec::new();
            for frame in &one.chain.frames {
                self.named_in(*frame, &mut search, &mut uses);
            }
            uses.sort_unstable();
            uses.dedup();
            one.task.uses = uses;
        }
        for one in failed {
            for frame in &one.frames {
                self.named_in(*frame, &mut search, &mut one.uses);
            }
        }
    }

    /// What the innermost method of the library belongs to that is not another one's means: of a queue that waits by an event the queue.
    fn thing(&mut self, chain: &Chain) -> Option<u64> {
        let of_library = |file: &str| file.contains(LIBRARY) && FILES.iter().any(|name| file.ends_with(name));
        let inner = chain.shown.iter().take_while(|one| {
            let file = one.frame.file.as_deref();
            file.is_some_and(of_library)
        });
        let last = inner.count().checked_sub(1)?;
        self.first_variable(*chain.frames.get(last)?)
    }

    /// Adds the wanted things that the code of a frame names.
    fn named_in(&mut self, frame: u64, search: &mut Search, uses: &mut Vec<u64>) -> Option<()> {
        let objects = self.layout.objects?;
        let code = self.at(frame, self.layout.executable)? & !self.layout.tag;
        let names = self.at(code, objects.names)?;
        let count = self.at(names, COUNT)?.min(NAMES_MAX);
        let names: HashSet<u64> = (0..count)
            .filter_map(|number| self.at(names, FIRST + number * 8))
            .collect();
        let mut roots = Vec::new();
        let (begin, count) = self.variables(frame)?;
        for number in 0..count {
            let value = self.at(begin, number * 8).filter(|value| *value != 0);
            let Some(value) = value else { continue };
            let cell = self.type_name(value).is_some_and(|name| name == "cell");
            roots.extend(if cell {
                self.at(value, IN_CELL)
            } else {
                Some(value)
            });
        }
        let globals = self.at(frame, objects.globals)?;
        if !search.globals.contains_key(&globals) && search.globals.len() < MODULES_MAX {
            let mut items = self.items(globals).unwrap_or_default();
            items.truncate(GLOBALS_MAX);
            search.globals.insert(globals, items);
        }
        let of_module = search.globals.get(&globals).map_or(&[][..], Vec::as_slice);
        let named = of_module.iter().filter(|(name, _)| names.contains(name));
        roots.extend(named.map(|(_, value)| *value));
        let mut now: Vec<u64> = roots;
        let mut met = HashSet::new();
        for step in 0..=STEPS_MAX {
            let mut next = Vec::new();
            for object in now {
                if search.wanted.contains(&object) {
                    uses.push(object);
                    continue;
                }
                if step == STEPS_MAX || search.left == 0 || !met.insert(object) {
                    continue;
                }
                search.left -= 1;
                let attributes = self.attributes(object).unwrap_or_default();
                let attributes = attributes.into_iter().take(ATTRIBUTES_MAX);
                next.extend(
                    attributes
                        .filter(|(name, _)| names.contains(name))
                        .map(|(_, value)| value),
                );
            }
            now = next;
        }
        Some(())
    }
}
