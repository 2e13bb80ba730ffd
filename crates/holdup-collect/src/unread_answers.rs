//! Clients that do not read their answers: what a server has sent them stands in its sockets.
//!
//! The problem: which thread waits for such a client is not to be seen where the server has a thread of its own for sending, and the others
//! wait for that one in a condition variable. In: processes, as observation begins and as it ends. Out: those with connections on which
//! something was unsent both times, nothing of which had gone meanwhile, and whose clients leave it unread.

use super::moment::Moment;
use super::sessions::STOPPED;
use super::standing::{self, Side, Standing};
use holdup_evidence::facts::{SessionClient, UnreadAnswers};
use holdup_proc::descriptors::Open;
use holdup_proc::names;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;

/// Clients of a process that are named.
const NAMED_MAX: usize = 8;

/// Connections with something unsent at an instant, by inode.
#[derive(Debug, Default)]
pub(super) struct Unsent(BTreeMap<u64, Standing>);

impl Unsent {
    /// Looks at the clients of these processes.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Unsent {
        Unsent(standing::connections(
            pids,
            Side::Accepted,
            |one| one.unsent,
            moment,
        ))
    }

    /// Those on which as much was unsent before.
    pub(super) fn since(self, before: &Unsent, moment: &mut Moment) -> Vec<UnreadAnswers> {
        let mut by_process: BTreeMap<u32, Vec<Standing>> = BTreeMap::new();
        for now in standing::unmoved(self.0, &before.0) {
            by_process.entry(now.pid).or_default().push(now);
        }
        let of = |(pid, full): (u32, Vec<Standing>), moment: &mut Moment| UnreadAnswers {
            pid,
            process: names::comm(&moment.root, pid).unwrap_or_default(),
            clients: u32::try_from(full.len()).unwrap_or(u32::MAX),
            most: full.iter().map(|one| u64::from(one.bytes)).max().unwrap_or(0),
            readers: readers(pid, &full, moment),
        };
        by_process.into_iter().map(|one| of(one, moment)).collect()
    }
}

/// The processes at the other ends, where those are on this machine.
pub(super) fn readers(pid: u32, full: &[Standing], moment: &Moment) -> Vec<SessionClient> {
    let others = full
        .iter()
        .filter_map(|one| Some((one.ends.1, one.other?.1)))
        .take(NAMED_MAX);
    let others: Vec<(SocketAddr, u64)> = others.collect();
    let wanted: HashSet<Open> = others.iter().map(|(_, inode)| Open::Socket(*inode)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let holders = moment.holders(&wanted);
    let client = |(address, inode): (SocketAddr, u64)| {
        let mut all = holders.get(&Open::Socket(inode))?.iter();
        let reader = *all.find(|one| **one != pid)?;
        Some(SessionClient {
            address: Some(address),
            pid: Some(reader),
            process: names::comm(&moment.root, reader).unwrap_or_default(),
            stopped: names::state(&moment.root, reader) == Some(STOPPED),
        })
    };
    others.into_iter().filter_map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::{Moment, Unsent};
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Looks until what was sent stands.
    const LOOKS_MAX: usize = 1_000;

    #[test]
    fn what_a_client_leaves_unread_stands_until_it_reads() {
        let own = BTreeSet::from([std::process::id()]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(written) = server.write(&[7; 65536]) {
            sent += written;
        }
        let look = || Unsent::look(&own, &mut Moment::now());
        let here = |before: &Unsent| {
            let found = look().since(before, &mut Moment::now());
            found.first().map_or(0, |one| one.clients)
        };
        // On a busy machine what was written is on its way for a while: until then it is another amount each time.
        let mut looks = std::iter::repeat_with(look).take(LOOKS_MAX);
        let before = looks
            .find(|before| here(before) == 1)
            .expect("it stands once all of it is there or waits");
        let mut read = vec![0; sent];
        client.read_exact(&mut read).unwrap();
        assert_eq!(here(&before), 0);
    }
}
