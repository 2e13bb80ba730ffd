//! The types that tasks are made of.
//!
//! In: debug information, and where in it tasks are described. Out: their types, and those of their parts, and of what these point to: as far as some
//! pointers lead, the nearest first, up to a limit.

use super::Reading;
use super::blocking::Code;
use super::scan::Scan;
use gimli::constants as dw;
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Unit, UnitOffset};
use holdup_evidence::{BlockingCode, Member, TaskHead, TaskKind, TypeLayout, TypeLayouts, Variant, Variants};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Types that are kept, and parts of one.
const TYPES_MAX: usize = 60_000;
const PARTS_MAX: usize = 4_096;

/// Pointers that are followed one after the other: from what awaits to a reference, a shared pointer, and what that has.
const POINTERS_MAX: usize = 4;

/// Types that one function may be generic over of which one is the future that it runs: libraries have the future's result beside it.
const BLOCKED_ON_MAX: usize = 3;

/// Source files that are kept, and the longest path, bytes.
const FILES_MAX: usize = 20_000;
const PATH_BYTES_MAX: usize = 4_096;

/// Longest name of a type or a part, bytes.
const NAME_BYTES_MAX: usize = 512;

/// Where a task begins at least, bytes: its head is words.
const WORD_BYTES: u64 = 8;

type Described<'a> = DebuggingInformationEntry<Reading<'a>>;

/// The types so far.
pub(super) struct Graph<'a, 'b> {
    dwarf: &'b Dwarf<Reading<'a>>,
    scan: &'b Scan<'a>,
    out: TypeLayouts,
    /// Which type is described where.
    known: HashMap<usize, u32>,
    /// Those that are not read yet, by how many pointers lead to them.
    next: [VecDeque<(usize, u32)>; POINTERS_MAX + 1],
    files: HashMap<(usize, u64), Option<u32>>,
    file_of: HashMap<String, u32>,
}

impl<'a, 'b> Graph<'a, 'b> {
    /// Follows the tasks.
    /// `blocking`: code that runs futures in the thread that calls it.
    pub(super) fn build(dwarf: &'b Dwarf<Reading<'a>>, scan: &'b Scan<'a>, blocking: &[Code]) -> TypeLayouts {
        let mut graph = Graph {
            dwarf,
            scan,
            out: TypeLayouts::default(),
            known: HashMap::new(),
            next: Default::default(),
            files: HashMap::new(),
            file_of: HashMap::new(),
        };
        graph.tasks();
        graph.blocking(blocking);
        graph.objects();
        for pointers in 0..=POINTERS_MAX {
            while let Some((entry, index)) = graph.next[pointers].pop_front() {
                if let Some(layout) = graph.read(entry, pointers) {
                    graph.out.types[index as usize] = layout;
                }
            }
        }
        graph.out
    }

    /// The head of a task, and each kind of task.
    fn tasks(&mut self) {
        // The whole task by what it is generic over: the future and the scheduler.
        let mut cells: HashMap<Vec<usize>, (usize, u64)> = HashMap::new();
        for cell in &self.scan.cells {
            let Some((generic, align)) = self.generic(*cell) else {
                continue;
            };
            cells.entry(generic).or_insert((*cell, align));
        }
        let mut least = u64::MAX;
        for poll in &self.scan.polls {
            let cell = self
                .generic(poll.entry)
                .and_then(|(generic, _)| cells.get(&generic));
            let Some((cell, align)) = cell.copied() else {
                continue;
            };
            least = least.min(align.max(WORD_BYTES));
            if let Some(of) = self.index(cell, 0) {
                self.out.tasks.push(TaskKind {
                    poll: poll.address,
                    of,
                });
            }
        }
        let head = self.scan.head.and_then(|head| {
            let head = self.offsets(head);
            let table = self.offsets(self.scan.table?);
            Some(TaskHead {
                state: *head.get("state")?,
                table: *head.get("vtable")?,
                owner: head.get("owner_id").copied(),
                poll: *table.get("poll")?,
                align: least.clamp(WORD_BYTES, 4096),
            })
        });
        self.out.head = head.filter(|head| head.align.is_power_of_two());
    }

    /// The types of what functions are generic over that run futures in the thread that calls them.
    fn blocking(&mut self, all: &[Code]) {
        let mut generic: HashMap<usize, Vec<u32>> = HashMap::new();
        for code in all {
            let types = generic.entry(code.function).or_insert_with(|| {
                let (types, _) = self.generic(code.function).unwrap_or_default();
                let first = types.into_iter().take(BLOCKED_ON_MAX);
                first.filter_map(|of| self.index(of, 0)).collect()
            });
            self.out.blocking.extend(types.iter().map(|of| BlockingCode {
                begin: code.begin,
                end: code.end,
                of: *of,
            }));
        }
    }

