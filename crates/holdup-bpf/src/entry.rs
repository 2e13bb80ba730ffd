//! Numbers in an entry of a table that the programs fill.
//!
//! In: the bytes of a key or a value, and where a field lies. Out: the number; nothing where the bytes end before.

/// A field of 16 bits.
pub(crate) fn short(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(place..)?.first_chunk()?))
}

/// A field of 32 bits.
pub(crate) fn word(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(place..)?.first_chunk()?))
}

/// A field of 64 bits.
pub(crate) fn long(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(place..)?.first_chunk()?))
}

/// What an entry looks like that the programs have written.
#[cfg(test)]
pub(crate) fn bytes<T>(of: &T) -> Vec<u8> {
    let at = std::ptr::from_ref(of).cast::<u8>();
    // SAFETY: as long as the structure; those that programs write are made of integers only and have no padding.
    unsafe { std::slice::from_raw_parts(at, size_of::<T>()) }.to_vec()
}
