//! Frames of interpreted code join native ones.
//!
//! An interpreter's frames are read beside the native stack. A native frame of its evaluation function stands for one or more of
//! them. Where the function is known by an address, the two are joined as they come. Otherwise it is known when it has a name, so they are
//! joined at the end.

use crate::budget::Asker;
use crate::elf::Section;
use crate::go;
use crate::modules::ModuleId;
use crate::stacks::{Address, ProcessKey, UserStacks};
use holdup_evidence::Frame;
use std::sync::Arc;

/// A frame of interpreted code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreted {
    /// What it is called, and where it stands.
    pub frame: Arc<Frame>,
    /// Whether it is the outermost of those that share one call of the evaluation function.
    pub entry: bool,
}

/// Where symbols of an interpreter are in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Base name of the file that has them.
    pub file: String,
    /// Their addresses, in the order in which they were asked for; `None` for those that it has not.
    pub addresses: Vec<Option<u64>>,
}

/// What is found of a Go program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundGo {
    /// Base name of the file.
    pub file: String,
    /// Addresses of symbols, in the order in which they were asked for; `None` for those that it has not.
    pub addresses: Vec<Option<u64>>,
    /// Address of the linker's table of functions.
    pub table: Option<u64>,
    /// Address of the description of the module, where the file has a section for it.
    pub module: Option<u64>,
}

impl UserStacks {
    /// Where a process has symbols: in the first file whose base name is `wanted` and that has the first symbol.
    pub fn find(
        &mut self,
        process: ProcessKey,
        pid: u32,
        wanted: fn(&str) -> bool,
        symbols: &[&str],
    ) -> Option<Found> {
        self.find_in(process, pid, wanted, symbols)
    }

    /// The same in a file of Go code, whatever its name. Of a file without symbols the addresses are all `None`.
    pub fn find_go(&mut self, process: ProcessKey, pid: u32, symbols: &[&str]) -> Option<FoundGo> {
        let (space, modules) = self.parts(process);
        let mut regions = space.regions();
        let (file, table, module) = regions.find_map(|region| {
            let module = modules.get(region.module);
            let head = module.head.as_ref()?;
            let moved = region.start.wrapping_sub(head.address_of(region.offset)?);
            let there = |section: &Section| section.address.wrapping_add(moved);
            let table = go::SECTIONS.iter().find_map(|name| head.section(name))?;
            let file = module.name.clone()?;
            Some((file, there(table), head.section(go::MODULE_SECTION).map(there)))
        })?;
        let mut names = Some(file.clone());
        let found = self.find_in(
            process,
            pid,
            |name| names.take_if(|go| go == name).is_some(),
            symbols,
        );
        Some(FoundGo {
            file,
            addresses: found.map_or_else(|| vec![None; symbols.len()], |found| found.addresses),
            table: Some(table),
            module,
        })
    }

    fn find_in(
        &mut self,
        process: ProcessKey,
        pid: u32,
        mut wanted: impl FnMut(&str) -> bool,
        symbols: &[&str],
    ) -> Option<Found> {
        let (space, modules) = self.parts(process);
        let asker = Asker { process, pid, at: 0 };
        let mut tried = Vec::new();
        for region in space.regions() {
            if region.module == ModuleId::ANONYMOUS {
                continue;
            }
            let module = modules.get(region.module);
            let name = module.name.clone().filter(|name| wanted(name));
            let (Some(file), false) = (name, tried.contains(&region.module)) else {
                continue;
            };
            tried.push(region.module);
            // How far the file was moved from the addresses that it states.
            let stated = module
                .head
                .as_ref()
                .and_then(|head| head.address_of(region.offset));
            let Some(moved) = stated.map(|stated| region.start.wrapping_sub(stated)) else {
                continue;
            };
            let found = modules
                .symbols(&asker, region.module, symbols)
                .unwrap_or_default();
            if found.first().is_some_and(Option::is_some) {
                let moved = |address: u64| address.wrapping_add(moved);
                let addresses = found.into_iter().map(|address| address.map(moved)).collect();
                return Some(Found { file, addresses });
            }
        }
        None
    }
}

impl UserStacks {
    /// In a process, the function in which this address lies executes interpreted code.
    pub fn executed_at(&mut self, process: ProcessKey, address: u64) {
        self.executors.insert(process, address);
    }

