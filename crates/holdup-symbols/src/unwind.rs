//! From one frame to its caller, without frame pointers.
//!
//! In come a module's frame information, registers, and the bytes of the stack; out come the caller's
//! registers. The information is in `.eh_frame`; for what that does not cover in `.debug_frame`, where a
//! debugger's copy of it was left in the file, and for Go in a table of its own (see `go`). Code that none of
//! them covers (JIT compilers) often has frame pointers, so for that the saved frame pointer is followed, if
//! there is one.
//!
//! Rules are kept by the address within the module, so that all processes of a program share them.
//!
//! Why not a ready-made unwinder: those for profilers evaluate the expressions of `.eh_frame` without a bound
//! (one backward jump in a hostile file hangs them), cannot read memory in them (which is what the C library's
//! signal trampoline and hand-written assembly need), and know no register but rsp and rbp.

mod sections;

use crate::arch::{Call, HERE, Machine};
use crate::elf::Head;
use crate::files::FrameBytes;
use crate::go::{GoFrame, GoTable};
use gimli::{
    BaseAddresses, CfaRule, Encoding, Evaluation, EvaluationResult, Location, Register, RegisterRule,
    UnwindExpression, Value,
};
use holdup_evidence::arch::SAVED;
use sections::{DescribedFunctions, Found, Kind, Section};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Largest `.eh_frame` or `.debug_frame` that is read, in bytes; the largest browsers have 30 MB.
pub(crate) const FRAME_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// So many bytes of Go's table count for a step when it is read.
const GO_BYTES_A_STEP: u64 = 16;

/// Most rules of one module that are kept before they are forgotten and made anew.
const RULES_MAX: usize = 16_384;

/// Most operations of one expression. Compilers write fewer than ten.
const OPERATIONS_MAX: u32 = 32;

/// Steps (see `budget`) that an expression counts for, however many operations it has.
const STEPS_AN_EXPRESSION: u64 = 64;

/// Steps that a rule counts for, beside those of the instructions that it is made from.
const STEPS_A_RULE: u64 = 50;

/// Most rows of long descriptions of one module that are kept before they are forgotten and made anew.
const ROWS_MAX: usize = 16_384;

/// Whether the file's code is this processor's.
pub(crate) fn understands(head: &Head) -> bool {
    head.machine == HERE.elf
}

/// What is known of a frame's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<const N: usize = { SAVED }> {
    /// Instruction pointer: where the frame runs, or will go on when what it called returns.
    pub ip: u64,
    /// Stack pointer; where it is not known, the lowest that it can be.
    pub sp: u64,
    /// Whether that is the stack pointer itself. Frame pointers tell where a frame is, and on some processors not where it ends.
    pub sp_known: bool,
    /// Values of the registers in the order of [`holdup_evidence::arch`]; `None` for what the frame has overwritten.
    pub saved: [Option<u64>; N],
}

impl<const N: usize> Registers<N> {
    fn get(&self, machine: &Machine<N>, register: Register) -> Option<u64> {
        if register == machine.stack_pointer {
            return self.sp_known.then_some(self.sp);
        }
        match machine.saved.iter().position(|&saved| saved == register) {
            Some(at) => self.saved[at],
            None => (register == machine.return_address).then_some(self.ip),
        }
    }

    /// The same without the link register: the frame has called, and it holds another's return address.
    fn after_call(mut self, machine: &Machine<N>) -> Registers<N> {
        if let Call::InRegister(link) = machine.call {
            self.saved[link] = None;
        }
        self
    }
}

/// A copy of the stack's memory from an address upward.
#[derive(Debug, Clone, Copy)]
pub struct StackBytes<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// What was copied.
    pub bytes: &'a [u8],
}

impl StackBytes<'_> {
    /// The word at an address; `None` where that was not copied.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_le_bytes(
            word.try_into().expect("the range has eight bytes"),
        ))
    }
}

/// How to find the caller's registers, for one address.
#[derive(Debug)]
pub(crate) enum Rule<const N: usize = { SAVED }> {
    /// By the language of `.eh_frame`.
    Described(Described<N>),
    /// By Go's table.
    Go(GoFrame),
    /// By what the kernel has put on the stack for a signal handler to return to.
    Trampoline,
}

