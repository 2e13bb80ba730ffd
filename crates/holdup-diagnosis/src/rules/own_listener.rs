//! Workers of a server that ask at their own listener, or somebody who asks there for them.
//!
//! The problem: the process that opened a listener is at the other end of whoever connects there and was not accepted, and it is mostly a parent
//! that accepts nobody. In: workers, and waits of theirs. Out: the listener, where the answer would have to come from one of them.

use super::Waits;
use holdup_evidence::Cause;
use holdup_evidence::facts::{LedBack, SharedListener, Workers};
use holdup_model::attributed::{AttributedWait, HowKnown, Peer, Resource};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How workers wait for themselves.
#[derive(Debug, Clone)]
pub(super) struct Own<'a> {
    /// The listener of theirs where they are to answer.
    pub(super) listener: &'a SharedListener,
    /// Who stands between, if anybody: whatever that has asked is there, or with them.
    pub(super) through: Vec<&'a LedBack>,
}

/// How workers of whom these are the waits wait for themselves, if they do.
pub(super) fn of<'a>(workers: &'a Workers, waits: &Waits<'a>) -> Option<Own<'a>> {
    // Who is answered now and then waits for somebody slow: in a circle nobody is.
    let answered = |wait: &AttributedWait| wait.count.saturating_sub(wait.timed_out) > u64::from(wait.open);
    if waits.iter().any(answered) {
        return None;
    }
    let direct = asked_at(workers, &waits.main().resource).map(|listener| Own {
        listener,
        through: Vec::new(),
    });
    direct.or_else(|| through(workers, waits))
}

/// How these waits lead back to a listener of the workers: whoever is at the other end of each waits for nothing but them.
fn through<'a>(workers: &'a Workers, waits: &Waits<'a>) -> Option<Own<'a>> {
    let asks = matches!(waits.cause(), Cause::NetReceive | Cause::NetTls | Cause::IpcUnix);
    let of = |listener: &'a SharedListener| {
        let mut through: BTreeMap<u32, &'a LedBack> = BTreeMap::new();
        for wait in waits.iter() {
            let holders = wait.holders.iter();
            let peers = holders.filter(|holder| holder.how_known == HowKnown::SocketPeer);
            // Who was in the way for a shorter time may lead back, and the wait be for another one.
            let peer = peers.max_by_key(|holder| holder.ns)?;
            let mut all = listener.led_back.iter();
            let led = all.find(|led| led.pid == peer.name.pid)?;
            through.insert(led.pid, led);
        }
        let through = through.into_values().collect();
        Some(Own { listener, through })
    };
    let mut queued = workers.at.iter().filter(|at| at.before > 0 && at.after > 0);
    queued.find_map(of).filter(|_| asks)
}

/// The listener of these workers at which a wait for an answer is.
pub(super) fn asked_at<'a>(workers: &'a Workers, resource: &Resource) -> Option<&'a SharedListener> {
    let detail = &resource.detail;
    // A server's own end of a connection has the address of its listener: it waits for its client.
    let serves = detail
        .local
        .is_some_and(|local| workers.at.iter().any(|at| is_at(&at.address, local)));
    let is_it = |at: &&SharedListener| match &detail.peer {
        Some(Peer::Address(peer)) => !serves && is_at(&at.address, *peer),
        _ => false,
    };
    workers.at.iter().find(is_it)
}

/// Whether an address is that of a listener.
fn is_at(listener: &str, peer: SocketAddr) -> bool {
    listener.parse::<SocketAddr>().is_ok_and(|own| {
        let (own_ip, ip) = (own.ip().to_canonical(), peer.ip().to_canonical());
        own.port() == peer.port() && (own_ip == ip || own_ip.is_unspecified() && ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::{asked_at, is_at};
    use holdup_evidence::facts::{SharedListener, Workers};
    use holdup_model::attributed::{Resource, ResourceKind};

    #[test]
    fn who_connects_to_the_own_listener_asks_there_and_who_was_accepted_does_not() {
        let at = SharedListener {
            address: "0.0.0.0:8000".to_owned(),
            ..SharedListener::default()
        };
        let workers = Workers {
            at: vec![at],
            ..Workers::default()
        };
        let asks = |local: &str, peer: &str| {
            let ends = (local.parse().unwrap(), peer.into());
            let resource = Resource::named(ResourceKind::Socket, "").with(|facts| {
                facts.local = Some(ends.0);
                facts.peer = Some(ends.1);
            });
            asked_at(&workers, &resource).is_some()
        };
        assert!(asks("127.0.0.1:34432", "127.0.0.1:8000"));
        assert!(
            !asks("127.0.0.1:8000", "127.0.0.1:34432"),
            "the end that was accepted"
        );
        assert!(!asks("127.0.0.1:34432", "127.0.0.1:9000"), "another server");
        assert!(is_at("[::]:8000", "127.0.0.1:8000".parse().unwrap()));
        assert!(!is_at("127.0.0.2:8000", "127.0.0.1:8000".parse().unwrap()));
    }
}
