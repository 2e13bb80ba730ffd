//! A text within a short one.
//!
//! `memchr::memmem::find` builds a searcher at every call, which takes longer than to look through a line. Here a byte of what
//! is looked for that few lines have is looked for, and what stands around it is compared.

use memchr::memchr;

/// Where a text stands first. For lines and their parts: what is looked through is short, what is looked for is a word or some.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let Some(rare) = rarest(part) else { return Some(0) };
    let byte = *part.get(rare)?;
    // Where the byte can stand first, and last.
    let last = text.len().checked_sub(part.len())?;
    let mut from = rare;
    while let Some(at) = text.get(from..=last + rare).and_then(|rest| memchr(byte, rest)) {
        let begin = from + at - rare;
        if text.get(begin..begin + part.len()) == Some(part) {
            return Some(begin);
        }
        from += at + 1;
    }
    None
}

/// How common each byte is in messages; 0 is the rarest.
const COMMON: [u8; 256] = {
    let mut common = [0; 256];
    let mut byte = 0;
    while byte < common.len() {
        common[byte] = match byte as u8 {
            b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 4,
            b'd' | b'l' | b'c' | b'u' | b'm' | b'p' | b'0'..=b'9' | b':' | b'.' | b'-' => 3,
            b'f' | b'g' | b'h' | b'y' | b'b' | b'w' | b'v' | b'k' | b'/' | b'=' | b'_' | b',' => 2,
            b'A'..=b'Z' | b'(' | b')' | b'[' | b']' | b'"' => 1,
            _ => 0,
        };
        byte += 1;
    }
    common
};

/// A byte that is as rare as this is rare enough: to look for a rarer one takes longer than it saves.
const RARE: u8 = 1;

/// Where in it the byte stands that is rarest in messages. Asked at each call, so it ends at the first that is rare.
fn rarest(part: &[u8]) -> Option<usize> {
    let mut rarest = None;
    let mut least = u8::MAX;
    for (at, byte) in part.iter().enumerate() {
        let common = COMMON[usize::from(*byte)];
        if common < least {
            (least, rarest) = (common, Some(at));
            if common <= RARE {
                break;
            }
        }
    }
    rarest
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn it_finds_what_a_searcher_finds() {
        let texts: [&[u8]; 7] = [
            b"",
            b"a",
            b"nfs: server nas not responding",
            b"XFS (vda1): metadata I/O error",
            b"xxxxxxxxxxxxxxxy",
            b"aXbXXc",
            b" not",
        ];
        let parts: [&[u8]; 9] = [
            b"",
            b"a",
            b" not ",
            b" not",
            b"I/O error",
            b"xy",
            b"XX",
            b"XXc",
            b"longer than all of the texts",
        ];
        for text in texts {
            for part in parts {
                assert_eq!(find(text, part), memchr::memmem::find(text, part));
            }
        }
    }
}