    /// Types of futures that are trait objects.
    fn objects(&mut self) {
        for (address, table) in &self.scan.objects {
            let found = self.at(*table).and_then(|(start, unit, offset)| {
                let entry = unit.entry(offset).ok()?;
                self.reference(&entry, dw::DW_AT_containing_type, start)
            });
            if let Some(of) = found.and_then(|of| self.index(of, 1)) {
                self.out.objects.push((*address, of));
            }
        }
    }

    /// The unit in which something is described, where that begins, and where it is in it.
    fn at(&self, entry: usize) -> Option<(usize, &'b Unit<Reading<'a>>, UnitOffset)> {
        let unit = self
            .scan
            .starts
            .partition_point(|start| *start <= entry)
            .checked_sub(1)?;
        let start = self.scan.starts[unit];
        Some((start, self.scan.units.get(unit)?, UnitOffset(entry - start)))
    }

    /// What is described at the place to which an attribute refers.
    fn reference(&self, entry: &Described<'a>, name: gimli::DwAt, start: usize) -> Option<usize> {
        match entry.attr_value(name)? {
            AttributeValue::UnitRef(offset) => start.checked_add(offset.0),
            AttributeValue::DebugInfoRef(offset) => Some(offset.0),
            _ => None,
        }
    }

    fn name(&self, unit: &Unit<Reading<'a>>, entry: &Described<'a>) -> Option<&'a str> {
        let name = self
            .dwarf
            .attr_string(unit, entry.attr_value(dw::DW_AT_name)?)
            .ok()?;
        std::str::from_utf8(name.slice()).ok()
    }

    /// What a type or function is generic over, and how it is aligned.
    fn generic(&self, entry: usize) -> Option<(Vec<usize>, u64)> {
        let (start, unit, offset) = self.at(entry)?;
        let mut tree = unit.entries_tree(Some(offset)).ok()?;
        let root = tree.root().ok()?;
        let align = number(root.entry(), dw::DW_AT_alignment).unwrap_or_default();
        let mut all = Vec::new();
        let mut children = root.children();
        let mut count = 0;
        while let Ok(Some(child)) = children.next() {
            count += 1;
            if child.entry().tag() == dw::DW_TAG_template_type_parameter {
                all.push(self.reference(child.entry(), dw::DW_AT_type, start)?);
            }
            if count > PARTS_MAX {
                return None;
            }
        }
        (!all.is_empty()).then_some((all, align))
    }

    /// Where the parts of a structure are, by name.
    fn offsets(&self, entry: usize) -> BTreeMap<&'a str, u64> {
        let mut all = BTreeMap::new();
        let Some((_, unit, offset)) = self.at(entry) else {
            return all;
        };
        let Ok(mut tree) = unit.entries_tree(Some(offset)) else {
            return all;
        };
        let Ok(root) = tree.root() else { return all };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let member = child.entry();
            let name = self.name(unit, member);
            if let Some((name, at)) = name.zip(number(member, dw::DW_AT_data_member_location)) {
                all.insert(name, at);
            }
            if all.len() > PARTS_MAX {
                break;
            }
        }
        all
    }

    /// The number of a type, which is read later if it is new.
    fn index(&mut self, entry: usize, pointers: usize) -> Option<u32> {
        if let Some(known) = self.known.get(&entry) {
            return Some(*known);
        }
        if self.out.types.len() >= TYPES_MAX {
            self.out.cut = true;
            return None;
        }
        let index = u32::try_from(self.out.types.len()).ok()?;
        self.out.types.push(TypeLayout::default());
        self.known.insert(entry, index);
        self.next.get_mut(pointers)?.push_back((entry, index));
        Some(index)
    }

    /// Reads a type.
    fn read(&mut self, at: usize, pointers: usize) -> Option<TypeLayout> {
        let (start, unit, offset) = self.at(at)?;
        let mut tree = unit.entries_tree(Some(offset)).ok()?;
        let root = tree.root().ok()?;
        let entry = root.entry();
        let mut layout = TypeLayout {
            size: number(entry, dw::DW_AT_byte_size).unwrap_or_default(),
            ..TypeLayout::default()
        };
        match entry.tag() {
            dw::DW_TAG_pointer_type => {
                layout.size = WORD_BYTES;
                let to = self.reference(entry, dw::DW_AT_type, start);
                layout.points_to = to
                    .filter(|_| pointers < POINTERS_MAX)
                    .and_then(|to| self.index(to, pointers + 1));
                return Some(layout);
            }
            dw::DW_TAG_structure_type => {}
            // A number, or a union, of which nothing says what it is.
            _ => return Some(layout),
        }
        let name = self.name(unit, entry).unwrap_or_default();
        layout.path = short(&self.scan.path(at, name)).to_owned();
        layout.function = self.scan.function(&layout.path);
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            if layout.members.len() >= PARTS_MAX {
                break;
            }
            match child.entry().tag() {
                dw::DW_TAG_member => layout
                    .members
                    .extend(self.member(unit, child.entry(), start, pointers)),
                dw::DW_TAG_variant_part => layout.variants = self.variants(child, unit, start, pointers),
                _ => {}
            }
        }
        Some(layout)
    }

    fn member(
        &mut self,
        unit: &Unit<Reading<'a>>,
        entry: &Described<'a>,
        start: usize,
        pointers: usize,
    ) -> Option<Member> {
        let of = self.reference(entry, dw::DW_AT_type, start)?;
        Some(Member {
            name: short(self.name(unit, entry).unwrap_or_default()).to_owned(),
            offset: number(entry, dw::DW_AT_data_member_location)?,
            of: self.index(of, pointers)?,
        })
    }

    fn variants(
        &mut self,
        part: gimli::EntriesTreeNode<'_, '_, Reading<'a>>,
        unit: &'b Unit<Reading<'a>>,
        start: usize,
        pointers: usize,
    ) -> Option<Variants> {
        let said = self.reference(part.entry(), dw::DW_AT_discr, start);
        let number_at = said.and_then(|said| {
            let entry = unit.entry(UnitOffset(said.checked_sub(start)?)).ok()?;
            let of = self.reference(&entry, dw::DW_AT_type, start)?;
            let of = unit.entry(UnitOffset(of.checked_sub(start)?)).ok()?;
            let bytes = u8::try_from(number(&of, dw::DW_AT_byte_size)?).ok()?;
            let at = number(&entry, dw::DW_AT_data_member_location)?;
            (1..=8).contains(&bytes).then_some((at, bytes))
        });
        if said.is_some() && number_at.is_none() {
            return None;
        }
        let mut all = Vec::new();
        let mut children = part.children();
        while let Ok(Some(child)) = children.next() {
            if child.entry().tag() != dw::DW_TAG_variant || all.len() >= PARTS_MAX {
                continue;
            }
            let value = number(child.entry(), dw::DW_AT_discr_value);
            let mut members = child.children();
            let Ok(Some(member)) = members.next() else {
                continue;
            };
            let member = member.entry();
            let line = number(member, dw::DW_AT_decl_line).and_then(|line| u32::try_from(line).ok());
            let file = number(member, dw::DW_AT_decl_file).and_then(|file| self.file(unit, start, file));
            let of = self.reference(member, dw::DW_AT_type, start)?;
            all.push(Variant {
                value,
                of: self.index(of, pointers)?,
                at: file.zip(line),
            });
        }
        Some(Variants {
            number: number_at,
            all,
        })
    }

    /// The number of a source file that a unit numbers.
    fn file(&mut self, unit: &Unit<Reading<'a>>, start: usize, number: u64) -> Option<u32> {
        if let Some(known) = self.files.get(&(start, number)) {
            return *known;
        }
        let found = self
            .path_of_file(unit, number)
            .and_then(|path| match self.file_of.get(&path) {
                Some(known) => Some(*known),
                None if self.out.files.len() >= FILES_MAX => None,
                None => {
                    let index = u32::try_from(self.out.files.len()).ok()?;
                    self.out.files.push(path.clone());
                    self.file_of.insert(path, index);
                    Some(index)
                }
            });
        self.files.insert((start, number), found);
        found
    }

    fn path_of_file(&self, unit: &Unit<Reading<'a>>, number: u64) -> Option<String> {
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(number)?;
        let text = |value| {
            let text = self.dwarf.attr_string(unit, value).ok()?;
            Some(String::from_utf8_lossy(text.slice()).into_owned())
        };
        let mut path = text(file.path_name())?;
        let folder = file.directory(header).and_then(text);
        let made_in = unit
            .comp_dir
            .map(|folder| String::from_utf8_lossy(folder.slice()).into_owned());
        for folder in [folder, made_in].into_iter().flatten() {
            if !path.starts_with('/') && !folder.is_empty() {
                path = format!("{}/{path}", folder.trim_end_matches('/'));
            }
        }
        (path.len() <= PATH_BYTES_MAX).then_some(path)
    }
}

/// A number that an attribute has.
fn number(entry: &Described<'_>, name: gimli::DwAt) -> Option<u64> {
    match entry.attr_value(name)? {
        AttributeValue::Sdata(number) => Some(number.cast_unsigned()),
        AttributeValue::FileIndex(number) => Some(number),
        value => value.udata_value(),
    }
}

/// A name, cut where it is too long.
fn short(name: &str) -> &str {
    let end = name.len().min(NAME_BYTES_MAX);
    let end = (0..=end).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}
