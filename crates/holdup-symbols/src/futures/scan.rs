//! Where in a program's debug information its tasks are described.
//!
//! In: debug information. Out: in one pass over all entries, the few that types are followed from, and the names of the modules in which entries
//! stand: an entry itself does not say in which module it is.

use super::Reading;
use super::blocking::BlockingFunctions;
use crate::demangle::demangle;
use gimli::constants as dw;
use gimli::{Attribute, AttributeValue, Dwarf, EntriesRaw, Unit};
use std::collections::HashMap;

/// Most entries that are gone through: those of a service have some millions.
const ENTRIES_MAX: u64 = 60_000_000;

/// Modules and functions of which names are kept, and kinds of tasks.
const MODULES_MAX: usize = 1_000_000;
const FUNCTIONS_MAX: usize = 100_000;
const KINDS_MAX: usize = 20_000;

/// Deepest nesting of modules.
const DEPTH_MAX: usize = 64;

/// The modules of tokio in which tasks are described.
const RAW: &str = "tokio::runtime::task::raw";
const CORE: &str = "tokio::runtime::task::core";

/// The table of functions of a future that is a trait object, by parts of its name.
const FUTURE: &[u8] = b"core::future::future::Future";
const TABLE: &[u8] = b"{vtable}";

/// What the code of a coroutine is named by, and what linkers' names have for it.
const COROUTINE: &[u8] = b"{async_";
const CLOSURES: [&str; 3] = ["::{{closure}}", "::{closure#", "::{async"];

/// What each library names the function that runs a future in the thread that calls it, and what closures within it are named by.
const BLOCKS_ON: &str = "block_on";
const CLOSURE: &str = "{closure";

/// A module, and which entries are in it.
#[derive(Debug)]
struct Module<'a> {
    start: usize,
    end: usize,
    parent: Option<usize>,
    name: &'a str,
}

/// A function that runs a kind of task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Poll {
    /// Where it is described, in the section.
    pub(super) entry: usize,
    /// Its address.
    pub(super) address: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    pub(super) units: Vec<Unit<Reading<'a>>>,
    /// Where each unit begins, in the section.
    pub(super) starts: Vec<usize>,
    modules: Vec<Module<'a>>,
    pub(super) polls: Vec<Poll>,
    /// Where whole tasks, the head of a task and its table are described.
    pub(super) cells: Vec<usize>,
    pub(super) head: Option<usize>,
    pub(super) table: Option<usize>,
    /// Tables of trait objects: where they are, and where their type is described.
    pub(super) objects: Vec<(u64, usize)>,
    /// Linkers' names of the code of coroutines, by the path of that code.
    functions: HashMap<String, &'a str>,
    /// Functions that run a future in the thread that calls them.
    pub(super) blocking: BlockingFunctions,
}

impl<'a> Scan<'a> {
    /// Goes through everything; `None` where nothing of it describes tasks.
    pub(super) fn of(dwarf: &Dwarf<Reading<'a>>) -> Option<Scan<'a>> {
        let mut scan = Scan::default();
        let mut headers = dwarf.units();
        let mut entries = 0;
        // What is broken ends it: what was found before is kept.
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.debug_info_offset() else {
                continue;
            };
            let Ok(unit) = dwarf.unit(header) else { continue };
            if of_rust(&unit) {
                if scan.unit(dwarf, &unit, start.0, &mut entries).is_none() {
                    break;
                }
                scan.starts.push(start.0);
                scan.units.push(unit);
            }
        }
        (!scan.polls.is_empty() || !scan.blocking.is_empty()).then_some(scan)
    }