/// A row of a frame description.
#[derive(Debug)]
pub(crate) struct Described<const N: usize = { SAVED }> {
    cfa: CfaRule<usize>,
    return_address: Option<RegisterRule<usize>>,
    saved: [Option<RegisterRule<usize>>; N],
    encoding: Encoding,
    /// The frame is a signal trampoline: its caller was interrupted and called nothing.
    signal: bool,
    /// Where expressions are.
    section: Arc<Section<N>>,
}

/// The frame information of one module.
#[derive(Debug)]
pub(crate) struct FrameTable<const N: usize = { SAVED }> {
    sections: Vec<DescribedFunctions<N>>,
    go: Option<GoTable>,
    rules: HashMap<u64, Option<Arc<Rule<N>>>>,
    /// Rows of long descriptions that were run, by their first address, with the first address behind them.
    rows: BTreeMap<u64, (u64, Arc<Rule<N>>)>,
}

impl<const N: usize> Default for FrameTable<N> {
    fn default() -> Self {
        Self {
            sections: Vec::new(),
            go: None,
            rules: HashMap::new(),
            rows: BTreeMap::new(),
        }
    }
}

impl FrameTable {
    /// Understands a module's frame information; there is none for another processor's code.
    pub(crate) fn read(head: &Head, bytes: FrameBytes) -> Self {
        if !understands(head) {
            return Self::default();
        }
        let address = |name| head.section(name).map_or(0, |section| section.address);
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let read = |(bytes, kind)| {
            let (bytes, bases): (Option<Vec<u8>>, _) = (bytes, bases.clone());
            let bytes = bytes?;
            Some(DescribedFunctions::of(Section {
                machine: &HERE,
                kind,
                bytes,
                bases,
            }))
        };
        let sections = [(bytes.eh, Kind::Eh), (bytes.debug, Kind::Debug)];
        Self {
            sections: sections.into_iter().filter_map(read).collect(),
            go: GoTable::read(head, bytes.go, bytes.go_module.as_deref()),
            ..Self::default()
        }
    }

    /// How much memory the frame information of a file will take, bytes: the sections, and a place in a list for each function, whose
    /// description is some 30 bytes.
    pub(crate) fn bytes_of(head: &Head) -> u64 {
        if !understands(head) {
            return 0;
        }
        let size = |name| {
            head.section(name)
                .map_or(0, |section| section.size)
                .min(FRAME_BYTES_MAX)
        };
        let sections = size(".eh_frame").saturating_add(size(".debug_frame"));
        sections.saturating_add(sections / 2)
    }
}

impl<const N: usize> FrameTable<N> {
    /// How many steps it was to read it.
    pub(crate) fn steps(&self) -> u64 {
        let sections = self.sections.iter().map(DescribedFunctions::steps);
        let go = self.go.as_ref().map_or(0, |go| go.len() as u64 / GO_BYTES_A_STEP);
        sections.sum::<u64>() + go
    }

    /// Where the function of an address begins.
    pub(crate) fn function(&self, address: u64) -> Option<u64> {
        self.sections.iter().find_map(|section| section.start(address))
    }

    /// The rule for the code at an address of the module, if it has been made: it may be that there is none.
    pub(crate) fn known(&mut self, address: u64) -> Option<Option<Arc<Rule<N>>>> {
        if let Some(rule) = self.rules.get(&address) {
            return Some(rule.clone());
        }
        let (_, (end, rule)) = self.rows.range(..=address).next_back()?;
        if address >= *end {
            return None;
        }
        let rule = Some(Arc::clone(rule));
        self.keep(address, rule.clone());
        Some(rule)
    }

    /// Makes the rule for the code at an address of the module; and how many steps that was.
    pub(crate) fn make(&mut self, address: u64) -> (Option<Arc<Rule<N>>>, u64) {
        let mut steps = STEPS_A_RULE;
        let rule = self.find(address, &mut steps);
        self.keep(address, rule.clone());
        (rule, steps)
    }

    fn keep(&mut self, address: u64, rule: Option<Arc<Rule<N>>>) {
        if self.rules.len() >= RULES_MAX {
            self.rules.clear();
        }
        self.rules.insert(address, rule);
    }

