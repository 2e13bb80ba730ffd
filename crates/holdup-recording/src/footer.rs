//! What a Parquet file's footer says by key, and nothing else of it.
//!
//! In: the end of a file, which may be anybody's. Out: its key-value metadata. The footer is a structure of Thrift's compact
//! protocol (parquet-format, `parquet.thrift`, `FileMetaData`); everything but the keys is stepped over. No length is believed beyond
//! the bytes that are there, nothing is reserved by one, and structures within structures end at [`DEEPEST`].

/// What a Parquet file ends and begins with.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// Bytes after the footer: its length and [`MAGIC`].
pub(crate) const TAIL: usize = 8;

/// The largest footer, bytes: of a file of ours it is some 20 KB and what CMD's arguments take, which are 2 MiB at most on Linux, and may
/// be twice as long where they have to be escaped.
pub(crate) const LARGEST: usize = 5 << 20;

/// Structures within structures: a footer's own are some six deep.
const DEEPEST: u32 = 16;

/// `FileMetaData.key_value_metadata`.
const KEY_VALUES: i16 = 5;

/// Thrift's compact types, as their numbers are in a field's header.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

/// The keys and values of a footer, in their order; `None` where it is not one.
pub(crate) fn key_values(footer: &[u8]) -> Option<Vec<(String, String)>> {
    let mut bytes = Bytes { left: footer };
    let mut found = Vec::new();
    let mut field = 0;
    while let Some(kind) = bytes.field(&mut field)? {
        match (field, kind) {
            (KEY_VALUES, kind::LIST) => {
                let (of, count) = bytes.list()?;
                if of != kind::STRUCT {
                    return None;
                }
                for _ in 0..count {
                    found.push(bytes.key_value()?);
                }
            }
            _ => bytes.skip(kind, DEEPEST)?,
        }
    }
    Some(found)
}

struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(length)?;
        self.left = left;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The type of the next field, and its number in `field`; `None` within: the structure is over.
    fn field(&mut self, field: &mut i16) -> Option<Option<u8>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *field = match header >> 4 {
            0 => {
                let zigzag = self.varint()?;
                i16::try_from((zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed())).ok()?
            }
            delta => field.checked_add(i16::from(delta))?,
        };
        Some(Some(header & 0x0f))
    }

    /// Type and number of a list's elements; each takes a byte at the least.
    fn list(&mut self) -> Option<(u8, usize)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            few => usize::from(few),
        };
        (count <= self.left.len()).then_some((header & 0x0f, count))
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    fn key_value(&mut self) -> Option<(String, String)> {
        let (mut key, mut value) = (String::new(), String::new());
        let mut field = 0;
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (1, kind::BINARY) => key = String::from_utf8(self.binary()?.to_vec()).ok()?,
                (2, kind::BINARY) => value = String::from_utf8(self.binary()?.to_vec()).ok()?,
                _ => self.skip(kind, DEEPEST)?,
            }
        }
        Some((key, value))
    }

    fn skip(&mut self, kind: u8, deep: u32) -> Option<()> {
        let deep = deep.checked_sub(1)?;
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => drop(self.byte()?),
            kind::I16..=kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.take(8)?),
            kind::BINARY => drop(self.binary()?),
            kind::UUID => drop(self.take(16)?),
            kind::LIST | kind::SET => {
                let (of, count) = self.list()?;
                for _ in 0..count {
                    self.skip_element(of, deep)?;
                }
            }
            kind::MAP => {
                let count = usize::try_from(self.varint()?).ok()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    for _ in 0..count {
                        self.skip_element(kinds >> 4, deep)?;
                        self.skip_element(kinds & 0x0f, deep)?;
                    }
                }
            }
            kind::STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, deep)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// In a list a truth value is a byte; in a structure it is its field's type.
    fn skip_element(&mut self, kind: u8, deep: u32) -> Option<()> {
        match kind {
            kind::TRUE | kind::FALSE => self.byte().map(drop),
            _ => self.skip(kind, deep),
        }
    }
}
