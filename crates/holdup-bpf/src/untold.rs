//! Requests that are open as observation ends and were not known, because there were many.
//!
//! In: what the programs keep of each socket (`bpf/sockets.h`). Out: who had read them, and when.

use crate::entry;
use crate::later::{Iterators, Later};
use crate::skeleton::{TraceSkel, types::kept_socket, types::open_request};
use holdup_evidence::{Ns, ThreadId};
use libbpf_rs::{MapCore, MapFlags};
use std::mem::offset_of;

/// `struct untold_open` in `bpf/sockets.h`, bytes.
const RECORD: usize = 16;

/// Those that are open now.
///
/// # Errors
/// When the kernel does not let them be looked at.
pub(crate) fn open_requests(
    skeleton: &mut TraceSkel<'static>,
    iterators: &mut Iterators,
) -> libbpf_rs::Result<Vec<(ThreadId, Ns)>> {
    if !skeleton.maps.kept_sockets.autocreate() {
        let table = &skeleton.maps.socket_table;
        let values = table
            .keys()
            .filter_map(|key| table.lookup(&key, MapFlags::ANY).ok().flatten());
        return Ok(values.filter_map(|value| of_table(&value)).collect());
    }
    if let Some(state) = skeleton.maps.bss_data.as_deref_mut() {
        state.looks_at_sockets = state.looks_at_sockets.wrapping_add(1).max(1);
    }
    let records = iterators.run(Later::LookAtSocket, skeleton)?;
    let (records, _) = records.as_chunks::<RECORD>();
    let open = records.iter().filter_map(|record| open_entry(record, 0, 8));
    Ok(open.collect())
}

/// An entry of the table of kernels that keep nothing with a socket.
fn of_table(value: &[u8]) -> Option<(ThreadId, Ns)> {
    const REQUEST: usize = offset_of!(kept_socket, request);
    let weight = entry::word(value, REQUEST + offset_of!(open_request, weight))?;
    let open = open_entry(
        value,
        REQUEST + offset_of!(open_request, began),
        REQUEST + offset_of!(open_request, thread),
    )?;
    (weight == 0 && open.1 != 0).then_some(open)
}

fn open_entry(bytes: &[u8], began: usize, thread: usize) -> Option<(ThreadId, Ns)> {
    Some((ThreadId(entry::word(bytes, thread)?), entry::long(bytes, began)?))
}

#[cfg(test)]
mod tests {
    use super::{of_table, open_entry};
    use crate::entry;
    use crate::skeleton::types::kept_socket;
    use holdup_evidence::ThreadId;

    fn kept(began: u64, weight: u32) -> Vec<u8> {
        let mut kept = kept_socket::default();
        kept.request.began = began;
        kept.request.thread = 7;
        kept.request.weight = weight;
        entry::bytes(&kept)
    }

    #[test]
    fn only_what_is_open_and_was_not_told_counts() {
        assert_eq!(of_table(&kept(5, 0)), Some((ThreadId(7), 5)));
        assert_eq!(of_table(&kept(0, 0)), None, "all is answered");
        assert_eq!(of_table(&kept(5, 1)), None, "it was told");
        assert_eq!(of_table(&[0; 9]), None, "cut short");
    }

    #[test]
    fn what_the_program_writes_is_understood() {
        let mut record = 5_u64.to_ne_bytes().to_vec();
        record.extend(7_u32.to_ne_bytes());
        record.extend([0; 4]);
        assert_eq!(open_entry(&record, 0, 8), Some((ThreadId(7), 5)));
    }
}