    fn find(&mut self, address: u64, steps: &mut u64) -> Option<Arc<Rule<N>>> {
        let find = |section: &DescribedFunctions<N>| section.find(address, steps);
        match self.sections.iter().find_map(find) {
            Some(Found::One(described)) => Some(Arc::new(Rule::Described(described))),
            Some(Found::All(rows)) => {
                if self.rows.len() + rows.len() > ROWS_MAX {
                    self.rows.clear();
                }
                // A hostile description may have as many.
                self.rows.extend(rows.into_iter().take(ROWS_MAX));
                let (_, (end, rule)) = self.rows.range(..=address).next_back()?;
                (address < *end).then(|| Arc::clone(rule))
            }
            None => {
                let (go, walked) = self.go.as_ref()?.frame(address)?;
                *steps += walked as u64;
                Some(Arc::new(Rule::Go(go)))
            }
        }
    }
}

impl<const N: usize> Rule<N> {
    /// Whether the frame is a signal trampoline: its caller was interrupted and called nothing.
    pub(crate) fn signal(&self) -> bool {
        match self {
            Rule::Described(described) => described.signal,
            Rule::Go(_) => false,
            Rule::Trampoline => true,
        }
    }

    /// How many steps it is to follow it, beyond those of any rule.
    pub(crate) fn steps(&self) -> u64 {
        let Rule::Described(described) = self else {
            return 0;
        };
        let is_expression = |rule: &&RegisterRule<usize>| {
            matches!(rule, RegisterRule::Expression(_) | RegisterRule::ValExpression(_))
        };
        let registers = described.saved.iter().flatten().chain(&described.return_address);
        let expressions = registers.filter(is_expression).count()
            + usize::from(matches!(described.cfa, CfaRule::Expression(_)));
        STEPS_AN_EXPRESSION * expressions as u64
    }

    /// The caller's registers; `None` where the stack ends, or goes on in memory that was not copied.
    pub(crate) fn caller(
        &self,
        machine: &Machine<N>,
        frame: &Registers<N>,
        stack: &StackBytes<'_>,
    ) -> Option<Registers<N>> {
        match self {
            Rule::Described(described) => described.caller(machine, frame, stack),
            Rule::Go(GoFrame::Bytes(bytes)) => caller_in_go(machine, *bytes, frame, stack),
            Rule::Go(GoFrame::Outermost) => None,
            Rule::Trampoline => interrupted(machine, frame, stack),
        }
    }
}

/// What a signal interrupted, by the registers that the kernel has put on the stack.
fn interrupted<const N: usize>(
    machine: &Machine<N>,
    frame: &Registers<N>,
    stack: &StackBytes<'_>,
) -> Option<Registers<N>> {
    let trampoline = machine.trampoline.as_ref()?;
    let bottom = frame.get(machine, machine.stack_pointer)?;
    let word = |at: u64| stack.word(bottom.checked_add(at)?);
    let sp = word(trampoline.stack_pointer)?;
    Some(Registers {
        ip: word(trampoline.code).filter(|&ip| ip != 0)?,
        sp: Some(sp).filter(|&sp| sp > frame.sp)?,
        sp_known: true,
        saved: std::array::from_fn(|at| word(trampoline.saved + 8 * at as u64)),
    })
}

/// The caller of a Go function whose frame has so many bytes. Go's functions keep no register for their callers but the frame pointer, and
/// that below the return address, wherever that is.
fn caller_in_go<const N: usize>(
    machine: &Machine<N>,
    bytes: u64,
    frame: &Registers<N>,
    stack: &StackBytes<'_>,
) -> Option<Registers<N>> {
    let mut saved = [None; N];
    let sp = frame.get(machine, machine.stack_pointer)?;
    let (ip, sp, kept_below) = match machine.call {
        // Behind the frame.
        Call::OnStack => {
            let place = sp.checked_add(bytes)?;
            (
                stack.word(place)?,
                place.checked_add(8)?,
                (bytes >= 8).then_some(place),
            )
        }
        // At its lower end, and as long as there is none nowhere yet.
        Call::InRegister(link) if bytes == 0 => (frame.saved[link]?, sp, None),
        Call::InRegister(_) => (stack.word(sp)?, sp.checked_add(bytes)?, Some(sp)),
    };
    saved[machine.frame_pointer] = match kept_below {
        Some(place) => place.checked_sub(8).and_then(|below| stack.word(below)),
        None => frame.saved[machine.frame_pointer],
    };
    Some(Registers {
        ip: Some(machine.code(ip)).filter(|&ip| ip != 0)?,
        sp,
        sp_known: true,
        saved,
    })
}

