//! Another process's memory, in pages that are kept for one question.
//!
//! In: addresses, and where bytes come from ([`Source`]). Out: bytes and words of them, or nothing where none can be read.
//! Structures lie close together, so a page that was copied once answers most of what follows; between two questions
//! everything is forgotten, for the process goes on meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::ops::Range;

/// What is copied at a time, bytes: memory is there or not there by the page.
pub const PAGE: usize = 4096;

/// Pages of one question, 64 MB. A stack of a hundred new methods takes some 300, a look at ten thousand threads twice as
/// many as those; hostile structures cannot make us read more.
const PAGES_MAX: usize = 16_384;

/// Reads of one question: a look at ten thousand threads takes some hundred thousand. Hostile lists can be long.
const READS_MAX: u32 = 4_000_000;

/// Pages that are asked for in one call: looking the process up costs as much as copying a page does. The kernel takes up
/// to 1,024.
const TOGETHER: usize = 256;

/// Where bytes come from.
pub trait Source: Debug + Send {
    /// Copies the page at an address that is a multiple of its size; false where it is not there.
    fn page(&mut self, address: u64, page: &mut [u8; PAGE]) -> bool;

    /// The same for several pages, in the order given, up to the first that is not there; how many were copied.
    fn pages(&mut self, wanted: &mut [(u64, Box<[u8; PAGE]>)]) -> usize {
        let missing = wanted
            .iter_mut()
            .position(|(address, page)| !self.page(*address, page));
        missing.unwrap_or(wanted.len())
    }

    /// What installers have put into a folder of the process: each name there, and the package that it is of. Nothing where only memory is at
    /// hand.
    fn installed_in(&mut self, _folder: &str) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Memory, page by page.
#[derive(Debug)]
pub struct Memory<S> {
    source: S,
    pages: HashMap<u64, Option<Box<[u8; PAGE]>>>,
    reads: u32,
}

impl<S: Source> Memory<S> {
    /// Nothing is read yet.
    pub fn new(source: S) -> Memory<S> {
        Memory {
            source,
            pages: HashMap::new(),
            reads: 0,
        }
    }

    /// What installers have put into a folder of the process ([`Source::installed_in`]).
    pub fn installed_in(&mut self, folder: &str) -> Vec<(String, String)> {
        self.source.installed_in(folder)
    }

    /// The next question begins: what was read may be old.
    pub fn forget(&mut self) {
        self.pages.clear();
        self.reads = 0;
    }

    /// Fills `bytes` from an address upward; `None` where not all of them are there.
    pub fn read(&mut self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.reads += 1;
        if self.reads > READS_MAX {
            return None;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = address.checked_add(done as u64)?;
            let within = usize::try_from(at % PAGE as u64).ok()?;
            let length = (PAGE - within).min(bytes.len() - done);
            let page = self.page(at - within as u64)?;
            bytes[done..done + length].copy_from_slice(&page[within..within + length]);
            done += length;
        }
        Some(())
    }

    /// Copies the pages at these addresses together, for what will be asked next. What is not there is found out when
    /// it is asked for.
    pub fn ahead(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let mut pages: Vec<u64> = addresses
            .into_iter()
            .map(|address| address - address % PAGE as u64)
            .filter(|page| !self.pages.contains_key(page))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        pages.truncate(PAGES_MAX.saturating_sub(self.pages.len()));
        let mut left = &pages[..];
        while !left.is_empty() {
            let now = &left[..left.len().min(TOGETHER)];
            let mut wanted: Vec<_> = now.iter().map(|page| (*page, Box::new([0; PAGE]))).collect();
            let copied = self.source.pages(&mut wanted);
            wanted.truncate(copied);
            // The one after those that were copied is not there.
            left = &left[(copied + 1).min(now.len())..];
            self.pages
                .extend(wanted.into_iter().map(|(address, page)| (address, Some(page))));
        }
    }

    /// Shows the pages of a range from below upwards, and keeps none of them. What is not there is left out.
    pub fn sweep(&mut self, range: Range<u64>, each: &mut dyn FnMut(u64, &[u8; PAGE])) {
        let mut next = range.start - range.start % PAGE as u64;
        let mut wanted: Vec<(u64, Box<[u8; PAGE]>)> = Vec::new();
        while next < range.end {
            let pages = (range.end - next).div_ceil(PAGE as u64).min(TOGETHER as u64);
            wanted.resize_with(usize::try_from(pages).unwrap_or(TOGETHER), || {
                (0, Box::new([0; PAGE]))
            });
            for (page, at) in wanted.iter_mut().zip((next..).step_by(PAGE)) {
                page.0 = at;
            }
            let copied = self.source.pages(&mut wanted);
            for (at, page) in &wanted[..copied] {
                each(*at, page);
            }
            // The one after those that were copied is not there.
            let done = if copied < wanted.len() { copied + 1 } else { copied };
            let Some(after) = next.checked_add(done as u64 * PAGE as u64) else {
                return;
            };
            next = after;
        }
    }

