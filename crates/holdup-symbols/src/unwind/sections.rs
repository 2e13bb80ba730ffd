//! Sections of call frame information: which function is described where, and what a description says of an address.
//!
//! In: a section's bytes. Out: rows of descriptions, and how many steps of the budget that was. Whoever wrote the section
//! chose how much work it is: entries, bytes of a description and what a row holds are bounded.

use super::{Described, Rule, SAVED};
use crate::arch::Machine;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression,
    UnwindOffset, UnwindSection, UnwindTableRow,
};
use std::sync::Arc;

/// Most functions of one module that are indexed; the largest browsers have 500,000.
const FUNCTIONS_MAX: usize = 1_000_000;

/// Most entries of one section that are looked at, whether they make sense or not.
const ENTRIES_MAX: usize = 2 * FUNCTIONS_MAX;

/// Steps that a byte of instructions counts for: the costliest instruction, which puts a whole row aside, has one byte.
const STEPS_A_BYTE: u64 = 4;

/// Steps that a function counts for when a section's list of functions is made.
const STEPS_A_FUNCTION: u64 = 8;

/// So many bytes of a section count for a step when it is read.
const BYTES_A_STEP: u64 = 16;

/// Longest description of a function, and longest common part, that is read, in bytes. Compilers write some fifty; the longest of a Rust
/// compiler has 34,000.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;

/// From so many bytes on all rows of a description are kept when it is run for the first address, so that it is run once and not for each
/// address.
const LONG_DESCRIPTION_BYTES: usize = 256;

/// Registers of which a description may say something. Compilers' say it of 17, and of 33 where callers have the calling convention of
/// Windows.
const RULES_A_ROW_MAX: usize = 48;

/// Rows that a description may put aside at a time.
const ROWS_ASIDE_MAX: usize = 4;

/// Room for running descriptions: as much as real ones need, because all of it is copied by each row that is put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room;

impl UnwindContextStorage<usize> for Room {
    type Rules = [(Register, RegisterRule<usize>); RULES_A_ROW_MAX];
    type Stack = Box<[UnwindTableRow<usize, Self>; ROWS_ASIDE_MAX]>;
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A section of frame information and the addresses that pointers in it are relative to.
#[derive(Debug)]
pub(super) struct Section<const N: usize = { SAVED }> {
    pub(super) machine: &'static Machine<N>,
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
    pub(super) bases: BaseAddresses,
}

/// The two encodings of one language.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Eh,
    Debug,
}

/// Function descriptions of one section, sorted by the address where the function starts, with their offsets.
#[derive(Debug)]
pub(super) struct DescribedFunctions<const N: usize = { SAVED }> {
    section: Arc<Section<N>>,
    functions: Vec<(u64, usize)>,
}

/// What a section says of an address.
pub(super) enum Found<const N: usize = { SAVED }> {
    /// The row for it.
    One(Described<N>),
    /// All rows of its function.
    All(Vec<(u64, (u64, Arc<Rule<N>>))>),
}

impl<const N: usize> DescribedFunctions<N> {
    /// How many steps it was to make the list.
    pub(super) fn steps(&self) -> u64 {
        self.section.bytes.len() as u64 / BYTES_A_STEP + self.functions.len() as u64 * STEPS_A_FUNCTION
    }

    pub(super) fn of(section: Section<N>) -> Self {
        let mut functions = match section.kind {
            Kind::Eh => functions(&section.eh(), &section.bases),
            Kind::Debug => functions(&section.debug(), &section.bases),
        };
        functions.sort_unstable();
        Self {
            section: Arc::new(section),
            functions,
        }
    }

    /// Where the last function begins that begins no later than an address.
    pub(super) fn start(&self, address: u64) -> Option<u64> {
        let behind = self.functions.partition_point(|&(start, _)| start <= address);
        self.functions
            .get(behind.checked_sub(1)?)
            .map(|(start, _)| *start)
    }