impl<const N: usize> Described<N> {
    fn caller(
        &self,
        machine: &Machine<N>,
        frame: &Registers<N>,
        stack: &StackBytes<'_>,
    ) -> Option<Registers<N>> {
        let cfa = match &self.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                frame.get(machine, *register)?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None, frame, stack)?,
        };
        let kept = match (machine.call, &self.return_address) {
            (Call::InRegister(link), None | Some(RegisterRule::SameValue)) => frame.saved[link],
            _ => None,
        };
        // Stacks grow down: a caller that is not above what it called is a loop or nonsense. What has put nothing there can have called
        // nothing, so there is one such frame at most.
        if cfa < frame.sp || (cfa == frame.sp && kept.is_none()) {
            return None;
        }
        let recover = |rule: &RegisterRule<usize>, now: Option<u64>| match rule {
            RegisterRule::SameValue => now,
            RegisterRule::Offset(offset) => stack.word(cfa.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
            RegisterRule::Register(register) => frame.get(machine, *register),
            RegisterRule::Expression(expression) => {
                stack.word(self.evaluate(expression, Some(cfa), frame, stack)?)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa), frame, stack),
            _ => None,
        };
        // The outermost function says that it has no return address.
        let ip = match kept {
            Some(kept) => kept,
            None => recover(self.return_address.as_ref()?, None)?,
        };
        let ip = Some(machine.code(ip)).filter(|&ip| ip != 0)?;
        let mut saved = frame.saved;
        for (value, rule) in saved.iter_mut().zip(&self.saved) {
            if let Some(rule) = rule {
                *value = recover(rule, *value);
            }
        }
        let caller = Registers {
            ip,
            sp: cfa,
            sp_known: true,
            saved,
        };
        // What a signal interrupted has called nothing, and has all of its registers back.
        Some(match self.signal {
            true => caller,
            false => caller.after_call(machine),
        })
    }

    fn evaluate(
        &self,
        expression: &UnwindExpression<usize>,
        cfa: Option<u64>,
        frame: &Registers<N>,
        stack: &StackBytes<'_>,
    ) -> Option<u64> {
        let expression = self.section.expression(expression)?;
        let mut evaluation = Evaluation::new(expression, self.encoding);
        evaluation.set_max_iterations(OPERATIONS_MAX);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().ok()?;
        // Each round consumes at least one of the bounded operations.
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => evaluation
                    .resume_with_register(Value::Generic(frame.get(self.section.machine, register)?)),
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(stack.word(address)?))
                }
                _ => return None,
            }
            .ok()?;
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

/// The caller of a function that has put nothing on the stack. Hand-written calls into the kernel end their frame
/// information early (glibc's `clone3`, in which a child would find it wrong); whether the word is a return address is
/// for the caller to judge.
pub(crate) fn caller_of_leaf<const N: usize>(
    machine: &Machine<N>,
    frame: &Registers<N>,
    stack: &StackBytes<'_>,
) -> Option<Registers<N>> {
    let (ip, sp) = match machine.call {
        Call::OnStack => (stack.word(frame.sp)?, frame.sp.checked_add(8)?),
        Call::InRegister(link) => (frame.saved[link]?, frame.sp),
    };
    let caller = Registers {
        ip: machine.code(ip),
        sp,
        ..*frame
    };
    Some(caller.after_call(machine))
}

/// The caller by the frame pointer, for code without frame information. It is only believed when it points
/// into the stack above the frame; whether the return address is one is for the caller to judge.
///
/// Where a call puts the return address on the stack, the frame ends with it. Else the two words that the pointer leads to lie
/// anywhere in the frame, mostly at its lower end, and the caller's stack pointer is somewhere above them.
pub(crate) fn caller_by_frame_pointer<const N: usize>(
    machine: &Machine<N>,
    frame: &Registers<N>,
    stack: &StackBytes<'_>,
) -> Option<Registers<N>> {
    let pointer = frame.saved[machine.frame_pointer].filter(|&pointer| pointer >= frame.sp)?;
    let return_address: Range<u64> = pointer.checked_add(8)?..pointer.checked_add(16)?;
    let mut saved = [None; N];
    saved[machine.frame_pointer] = stack.word(pointer);
    Some(Registers {
        ip: machine.code(stack.word(return_address.start)?),
        sp: return_address.end,
        sp_known: machine.call == Call::OnStack,
        saved,
    })
}

#[cfg(test)]
mod aarch64_tests;
#[cfg(test)]
mod tests;