    fn page(&mut self, address: u64) -> Option<&[u8; PAGE]> {
        if !self.pages.contains_key(&address) {
            if self.pages.len() >= PAGES_MAX {
                return None;
            }
            let mut page = Box::new([0; PAGE]);
            let there = self.source.page(address, &mut page);
            self.pages.insert(address, there.then_some(page));
        }
        self.pages.get(&address)?.as_deref()
    }

    /// Eight bytes as a number.
    pub fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// A pointer that is not null.
    pub fn pointer(&mut self, address: u64) -> Option<u64> {
        self.word(address).filter(|pointer| *pointer != 0)
    }

    /// Four bytes as a number.
    pub fn int(&mut self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// Two bytes as a number.
    pub fn short(&mut self, address: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Some(u16::from_le_bytes(bytes))
    }

    /// One byte.
    pub fn byte(&mut self, address: u64) -> Option<u8> {
        let mut bytes = [0; 1];
        self.read(address, &mut bytes)?;
        Some(bytes[0])
    }

    /// So many bytes as text, whatever they are.
    pub fn text(&mut self, address: u64, bytes: usize) -> Option<String> {
        let mut text = vec![0; bytes];
        self.read(address, &mut text)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Text up to a byte of zero, of at most so many bytes.
    pub fn c_text(&mut self, address: u64, most: usize) -> Option<String> {
        let mut text = Vec::new();
        loop {
            match self.byte(address.checked_add(text.len() as u64)?)? {
                0 => return Some(String::from_utf8_lossy(&text).into_owned()),
                _ if text.len() >= most => return None,
                byte => text.push(byte),
            }
        }
    }
}

/// Memory as somebody has written it down: for tests, and for whoever makes memory up.
#[derive(Debug, Default, Clone)]
pub struct Written(pub BTreeMap<u64, Vec<u8>>);

impl Written {
    /// Puts bytes at an address, whatever was there.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            let at = address + offset as u64;
            let page = self
                .0
                .entry(at - at % PAGE as u64)
                .or_insert_with(|| vec![0; PAGE]);
            page[(at % PAGE as u64) as usize] = *byte;
        }
    }

    /// Puts a word.
    pub fn word(&mut self, address: u64, word: u64) {
        self.put(address, &word.to_le_bytes());
    }
}

impl Source for Written {
    fn page(&mut self, address: u64, page: &mut [u8; PAGE]) -> bool {
        match self.0.get(&address) {
            Some(bytes) => {
                page.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, PAGE, Written};

    #[test]
    fn what_lies_on_two_pages_is_read_and_what_is_not_there_is_not() {
        let mut written = Written::default();
        written.put(PAGE as u64 - 2, b"on two pages\0");
        let mut memory = Memory::new(written);
        assert_eq!(
            memory.c_text(PAGE as u64 - 2, 100).as_deref(),
            Some("on two pages")
        );
        assert_eq!(memory.c_text(PAGE as u64 - 2, 5), None, "too long");
        assert_eq!(memory.word(2 * PAGE as u64 - 4), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
        assert_eq!(memory.pointer(0), None);
    }

    #[test]
    fn a_sweep_shows_what_is_there_and_leaves_holes_out() {
        let mut written = Written::default();
        for page in [1, 2, 4, 700] {
            written.word(page * PAGE as u64, page);
        }
        let mut memory = Memory::new(written);
        let mut seen = Vec::new();
        memory.sweep(17..701 * PAGE as u64, &mut |at, page| {
            seen.push((at / PAGE as u64, page[0]))
        });
        assert_eq!(seen, [(1, 1), (2, 2), (4, 4), (700, 188)]);
        memory.sweep(u64::MAX - 9..u64::MAX, &mut |_, _| panic!("nothing is there"));
        assert!(memory.pages.is_empty());
    }

    #[test]
    fn what_is_copied_ahead_is_there_and_a_hole_costs_only_itself() {
        let mut written = Written::default();
        for page in [1, 2, 4, 5] {
            written.word(page * PAGE as u64, page);
        }
        let mut memory = Memory::new(written);
        memory.ahead((0..7).map(|page| page * PAGE as u64 + 17));
        memory.source.0.clear();
        let listed: Vec<_> = (0..7).map(|page| memory.word(page * PAGE as u64)).collect();
        assert_eq!(listed, [None, Some(1), Some(2), None, Some(4), Some(5), None]);
    }
}
