//! Functions and frames of Go code, by the table that the Go linker puts into every program.
//!
//! Go code has no `.eh_frame`, and the assembly that makes its system calls keeps no frame pointer, so a walk
//! along frame pointers loses the caller of each wait. The runtime's own table (`.gopclntab`) is in every
//! program, stripped or not, because the garbage collector walks stacks by it: for each function its name, and
//! for each instruction how far the stack pointer is below the return address. In comes a file, out come these
//! two. Versions from Go 1.18 on are understood; of others, and where it cannot be determined where the code begins,
//! nothing is.

use crate::elf::Head;

/// What the table begins with from Go 1.18, and from Go 1.20 on.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// Where the table is: in a program at a fixed address, and in one that can be loaded anywhere.
pub(crate) const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Largest table that is read, in bytes; that of Kubernetes has 40 MB.
pub(crate) const TABLE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Largest description of a module that is read, in bytes; it has some 600.
pub(crate) const MODULE_BYTES_MAX: u64 = 4096;

/// Where the linker describes the module, from Go 1.26 on.
pub(crate) const MODULE_SECTION: &str = ".go.module";

/// Where the description of the module (`.go.module`, from Go 1.26 on) has the start of the code: behind a
/// pointer, six slices, and three more pointers.
const MODULE_TEXT: usize = 8 + 6 * 24 + 3 * 8;

/// Longest name that is kept, in bytes. Names of generic functions reach some hundreds.
const NAME_BYTES_MAX: usize = 4096;

/// Longest table of a function's distances that is gone through, in bytes. Those of the longest functions have some thousand.
const DISTANCES_BYTES_MAX: usize = 64 * 1024;

/// Most bytes that a function's frame can have: Go's stacks end at 1 GB.
const FRAME_BYTES_MAX: i32 = 1 << 30;

/// Bit of a function's flags: it moves the stack pointer to another stack.
const LEAVES_ITS_STACK: u8 = 1 << 1;

/// The same of the data of functions, behind nine addresses and before the next.
const MODULE_DATA: usize = MODULE_TEXT + 18 * 8;

/// Bytes of a function's description before its lists: until Go 1.19, and since.
const LISTS: [usize; 2] = [40, 44];

/// Where it has how many lists there are by instruction; which of them is about inlined functions, and which of the function's data.
const INSTRUCTION_LISTS: usize = 28;
const INLINED_LIST: u32 = 2;
const INLINED_DATA: u32 = 3;

/// Bytes of an entry of the tree of inlined functions, and entries that are followed.
const INLINED_BYTES: usize = 16;
const INLINED_MAX: usize = 32;

/// Where a function's description has its tables of files and lines, and where the list of its unit's files begins.
const FILE_STEPS: usize = 20;
const LINE_STEPS: usize = 24;
const UNIT: usize = 32;

/// Bytes of a function's description up to and with its flags.
const FUNCTION_BYTES: usize = 42;

/// The table of one file.
#[derive(Debug)]
pub(crate) struct GoTable {
    bytes: Vec<u8>,
    /// Bytes of one unit of a distance between instructions.
    quantum: u32,
    /// Address of the first function.
    text: u64,
    functions: usize,
    /// Offsets of the parts, in bytes.
    names: usize,
    units: usize,
    files: usize,
    distances: usize,
    descriptions: usize,
    /// Bytes of a function's description before its lists.
    lists: usize,
    /// Where the data of functions are, of which one says what was put into which function.
    inlined: Option<usize>,
}

/// A function that a place stands for, and where in it that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoPlace {
    /// Its name, where the compiler put it into another one.
    pub(crate) inlined: Option<String>,
    /// Source file and line; `None` where it is not known whether they are this function's.
    pub(crate) line: Option<(String, u32)>,
}

/// How to find the caller of a place in Go code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoFrame {
    /// The return address is so many bytes above the stack pointer.
    Bytes(u64),
    /// The function is the last of its stack, or what called it is on another.
    Outermost,
}

/// A function's place in the table.
#[derive(Debug, Clone, Copy)]
struct Function {
    entry: u64,
    /// Its description's first byte.
    at: usize,
}

impl GoTable {
    /// Reads the table; there is none in other languages' files.
    pub(crate) fn read(head: &Head, table: Option<Vec<u8>>, module: Option<&[u8]>) -> Option<Self> {
        let mut table = Self::parse(table?, start_of_code(head, module))?;
        // The tree of inlined functions has had its form since Go 1.20, as the table has.
        table.inlined = SECTIONS
            .iter()
            .find_map(|name| head.section(name))
            .zip(long(module.unwrap_or_default(), MODULE_DATA))
            .filter(|_| table.lists == LISTS[1])
            .and_then(|(section, data)| usize::try_from(data.checked_sub(section.address)?).ok());
        Some(table)
    }