    /// Puts the frames of interpreted code into a native stack: in the place of the frames of the function that executes it, where that is
    /// known, or else at the end, until functions have names.
    pub(crate) fn put_interpreted(
        &mut self,
        process: ProcessKey,
        frames: &mut Vec<Address>,
        interpreted: &[Interpreted],
    ) {
        if interpreted.is_empty() {
            return;
        }
        let Some((module, executes)) = self.executing(process, frames) else {
            frames.extend(
                interpreted
                    .iter()
                    .filter_map(|one| self.runtime_frames.interpreted(one)),
            );
            return;
        };
        let mut address = |one: &Interpreted| {
            let module = module.clone();
            self.runtime_frames.address(&Arc::new(Frame {
                module,
                ..(*one.frame).clone()
            }))
        };
        let mut rest = interpreted.iter().peekable();
        let mut joined = Vec::with_capacity(frames.len() + interpreted.len());
        for (frame, executes) in frames.drain(..).zip(executes) {
            if !executes || rest.peek().is_none() {
                joined.push(frame);
                continue;
            }
            for one in rest.by_ref() {
                joined.extend(address(one));
                if one.entry {
                    break;
                }
            }
        }
        // The native stack ended before.
        joined.extend(rest.filter_map(address));
        *frames = joined;
    }

    /// Which frames are of the function that executes interpreted code, and the name of the file that has it; `None` if no frame is.
    fn executing(&mut self, process: ProcessKey, frames: &[Address]) -> Option<(Option<String>, Vec<bool>)> {
        let executor = *self.executors.get(&process)?;
        let (space, modules) = self.parts(process);
        let region = space.find(executor)?;
        let offset = region.offset.wrapping_add(executor - region.start);
        let module = region.module;
        let begin = modules.function(module, modules.address_of(module, offset))?;
        let is = |frame: &Address| {
            frame.module == module && modules.function(module, frame.looked_up) == Some(begin)
        };
        let executes: Vec<bool> = frames.iter().map(is).collect();
        let name = modules.get(module).name.clone();
        executes.contains(&true).then_some((name, executes))
    }
}

impl Address {
    /// A frame of interpreted code, by its number.
    pub(crate) fn interpreted(number: u64, entry: bool) -> Address {
        let mut address = Address::by_runtime(number << 1 | u64::from(entry));
        address.module = ModuleId::INTERPRETED;
        address
    }

    /// The number of such a frame, and whether it is an entry.
    pub(crate) fn as_interpreted(&self) -> Option<(u64, bool)> {
        let (number, entry) = (self.looked_up >> 1, self.looked_up & 1 == 1);
        (self.module == ModuleId::INTERPRETED).then_some((number, entry))
    }
}

/// Both as one stack: each native frame of the evaluation function gives place to the frames that it stands for. What is left
/// over stands at the end: the native stack ended before.
pub(crate) fn join(
    native: Vec<Frame>,
    interpreted: Vec<(Frame, bool)>,
    evaluates: fn(&str) -> bool,
) -> Vec<Frame> {
    if interpreted.is_empty() {
        return native;
    }
    let mut joined = Vec::with_capacity(native.len() + interpreted.len());
    let mut rest = interpreted.into_iter();
    for frame in native {
        let mut next = match frame.symbol.as_deref() {
            Some(symbol) if evaluates(symbol) => rest.next(),
            _ => None,
        };
        if next.is_none() {
            joined.push(frame);
            continue;
        }
        while let Some((one, entry)) = next {
            joined.push(Frame {
                module: frame.module.clone(),
                ..one
            });
            next = if entry { None } else { rest.next() };
        }
    }
    joined.extend(rest.map(|(frame, _)| frame));
    joined
}

#[cfg(test)]
mod tests {
    use super::join;
    use holdup_evidence::Frame;

    fn frame(symbol: &str) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        }
    }

    fn joined(native: &[&str], interpreted: &[(&str, bool)]) -> String {
        let native = native.iter().map(|symbol| frame(symbol)).collect();
        let interpreted = interpreted.iter().map(|(symbol, entry)| (frame(symbol), *entry));
        let joined = join(native, interpreted.collect(), |symbol| symbol == "eval");
        let symbols: Vec<String> = joined.into_iter().filter_map(|frame| frame.symbol).collect();
        symbols.join(" ")
    }

    #[test]
    fn an_evaluation_function_gives_place_to_the_frames_that_it_stands_for() {
        let native = ["sleep", "eval", "sort", "eval", "main"];
        let both = [("pay", false), ("key", true), ("work", false), ("module", true)];
        assert_eq!(joined(&native, &both), "sleep pay key sort work module main");
        assert_eq!(joined(&native, &[]), "sleep eval sort eval main");
        assert_eq!(
            joined(&native[..1], &both),
            "sleep pay key work module",
            "the native stack ended early"
        );
        assert_eq!(
            joined(&native, &both[..2]),
            "sleep pay key sort eval main",
            "frames beyond the limit were not read"
        );
    }
}