    /// What it says of an address; `steps` grows by the work that was.
    pub(super) fn find(&self, address: u64, steps: &mut u64) -> Option<Found<N>> {
        let index = self
            .functions
            .partition_point(|&(start, _)| start <= address)
            .checked_sub(1)?;
        let offset = self.functions[index].1;
        match self.section.kind {
            Kind::Eh => self.described(&self.section.eh(), offset.into(), address, steps),
            Kind::Debug => self.described(&self.section.debug(), offset.into(), address, steps),
        }
    }

    fn described<'a, S: UnwindSection<Bytes<'a>>>(
        &'a self,
        parsed: &S,
        offset: S::Offset,
        address: u64,
        steps: &mut u64,
    ) -> Option<Found<N>> {
        let bases = &self.section.bases;
        let function = parsed.fde_from_offset(bases, offset, S::cie_from_offset).ok()?;
        let (own, common) = (function.entry_len(), function.cie().entry_len());
        if !function.contains(address) || own.max(common) > DESCRIPTION_BYTES_MAX {
            return None;
        }
        *steps += STEPS_A_BYTE * (own + common) as u64;
        let mut context = UnwindContext::<usize, Room>::new_in();
        if own.max(common) < LONG_DESCRIPTION_BYTES {
            let row = function.unwind_info_for_address(parsed, bases, &mut context, address);
            return Some(Found::One(self.row(&function, row.ok()?)));
        }
        let mut rows = Vec::new();
        let mut table = function.rows(parsed, bases, &mut context).ok()?;
        // What comes before an instruction that makes no sense counts.
        while let Ok(Some(row)) = table.next_row() {
            let rule = Arc::new(Rule::Described(self.row(&function, row)));
            rows.push((row.start_address(), (row.end_address(), rule)));
        }
        Some(Found::All(rows))
    }

    fn row(
        &self,
        function: &FrameDescriptionEntry<Bytes<'_>>,
        row: &UnwindTableRow<usize, Room>,
    ) -> Described<N> {
        let machine = self.section.machine;
        Described {
            cfa: row.cfa().clone(),
            return_address: row.register(machine.return_address),
            saved: machine.saved.map(|register| row.register(register)),
            encoding: function.cie().encoding(),
            signal: function.is_signal_trampoline(),
            section: Arc::clone(&self.section),
        }
    }
}

impl<const N: usize> Section<N> {
    fn eh(&self) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(self.machine.vendor);
        section
    }

    fn debug(&self) -> DebugFrame<Bytes<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(self.machine.vendor);
        section
    }

    /// The bytes of an expression in it.
    pub(super) fn expression(&self, expression: &UnwindExpression<usize>) -> Option<Bytes<'_>> {
        let expression = match self.kind {
            Kind::Eh => expression.get(&self.eh()),
            Kind::Debug => expression.get(&self.debug()),
        };
        Some(expression.ok()?.0)
    }
}

/// Start and offset of each function description, up to the first one that makes no sense.
///
/// Binaries have a sorted table of these (`.eh_frame_hdr`); making our own costs a few milliseconds for the
/// largest of them, and leaves a second section that could lie out of it.
fn functions<'a, S: UnwindSection<Bytes<'a>>>(parsed: &S, bases: &BaseAddresses) -> Vec<(u64, usize)> {
    let mut entries = parsed.entries(bases);
    let mut functions = Vec::new();
    // Neighbours share their common part, so one is remembered.
    let mut common: Option<CommonInformationEntry<Bytes<'a>>> = None;
    for _ in 0..ENTRIES_MAX {
        let Ok(Some(entry)) = entries.next() else { break };
        let CieOrFde::Fde(partial) = entry else { continue };
        let function: Result<FrameDescriptionEntry<Bytes<'a>>, _> = partial.parse(|parsed, bases, offset| {
            let at = UnwindOffset::into(offset);
            if let Some(common) = common.as_ref().filter(|common| common.offset() == at) {
                return Ok(common.clone());
            }
            let found = parsed.cie_from_offset(bases, offset)?;
            common = Some(found.clone());
            Ok(found)
        });
        if let Ok(function) = function {
            functions.push((function.initial_address(), function.offset()));
        }
        if functions.len() >= FUNCTIONS_MAX {
            break;
        }
    }
    functions
}