    /// Understands a table; `text` is where the code begins if the table does not say.
    fn parse(bytes: Vec<u8>, text: Option<u64>) -> Option<Self> {
        let pointer_bytes = *bytes.get(7)?;
        if !MAGICS.contains(&word(&bytes, 0)?) || pointer_bytes != 8 {
            return None;
        }
        let offset = |at| usize::try_from(long(&bytes, at)?).ok();
        let stated = long(&bytes, 24)?;
        let table = Self {
            lists: match word(&bytes, 0)? == MAGICS[0] {
                true => LISTS[0],
                false => LISTS[1],
            },
            inlined: None,
            quantum: u32::from(*bytes.get(6)?),
            text: text.or((stated != 0).then_some(stated))?,
            functions: offset(8)?,
            names: offset(32)?,
            units: offset(40)?,
            files: offset(48)?,
            distances: offset(56)?,
            descriptions: offset(64)?,
            bytes,
        };
        // Each function has eight bytes in the index, and one entry of four ends it.
        let index = table.functions.checked_mul(8)?.checked_add(4)?;
        let end = table.descriptions.checked_add(index)?;
        (table.functions > 0 && end <= table.bytes.len()).then_some(table)
    }

    /// The name and address of the function that holds `address`.
    pub(crate) fn function(&self, address: u64) -> Option<(String, u64)> {
        let function = self.find(address)?;
        let at = word(&self.bytes, function.at.checked_add(4)?)?;
        let name = self.text(self.names.checked_add(at as usize)?)?;
        Some((name, function.entry))
    }

