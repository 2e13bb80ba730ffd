//! pprof: the protobuf message `perftools.profiles.Profile`.
//!
//! In: the message, uncompressed. Out: [`Samples`] of its last value (Go's CPU profile has nanoseconds there, a block or
//! mutex profile the delay). A reader of its own: of the format's six messages four are needed, and nothing of them but
//! numbers and strings, which is less than a generated one with its build step would be.
//!
//! [`Samples`]: holdup_evidence::observed::Samples

use super::Folded;
use crate::format::{Family, Format, Shape, Sureness};
use crate::gather::Out;
use holdup_evidence::observed::Weight;
use std::collections::HashMap;

pub(crate) static FORMAT: Format =
    Format::new("pprof", Family::Profiles, recognise, Shape::Document(read)).about("pprof");

/// Entries of one of the message's tables that are remembered.
const ENTRIES: usize = 2_000_000;

/// A field: its number and what it holds.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

/// The fields of a message; ends at the first that is damaged.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let key = varint(&mut self.0)?;
        let number = key >> 3;
        match key & 7 {
            0 => Some(Field::Number(number, varint(&mut self.0)?)),
            1 => {
                let (value, rest) = self.0.split_at_checked(8)?;
                self.0 = rest;
                Some(Field::Number(number, u64::from_le_bytes(value.try_into().ok()?)))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                let (value, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Some(Field::Bytes(number, value))
            }
            5 => {
                let (value, rest) = self.0.split_at_checked(4)?;
                self.0 = rest;
                Some(Field::Number(
                    number,
                    u64::from(u32::from_le_bytes(value.try_into().ok()?)),
                ))
            }
            _ => None,
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A list of numbers, packed or one by one.
fn numbers(field: &Field<'_>, into: &mut Vec<u64>) {
    match field {
        Field::Number(_, value) => into.push(*value),
        Field::Bytes(_, packed) => {
            let mut packed = *packed;
            while let Some(value) = varint(&mut packed) {
                into.push(value);
            }
        }
    }
}

/// All its fields are such as the message has, in whatever order: a type of value, which is two numbers of strings, is
/// among them, and something that it is a type of.
fn recognise(head: &[u8]) -> Sureness {
    /// Fields from which it can't be chance: each byte that begins one is one of fifteen in 256.
    const MIN_FIELDS: u32 = 5;
    let is_type = |message: &[u8]| {
        let of_two = Fields(message).all(|field| matches!(field, Field::Number(1 | 2, _)));
        of_two && (1..=12).contains(&message.len())
    };
    let (mut seen, mut types, mut others) = (0, false, false);
    for field in Fields(head) {
        match field {
            Field::Bytes(1, message) if is_type(message) => types = true,
            Field::Bytes(2..=6, _) => others = true,
            Field::Bytes(11, message) if is_type(message) => {}
            Field::Number(7..=10 | 12 | 14 | 15, _) | Field::Bytes(13, _) | Field::Number(13, _) => {}
            _ => return Sureness::No,
        }
        seen += 1;
    }
    if types && others && seen >= MIN_FIELDS {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

fn read(document: &[u8], out: &mut Out<'_>) {
    let mut strings: Vec<&[u8]> = Vec::new();
    let mut types: Vec<&[u8]> = Vec::new();
    let mut functions: HashMap<u64, u64> = HashMap::new();
    let mut locations: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut fields = Fields(document);
    for field in &mut fields {
        match field {
            Field::Bytes(1, value) => types.push(value),
            Field::Bytes(4, value) if locations.len() < ENTRIES => {
                let (id, lines) = location(value);
                locations.insert(id, lines);
            }
            Field::Bytes(5, value) if functions.len() < ENTRIES => {
                let number = |wanted| {
                    Fields(value).find_map(|field| match field {
                        Field::Number(number, value) if number == wanted => Some(value),
                        _ => None,
                    })
                };
                functions.insert(number(1).unwrap_or(0), number(2).unwrap_or(0));
            }
            Field::Bytes(6, value) if strings.len() < ENTRIES => strings.push(value),
            _ => {}
        }
    }
    if !fields.0.is_empty() {
        out.problem(format!(
            "the profile is cut or damaged {} bytes before its end",
            fields.0.len()
        ));
    }
    let text = |number: u64| {
        let at = usize::try_from(number).ok();
        at.and_then(|at| strings.get(at)).copied().unwrap_or_default()
    };
    // The last type of value is the one that the profile is about.
    let mut kind = (&b""[..], &b""[..]);
    for field in types.last().into_iter().flat_map(|last| Fields(last)) {
        match field {
            Field::Number(1, number) => kind.0 = text(number),
            Field::Number(2, number) => kind.1 = text(number),
            _ => {}
        }
    }
    let weight = match kind.1 {
        b"nanoseconds" => Weight::Ns,
        b"microseconds" => Weight::Us,
        _ => Weight::Count,
    };
    let waiting = match kind.0 {
        b"cpu" => Some(false),
        b"delay" => Some(true),
        _ => None,
    };
    let mut folded = Folded::default();
    let (mut samples, mut stack) = (0u64, Vec::new());
    for field in Fields(document) {
        let Field::Bytes(2, sample) = field else { continue };
        samples += 1;
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for field in Fields(sample) {
            match field {
                Field::Number(1, _) | Field::Bytes(1, _) => numbers(&field, &mut places),
                Field::Number(2, _) | Field::Bytes(2, _) => numbers(&field, &mut values),
                _ => {}
            }
        }
        stack.clear();
        for place in places.iter().rev() {
            // The lines of a place are inlined into one another, innermost first.
            for function in locations.get(place).into_iter().flatten().rev() {
                if !stack.is_empty() {
                    stack.push(b';');
                }
                let name = text(functions.get(function).copied().unwrap_or(0));
                stack.extend(name.iter().map(|byte| if *byte == b';' { b':' } else { *byte }));
            }
        }
        // A negative value is of a profile that was subtracted from another.
        let value = values.last().copied().filter(|value| *value <= i64::MAX as u64);
        folded.add(&stack, value.unwrap_or(0));
    }
    let account = out.account();
    account.lines += samples;
    account.evidence += samples;
    let quote = out.here();
    folded.finish(out, waiting, weight, quote);
}

/// The id of a place in the program, and the functions there.
fn location(message: &[u8]) -> (u64, Vec<u64>) {
    let (mut id, mut lines) = (0, Vec::new());
    for field in Fields(message) {
        match field {
            Field::Number(1, value) => id = value,
            Field::Bytes(4, line) => {
                let function = Fields(line).find_map(|field| match field {
                    Field::Number(1, value) => Some(value),
                    _ => None,
                });
                lines.extend(function);
            }
            _ => {}
        }
    }
    (id, lines)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::Weight;

    fn message(number: u8, body: &[u8]) -> Vec<u8> {
        let mut all = vec![number << 3 | 2, u8::try_from(body.len()).unwrap()];
        all.extend_from_slice(body);
        all
    }

    /// Two functions, one stack of 40 and one of 2 nanoseconds.
    fn profile() -> Vec<u8> {
        let mut all = Vec::new();
        all.extend(message(1, &[8, 1, 16, 2]));
        all.extend(message(1, &[8, 3, 16, 4]));
        all.extend(message(2, &[10, 2, 1, 2, 18, 2, 1, 40]));
        all.extend(message(2, &[8, 2, 16, 1, 16, 2]));
        all.extend(message(4, &[8, 1, 34, 2, 8, 1]));
        all.extend(message(4, &[8, 2, 34, 2, 8, 2]));
        all.extend(message(5, &[8, 1, 16, 5]));
        all.extend(message(5, &[8, 2, 16, 6]));
        for text in [
            "",
            "samples",
            "count",
            "cpu",
            "nanoseconds",
            "runtime.futex",
            "main.main",
        ] {
            all.extend(message(6, text.as_bytes()));
        }
        all
    }

    #[test]
    fn a_profile_is_stacks_with_the_last_value() {
        let reading = read_text("p", &profile());
        let [samples] = reading.observed.samples.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            (samples.total, samples.weight, samples.waiting),
            (42, Weight::Ns, Some(false))
        );
        let frames: Vec<&str> = reading.observed.stacks.frames(samples.stacks[0].0).collect();
        assert_eq!(frames, ["runtime.futex", "main.main"]);
    }

    #[test]
    fn cut_and_changed_profiles_end_nothing() {
        let whole = profile();
        for at in 0..whole.len() {
            let _ = read_text("p", whole.get(..at).unwrap_or_default());
            for byte in [0, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = read_text("p", &changed);
            }
        }
    }
}
