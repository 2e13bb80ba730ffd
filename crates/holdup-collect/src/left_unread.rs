//! Answers that a program leaves unread: what servers have sent it stands in its sockets.
//!
//! The problem: a client library gives a connection back once an answer has been read. Where the program reads only its head, or has paused the
//! stream, the connection stays taken, the program looks idle, and its server seems to owe it something. In: processes, as observation begins
//! and as it ends. Out: the servers on whose connections something was unread both times and nothing of it had been read meanwhile.

use super::moment::Moment;
use super::standing::{self, Side, Standing};
use holdup_evidence::facts::LeftUnread;
use holdup_proc::descriptors::Open;
use holdup_proc::names;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;

/// Servers of one process that are reported.
const SERVERS_MAX: usize = 8;

/// Connections with something unread at an instant, by inode.
#[derive(Debug, Default)]
pub(super) struct Left(BTreeMap<u64, Standing>);

impl Left {
    /// Looks at the connections that these processes have made.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Left {
        Left(standing::connections(pids, Side::Made, |one| one.unread, moment))
    }

    /// Those of which nothing was read since.
    pub(super) fn since(self, before: &Left, moment: &mut Moment) -> Vec<LeftUnread> {
        let mut by_server: BTreeMap<(u32, SocketAddr), Vec<Standing>> = BTreeMap::new();
        for (inode, now) in self.0 {
            let was = before.0.get(&inode).filter(|was| was.ends == now.ends);
            // More may have come; less means that it reads.
            if was.is_some_and(|was| was.bytes <= now.bytes) {
                by_server.entry((now.pid, now.ends.1)).or_default().push(now);
            }
        }
        let mut of_process: BTreeMap<u32, usize> = BTreeMap::new();
        by_server.retain(|(pid, _), _| {
            let count = of_process.entry(*pid).or_default();
            *count += 1;
            *count <= SERVERS_MAX
        });
        let wanted = by_server.values().filter_map(|all| all.first()?.other);
        let wanted: HashSet<Open> = wanted.map(|(_, inode)| Open::Socket(inode)).collect();
        let holders = match wanted.is_empty() {
            true => Default::default(),
            false => moment.holders(&wanted),
        };
        let of = |((pid, server), all): ((u32, SocketAddr), Vec<Standing>)| {
            let other = all.first().and_then(|one| one.other);
            let servers = other.and_then(|(_, inode)| holders.get(&Open::Socket(inode)));
            let server_pid = servers.and_then(|pids| pids.iter().copied().find(|one| *one != pid));
            let name = |pid: u32| names::comm(&moment.root, pid).unwrap_or_default();
            LeftUnread {
                pid,
                process: name(pid),
                server: Some(server),
                server_pid,
                server_process: server_pid.map(name).unwrap_or_default(),
                connections: u32::try_from(all.len()).unwrap_or(u32::MAX),
                most: all.iter().map(|one| u64::from(one.bytes)).max().unwrap_or(0),
            }
        };
        by_server.into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Left, Moment};
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// The server keeps its listener: its own connections are none of these.
    #[test]
    fn what_is_left_unread_stands_until_it_is_read() {
        let own = BTreeSet::from([std::process::id()]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, address) = listener.accept().unwrap();
        server.write_all(&[7; 4096]).unwrap();
        client.write_all(b"question").unwrap();
        // All has arrived once it can be peeked at.
        let mut head = [0; 4096];
        while client.peek(&mut head).unwrap() < head.len() {}
        let look = || Left::look(&own, &mut Moment::now());
        let here = |before: &Left| {
            let found = look().since(before, &mut Moment::now());
            let to_us = found
                .into_iter()
                .filter(|one| one.server == Some(client.peer_addr().unwrap()));
            to_us.map(|one| one.most).sum::<u64>()
        };
        let before = look();
        assert_eq!(here(&before), 4096);
        assert_ne!(Some(address), client.peer_addr().ok());
        let mut reader = &client;
        reader.read_exact(&mut head).unwrap();
        assert_eq!(here(&before), 0);
    }
}