    /// Whether a function of the table holds `address`.
    pub(crate) fn covers(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// The functions that an address stands for, innermost first: those that the compiler put into another one, and the one that was
    /// called.
    pub(crate) fn places(&self, address: u64) -> Vec<GoPlace> {
        let Some(function) = self.find(address) else {
            return Vec::new();
        };
        let Ok(mut into) = u32::try_from(address - function.entry) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        while let Some(index) = self.inlined_index(function.at, into) {
            let Some((name, call)) = self.inlined_function(function.at, index) else {
                // The line may be that of any of them.
                places.push(GoPlace {
                    inlined: None,
                    line: None,
                });
                return places;
            };
            places.push(GoPlace {
                inlined: Some(name),
                line: self.line(function.at, into),
            });
            into = call;
            if places.len() >= INLINED_MAX {
                break;
            }
        }
        places.push(GoPlace {
            inlined: None,
            line: self.line(function.at, into),
        });
        places
    }

    /// Which of the functions that were put into this one an instruction is of.
    fn inlined_index(&self, at: usize, into: u32) -> Option<usize> {
        let count = word(&self.bytes, at.checked_add(INSTRUCTION_LISTS)?)?;
        if count <= INLINED_LIST {
            return None;
        }
        let list = at.checked_add(self.lists + 4 * INLINED_LIST as usize)?;
        let steps = word(&self.bytes, list).filter(|steps| *steps != 0)?;
        let (index, _) = self.distance(steps as usize, into)?;
        usize::try_from(index).ok()
    }

    /// The name of such a function, and where in the one that was called its call stood.
    fn inlined_function(&self, at: usize, index: usize) -> Option<(String, u32)> {
        let lists = word(&self.bytes, at.checked_add(INSTRUCTION_LISTS)?)?;
        let data = lists.checked_add(INLINED_DATA)?.checked_mul(4)? as usize;
        let has = u32::from(*self.bytes.get(at.checked_add(self.lists)?.checked_sub(1)?)?) > INLINED_DATA;
        let tree = word(&self.bytes, at.checked_add(self.lists)?.checked_add(data)?);
        let tree = tree.filter(|tree| has && *tree != u32::MAX)?;
        let tree = self.inlined?.checked_add(tree as usize)?;
        let entry = tree.checked_add(index.checked_mul(INLINED_BYTES)?)?;
        let name = word(&self.bytes, entry.checked_add(4)?)?;
        let call = word(&self.bytes, entry.checked_add(8)?)?;
        Some((self.text(self.names.checked_add(name as usize)?)?, call))
    }

    /// The file and line that the table has for an instruction.
    fn line(&self, at: usize, into: u32) -> Option<(String, u32)> {
        let description = self.bytes.get(at..)?.get(..FUNCTION_BYTES)?;
        let value = |at| {
            let (value, _) = self.distance(word(description, at)? as usize, into)?;
            u32::try_from(value).ok()
        };
        let (file, line) = (value(FILE_STEPS)?, value(LINE_STEPS)?);
        // Each compiled unit has a list of its files.
        let unit = word(description, UNIT)?.checked_add(file)? as usize;
        let at = word(&self.bytes, self.units.checked_add(unit.checked_mul(4)?)?)?;
        let path = self.text(self.files.checked_add(at as usize)?)?;
        Some((path, line))
    }

    /// Text up to a byte of zero, which must not be empty.
    fn text(&self, at: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let rest = &rest[..rest.len().min(NAME_BYTES_MAX)];
        let text = std::str::from_utf8(rest.split(|&byte| byte == 0).next()?).ok()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How to find the caller of the code at `address`; and how many bytes had to be gone through.
    pub(crate) fn frame(&self, address: u64) -> Option<(GoFrame, usize)> {
        let function = self.find(address)?;
        let description = self.bytes.get(function.at..)?.get(..FUNCTION_BYTES)?;
        if description[FUNCTION_BYTES - 1] & LEAVES_ITS_STACK != 0 {
            return Some((GoFrame::Outermost, 0));
        }
        let distances = word(description, 16)?;
        let into = u32::try_from(address - function.entry).ok()?;
        let (bytes, walked) = self.distance(distances as usize, into)?;
        (0..=FRAME_BYTES_MAX)
            .contains(&bytes)
            .then(|| (GoFrame::Bytes(u64::from(bytes.unsigned_abs())), walked))
    }

    fn find(&self, address: u64) -> Option<Function> {
        let into = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let entry = |index: usize| word(&self.bytes, self.descriptions + index * 8);
        let (mut first, mut behind) = (0, self.functions);
        while first < behind {
            let middle = first.midpoint(behind);
            if entry(middle)? <= into {
                first = middle + 1;
            } else {
                behind = middle;
            }
        }
        let index = first.checked_sub(1)?;
        if entry(index + 1)? <= into {
            return None;
        }
        let at = word(&self.bytes, self.descriptions + index * 8 + 4)?;
        Some(Function {
            entry: self.text + u64::from(entry(index)?),
            at: self.descriptions.checked_add(at as usize)?,
        })
    }

    /// The value in a table of differences, alternately of values and of instructions, that holds for the
    /// instruction `into` bytes from the function's start, and how many bytes of it had to be gone through. The values begin at -1.
    fn distance(&self, at: usize, into: u32) -> Option<(i32, usize)> {
        let rest = self.bytes.get(self.distances.checked_add(at)?..)?;
        let rest = &rest[..rest.len().min(DISTANCES_BYTES_MAX)];
        let mut bytes = rest.iter();
        let (mut value, mut behind) = (-1_i32, 0_u32);
        loop {
            let difference = variable(&mut bytes)?;
            // Nothing changes only in the first pair; afterwards it is the end of the function's table.
            if difference == 0 && behind != 0 {
                return None;
            }
            // The sign is in the lowest bit.
            value = value.checked_add(((difference >> 1) as i32) ^ -((difference & 1) as i32))?;
            let step = variable(&mut bytes)?.checked_mul(self.quantum)?;
            behind = behind.checked_add(step)?;
            if into < behind {
                return Some((value, rest.len() - bytes.len()));
            }
        }
    }
}

/// Where Go's code begins, if the file says so. The table itself did so until Go 1.25.
fn start_of_code(head: &Head, module: Option<&[u8]>) -> Option<u64> {
    let in_module = || {
        // In a program that can be loaded anywhere it is filled in at the start.
        long(module?, MODULE_TEXT).filter(|&text| text != 0)
    };
    let alone = || {
        // A file that a C compiler has linked has this section, and C's start code before Go's.
        let c = head.section(".init").is_some();
        head.section(".text").filter(|_| !c).map(|text| text.address)
    };
    in_module().or_else(alone)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(
        word.try_into().expect("the range has four bytes"),
    ))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let long = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(
        long.try_into().expect("the range has eight bytes"),
    ))
}