    fn unit(
        &mut self,
        dwarf: &Dwarf<Reading<'a>>,
        unit: &Unit<Reading<'a>>,
        start: usize,
        count: &mut u64,
    ) -> Option<()> {
        let mut entries = unit.entries_raw(None).ok()?;
        // The modules around the current entry, with their depths.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut attributes = Vec::new();
        while !entries.is_empty() {
            *count += 1;
            if *count > ENTRIES_MAX {
                return None;
            }
            let (at, depth) = (start.checked_add(entries.next_offset().0)?, entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                continue;
            };
            while around.last().is_some_and(|(of, _)| *of >= depth) {
                let (_, module) = around.pop()?;
                self.modules[module].end = at;
            }
            let tag = abbreviation.tag();
            let wanted = matches!(
                tag,
                dw::DW_TAG_namespace
                    | dw::DW_TAG_structure_type
                    | dw::DW_TAG_subprogram
                    | dw::DW_TAG_variable
            );
            if !wanted {
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            }
            read_all(&mut entries, abbreviation.attributes(), &mut attributes)?;
            let here = Entry {
                dwarf,
                unit,
                at,
                attributes: &attributes,
            };
            let inside = around.last().map(|(_, module)| *module);
            if tag == dw::DW_TAG_namespace {
                if abbreviation.has_children() && around.len() < DEPTH_MAX && self.modules.len() < MODULES_MAX
                {
                    around.push((depth, self.modules.len()));
                    self.modules.push(Module {
                        start: at,
                        end: usize::MAX,
                        parent: inside,
                        name: here.name().unwrap_or_default(),
                    });
                }
                continue;
            }
            if tag == dw::DW_TAG_subprogram {
                self.note_blocking(&here, inside, start);
            }
            self.note(tag, &here, inside, start);
        }
        let end = start.checked_add(unit.header.length_including_self())?;
        for (_, module) in around {
            self.modules[module].end = end;
        }
        Some(())
    }

    /// Keeps an entry that is needed.
    fn note(&mut self, tag: gimli::DwTag, here: &Entry<'a, '_>, inside: Option<usize>, start: usize) {
        let Some(name) = here.name() else { return };
        let within = |scan: &Scan<'a>, path: &str| scan.path_of(inside) == path;
        match tag {
            dw::DW_TAG_structure_type
                if name.starts_with("Cell<") && self.cells.len() < KINDS_MAX && within(self, CORE) =>
            {
                self.cells.push(here.at);
            }
            dw::DW_TAG_structure_type if name == "Header" && self.head.is_none() && within(self, CORE) => {
                self.head = Some(here.at);
            }
            dw::DW_TAG_structure_type if name == "Vtable" && self.table.is_none() && within(self, RAW) => {
                self.table = Some(here.at);
            }
            dw::DW_TAG_subprogram if name.starts_with("poll<") && within(self, RAW) => {
                let address = here.address(dw::DW_AT_low_pc).filter(|address| *address != 0);
                if let Some(address) = address.filter(|_| self.polls.len() < KINDS_MAX) {
                    self.polls.push(Poll {
                        entry: here.at,
                        address,
                    });
                }
            }
            dw::DW_TAG_subprogram if name.as_bytes().starts_with(COROUTINE) => {
                let Some(linked) = here.text(dw::DW_AT_linkage_name) else {
                    return;
                };
                if self.functions.len() < FUNCTIONS_MAX {
                    let path = join(&self.path_of(inside), plain(name));
                    self.functions.insert(path, linked);
                }
            }
            dw::DW_TAG_variable
                if name.as_bytes().ends_with(TABLE)
                    && super::has(name.as_bytes(), FUTURE)
                    && self.objects.len() < KINDS_MAX =>
            {
                self.objects.extend(
                    here.placed()
                        .filter(|(address, _)| *address != 0)
                        .and_then(|(address, of)| Some((address, start.checked_add(of)?))),
                );
            }
            _ => {}
        }
    }

    /// Keeps a function that runs a future in the thread that calls it, and what is said of one elsewhere.
    fn note_blocking(&mut self, here: &Entry<'a, '_>, inside: Option<usize>, start: usize) {
        if let Some(of) = here.refers(dw::DW_AT_specification, start) {
            self.blocking.is_said_of(here.at, of, start);
            return;
        }
        let Some(name) = here.name() else { return };
        let own = plain(name) == BLOCKS_ON;
        let closure = || {
            let around = inside.and_then(|at| self.modules.get(at));
            name.starts_with(CLOSURE) && around.is_some_and(|module| plain(module.name) == BLOCKS_ON)
        };
        if own || closure() {
            self.blocking.add(here.at, start);
        }
    }

