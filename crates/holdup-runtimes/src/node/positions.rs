//! Where in the source a place of the bytecode is.
//!
//! In: the bytes of a source position table. Out: the position, in characters from the beginning of the script. Each entry is two
//! differences to the entry before: of the offset in the bytecode, and of the position.

/// Position of the last entry that is at or before an offset in the bytecode; `None` where there is none.
pub(super) fn position(table: &[u8], offset: u64) -> Option<u64> {
    let mut rest = table;
    let (mut at, mut raw) = (0_i64, 0_i64);
    let mut found = None;
    while !rest.is_empty() {
        let step = signed(&mut rest)?;
        // The sign tells expressions from statements.
        let step = if step < 0 {
            step.checked_add(1)?.checked_neg()?
        } else {
            step
        };
        at = at.checked_add(step)?;
        raw = raw.checked_add(signed(&mut rest)?)?;
        if u64::try_from(at).ok()? > offset {
            break;
        }
        found = Some(raw);
    }
    // The lowest bit is of code that is not JavaScript. Then thirty bits: the position, and one more.
    let raw = u64::try_from(found?).ok().filter(|raw| raw & 1 == 0)?;
    ((raw >> 1) & 0x3fff_ffff).checked_sub(1)
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow. The lowest bit of all is the sign.
fn signed(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn an_offset_has_the_position_of_the_last_entry_before_it() {
        // Statement at 0: position 4, raw (4 + 1) * 2 = 10. Expression 6 further: position 20. Statement 2 further: 3 back.
        let table = [0, 20, 13, 64, 4, 11];
        let at = |offset| position(&table, offset);
        assert_eq!([0, 5, 6, 7, 8, 1000].map(at), [4, 4, 20, 20, 17, 17].map(Some));
        assert_eq!(position(&[4, 20], 1), None, "before the first");
        assert_eq!(position(&[], 1), None);
    }

    #[test]
    fn tables_that_make_no_sense_have_no_position() {
        assert_eq!(position(&[0x80; 40], 5), None);
        assert_eq!(position(&[0, 0x80], 5), None, "cut off");
        assert_eq!(position(&[0, 5], 5), None, "before the beginning of the script");
        assert_eq!(position(&[0, 4], 5), Some(0));
        assert_eq!(position(&[0, 2], 5), None, "not JavaScript");
        let far = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 20];
        assert_eq!(position(&far.repeat(3), u64::MAX), None, "beyond all numbers");
    }
}
