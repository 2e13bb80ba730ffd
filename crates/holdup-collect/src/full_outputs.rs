//! Receivers that do not read what a program sends them: what is for them stands in the program's sockets.
//!
//! The problem: an event loop whose output is full waits in its set, as one without work does, and may have stopped to read its inputs. In:
//! processes, as observation begins and as it ends. Out: the receivers of connections that the processes have made on which something was unsent
//! both times, nothing of which had gone meanwhile, and which is unread at the other end where that is on this machine.

use super::moment::Moment;
use super::standing::{self, Side, Standing};
use super::unread_answers::readers;
use holdup_evidence::facts::FullOutput;
use holdup_proc::names;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Receivers of all processes that are told of.
const RECEIVERS_MAX: usize = 16;

/// Connections with something unsent at an instant, by inode.
#[derive(Debug)]
pub(super) struct Unsent(BTreeMap<u64, Standing>);

impl Unsent {
    /// Looks at the connections that these processes have made; `None` where they are too many to look at.
    pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Option<Unsent> {
        let found = || standing::connections(pids, Side::Made, |one| one.unsent, moment);
        (pids.len() <= standing::PROCESSES_MAX).then(found).map(Unsent)
    }

    /// The receivers that have taken nothing since; those first for which most stands.
    pub(super) fn since(self, before: &Unsent, moment: &mut Moment) -> Vec<FullOutput> {
        let mut receivers: BTreeMap<(u32, SocketAddr), Vec<Standing>> = BTreeMap::new();
        for now in standing::unmoved(self.0, &before.0) {
            receivers.entry((now.pid, now.ends.1)).or_default().push(now);
        }
        let most = |full: &[Standing]| full.iter().map(|one| u64::from(one.bytes)).max().unwrap_or(0);
        let mut receivers: Vec<_> = receivers.into_iter().collect();
        receivers.sort_by_key(|(_, full)| std::cmp::Reverse(most(full)));
        receivers.truncate(RECEIVERS_MAX);
        let of = |((pid, receiver), full): ((u32, SocketAddr), Vec<Standing>), moment: &Moment| FullOutput {
            pid,
            process: names::comm(&moment.root, pid).unwrap_or_default(),
            receiver: Some(receiver),
            reader: readers(pid, &full, moment).into_iter().next(),
            connections: u32::try_from(full.len()).unwrap_or(u32::MAX),
            most: most(&full),
        };
        receivers.into_iter().map(|one| of(one, moment)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Unsent};
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    /// Looks until what was sent stands.
    const LOOKS_MAX: usize = 1_000;

    #[test]
    fn what_a_receiver_leaves_unread_stands_until_it_reads() {
        let own = BTreeSet::from([std::process::id()]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver: SocketAddr = listener.local_addr().unwrap();
        let mut output = TcpStream::connect(receiver).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        // The listener's port tells what it has accepted from what was made: this process has both ends.
        drop(listener);
        output.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(written) = output.write(&[7; 65536]) {
            sent += written;
        }
        let look = || Unsent::look(&own, &mut Moment::now()).expect("one process is looked at");
        let here = |before: &Unsent| {
            let found = look().since(before, &mut Moment::now());
            let found = found.into_iter().find(|one| one.receiver == Some(receiver));
            found.map_or(0, |one| one.connections)
        };
        // On a busy machine what was written is on its way for a while: until then it is another amount each time.
        let mut looks = std::iter::repeat_with(look).take(LOOKS_MAX);
        let before = looks
            .find(|before| here(before) == 1)
            .expect("it stands once all of it is there or waits");
        let mut read = vec![0; sent];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(here(&before), 0);
    }
}