    /// The path of a module.
    fn path_of(&self, module: Option<usize>) -> String {
        let mut names = Vec::new();
        let mut next = module;
        while let Some(module) = next.and_then(|at| self.modules.get(at)) {
            names.push(plain(module.name));
            if names.len() > DEPTH_MAX {
                break;
            }
            next = module.parent;
        }
        names.reverse();
        names.join("::")
    }

    /// The path of what is described at this place, which has this name.
    pub(super) fn path(&self, entry: usize, name: &str) -> String {
        let behind = self.modules.partition_point(|module| module.start <= entry);
        let mut inside = behind.checked_sub(1);
        while let Some(at) = inside
            && self.modules[at].end <= entry
        {
            inside = self.modules[at].parent;
        }
        join(&self.path_of(inside), plain(name))
    }

    /// The function that a coroutine is the state of, as it is named in the source.
    pub(super) fn function(&self, coroutine: &str) -> Option<String> {
        let code = coroutine.replace("_env#", "#");
        let named = demangle(self.functions.get(&code)?);
        let cut = CLOSURES.iter().filter_map(|closure| named.find(closure)).min();
        let named = &named[..cut.unwrap_or(named.len())];
        (!named.is_empty() && !named.starts_with("_Z")).then(|| named.to_owned())
    }
}

/// An entry whose attributes are read.
struct Entry<'a, 'b> {
    dwarf: &'b Dwarf<Reading<'a>>,
    unit: &'b Unit<Reading<'a>>,
    /// Where it is, in the section.
    at: usize,
    attributes: &'b [Attribute<Reading<'a>>],
}

impl<'a> Entry<'a, '_> {
    fn value(&self, name: gimli::DwAt) -> Option<AttributeValue<Reading<'a>>> {
        self.attributes
            .iter()
            .find(|one| one.name() == name)
            .map(Attribute::value)
    }

    fn text(&self, name: gimli::DwAt) -> Option<&'a str> {
        let text = self.dwarf.attr_string(self.unit, self.value(name)?).ok()?;
        std::str::from_utf8(text.slice()).ok()
    }

    fn name(&self) -> Option<&'a str> {
        self.text(dw::DW_AT_name)
    }

    fn address(&self, name: gimli::DwAt) -> Option<u64> {
        self.dwarf.attr_address(self.unit, self.value(name)?).ok()?
    }

    /// What an attribute refers to, in the section.
    fn refers(&self, name: gimli::DwAt, start: usize) -> Option<usize> {
        match self.value(name)? {
            AttributeValue::UnitRef(offset) => start.checked_add(offset.0),
            AttributeValue::DebugInfoRef(offset) => Some(offset.0),
            _ => None,
        }
    }

    /// Where a variable is, and where in the unit its type is described.
    fn placed(&self) -> Option<(u64, usize)> {
        let AttributeValue::UnitRef(of) = self.value(dw::DW_AT_type)? else {
            return None;
        };
        let location = self.value(dw::DW_AT_location)?.exprloc_value()?;
        let mut operations = location.operations(self.unit.encoding());
        let address = match operations.next().ok()?? {
            gimli::Operation::Address { address } => address,
            gimli::Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok()?,
            _ => return None,
        };
        Some((address, of.0))
    }
}

fn read_all<'a>(
    entries: &mut EntriesRaw<'_, Reading<'a>>,
    specifications: &[gimli::AttributeSpecification],
    into: &mut Vec<Attribute<Reading<'a>>>,
) -> Option<()> {
    into.clear();
    for specification in specifications {
        into.push(entries.read_attribute(*specification).ok()?);
    }
    Some(())
}

fn of_rust(unit: &Unit<Reading<'_>>) -> bool {
    let root = unit.entry(unit.header.root_offset());
    root.is_ok_and(|root| {
        root.attr_value(dw::DW_AT_language) == Some(AttributeValue::Language(dw::DW_LANG_Rust))
    })
}

/// A name without what it is generic over.
pub(super) fn plain(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}::{name}"),
    }
}
