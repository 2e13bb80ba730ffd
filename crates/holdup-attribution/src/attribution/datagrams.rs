//! Datagrams over UDP, by peer, as rules read them: names for processes, times until the end, and the protocol.

use super::task_table::TaskTable;
use holdup_evidence::{Finish, Ns};
use holdup_knowledge::datagrams::request;
use holdup_model::attributed::{DatagramPeer, Datagrams, ThreadName};
use std::net::IpAddr;

/// What was sent, until `end`. Who listens to a group or to everybody owes no answer, so those are left out.
pub(super) fn judged(finish: &Finish, end: Ns, tasks: &TaskTable) -> Option<Datagrams> {
    let found = finish.datagrams.as_ref()?;
    let peers = found.peers.iter().filter(|one| !to_many(one.peer.ip()));
    let peers = peers.map(|one| {
        let name = tasks.name_of(one.pid).unwrap_or_default();
        DatagramPeer {
            peer: one.peer.to_string(),
            by: ThreadName {
                pid: one.pid,
                tid: one.pid,
                process: name.to_owned(),
                thread: name.to_owned(),
            },
            protocol: request(&one.begins, one.size, one.peer.port()),
            sent: one.sent,
            received: one.received,
            unanswered: one.unanswered,
            failed: one.failed,
            silent: match one.unanswered {
                0 => 0,
                _ => end.saturating_sub(one.silent_since),
            },
            watched: end.saturating_sub(one.since),
        }
    });
    Some(Datagrams {
        peers: peers.collect(),
        refused: found.refused,
    })
}

fn to_many(ip: IpAddr) -> bool {
    ip.is_multicast() || matches!(ip, IpAddr::V4(four) if four.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::{TaskTable, judged};
    use holdup_evidence::{DatagramPeer, Datagrams, Finish};
    use holdup_model::attributed::DatagramProtocol;

    fn sent_to(peer: &str, begins: &[u8]) -> DatagramPeer {
        DatagramPeer {
            peer: peer.parse().unwrap(),
            sent: 3,
            unanswered: 3,
            silent_since: 40,
            since: 10,
            size: begins.len() as u64,
            begins: begins.to_vec(),
            ..DatagramPeer::default()
        }
    }

    #[test]
    fn peers_have_their_protocol_and_times_until_the_end_and_groups_are_left_out() {
        let options = b"OPTIONS sip:trunk@192.0.2.1 SIP/2.0\r\n";
        let answered = DatagramPeer {
            unanswered: 0,
            ..sent_to("192.0.2.2:8125", b"hits:1|c")
        };
        let finish = Finish {
            datagrams: Some(Datagrams {
                peers: vec![
                    sent_to("192.0.2.1:5060", options),
                    answered,
                    sent_to("224.0.1.75:5060", options),
                    sent_to("255.255.255.255:5060", options),
                ],
                refused: 2,
            }),
            ..Finish::default()
        };
        let found = judged(&finish, 100, &TaskTable::default()).unwrap();
        assert_eq!(found.refused, 2);
        let of = |place: usize| found.peers.get(place).unwrap();
        assert_eq!(found.peers.len(), 2, "{found:?}");
        assert_eq!(
            (of(0).protocol, of(0).silent, of(0).watched),
            (Some(DatagramProtocol::Sip), 60, 90)
        );
        assert_eq!((of(1).protocol, of(1).silent), (None, 0));
        assert_eq!(judged(&Finish::default(), 100, &TaskTable::default()), None);
    }
}
