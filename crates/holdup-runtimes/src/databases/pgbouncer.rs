//! Which client of PgBouncer has which of its connections to a server.
//!
//! It has one structure for each socket, of a client or of a server. While a client has a server's connection, each of the two leads to the
//! other, at the same distance, and each has its descriptor, at the same distance. Nothing else in its memory looks like that, so no version's
//! distances are needed.

use crate::memory::{Memory, Source};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The most memory that is looked through, bytes: ten thousand clients take some 6 MB.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Read at a time, bytes.
const PIECE: usize = 4096;

/// Where in such a structure the other one may stand, bytes: version 1.18 has it at 32.
const LINK_BYTES: u64 = 128;

/// Where the descriptor may stand, bytes: version 1.18 has it at 472.
const DESCRIPTOR_BYTES: u64 = 1024;

/// Pairs that are looked at.
const MAX_PAIRS: usize = 16_384;

/// The client's descriptor by the server's. `heap`: where its structures are; `clients`, `servers`: descriptors of connections that it accepted, and
/// of those that it made.
pub fn links<S: Source>(
    memory: &mut Memory<S>,
    heap: Range<u64>,
    clients: &HashSet<u32>,
    servers: &HashSet<u32>,
) -> HashMap<u32, u32> {
    // By the two distances: which descriptors are paired.
    let mut found: BTreeMap<(u64, u64), Vec<(u32, u32)>> = BTreeMap::new();
    for (link, one, other) in pairs(memory, &heap) {
        for place in (0..DESCRIPTOR_BYTES).step_by(4) {
            let (Some(server), Some(client)) = (
                one.checked_add(place).and_then(|at| memory.int(at)),
                other.checked_add(place).and_then(|at| memory.int(at)),
            ) else {
                break;
            };
            if servers.contains(&server) && clients.contains(&client) {
                found.entry((link, place)).or_default().push((server, client));
            }
        }
    }
    // Behind the end of a structure the next one begins, whose descriptors are paired as well: the first place is its own.
    let best = found
        .iter()
        .max_by_key(|((_, place), pairs)| (pairs.len(), std::cmp::Reverse(*place)));
    let Some((_, best)) = best else {
        return HashMap::new();
    };
    let mut links: HashMap<u32, u32> = HashMap::new();
    let mut doubtful: HashSet<u32> = HashSet::new();
    for (server, client) in best {
        if *links.entry(*server).or_insert(*client) != *client {
            doubtful.insert(*server);
        }
    }
    links.retain(|server, _| !doubtful.contains(server));
    links
}

/// Places that lead to each other at the same distance, in both orders, with that distance.
fn pairs<S: Source>(memory: &mut Memory<S>, heap: &Range<u64>) -> Vec<(u64, u64, u64)> {
    let bytes = whole(memory, heap);
    let word = |at: u64| {
        let from = usize::try_from(at.checked_sub(heap.start)?).ok()?;
        let eight = bytes.get(from..from.checked_add(8)?)?;
        Some(u64::from_le_bytes(eight.try_into().ok()?))
    };
    let mut found = Vec::new();
    for (place, eight) in (heap.start..).step_by(8).zip(bytes.chunks_exact(8)) {
        let other = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        if other % 8 != 0 || !heap.contains(&other) {
            continue;
        }
        for link in (0..LINK_BYTES).step_by(8) {
            let Some(one) = place.checked_sub(link) else {
                continue;
            };
            let back = other.checked_add(link).and_then(word);
            if one != other && back == Some(one) && found.len() < MAX_PAIRS {
                found.push((link, one, other));
            }
        }
    }
    found
}

/// All of it, with zeroes for what is not there.
fn whole<S: Source>(memory: &mut Memory<S>, heap: &Range<u64>) -> Vec<u8> {
    let end = heap.end.min(heap.start.saturating_add(MAX_BYTES));
    memory.ahead((heap.start..end).step_by(PIECE));
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE];
    for at in (heap.start..end).step_by(PIECE) {
        if memory.read(at, &mut piece).is_none() {
            piece.fill(0);
        }
        bytes.extend_from_slice(&piece);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::links;
    use crate::memory::{Memory, Written};
    use std::collections::{HashMap, HashSet};
    use std::ops::Range;

    const HEAP: Range<u64> = 0x10_0000..0x10_4000;

    fn socket(number: u64) -> u64 {
        HEAP.start + 0x260 * number
    }

    /// Sockets with descriptors from 10 on, of which these are linked; all are members of a list.
    fn bouncer(link: u64, descriptor: u64, linked: &[(u64, u64)]) -> Written {
        let mut written = Written::default();
        for page in 0..4 {
            written.put(HEAP.start + 0x1000 * page, &[0; 8]);
        }
        for number in 0..8 {
            written.word(socket(number), socket((number + 1) % 8));
            written.word(socket(number) + 8, socket((number + 7) % 8));
            written.put(socket(number) + descriptor, &(10 + number as u32).to_le_bytes());
        }
        for (one, other) in linked {
            written.word(socket(*one) + link, socket(*other));
            written.word(socket(*other) + link, socket(*one));
        }
        written
    }

    fn found(written: Written) -> HashMap<u32, u32> {
        let clients: HashSet<u32> = (10..14).collect();
        let servers: HashSet<u32> = (14..18).collect();
        links(&mut Memory::new(written), HEAP, &clients, &servers)
    }

    #[test]
    fn a_client_is_known_by_the_connection_that_it_has_in_any_version() {
        for (link, descriptor) in [(0x20, 0x1d8), (0x18, 0x90), (0x40, 0x200)] {
            let found = found(bouncer(link, descriptor, &[(0, 5), (2, 4)]));
            assert_eq!(found, HashMap::from([(15, 10), (14, 12)]));
        }
    }

    #[test]
    fn where_no_client_has_a_connection_nothing_is_told() {
        assert!(found(bouncer(0x20, 0x1d8, &[])).is_empty());
        assert!(found(Written::default()).is_empty());
        let of_clients = bouncer(0x20, 0x1d8, &[(0, 1)]);
        assert!(found(of_clients).is_empty(), "both are clients");
    }
}
