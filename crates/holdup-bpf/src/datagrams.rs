//! Peers to which datagrams were sent over UDP: how many, and what came back.
//!
//! In: what the programs keep of each peer (`bpf/datagrams.h`). Out: the same, those first to which most was sent without an answer.

use crate::entry;
use crate::skeleton::types::datagram_peer;
use crate::upstreams;
use holdup_evidence::{DatagramPeer, Datagrams};
use libbpf_rs::{MapCore, MapFlags};
use std::cmp::Reverse;
use std::mem::offset_of;

/// Peers that are handed over.
const MAX_PEERS: usize = 64;

/// All of them.
pub(crate) fn read(table: &impl MapCore) -> Datagrams {
    let mut all = Datagrams::default();
    for key in table.keys() {
        let value = table.lookup(&key, MapFlags::ANY).ok().flatten();
        let Some((peer, refused)) = value.and_then(|value| of_entry(&key, &value)) else {
            continue;
        };
        all.refused = all.refused.saturating_add(refused);
        all.peers.push(peer);
    }
    all.peers
        .sort_by_key(|one| (Reverse((one.unanswered, one.failed, one.sent)), one.peer));
    all.peers.truncate(MAX_PEERS);
    all
}

/// One of them, and how many refusals were sent there; nothing for an entry that is cut short, or has no address.
fn of_entry(key: &[u8], value: &[u8]) -> Option<(DatagramPeer, u64)> {
    let word = |place: usize| entry::word(value, place);
    let long = |place: usize| entry::long(value, place);
    let begins = value.get(offset_of!(datagram_peer, begins)..offset_of!(datagram_peer, size))?;
    let len = usize::try_from(word(offset_of!(datagram_peer, len))?).ok()?;
    let peer = DatagramPeer {
        peer: upstreams::server(key)??,
        pid: word(offset_of!(datagram_peer, pid))?,
        sent: word(offset_of!(datagram_peer, sent))?.into(),
        received: word(offset_of!(datagram_peer, received))?.into(),
        unanswered: word(offset_of!(datagram_peer, unanswered))?.into(),
        failed: word(offset_of!(datagram_peer, failed))?.into(),
        silent_since: long(offset_of!(datagram_peer, silent_since))?,
        since: long(offset_of!(datagram_peer, since))?,
        size: word(offset_of!(datagram_peer, size))?.into(),
        begins: begins.get(..len).unwrap_or_default().to_vec(),
    };
    Some((peer, word(offset_of!(datagram_peer, refused))?.into()))
}

#[cfg(test)]
mod tests {
    use super::of_entry;
    use crate::entry::bytes;
    use crate::skeleton::types::{datagram_peer, upstream_key};

    #[test]
    fn a_peer_is_read_and_a_torn_entry_is_none() {
        let mut key = upstream_key {
            family: 2,
            port: 53,
            ..upstream_key::default()
        };
        key.address[..4].copy_from_slice(&[192, 0, 2, 1]);
        let mut value = datagram_peer {
            silent_since: 40,
            since: 10,
            sent: 9,
            received: 2,
            unanswered: 3,
            failed: 0,
            refused: 1,
            pid: 7,
            len: 4,
            size: 90,
            begins: [0; 64],
        };
        value.begins[..5].copy_from_slice(b"query");
        let (found, refused) = of_entry(&bytes(&key), &bytes(&value)).unwrap();
        assert_eq!(found.peer, "192.0.2.1:53".parse().unwrap());
        assert_eq!(
            (found.sent, found.received, found.unanswered, refused),
            (9, 2, 3, 1)
        );
        assert_eq!((found.silent_since, found.since, found.pid), (40, 10, 7));
        assert_eq!(found.begins, b"quer");
        value.len = 65;
        let (torn, _) = of_entry(&bytes(&key), &bytes(&value)).unwrap();
        assert_eq!(torn.begins, [0; 0], "a length that is more than there is");
        assert_eq!(of_entry(&bytes(&key), &bytes(&value)[..30]), None);
        key.family = 1;
        assert_eq!(of_entry(&bytes(&key), &bytes(&value)), None, "no address");
    }
}