/// A number of seven bits a byte, lowest first, at most five bytes.
fn variable<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.next()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0x40_1000;

    /// Two functions: `main.f` with 0x20 bytes, whose frame has 8 bytes from its fifth byte on, and
    /// `runtime.mcall` with 0x10, which leaves its stack.
    fn table() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGICS[1].to_le_bytes());
        bytes.extend([0, 0, 1, 8]);
        let (names, units, distances, descriptions) = (72_u64, 94_u64, 112_u64, 136_u64);
        let files = units + 4;
        for long in [2, 0, 0, names, units, files, distances, descriptions] {
            bytes.extend(long.to_le_bytes());
        }
        bytes.extend(b"main.f\0runtime.mcall\0");
        bytes.resize(units as usize, 0xee);
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(b"/src/f.go\0");
        bytes.resize(distances as usize, 0xee);
        // +1 (to 0) for 5 bytes, +8 for 0x1b bytes, end; and 0 for 0x10 bytes.
        bytes.extend([2, 5, 16, 0x1b, 0, 2, 0x10, 0]);
        // The first file; line 7 for 5 bytes, line 9 for 0x1b bytes.
        bytes.extend([2, 0x20, 0, 16, 5, 4, 0x1b, 0]);
        bytes.resize(descriptions as usize, 0xee);
        let index = [0_u32, 20, 0x20, 20 + 44, 0x30];
        bytes.extend(index.into_iter().flat_map(u32::to_le_bytes));
        for (entry, name, at, flags) in [(0_u32, 0_u32, 0_u32, 0), (0x20, 7, 5, LEAVES_ITS_STACK)] {
            let description = [entry, name, 0, 0, at, 8, 11, 0, 0, 0];
            bytes.extend(description.into_iter().flat_map(u32::to_le_bytes));
            bytes.extend([0, flags, 0, 0]);
        }
        bytes
    }

    fn parsed() -> GoTable {
        GoTable::parse(table(), Some(TEXT)).unwrap()
    }

    #[test]
    fn functions_are_named_up_to_their_last_byte() {
        let table = parsed();
        let named = |into: u64| table.function(TEXT + into);
        assert_eq!(named(0), Some(("main.f".to_owned(), TEXT)));
        assert_eq!(named(0x1f), Some(("main.f".to_owned(), TEXT)));
        assert_eq!(named(0x20), Some(("runtime.mcall".to_owned(), TEXT + 0x20)));
        assert_eq!(named(0x30), None);
        assert_eq!(table.function(TEXT - 1), None);
        assert_eq!(table.function(u64::MAX), None);
    }

    #[test]
    fn frames_grow_where_the_table_says() {
        let table = parsed();
        let frame = |into| table.frame(TEXT + into).map(|(frame, _)| frame);
        assert_eq!(frame(0), Some(GoFrame::Bytes(0)));
        assert_eq!(frame(4), Some(GoFrame::Bytes(0)));
        assert_eq!(frame(5), Some(GoFrame::Bytes(8)));
        assert_eq!(frame(0x1f), Some(GoFrame::Bytes(8)));
        assert_eq!(frame(0x20), Some(GoFrame::Outermost));
        assert_eq!(frame(0x30), None);
    }

    #[test]
    fn instructions_have_files_and_lines() {
        let table = parsed();
        let place = |into: u64| table.places(TEXT + into);
        let line = |line| GoPlace {
            inlined: None,
            line: Some(("/src/f.go".to_owned(), line)),
        };
        assert_eq!(place(0), [line(7)]);
        assert_eq!(place(0x1f), [line(9)]);
        assert_eq!(place(0x30), []);
    }

    #[test]
    fn where_the_code_begins_must_be_known() {
        assert!(GoTable::parse(table(), None).is_none());
        let mut stating = table();
        stating[24..32].copy_from_slice(&TEXT.to_le_bytes());
        let table = GoTable::parse(stating, None).unwrap();
        assert_eq!(table.function(TEXT), Some(("main.f".to_owned(), TEXT)));
    }

    #[test]
    fn any_byte_that_is_wrong_costs_answers_and_nothing_else() {
        let whole = table();
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let mut broken = whole.clone();
                broken[at] = byte;
                if let Some(table) = GoTable::parse(broken, Some(TEXT)) {
                    for into in 0..0x31 {
                        table.function(TEXT + into);
                        table.frame(TEXT + into);
                        table.places(TEXT + into);
                    }
                }
            }
            if let Some(table) = GoTable::parse(whole[..at].to_vec(), Some(TEXT)) {
                table.function(TEXT + 0x21);
                table.frame(TEXT + 0x21);
            }
        }
    }
}
